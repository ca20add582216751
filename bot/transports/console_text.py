"""What goes in and out of a terminal, as pure text: lines from bytes, words without escape sequences, an answer apart from its sources."""

import re

from bot.values import Reply

LONGEST_LINE = 1_048_576  # bytes; a person's message is far shorter, a text for /ingest may come close

# Text of a model or a document must not move the cursor, set the title, fill the clipboard or reorder what is read.
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC and its like: title, clipboard, links
    r"|\x1b[ -/]*[0-~]"  # the short ones
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u202a-\u202e\u2066-\u2069]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` with nothing in it that a terminal would obey: line feeds and tabs are all that is left of the control characters."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub("", _SEQUENCES.sub("", lines)))


def parted(text: str, last: str, reply: Reply | None) -> tuple[str, str]:
    """An answer and its sources line, `("…", "Fuentes: …")`; the line is empty where there is none.

    `text` is what came as fragments and `last` the last of them; the reply, once there is one, has the final word. The sources line is
    the last fragment of an answer from passages, and no part of the model's own words.
    """
    if reply is None:
        return text, ""
    final = reply.text
    is_line = last.startswith("\n\n") and final.endswith(last) and not reply.answer.endswith(last)
    return (final[: -len(last)], last.strip()) if is_line and reply.citations else (final, "")


class Splitter:
    """Cuts bytes into lines as they come. A line that is longer than `longest` bytes is None, and never held whole."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._held = bytearray()
        self._overlong = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[str | None]:
        """The lines that `chunk` completes, in order."""
        *ends, rest = chunk.split(b"\n")
        lines = []
        for end in ends:
            self._hold(end)
            lines.append(self._take())
        self._hold(rest)
        return lines

    def end(self) -> list[str | None]:
        """The last line, where the input does not end in a line feed."""
        return [self._take()] if self._held or self._overlong else []

    def _hold(self, part: bytes) -> None:
        if self._overlong or len(self._held) + len(part) > self._longest:
            self._overlong = True
            self._held.clear()
        else:
            self._held += part

    def _take(self) -> str | None:
        held, overlong, at_start = bytes(self._held), self._overlong, self._at_start
        self._held.clear()
        self._overlong = self._at_start = False
        text = held.decode("utf-8", "replace").removesuffix("\r")
        return None if overlong else text.removeprefix("\ufeff") if at_start else text
