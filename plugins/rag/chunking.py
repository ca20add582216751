"""A section's text to pieces of a bounded size: paragraphs, then sentences, then words; a fence or a table whole where it fits.

Every character of the text that is not blank is in some piece. A piece never exceeds `size` characters. Each piece but the first repeats
up to `overlap` characters of what came before. A fence that must be torn is closed and opened again, a table repeats its header.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

VERSION = "1"
Kind = Literal["prose", "fence", "table"]

_FENCE = re.compile(r"^[ \t]*(?:[-*+][ \t]+|\d+[.)][ \t]+|>[ \t]?)*(`{3,}|~{3,})(.*)$")
_ROW = re.compile(r"^\s*\|.*")
_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_SENTENCE_END = re.compile(r"([.!?…][\"'»”’)\]*_]*)(\s+)|\s*\n\s*")
_LONGEST_GLUE = 16


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of text that belongs together."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is packed: never over the size. `glue` is what stands between it and the one before in the same piece."""

    text: str
    glue: str
    prose: bool


def chunk(text: str, *, size: int, overlap: int) -> list[str]:
    """The pieces of a text, in order."""
    pieces: list[str] = []
    current: list[_Unit] = []
    length = 0
    for unit in _units(text, size):
        added = len(unit.text) + (len(unit.glue) if current else 0)
        if current and length + added > size:
            pieces.append(_joined(current))
            current = _tail(current, overlap, size - len(unit.text) - len(unit.glue))
            length = len(_joined(current))
            added = len(unit.text) + (len(unit.glue) if current else 0)
        current.append(unit)
        length += added
    if current:
        pieces.append(_joined(current))
    return pieces


def _joined(units: list[_Unit]) -> str:
    return "".join(unit.text if n == 0 else unit.glue + unit.text for n, unit in enumerate(units))


def _tail(units: list[_Unit], overlap: int, room: int) -> list[_Unit]:
    """The end of a piece that the next one repeats: whole sentences, else whole words, of prose alone, in `overlap` characters."""
    kept: list[_Unit] = []
    budget = min(overlap, room)
    for unit in reversed(units):
        if not unit.prose:
            break
        cost = len(unit.text) + len(unit.glue)
        if cost > budget:
            end = _last_words(unit.text, budget - len(unit.glue)) if not kept else ""
            return [_Unit(end, unit.glue, True)] if end else kept
        kept.insert(0, unit)
        budget -= cost
    return kept


def _last_words(text: str, budget: int) -> str:
    if budget <= 0:
        return ""
    end = text[-budget:]
    if len(text) > budget and not text[-budget - 1].isspace():
        _, blank, end = end.partition(" ")
        return end.strip() if blank else ""
    return end.strip()


# ---------------------------------------------------------------------------------------------- blocks


def blocks(text: str) -> Iterator[Block]:
    """The paragraphs, fences and tables of a text, in order."""
    lines = text.split("\n")
    start = 0
    while start < len(lines):
        end, kind = _block_end(lines, start)
        body = "\n".join(lines[start:end])
        if body.strip():
            yield Block(kind, body.strip("\n") if kind != "prose" else body.strip())
        start = end


def _block_end(lines: list[str], start: int) -> tuple[int, Kind]:
    if fence := _opens(lines[start]):
        return _fence_end(lines, start, fence), "fence"
    if _table_at(lines, start):
        end = start + 2
        while end < len(lines) and "|" in lines[end] and lines[end].strip():
            end += 1
        return end, "table"
    end = start + 1
    if lines[start].strip():
        while end < len(lines) and lines[end].strip() and not _opens(lines[end]) and not _table_at(lines, end):
            end += 1
    return end, "prose"


def _opens(line: str) -> str | None:
    """The fence that a line opens; backticks with a backtick behind them are inline code."""
    match = _FENCE.match(line) if "```" in line or "~~~" in line else None
    if match is None or (match[1][0] == "`" and "`" in match[2]):
        return None
    return match[1]


