"""Numbers, dates and times of an answer that the passages it cites do not hold: a sign that the model made them up. Pure."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cache, lru_cache

from bot import Passage
from plugins.ai import citations
from plugins.ai.numerals import spelled_out
from plugins.ai.prompt import label

Readings = frozenset[str]  # what a figure may mean: `1.000` is a thousand in Spanish and one in English, `3/4` two dates

_MONTHS = (
    ("enero", "january", "ene", "jan"),
    ("febrero", "february", "feb"),
    ("marzo", "march", "mar"),
    ("abril", "april", "abr", "apr"),
    ("mayo", "may"),
    ("junio", "june", "jun"),
    ("julio", "july", "jul"),
    ("agosto", "august", "ago", "aug"),
    ("septiembre", "setiembre", "september", "sept", "sep", "set"),
    ("octubre", "october", "oct"),
    ("noviembre", "november", "nov"),
    ("diciembre", "december", "dic", "dec"),
)
_MONTH_OF = {name: number for number, names in enumerate(_MONTHS, start=1) for name in names}
_MONTH = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
_NAME = re.compile(rf"\b(?:{_MONTH})\b", re.IGNORECASE)
_YEAR = r"(?:\W{1,3}(?:del?\s+(?:año\s+)?)?(?P<year>[12]\d{3})\b)?"
_DATES = (
    re.compile(r"(?<!\d)(?P<year>[12]\d{3})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)"),
    re.compile(r"(?<![\d.,/-])(?P<day>\d{1,2})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<year>[12]\d{3}|\d{2})(?![\d/])"),
    re.compile(
        rf"(?<!\d)(?P<day>\d{{1,2}})(?:\.?[ºo°]|st|nd|rd|th)?(?:\s+(?:de|of)\s+|[\s-]+)(?P<name>{_MONTH})\b\.?{_YEAR}", re.IGNORECASE
    ),
    re.compile(rf"\b(?P<name>{_MONTH})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?![.,:]\d){_YEAR}", re.IGNORECASE),
)
_DATE = re.compile(r"(?:\d{4}-)?\d\d-\d\d")  # how a date is kept
_TIME = re.compile(r"(?<![\d:.,])(?P<hour>[01]?\d|2[0-4])(?::|h\s?)(?P<minute>[0-5]\d)(?!\d)", re.IGNORECASE)
_NUMBER = re.compile(
    r"(?<!\d)(?<![^\W\d_])(?<![^\W\d_]-)"  # not the name of something: A4, H2O, COVID-19
    r"\d{1,3}(?:(?P<blank>[ \u00a0\u202f\u2009'’])\d{3}(?:(?P=blank)\d{3})*)(?!\d)(?:[.,]\d+)?"
    r"|(?<!\d)(?<![^\W\d_])(?<![^\W\d_]-)\d+(?:[.,]\d+)*"
)
_DIGIT = re.compile(r"\d")
_ANY_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SCALE = re.compile(r"\s?(mil|miles|millones|millón|millon|thousand|million|billion|[kKM])\b")
_SCALES = {"mil": 3, "miles": 3, "thousand": 3, "k": 3, "K": 3, "billion": 9}

_NO_CLAIM = re.compile(
    r"(?P<fence>```|~~~).*?(?:(?P=fence)|\Z)|https?://\S+|(?<=\])\([^)\n]*\)"  # an example, an address
    r"|^[\s>#*_-]*\d{1,3}[.)](?=[\s*_])"  # the number of an item
    r"|\b(?:paso|pasos|opción|punto|nota|nivel|step|steps|option|point|note|level)\s+\d{1,2}\b",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_SENTENCE = re.compile(r"\n|[.!?…][\"'»”)*_]*(?=\s+(?![^\W\d_A-ZÁÉÍÓÚÑÜ]|\d))")


def unsupported(answer: str, marks: Sequence[citations.Citation], passages: Sequence[Passage], known: Iterable[str] = ()) -> list[str]:
    """The figures in sentences that cite passages and stand in none of those passages, as the answer spells them, in order.

    `marks` are the citations of the answer, `known` texts that the model could take figures from too: the question, say. What stands in
    code, in addresses, in the marks themselves or numbers the items of a list is no claim.
    """
    marks = [mark for mark in marks if any(1 <= n <= len(passages) for n in mark.numbers)]
    if not marks or not _DIGIT.search(citations.MARK.sub("", answer)):  # most answers: there is no figure to look for
        return []
    claims = list(answer)
    for start, end in (found.span() for pattern in (citations.MARK, _NO_CLAIM) for found in pattern.finditer(answer)):
        claims[start:end] = ["\n" if c == "\n" else " " for c in answer[start:end]]
    text = "".join(claims)
    known_to_hold = cache(lambda: held(" \n ".join(known)))
    missing: list[str] = []
    for start, end in _sentences(answer, marks):
        cited = {n for mark in marks if start <= mark.start < end for n in mark.numbers if 1 <= n <= len(passages)}
        claimed = figures(text[start:end]) if cited else []
        if not claimed:  # most sentences: what the passages hold is read when a figure has to be looked for
            continue
        there = known_to_hold().union(*(_held_by(passages[n - 1]) for n in cited))
        missing += [spelled for spelled, readings in claimed if not _among(readings, there)]
    return missing


def _held_by(passage: Passage) -> frozenset[str]:
    return _held(label(passage), passage.section or "", passage.text)


@lru_cache(maxsize=256)
def _held(*parts: str) -> frozenset[str]:
    """What a passage holds: read once for all the answers that cite it."""
    return held("\n".join(parts))


def _sentences(answer: str, marks: Sequence[citations.Citation]) -> Iterator[tuple[int, int]]:
    """Where each sentence begins and ends; the marks behind its full stop are its own."""
    start = 0
    for found in _SENTENCE.finditer(answer):
        end = found.end()
        if end <= start:
            continue
        while follows := next((mark for mark in marks if mark.start >= end and not answer[end : mark.start].strip(" \t")), None):
            end = follows.end
        yield start, end
        start = end
    yield start, len(answer)


# ---------------------------------------------------------------------------------------------- what a figure means


def figures(text: str) -> list[tuple[str, Readings]]:
    """The dates, times and numbers of a text, in order, each as it is spelled and with all that it may mean."""
    found: list[tuple[int, str, Readings]] = []
    if not _DIGIT.search(text):
        return []
    rest = text
    for pattern in (*_DATES, _TIME, _NUMBER):
        for match in pattern.finditer(rest):
            readings = _date(match) if pattern in _DATES else _time(match) if pattern is _TIME else _number(match, rest)
            if readings:
                found.append((match.start(), match[0], readings))
                rest = rest[: match.start()] + "\0" * len(match[0]) + rest[match.end() :]
    return [(spelled, readings) for _, spelled, readings in sorted(found)]


def held(text: str) -> frozenset[str]:
    """All that the figures of a text may mean: also the parts of a date or of a grouped number, and numbers that are words."""
    text = unicodedata.normalize("NFC", text)
    readings = {reading for _, each in figures(text) for reading in each}
    for date in [reading for reading in readings if _DATE.fullmatch(reading)]:
        readings |= {date[-5:], f"month {int(date[-5:-3])}", str(int(date[-2:]))}
    readings |= {f"month {_MONTH_OF[name.casefold()]}" for name in _NAME.findall(text)}
    readings |= {reading for match in _ANY_NUMBER.finditer(text) for reading in _number(match, text)}
    return frozenset(readings | {_plain(Decimal(value)) for value in spelled_out(text)})


def _among(readings: Readings, there: frozenset[str]) -> bool:
    """Whether one of the meanings is there; a date may be there in parts."""
    return bool(readings & there) or any(_in_parts(reading, there) for reading in readings if _DATE.fullmatch(reading))


def _in_parts(date: str, there: frozenset[str]) -> bool:
    year, month, day = date[:-6], int(date[-5:-3]), int(date[-2:])
    return (not year or year in there) and str(day) in there and (str(month) in there or f"month {month}" in there)


def _date(match: re.Match[str]) -> Readings:
    parts = match.groupdict()
    month = _MONTH_OF[parts["name"].casefold()] if parts.get("name") else int(parts["month"])
    day, year = int(parts["day"]), parts.get("year")
    full = f"20{year}" if year and len(year) == 2 else year
    both = {(day, month)} | ({(month, day)} if "sign" in parts else set())
    pairs = {(d, m) for d, m in both if 1 <= d <= 31 and 1 <= m <= 12}
    return frozenset({f"{m:02}-{d:02}" for d, m in pairs} if not full else {f"{full}-{m:02}-{d:02}" for d, m in pairs})


def _time(match: re.Match[str]) -> Readings:
    """Half a day more or less is the same: 22:00 is 10 p. m."""
    hour, minute = int(match["hour"]) % 12, match["minute"]
    whole = {str(hour), str(hour + 12)} if minute == "00" else set()
    return frozenset({f"{hour}:{minute}", _plain(Decimal(f"{int(match['hour'])}.{minute}")), *whole})


def _number(match: re.Match[str], text: str) -> Readings:
    spelled = re.sub(r"[ \u00a0\u202f\u2009'’]", "", match[0])
    values = _values(spelled)
    scale = _SCALE.match(text, match.end())
    if scale:
        values = {value.scaleb(_SCALES.get(scale[1].casefold() if len(scale[1]) > 1 else scale[1], 6)) for value in values}
    return frozenset({_plain(value) for value in values} or {spelled})


def _values(spelled: str) -> set[Decimal]:
    """The values of digits with points and commas; none where they are no number: a version, an address."""
    signs = [c for c in spelled if c in ".,"]
    if len(spelled) > 40:
        return set()
    if not signs:
        return {Decimal(spelled)}
    values: set[Decimal] = set()
    groups = re.split("[.,]", spelled)
    if len(set(signs)) == 1 and all(len(group) == 3 for group in groups[1:]) and len(groups[0]) <= 3:
        values.add(Decimal("".join(groups)))
    if len(signs) == 1 or (signs[-1] not in signs[:-1] and len(set(signs[:-1])) == 1 and all(len(group) == 3 for group in groups[1:-1])):
        values.add(Decimal("".join(groups[:-1]) + "." + groups[-1]))
    return values


def _plain(value: Decimal) -> str:
    return format(value.normalize(), "f")
