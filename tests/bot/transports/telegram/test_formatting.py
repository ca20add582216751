"""Formatting: what a model writes reads well in Telegram, and nothing of it is lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.transports.telegram.formatting import Entity, formatted, plain, units


def _shown(markdown: str) -> dict[str, str]:
    """The words under each kind of entity."""
    result = formatted(markdown)
    raw = result.text.encode("utf-16-le")
    return {one.type: raw[one.offset * 2 : one.end * 2].decode("utf-16-le") for one in result.entities}


def test_markdown_becomes_entities() -> None:
    """The marks go, the format stays; offsets count UTF-16 units."""
    assert _shown("😀 **negrita** y `código` y [enlace](https://example.org)") == {
        "bold": "negrita",
        "code": "código",
        "text_link": "enlace",
    }


def test_a_fence_keeps_its_language() -> None:
    """Telegram colours code by it."""
    [entity] = formatted("```python\nprint(1)\n```").entities

    assert entity == Entity("pre", 0, 8, None, "python")


@pytest.mark.parametrize(
    "text",
    [
        "usa List<int> y <foo>",
        "<div>bloque</div>",
        "a < b > c",
        "según [1][3] y [2, 4]",
        "snake_case_name y 2 * 3 * 4",
        "Fuentes: [2] docs/faq.md › Envíos",
        "cuesta $5 y $6",
    ],
)
def test_what_only_looks_like_markup_is_kept(text: str) -> None:
    """Nothing that a model wrote as text disappears."""
    assert formatted(text).text == text


def test_what_is_code_keeps_its_tags_without_backslashes() -> None:
    """Escaping is for text, not for code."""
    assert _shown("`<b>`") == {"code": "<b>"}
    assert formatted("```html\n<b>x</b>\n```").text == "<b>x</b>"


def test_lists_and_titles_read_as_such() -> None:
    """A bullet, a bold title, no ornaments."""
    result = formatted("# Título\n\n- uno\n- dos")

    assert result.text == "Título\n\n• uno\n• dos"
    assert result.entities == (Entity("bold", 0, 6),)


def test_a_link_that_leads_nowhere_is_plain() -> None:
    """Telegram would refuse the message for it."""
    assert formatted("[x](javascript:alert(1))").entities == ()


def test_characters_that_cannot_be_sent_are_taken_out() -> None:
    """NUL and lone surrogates would make the request fail."""
    assert plain("a\0b\ud800").text == "ab?"
    assert formatted("a\0**b**\ud800").text == "ab?"


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab <>*_`[]()|#-~$\\\n.😀ñ&!"), max_size=80))
def test_any_text_can_be_formatted(text: str) -> None:
    """Whatever a model writes, its entities lie inside its text, and there is a text."""
    result = formatted(text)

    assert bool(result.text.strip()) or not text.strip()
    assert all(one.offset >= 0 and one.length > 0 and one.end <= units(result.text) for one in result.entities)
