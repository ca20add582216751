"""What of an answer may be shown while it is being written: never half a citation, never a line of sources that will be replaced."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot import Passage
from plugins.ai import citations
from plugins.ai.citations import Gettext

_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True, slots=True)
class Style:
    """How an answer becomes a reply: `numbered` where passages may be cited, `own_line` where the bot adds the line of sources."""

    passages: Sequence[Passage]
    gettext: Gettext
    numbered: bool = False
    own_line: bool = False

    def body(self, answer: str) -> str:
        """The answer as it is sent, its sources line aside."""
        text = answer.strip()
        if self.own_line and (tail := citations.tail(text, self.passages, self.gettext)) is not None:
            text = text[:tail].rstrip()
        if self.numbered:
            text = citations.without_unknown(text, len(self.passages)).strip()
        return text or answer.strip()


class Showing:
    """Takes fragments of an answer and gives back what can be shown for good; all of it together is `body`, which is what is sent."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self._settled = 0  # how much of the answer has been decided on
        self._changes = False  # whether a mark was taken out, so that body and answer differ
        self.body = ""
        self.answer = ""

    def add(self, fragment: str) -> str:
        """What may be shown now that this fragment has come; empty where it has to wait."""
        self.answer += fragment
        if not self.answer.strip():
            return ""
        safe = self._safe()
        if safe <= self._settled:
            return ""
        self._settled = safe
        return self._grow(self._body_until(safe))

    def rest(self) -> str:
        """What is left to show when the answer has ended."""
        whole = self.style.body(self.answer)
        return self._grow(whole if whole.startswith(self.body) else self._body_until(len(self.answer)).rstrip())

    def _grow(self, body: str) -> str:
        """What is new in `body`. Markdown that is broken on purpose may read otherwise once it goes on: then what was shown stands."""
        if not body.startswith(self.body):
            return ""
        new = body[len(self.body) :]
        self.body = body
        return new

    def _safe(self) -> int:
        """The end of what no later fragment can change."""
        answer = self.answer
        ends = [len(answer.rstrip())]
        line = answer.rfind("\n", 0, self._settled) + 1
        if unfinished := citations.UNFINISHED.search(answer, line):
            ends.append(unfinished.start())
        if self.style.numbered and (unknown := self._unknown(answer)) is not None:
            ends.append(unknown)
        if self.style.own_line:
            held = citations.possible_tail(answer[line:], self.style.passages, self.style.gettext)
            ends += [] if held is None else [len(answer[: line + held].rstrip())]
        return min(ends)

    def _unknown(self, answer: str) -> int | None:
        """Where a mark stands that names no passage, in a paragraph that has not ended: it may turn out to be code or a link."""
        known = len(self.style.passages)
        for mark in citations.MARK.finditer(answer, self._settled):
            if all(1 <= int(n) <= known for n in re.findall(r"\d+", mark[0])):
                continue
            self._changes = True
            if not _PARAGRAPH_END.search(answer, mark.end()):
                return len(answer[: mark.start()].rstrip())
        return None

    def _body_until(self, end: int) -> str:
        text = self.answer[:end].lstrip()
        if self._changes:
            text = citations.without_unknown(text, len(self.style.passages)).strip()
        return text
