"""Markdown and MDX to sections: a heading opens one, and the headings above it are its path."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from plugins.rag.loaders import Section

_TITLE = re.compile(r"^title\s*:\s*(.+?)\s*$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADING_MARK = re.compile(r"\s*(?:\{/\*.*?\*/\}|\{#[^}]*\})\s*$|<[^>]*>|\s#+\s*$")
_MODULE_LINE = re.compile(r"(?:import|export)\s")


@dataclass(frozen=True, slots=True)
class _Heading:
    level: int
    title: str
    start: int
    end: int


def sections(text: str, *, mdx: bool = False) -> list[Section]:
    """The sections of a document in order; none where there is no text. Headings that hold nothing are a section of their own words."""
    title, lines = _front_matter(text.split("\n"))
    blocks, inline = _parsers()
    tokens = blocks.parse("\n".join(lines))
    _blank_hidden(lines, tokens, mdx=mdx)
    headings = list(_headings(tokens, inline))
    found: list[Section] = []
    path: list[_Heading] = []
    _add(found, (title,) if title else (), lines[: headings[0].start if headings else len(lines)])
    for heading, following in zip(headings, [*headings[1:], None], strict=False):
        path = [*(above for above in path if above.level < heading.level), heading]
        names = tuple(above.title for above in path if above.title)
        if title and path[0].level > 1:
            names = (title, *names)
        body = lines[heading.end : following.start if following else len(lines)]
        childless = following is None or following.level <= heading.level
        if not _add(found, names, body) and childless and heading.title:
            found.append(Section(heading.title, names))
    return found


def _add(found: list[Section], path: tuple[str, ...], lines: list[str]) -> bool:
    text = "\n".join(lines).strip("\n").rstrip()
    if not text.strip():
        return False
    found.append(Section(text, path))
    return True


def _parsers() -> tuple[MarkdownIt, MarkdownIt]:
    """One parser for the blocks alone, which is all that sections need and cannot be slowed by nested emphasis, and one for titles."""
    blocks = MarkdownIt("commonmark")
    blocks.core.ruler.enableOnly(["normalize", "block"])
    return blocks, MarkdownIt("commonmark")


def _headings(tokens: list[Token], inline: MarkdownIt) -> Iterator[_Heading]:
    for token, content in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            yield _Heading(int(token.tag[1:]), _plain(content.content, inline), token.map[0], token.map[1])


def _plain(source: str, inline: MarkdownIt) -> str:
    """A heading as a person reads it: no emphasis, no link targets, no anchors."""
    source = _HEADING_MARK.sub("", source)
    children = [child for token in inline.parseInline(source[:2000]) for child in token.children or []]
    text = "".join(" " if child.type in ("softbreak", "hardbreak") else child.content for child in children if child.type != "html_inline")
    return " ".join(text.split())


def _front_matter(lines: list[str]) -> tuple[str, list[str]]:
    """The title that front matter gives, and the lines below it."""
    if lines[0].rstrip() != "---":
        return "", lines
    for number, line in enumerate(lines[1:200], start=1):
        if line.rstrip() in ("---", "..."):
            match = _TITLE.search("\n".join(lines[1:number]))
            title = match[1].strip("\"'") if match else ""
            return title, lines[number + 1 :]
    return "", lines


def _blank_hidden(lines: list[str], tokens: list[Token], *, mdx: bool) -> None:
    """Empty, in place, what a reader of the page does not see: comments and the import lines of MDX."""
    for token in tokens:
        if token.map is None or token.level:
            continue
        start, end = token.map
        if token.type == "html_block" and "<!--" in token.content:
            shown = _COMMENT.sub("", "\n".join(lines[start:end])).split("\n")
            lines[start:end] = [*shown, *([""] * (end - start - len(shown)))]
        elif mdx and token.type == "paragraph_open" and _MODULE_LINE.match(lines[start]):
            lines[start:end] = [""] * (end - start)