def _fence_end(lines: list[str], start: int, fence: str) -> int:
    for number in range(start + 1, len(lines)):
        stripped = lines[number].strip().lstrip("> ")
        if stripped.startswith(fence) and not stripped.strip(fence[0]):
            return number + 1
    return len(lines)


def _table_at(lines: list[str], start: int) -> bool:
    return start + 1 < len(lines) and "|" in lines[start] and "|" in lines[start + 1] and bool(_RULE.match(lines[start + 1]))


# ---------------------------------------------------------------------------------------------- units


def _units(text: str, size: int) -> Iterator[_Unit]:
    for block in blocks(text):
        if len(block.text) <= size:
            yield _Unit(block.text, "\n\n", block.kind == "prose")
        elif block.kind == "fence":
            yield from _torn(block.text, size, *_fence_frame(block.text))
        elif block.kind == "table":
            yield from _torn(block.text, size, *_table_frame(block.text))
        else:
            yield from _prose(block.text, size, "\n\n")


def _fence_frame(text: str) -> tuple[list[str], list[str], str, str]:
    first, *rest = text.split("\n")
    fence = _opens(first) or "```"
    closed = bool(rest) and not rest[-1].strip().lstrip("> ").strip(fence[0])
    return [first], rest[:-1] if closed else rest, first + "\n", "\n" + (rest[-1] if closed else fence)


def _table_frame(text: str) -> tuple[list[str], list[str], str, str]:
    header, rule, *rows = text.split("\n")
    return [header, rule], rows, f"{header}\n{rule}\n", ""


def _torn(text: str, size: int, opening: list[str], lines: list[str], before: str, after: str) -> Iterator[_Unit]:
    """Lines in groups that fit, each group framed. A frame that leaves little room, or a line over it, is cut like prose."""
    room = size - len(before) - len(after)
    if room < size // 2 or any(len(line) > room for line in lines):
        yield from _prose(text, size, "\n\n")
        return
    group: list[str] = []
    used = 0
    for line in lines:
        if group and used + len(line) + 1 > room:
            yield _Unit(before + "\n".join(group) + after, "\n\n", False)
            group, used = [], 0
        used += len(line) + (1 if group else 0)
        group.append(line)
    if group:
        yield _Unit(before + "\n".join(group) + after, "\n\n", False)


def _prose(text: str, size: int, glue: str) -> Iterator[_Unit]:
    """Sentences that fit; a longer one by words, a longer word by characters."""
    for sentence, between in _sentences(text):
        if len(sentence) <= size:
            yield _Unit(sentence, glue, True)
        else:
            yield from _by_words(sentence, size, glue)
        glue = between


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    """Each sentence, and what stands before the one after it. A line's end ends a sentence too: a list stays a list."""
    start = 0
    for match in _SENTENCE_END.finditer(text):
        blank = match[2] or match[0]
        if sentence := text[start : match.end() - len(blank)].strip():
            indent = blank[blank.rfind("\n") :] if "\n" in blank else " "
            yield sentence, indent if len(indent) <= _LONGEST_GLUE else "\n"
        start = match.end()
    if rest := text[start:].strip():
        yield rest, " "


def _by_words(text: str, size: int, glue: str) -> Iterator[_Unit]:
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > size:
            yield _Unit(line, glue, True)
            line, glue = "", " "
        while len(word) > size:
            cut = _cut(word, size)
            yield _Unit(word[:cut], glue, True)
            word, glue = word[cut:], ""
        line = f"{line} {word}" if line else word
    if line:
        yield _Unit(line, glue, True)


def _cut(word: str, size: int) -> int:
    """Where to cut a word that is too long: never between a letter and its accent."""
    cut = size
    while cut > size - 8 and cut > 1 and unicodedata.combining(word[cut]):
        cut -= 1
    return cut
