"""Headings and blocks in the order of a document, to sections: what HTML and Word have in common."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plugins.rag.loaders import Section

MOST_SPANNED = 100  # cells that one may span: a file can ask for any number


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a table, a fence, or a heading, which has a level from 0, the title of the document. `tight`: an item of a list."""

    text: str
    level: int | None = None
    tight: bool = False


def sections(blocks: Iterable[Block], *, title: str = "") -> list[Section]:
    """A section under each heading. A heading that holds nothing is one of its own words.

    `title` stands above sections where there is no first-level heading.
    """
    found: list[Section] = []
    path: list[Block] = []
    body: list[Block] = []
    empty = False  # whether the last heading holds nothing so far

    def close(following: Block | None) -> None:
        names = tuple(heading.text for heading in path)
        if title and (not path or (path[0].level or 0) > 1):
            names = (title, *names)
        if body:
            found.append(Section(joined(body), names))
        elif empty and (following is None or (following.level or 0) <= (path[-1].level or 0)):
            found.append(Section(path[-1].text, names))
        body.clear()

    for block in blocks:
        if block.level is None:
            body.append(block)
            continue
        close(block)
        path = [*(above for above in path if (above.level or 0) < block.level), block]
        empty = True
    close(None)
    return found


def joined(blocks: Sequence[Block]) -> str:
    """Blocks as one text, with a blank line between them, but for the items of a list."""
    text = ""
    for number, block in enumerate(blocks):
        glue = "" if not number else "\n" if block.tight and blocks[number - 1].tight else "\n\n"
        text += glue + block.text
    return text


def fence(code: str, language: str = "") -> str:
    """Code between fences that it cannot close."""
    mark = "```"
    while mark in code:
        mark += "`"
    return f"{mark}{language}\n{code.strip(chr(10)).rstrip()}\n{mark}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as lines of a Markdown table, the first of them its header; empty where there is nothing in it."""
    width = max(map(len, rows), default=0)
    lines = [[" ".join(cell.split()).replace("|", "\\|") for cell in [*row, *[""] * (width - len(row))]] for row in rows]
    lines = [line for line in lines if any(line)]
    if not lines:
        return ""
    header, *rest = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([header, "|" + "---|" * width, *rest])
