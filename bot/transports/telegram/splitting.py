"""A long text as several messages: cut where a reader would pause, each part with the formats that are its own."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from bot.transports.telegram.formatting import Entity, Formatted, units

LIMIT = 4096  # UTF-16 units of a message
CAPTION_LIMIT = 1024
MOST_ENTITIES = 100  # Telegram ignores those after them
RUNT = 400  # a last part shorter than this takes the paragraph before it along, so that sources never stand alone
BREAKS = (  # from the best place to cut to the least good; each ends where the next part may begin
    re.compile(r"\n[ \t]*\n+"),
    re.compile(r"\n+"),
    re.compile(r"(?<=[.!?…。！？])[\"'»”)\]]*\s+"),
    re.compile(r"\s+"),
)
WHOLE = ("text_link", "code", "bold", "italic", "url", "custom_emoji")  # not cut where there is another place
BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)*")
JOINERS = "\u200d\ufe0f\u20e3"


def split(message: Formatted, *, limit: int = LIMIT, most_entities: int = MOST_ENTITIES) -> list[Formatted]:
    """The parts, none longer than `limit` units or with more entities than Telegram reads; none where there is nothing to show.

    `limit` is at least 2. A part that ends inside a code block is continued by one in the next part, with its language.
    """
    text = message.text
    entities = sorted(message.entities, key=lambda entity: (entity.offset, -entity.length))
    if _fits(text, entities, limit, most_entities):
        return [Formatted(text, tuple(entities))]
    offsets = _offsets(text)
    parts: list[Formatted] = []
    start = _past_blank_lines(text, 0)
    while start < len(text.rstrip()):
        end = _end(text, offsets, entities, start, limit, most_entities)
        parts.append(_part(text, offsets, entities, start, end, most_entities))
        start = _past_blank_lines(text, end)
    return [part for part in parts if part.text.strip()]


def _fits(text: str, entities: Sequence[Entity], limit: int, most: int) -> bool:
    """Whether a text is one message as it stands, as nearly all are."""
    if not text or text[0].isspace() or text[-1].isspace() or len(entities) > most or (size := units(text)) > limit:
        return False
    return all(0 <= one.offset < one.end <= size for one in entities)


def _offsets(text: str) -> Sequence[int]:
    """How many units come before each character, and before the end."""
    if units(text) == len(text):
        return range(len(text) + 1)
    return [0, *accumulate(2 if character > "\uffff" else 1 for character in text)]


def _end(text: str, offsets: Sequence[int], entities: Sequence[Entity], start: int, limit: int, most: int) -> int:
    """Where the part that begins at `start` ends; always after `start`."""
    furthest = max(bisect_right(offsets, offsets[start] + limit) - 1, start + 1)
    within = [entity for entity in entities if entity.end > offsets[start] and entity.offset < offsets[furthest]]
    if len(within) > most:
        furthest = min(furthest, max(bisect_left(offsets, within[most].offset), start + 1))
    stop = len(text.rstrip())
    if furthest >= stop:
        return len(text)
    whole = [(bisect_left(offsets, one.offset), bisect_left(offsets, one.end)) for one in within if one.type in WHOLE]
    end = _best(text, whole, start, furthest)
    rest = stop - _past_blank_lines(text, end)
    if 0 < rest < RUNT and (earlier := _paragraph_before(text, start, end)):
        return earlier
    return end


def _best(text: str, whole: Sequence[tuple[int, int]], start: int, furthest: int) -> int:
    """The last good place to cut in the later two thirds, by the best kind of break that there is; else anywhere between characters."""
    window = start + max(1, (furthest - start) // 3)
    for pattern in BREAKS:
        found = [
            match.end() for match in pattern.finditer(text, window, furthest + 1) if match.end() <= furthest or match.start() <= furthest
        ]
        good = [min(at, furthest) for at in found if not any(a < min(at, furthest) < b for a, b in whole)]
        if good:
            return good[-1]
    end = furthest
    for a, b in whole:
        if a < end < b and a > start:
            end = a
    while end - 1 > window and (text[end] in JOINERS or text[end - 1] in JOINERS):
        end -= 1  # an emoji that is made of several
    return end


def _paragraph_before(text: str, start: int, end: int) -> int | None:
    """The last break between paragraphs (else lines) before the one at `end`, if the part keeps at least its half."""
    for pattern in BREAKS[:2]:
        found = [match.end() for match in pattern.finditer(text, start + (end - start) // 2, end) if match.end() < end]
        if found:
            return found[-1]
    return None


def _part(text: str, offsets: Sequence[int], entities: Sequence[Entity], start: int, end: int, most: int) -> Formatted:
    while end > start + 1 and text[end - 1].isspace():
        end -= 1
    first, last = offsets[start], offsets[end]
    mine: list[Entity] = []
    for entity in entities:
        begin, finish = max(entity.offset, first), min(entity.end, last)
        if begin < finish:
            mine.append(Entity(entity.type, begin - first, finish - begin, entity.url, entity.language))
    return Formatted(text[start:end], tuple(mine[:most]))


def _past_blank_lines(text: str, at: int) -> int:
    """The start of the next line that has something on it; the spaces before its first word stay, as in code."""
    match = BLANK_LINES.match(text, at)
    return match.end() if match else at
