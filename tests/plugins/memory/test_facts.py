"""How a fact's text is cleaned, and when two facts say the same."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import Fact
from plugins.memory.facts import _SEQUENCES, _shown, identity, normalise, one_line, same, why_not, why_not_keyed


@pytest.mark.parametrize(
    "text",
    [
        "vive en bogotá",
        "  Vive   en\tBogotá. ",
        "¡VIVE EN BOGOTÁ!",
        "«Vive, en: Bogotá»",
        "Vive en Bogota\u0301",
        "Vive\u200b en Bogotá",
        "Vive\nen\u2028Bogotá…",
    ],
)
def test_case_punctuation_and_space_are_ignored(text: str) -> None:
    """These all say that someone lives in Bogotá."""
    assert normalise(text) == "vive en bogotá"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("año", "ano"),
        ("Vive en Bogotá", "Vive en Bogota"),
        ("Le gusta C", "Le gusta C#"),
        ("Da el 5", "Da el 5%"),
        ("35", "3.5"),
        ("sí", "si"),
        ("C", "C++"),
    ],
)
def test_what_makes_a_difference_counts(one: str, other: str) -> None:
    """Accents count, and so does punctuation that changes the meaning."""
    assert normalise(one) != normalise(other)


def test_a_text_of_punctuation_is_its_own_key() -> None:
    """Where nothing is left of the normal form, the text itself tells two facts apart."""
    assert identity("?!") == "?!"
    assert identity("?!") != identity("!?")


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    """A normal form is its own normal form."""
    assert normalise(normalise(text)) == normalise(text)


def test_what_a_terminal_obeys_is_no_part_of_a_fact() -> None:
    """A pasted colour leaves no brackets behind, and hides no secret."""
    assert one_line("\x1b[1;31mVivo\x1b[0m en Lima") == "Vivo en Lima"
    assert why_not("contra\x1b[0mseña: tomate77", max_length=300) == "SECRET_PASSWORD"


@given(st.text())
def test_one_line_is_one_clean_line(text: str) -> None:
    """In NFC, with no control, format, surrogate or private character, and no space but single ones inside."""
    line = one_line(text)

    assert line == unicodedata.normalize("NFC", line) == " ".join(line.split())
    assert not [c for c in line if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")]
    assert one_line(line) == line


@given(st.text())
def test_how_a_text_was_composed_makes_no_difference(text: str) -> None:
    """A letter with its accent apart is the letter with its accent."""
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "EMPTY"),
        (" \u200b\n", "EMPTY"),
        ("x" * 10, None),
        ("x" * 11, "TOO_LONG"),
        ("PIN: 1234", "SECRET_PASSWORD"),
        ("pin: 1234 " * 90, "SECRET_PASSWORD"),
    ],
)
def test_why_a_text_is_left_out(text: str, code: str | None) -> None:
    """Empty, too long, or a secret; a secret is said to be one however long it is."""
    assert why_not(text, max_length=10) == code


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("city", "Bogotá", None),
        ("?!", "Bogotá", "EMPTY"),
        ("city", " ", "EMPTY"),
        ("x" * 65, "y", "TOO_LONG"),
        ("city", "x" * 300, "TOO_LONG"),
        ("pin", "1234", "SECRET_PASSWORD"),
    ],
)
def test_why_a_keyed_fact_is_left_out(key: str, value: str, code: str | None) -> None:
    """Key and value are looked at together: `pin` and `1234` are harmless only apart."""
    assert why_not_keyed(key, value, max_length=300) == code


def test_a_keyed_fact_is_found_by_how_it_reads() -> None:
    """`key: value` names it, as a person sees it in the list."""
    fact = Fact("1", "ana", "keyed", "city", "Bogotá", "manual", 0, 0)

    assert same([fact], "City: bogotá") == [fact]
    assert same([fact], "Bogotá") == []


@given(st.text(st.one_of(st.characters(), st.sampled_from("aé \u0301\u115f\u2800\u3164\u00a0\u200b")), max_size=20))
def test_the_short_way_and_the_long_way_are_one(text: str) -> None:
    """What has nothing to hide is cleaned without looking at each character, to the same end."""
    shown = "".join(_shown(char) for char in unicodedata.normalize("NFC", _SEQUENCES.sub("", text)))

    assert one_line(text) == unicodedata.normalize("NFC", " ".join(shown.split()))
