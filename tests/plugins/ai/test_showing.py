"""plugins/ai/showing.py"""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot import Passage
from plugins.ai.showing import Showing, Style

PASSAGES = [Passage("a", citation="faq.md"), Passage("b", citation="precios.md")]


def english(message: str) -> str:
    return message


STYLE = Style(PASSAGES, english, numbered=True, own_line=True)

_PIECES = """Tarda| |  |\n|\n\n|[1]|[9]|[|]|1|,|-|(x)|`|```\n|Fuentes:|\n\nFuentes: [1] faq.md|\nfuen|**|Sources|:| faq.md|- |días.\
|. Sources: [9]|[1](|a[9]|#|    |[1, 9]|. |\\|>|http://x.y/z|\n- [1] faq.md"""
pieces = st.sampled_from(_PIECES.split("|"))


@settings(max_examples=400)
@given(st.lists(pieces, max_size=24), st.booleans(), st.booleans())
@example(["a", " ", "[9]", "\n", "`", "[9]", "`"], True, True)
@example(["Tarda", ".", " ", "Sources", ":", "\n", "- ", "[1]"], True, True)
def test_what_is_shown_is_the_body_in_the_end(fragments: list[str], numbered: bool, own_line: bool) -> None:
    """However an answer is cut into fragments, what was shown together is exactly the text that is sent, and the same as in one piece."""
    style = Style(PASSAGES, english, numbered=numbered, own_line=own_line)
    showing = Showing(style)

    shown = [showing.add(fragment) for fragment in fragments] + [showing.rest()]

    assert "".join(shown) == showing.body
    assert showing.body == style.body("".join(fragments)) or "`" in showing.answer or "]:" in showing.answer


@settings(max_examples=300)
@given(st.lists(pieces, max_size=12))
def test_letter_by_letter(parts: list[str]) -> None:
    """The same, a letter at a time."""
    showing = Showing(STYLE)

    shown = [showing.add(letter) for letter in "".join(parts)] + [showing.rest()]

    assert "".join(shown) == showing.body
    assert showing.body == STYLE.body("".join(parts)) or "`" in showing.answer or "]:" in showing.answer


def test_a_citation_is_never_shown_by_half() -> None:
    """What may become a mark is held until it is one."""
    showing = Showing(STYLE)

    shown = [showing.add(fragment) for fragment in ["Tarda ", "3 días [", "1", "]", ", y ya."]]

    assert shown == ["Tarda", " 3 días", "", " [1]", ", y ya."]


def test_words_are_not_held_back() -> None:
    """Plain prose is shown as it comes, its last space aside."""
    showing = Showing(STYLE)

    assert [showing.add(fragment) for fragment in ["Hola", ", ¿qué", " tal?"]] == ["Hola", ", ¿qué", " tal?"]


def test_a_possible_line_of_sources_is_held_back() -> None:
    """The model's own line is never shown: the bot's own comes instead."""
    showing = Showing(STYLE)

    shown = [showing.add(fragment) for fragment in ["Tarda 3 días [1].", "\n\nFuen", "tes: [1]", " faq.md"]]

    assert (shown, showing.rest()) == (["Tarda 3 días [1].", "", "", ""], "")


def test_what_turns_out_to_be_prose_is_shown_before_the_end() -> None:
    """A paragraph that begins like a line of sources is shown once it is clear that it is none."""
    showing = Showing(STYLE)

    showing.add("Hay dos.\n\nFuentes: ")
    shown = showing.add("las de energía, que son muchas y muy distintas entre sí, y se explican ahora mismo aquí.\n\nLas primeras")

    assert shown.startswith("\n\nFuentes: las de energía")


@pytest.mark.parametrize("own_line", [True, False])
def test_the_models_own_line_stays_where_the_bot_adds_none(own_line: bool) -> None:
    """Only where the bot writes sources does it take the model's away."""
    style = Style(PASSAGES, english, numbered=True, own_line=own_line)

    assert style.body("Sí [1].\n\nSources: [1] faq.md") == ("Sí [1]." if own_line else "Sí [1].\n\nSources: [1] faq.md")
