"""Markdown as somebody would read it aloud: sentences without marks, under their headings, with the list or example they announce."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LONGEST_CODE = 800  # characters; a longer example is not shown
MOST_ITEMS, LONGEST_ITEM = 8, 200  # an item that is longer is cut to its first sentence

_SHORT_FORMS = (
    r"(?<!\bp\.)(?<!\bej\.)(?<!\bSr\.)(?<!\bSra\.)(?<!\bDr\.)(?<!\bDra\.)(?<!\betc\.)(?<!\bvs\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bno\.)"
)
_SENTENCE_END = re.compile(rf"(?:(?<=[.!?…])|(?<=[.!?…][\"»)\]])){_SHORT_FORMS}\s+(?=[A-ZÁÉÍÓÚÜÑ¿¡\"«`/(\d])")
_COMPONENT = re.compile(r"^\s*(?:(?:import|export)\s.+|</?[A-Za-z][^>\n]*/?>)\s*$", re.MULTILINE)
_TAG = re.compile(r"</?[A-Za-z][^>\n]*>")
_COMMENT = re.compile(r"\{/\*.*?\*/\}|<!--.*?-->", re.DOTALL)
_ADMONITION = re.compile(r"^\s*:::.*$", re.MULTILINE)
_ANCHOR = re.compile(r"\s*\{#[\w-]+\}")
_FENCE = re.compile(r"(^\s*(?:```|~~~).*?^\s*(?:```|~~~)\s*$)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, a list item or a row of a table; `heading` is what it stands under, `below` the list or example that it announces."""

    text: str
    heading: str = ""
    below: str = ""


def units(markdown: str) -> list[Unit]:
    """What a passage says, in order."""
    found: list[Unit] = []
    for unit in _read(_parser().parse(_without_components(markdown))):
        announced = found and found[-1].text.endswith(":")
        if unit.text:
            if announced and unit.below == "item":
                found[-1] = replace(found[-1], below=_with_item(found[-1].below, unit.text))
            else:
                found += [Unit(sentence, unit.heading) for sentence in _sentences(unit.text)]
        elif announced and not found[-1].below:
            found[-1] = replace(found[-1], below=unit.below)
    return found


def _with_item(below: str, text: str) -> str:
    if below.count("\n") >= MOST_ITEMS - 1 or below.startswith("```"):
        return below
    item = text if len(text) <= LONGEST_ITEM else _sentences(text)[0]
    return "\n".join(filter(None, [below, f"- {item}"]))


@lru_cache(maxsize=1)
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # 20 ms that only this provider needs

    return MarkdownIt("commonmark").enable("table")


def _without_components(markdown: str) -> str:
    """Without what MDX adds and nobody reads: imports, tags and comments; code is left as it is."""
    pieces = _FENCE.split(markdown)
    for i in range(0, len(pieces), 2):
        prose = _COMMENT.sub("", pieces[i])
        for noise in (_COMPONENT, _ADMONITION, _ANCHOR):
            prose = noise.sub("", prose)
        pieces[i] = prose
    return "".join(pieces)


def _read(tokens: Sequence[Any]) -> Iterator[Unit]:
    """Blocks in order: prose as `text`, list items marked by `below="item"`, code with `text` empty and the fence as `below`."""
    heading, opened, items, row = "", "", 0, list[str]()
    for token in tokens:
        items += {"list_item_open": 1, "list_item_close": -1}.get(token.type, 0)
        if token.type.endswith("_open"):
            opened = token.type
        if token.type == "tr_open":
            row = []
        elif token.type == "tr_close" and row:
            yield Unit(": ".join(filter(None, [row[0], "; ".join(filter(None, row[1:]))])), heading, "item")
        elif token.type in ("fence", "code_block") and len(token.content) <= LONGEST_CODE:
            yield Unit("", heading, f"```{token.info.split(' ')[0].strip()}\n{token.content.rstrip()}\n```")
        elif token.type == "inline" and opened == "heading_open":
            heading = _aloud(token.children or ())
        elif token.type == "inline" and opened in ("th_open", "td_open"):
            row.append(_aloud(token.children or ()))
        elif token.type == "inline":
            yield Unit(_aloud(token.children or ()), heading, "item" if items else "")


def _aloud(children: Sequence[Any]) -> str:
    """Inline Markdown without its marks; code keeps its backticks, a link its words."""
    parts = []
    for token in children:
        if token.type == "text":
            parts.append(token.content)
        elif token.type == "code_inline":
            parts.append(f"`{token.content}`")
        elif token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return " ".join(_TAG.sub("", "".join(parts)).split())


def _sentences(text: str) -> list[str]:
    return [sentence for piece in _SENTENCE_END.split(text) if (sentence := piece.strip())]
