"""What goes in and out of a terminal, as pure text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.transports.console_text import Splitter, clean, parted
from bot.values import Passage, Reply

FAQ = [Passage(text="Tarda 3 días.", citation="faq")]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\", "here"),
        ("\x1b]52;c;ZXZpbA==\x07", ""),
        ("\x9b2Jgone\x9d0;t\x9c", "gone"),
        ("\x1bcreset", "reset"),
        ("a\x08\x7fb\x00c", "abc"),
        ("abc\u202edcba\u2066x", "abcdcbax"),
        ("broken \x1b", "broken "),
        ("\ud800", "\ufffd"),
    ],
)
def test_nothing_that_a_terminal_obeys(said: str, shown: str) -> None:
    """No escape sequence, control character or change of direction reaches the terminal."""
    assert clean(said) == shown


def test_lines_tabs_and_emoji_stay() -> None:
    """What people write stays as it is; a carriage return is a line break."""
    assert clean("año\tñandú\r\n👩‍👩‍👧 fin\rotra\n") == "año\tñandú\n👩‍👩‍👧 fin\notra\n"


@given(st.text())
def test_cleaning_leaves_nothing_to_clean(text: str) -> None:
    """Taking a sequence out does not put another together that would be obeyed."""
    cleaned = clean(text)

    assert not any((c < " " and c not in "\n\t") or "\x7f" <= c <= "\x9f" for c in cleaned)
    assert clean(cleaned) == cleaned


def test_the_sources_line_is_told_from_the_answer() -> None:
    """The last fragment of an answer from passages, where it is no part of the model's own words, is the sources line."""
    reply = Reply(text="Tarda 3 días [1].\n\nFuentes: [1] faq", answer="Tarda 3 días [1].", citations=FAQ)

    assert parted("Tarda 3 días [1].\n\nFuentes: [1] faq", "\n\nFuentes: [1] faq", reply) == ("Tarda 3 días [1].", "Fuentes: [1] faq")


def test_a_last_paragraph_is_no_sources_line() -> None:
    """A model's own last paragraph belongs to the answer, though it came as one fragment."""
    reply = Reply(text="Uno.\n\nDos.", answer="Uno.\n\nDos.", citations=FAQ)

    assert parted("Uno.\n\nDos.", "\n\nDos.", reply) == ("Uno.\n\nDos.", "")


def test_the_reply_has_the_final_word() -> None:
    """Where the final text is another than the fragments were, it is the one shown; with no reply, what came is."""
    assert parted("Draft", "Draft", Reply(text="Final", answer="Final")) == ("Final", "")
    assert parted("Half an ans", "ans", None) == ("Half an ans", "")


def test_lines_of_every_ending() -> None:
    """Lines end in LF or CRLF, the last one in either or in nothing."""
    splitter = Splitter()

    assert splitter.feed(b"uno\r\ndos\n\ntr") == ["uno", "dos", ""]
    assert splitter.feed("és".encode()) == []
    assert splitter.end() == ["trés"]


def test_a_mark_at_the_start_is_no_text() -> None:
    """A byte order mark is dropped where the input starts, and only there."""
    splitter = Splitter()

    assert splitter.feed("\ufeffuno\n\ufeffdos\n".encode()) == ["uno", "\ufeffdos"]


def test_bytes_that_are_no_utf8() -> None:
    """Input in another encoding costs the characters that it spoils, not the line."""
    assert Splitter().feed("¿Cómo?\n".encode("latin-1")) == ["\ufffdC\ufffdmo?"]


def test_a_line_too_long_is_one_none() -> None:
    """A line over the limit is None, and the lines around it are whole."""
    splitter = Splitter(longest=4)

    assert splitter.feed(b"four\nfive!\nsix\nseven") == ["four", None, "six"]
    assert splitter.feed(b"seven\neig") == [None]
    assert splitter.feed(b"hteen") == []
    assert splitter.end() == [None]


@given(st.lists(st.binary(max_size=12)), st.binary(max_size=60))
def test_how_bytes_arrive_does_not_matter(cuts: list[bytes], data: bytes) -> None:
    """However the input is cut into chunks, the lines are the same."""
    whole, pieces = Splitter(longest=8), Splitter(longest=8)
    size = max(len(cuts), 1)

    expected = whole.feed(data) + whole.end()
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    lines = [line for chunk in chunks for line in pieces.feed(chunk)] + pieces.end()

    assert lines == expected
