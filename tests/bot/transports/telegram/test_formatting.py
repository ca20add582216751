"""Formatting: what a model writes reads well in Telegram, and nothing of it is lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.transports.telegram.formatting import Entity, Formatted, formatted, parsed, plain, simple, units


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


WRITTEN = (
    "a", "B1", "ñ", "12", " ", "  ", "\n", "\n\n", "\n\n\n", "`", "``", "`a b`", "`x_y`", "_", "[1]", "[2, 3]", "[1]: ", "[^1]", "[x]",
    "[", "]", "(", ")", "/x", ":", "-", "---", "=", "===", "+", "#", ">", ".", "1.", "2)", "!", "?", "¿", "\U0001f600", "\ufeff", "\u200d",
    "\xa0", "\u2028", "\x85", "\f", "\t", "\r", "*", "**", "~", "$", "|", "<", "<b>", "&amp;", "\\", "http://a.b", "www.a.b", '"', "\u0301",
    "\x1f", "\x7f", "\u0663",
)  # fmt: skip


@settings(max_examples=1000, deadline=None)
@given(st.sets(st.sampled_from(WRITTEN), min_size=2, max_size=12).flatmap(lambda some: st.text() | _written(sorted(some))))
def test_what_is_not_parsed_shows_the_same(text: str) -> None:
    """The short way is taken only where it leads to the same text and the same entities."""
    assert simple(text) in (None, parsed(text))


def _written(some: list[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(some), min_size=1, max_size=16).map("".join)


@pytest.mark.parametrize(
    "line", ["# a", "- a", "+ a", "> a", "1. a", "12) a", "    a", "---", "===", "a  ", "\ta", ": a", "***", "```", "[1]: a", "[1](a)"]
)
@pytest.mark.parametrize("before", ["", "b\n", "b\n\n", "b [1].\n\n`c`\n"])
def test_a_line_that_markdown_reads_is_parsed(before: str, line: str) -> None:
    """Wherever it stands."""
    assert simple(f"{before}{line}\nc") is None


def test_a_cited_answer_needs_no_parser() -> None:
    """The most usual of answers: citation marks, names with `_`, code, a line of sources."""
    cited = "Sí, 😀 dos [1][2, 3]. `/x` y `a_b` los borran: a_b [1].\n\nFuentes: [1] docs/es/a_b.md › ¿Cuánto?"

    assert simple(cited) == parsed(cited)
    assert simple(cited) == Formatted(cited.replace("`", ""), (Entity("code", 22, 2), Entity("code", 27, 3)))
