"""Questions to measure by, from JSON Lines: each with the source or a phrase of its answer, or with none."""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.values import Passage
from bot.words import marked as _

NO_JSON = _("it is no JSON object")
NO_QUESTION = _("it has no question")
NO_ANSWER = _('it has neither "source" nor "phrase"; write "answer": null where the documents hold no answer')
BOTH = _("it says that there is no answer, and where it is")
UNKNOWN = _("no document is called that")
NO_TEXT = _('"source" and "phrase" are a text, or a list of texts')


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the line that it stands in, and what a passage must have to be right: any of the sources, and any of the phrases."""

    line: int
    question: str
    sources: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()

    @property
    def answerable(self) -> bool:
        """Whether the documents hold an answer."""
        return bool(self.sources or self.phrases)

    @property
    def expected(self) -> str:
        """What a person reads as the right answer; empty where there is none."""
        return ", ".join([*self.sources, *(f"“{phrase}”" for phrase in self.phrases)])

    def fits(self, passage: Passage) -> bool:
        """Whether a passage is a right one; where there is no answer, none is."""
        text = folded(passage.text)
        return (
            self.answerable
            and (not self.sources or any(_names(source, passage) for source in self.sources))
            and (not self.phrases or any(folded(phrase) in text for phrase in self.phrases))
        )


@dataclass(frozen=True, slots=True)
class Fault:
    """A line that is left out, or that something is wrong with; `reason` is a message of the catalogs."""

    line: int
    reason: str


def read(text: str) -> tuple[list[Asked], list[Fault]]:
    """The questions of a file, and the lines that are none. Blank lines and a byte order mark are passed over."""
    asked: list[Asked] = []
    faults: list[Fault] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if not line.strip():
            continue
        one = _question(number, line)
        if isinstance(one, Asked):
            asked.append(one)
        else:
            faults.append(one)
    return asked, faults


def unknown(asked: Sequence[Asked], names: Sequence[str]) -> list[Fault]:
    """The questions whose sources are none of the documents' names: a slip of the pen, or a document that is not there."""
    documents = [Passage("", source=name) for name in names]
    return [
        Fault(one.line, UNKNOWN)
        for one in asked
        if one.sources and not any(_names(source.partition(" › ")[0], document) for source in one.sources for document in documents)
    ]


def _question(number: int, line: str) -> Asked | Fault:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return Fault(number, NO_JSON)
    question = value.get("question")
    if not isinstance(question, str) or not question.strip():
        return Fault(number, NO_QUESTION)
    sources, phrases = _texts(value, "source"), _texts(value, "phrase", "answer")
    if sources is None or phrases is None:
        return Fault(number, NO_TEXT)
    none = value.get("unanswerable") is True or ("answer" in value and value["answer"] is None)
    if none == bool(sources or phrases):
        return Fault(number, BOTH if none else NO_ANSWER)
    return Asked(number, _whole(question), sources, phrases)


def _texts(value: Mapping[str, Any], *names: str) -> tuple[str, ...] | None:
    """The texts under these names; None where something else stands there."""
    found: list[str] = []
    for name in names:
        given = value.get(name)
        texts = given if isinstance(given, list) else [] if given is None else [given]
        if not all(isinstance(one, str) and one.strip() for one in texts):
            return None
        found += map(_whole, texts)
    return tuple(found)


def _whole(text: str) -> str:
    return text.strip().encode("utf-8", "replace").decode()  # JSON can spell half a character, which nothing can show


def folded(text: str) -> str:
    """A text to compare by: letter case, forms of accents and kinds of blank do not matter."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _names(source: str, passage: Passage) -> bool:
    """Whether a passage is of this source: by its name, the end of its path, its id, or by the whole citation with its section."""
    wanted = folded(source).removeprefix("./")
    for known in (passage.source, passage.citation, passage.doc_id):
        name = folded(known or "")
        if name and (name == wanted or name.endswith(f"/{wanted}") or name.startswith(f"{wanted} › ") or f"/{wanted} › " in name):
            return True
    return False
