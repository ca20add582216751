"""What an answer cites: `[1]`, `[1][3]`, `[1, 3]`, `[1-3]`, but not in code or links; and the line of sources below it."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from bot import Passage
from plugins.ai.prompt import label

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

Gettext = Callable[[str], str]
MARK = re.compile(r"\[\d{1,4}(?:\s*[,;–—-]\s*\d{1,4})*\]")
UNFINISHED = re.compile(r"\s*\[[\d\s,;–—-]*\Z")
_RANGE = re.compile(r"(\d+)\s*[–—-]\s*(\d+)|(\d+)")
_DIGITS = re.compile(r"\d+")
_BEFORE = re.compile(r"[ \t]*\Z")
# Without any of these all that is no prose is spans of code in single backticks; where every line has an even number of those, each span
# ends in its own line, whatever that line is a part of, and no parser has to tell where.
_MORE_THAN_SPANS = ("<", "\t", "    ", "~~~", "``", "\\`", "](", "]:")
_LINE_END = re.compile(r"[\r\n]")
_STAND_IN = re.compile("\ue000(\\d+)\ue001")


@dataclass(frozen=True, slots=True)
class Citation:
    """One mark in an answer: where it stands, and the numbers in it, ranges spread out."""

    start: int
    end: int
    numbers: tuple[int, ...]


def find(answer: str, known: int) -> list[Citation]:
    """The citations of an answer, in order; `known` is how many passages there are, which bounds the ranges."""
    marks = list(MARK.finditer(answer))
    genuine = _outside_code_and_links(answer, marks) if marks else set()
    return [Citation(m.start(), m.end(), _numbers(m[0], known)) for i, m in enumerate(marks) if i in genuine]


def cited(marks: Sequence[Citation], passages: Sequence[Passage]) -> list[tuple[int, Passage]]:
    """`(n, passage)` for each passage that these citations name, by number; a number that names no passage is dropped."""
    numbers = {n for citation in marks for n in citation.numbers}
    return [(n, passages[n - 1]) for n in sorted(numbers) if 1 <= n <= len(passages)]


def without_unknown(answer: str, known: int) -> str:
    """The answer with every number taken out that names no passage; the space ahead of an emptied mark goes too."""
    if all(n <= known and n for n in map(int, _DIGITS.findall(" ".join(MARK.findall(answer))))):
        return answer  # the usual case: whether a mark is in code need not be found out
    kept, at = [], 0
    for citation in find(answer, known):
        good = [n for n in citation.numbers if 1 <= n <= known]
        if len(good) == len(citation.numbers):
            continue
        before = answer[at : citation.start]
        kept += [before if good else before[: _BEFORE.search(before).start()], "".join(f"[{n}]" for n in good)]  # type: ignore[union-attr]
        at = citation.end
    return "".join([*kept, answer[at:]])


def line(passages: Sequence[Passage], cited: Sequence[tuple[int, Passage]], gettext: Gettext) -> str:
    """The line of sources: those cited, with the numbers used in the text; with none cited, all of them without; else nothing.

    Passages with one label share an entry.
    """
    _ = gettext
    numbers: dict[str, str] = {}
    for n, passage in cited or [(0, passage) for passage in passages]:
        numbers[label(passage)] = numbers.get(label(passage), "") + (f"[{n}]" if n else "")
    entries = [f"{number} {name}".strip() for name, number in numbers.items()]
    return _("Sources: {sources}").format(sources=", ".join(filter(None, entries))) if any(entries) else ""


# ---------------------------------------------------------------------------------------------- the model's own line of sources

_WORDS = ("fuentes", "fuente", "sources", "source", "referencias", "references")
_DECORATION = r"[ \t>*_#-]*"
_LIST_ITEM = re.compile(r"\s*(?:[-*+•]|\d+[.)]|\[\d)")
_SHORT = 12  # words: a vague line of sources, rather than a sentence that begins with the word


@lru_cache(maxsize=16)
def _headers(extra: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    words = sorted({*_WORDS, extra} - {""}, key=len, reverse=True)
    spelled = "|".join(map(re.escape, words))
    begun = "|".join(sorted({re.escape(word[:n]) for word in words for n in range(1, len(word) + 1)}, key=len, reverse=True))
    start = rf"(?:^{_DECORATION}|(?<=[.!?\])…])[ \t]+{_DECORATION})"
    whole = re.compile(rf"{start}(?:{spelled})[*_]*[ \t]*:[*_]*", re.IGNORECASE | re.MULTILINE)
    partial = re.compile(rf"{start}(?:(?:{spelled})[*_]*[ \t]*|(?:{begun}))?\Z", re.IGNORECASE | re.MULTILINE)
    return whole, partial


def tail(answer: str, passages: Sequence[Passage], gettext: Gettext) -> int | None:
    """Where the line (or list) of sources begins that the model wrote at the end by itself, or None."""
    for found in _headed(answer, gettext):
        if answer[: found.start()].strip() and _lists_sources(answer[found.end() :], passages) and not _in_code(answer, found.end()):
            return found.start()
    return None


def only_sources(answer: str, passages: Sequence[Passage], gettext: Gettext) -> bool:
    """Whether an answer is nothing but a line of sources, so that none goes below it."""
    found = _headers(_own_word(gettext))[0].match(answer)
    return found is not None and _lists_sources(answer[found.end() :], passages)


def possible_tail(text: str, passages: Sequence[Passage], gettext: Gettext) -> int | None:
    """Where such a line may begin in an answer that is still being written, or None."""
    for found in _headed(text, gettext):
        written, newline, _ = text[found.end() :].rpartition("\n")
        if not newline or _lists_sources(written, passages):
            return found.start()
    unfinished = _headers(_own_word(gettext))[1].search(text)
    return unfinished.start() if unfinished else None


def _headed(text: str, gettext: Gettext) -> Iterator[re.Match[str]]:
    return _headers(_own_word(gettext))[0].finditer(text) if ":" in text else iter(())


def _own_word(gettext: Gettext) -> str:
    return gettext("Sources: {sources}").partition("{")[0].strip(" :").casefold()


def _lists_sources(text: str, passages: Sequence[Passage]) -> bool:
    """Whether what follows the word is nothing but sources."""
    first, *others = text.strip().split("\n")
    if any(other.strip() and not _LIST_ITEM.match(other) and not _names_source(other, passages) for other in others):
        return False
    items = [item for item in re.split(r"[,;]", MARK.sub(lambda mark: mark[0].replace(",", " "), first)) if item.strip()]
    if all(_names_source(item, passages) for item in items):
        return True
    return not MARK.search(first) and len(first.split()) <= _SHORT


def _names_source(item: str, passages: Sequence[Passage]) -> bool:
    bare = MARK.sub("", item).strip(" \t-*_•.`()").casefold()
    if not bare or re.match(r"\s*[-*+•(]*\s*\[\d", item) or re.fullmatch(r"\S+[/.]\S+", bare):
        return True
    return any(bare in name or name in bare for passage in passages if (name := label(passage).casefold()))


# ---------------------------------------------------------------------------------------------- Markdown


@lru_cache(maxsize=1)
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # 20 ms that an answer without citations need not pay

    return MarkdownIt("commonmark", {"html": False})


def _numbers(mark: str, known: int) -> tuple[int, ...]:
    numbers: list[int] = []
    for first, last, single in _RANGE.findall(mark):
        if single:
            numbers.append(int(single))
        else:
            low, high = sorted((int(first), int(last)))
            numbers += [*range(low, min(high, known) + 1), *([high] if high > known else [])]
    return tuple(dict.fromkeys(numbers))


def _outside_code_and_links(answer: str, marks: Sequence[re.Match[str]]) -> set[int]:
    """Which marks stand in prose: each is given a number that Markdown leaves alone, and the tokens of prose are searched for them."""
    if not any(sign in answer for sign in _MORE_THAN_SPANS) and not any(line.count("`") % 2 for line in _LINE_END.split(answer)):
        return {i for i, mark in enumerate(marks) if answer.count("`", 0, mark.start()) % 2 == 0}
    pieces, at = [], 0
    for i, mark in enumerate(marks):
        pieces += [_plain(answer[at : mark.start()]), f"[\ue000{i}\ue001]"]
        at = mark.end()
    text = "".join([*pieces, _plain(answer[at:])])
    return {int(n) for token in _markdown().parse(text) for prose in _prose(token.children or ()) for n in _STAND_IN.findall(prose)}


def _plain(text: str) -> str:
    return text.replace("\ue000", " ").replace("\ue001", " ")


def _prose(children: Sequence[Any]) -> Iterator[str]:
    depth = 0
    for token in children:
        depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        if token.type == "text" and not depth:
            yield token.content


def _in_code(answer: str, at: int) -> bool:
    """Whether this place is in a fence that is open: a line that begins with the word in an example is the example's."""
    return any(
        token.type in ("fence", "code_block") and token.map and token.map[0] <= answer.count("\n", 0, at) < token.map[1]
        for token in _markdown().parse(answer)
    )
