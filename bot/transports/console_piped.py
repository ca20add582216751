"""The terminal chat without a person at the keys: a line is a message, an answer is plain text and a blank line."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TextIO

from bot.errors import Gettext, TransportError
from bot.ports import ReplyStream
from bot.transports.console_text import LONGEST_LINE, Splitter, clean

CHUNK = 65_536
SECONDS_BETWEEN_PROGRESS = 1.0
END = "\n"  # no line holds it


class Piped:
    """Reads lines and writes answers, nothing else, so that a log of it can be searched; progress goes to `stderr`.

    A reader that goes away (`| head -1`) ends it quietly. Raises TransportError where the input cannot be read or the output cannot be
    written for another reason, a full disk say.
    """

    def __init__(self, *, stdin: TextIO | None, stdout: TextIO, stderr: TextIO, gettext: Gettext) -> None:
        self._ = gettext
        self._lines = _lines(stdin) if stdin else _nothing()
        self._out = stdout
        self._err = stderr
        self._gone = False
        self._failure: OSError | None = None
        self._next_progress = 0.0

    async def ask(self) -> str | None:
        """The next line that is not blank; None at the end of input, or when nobody reads the answers any more."""
        while not self._gone and (line := await anext(self._lines, END)) is not END:
            if line is None:
                self.say(self._("That line is too long: {limit} bytes is the most I take.").format(limit=LONGEST_LINE))
            elif line.strip():
                return line
        if self._failure:
            raise TransportError(f"standard output cannot be written: {self._failure.strerror}") from self._failure
        return None

    async def attend(self, settle: Callable[[], Awaitable[None]], stop: Callable[[], Awaitable[None]]) -> bool:
        """Wait until the answer is there. True: the chat goes on."""
        await settle()
        return True

    def say(self, text: str, *, verbatim: bool = False) -> None:
        """Write one answer."""
        if words := clean(text).strip("\n"):
            self._write(f"{words}\n\n")

    async def show(self, fragments: ReplyStream) -> None:
        """Write an answer line by line as it comes; where the final text turns out another, it is written whole."""
        written, waiting = "", ""
        try:
            async for fragment in fragments:
                waiting += fragment
                whole = waiting[: max(waiting.rfind("\n"), 0)].rstrip()
                written, waiting = written + whole, waiting[len(whole) :]
                self._write(clean(whole))
        finally:
            final = fragments.reply.text if fragments.reply else written + waiting
            rest = final.removeprefix(written) if final.startswith(written) else f"\n\n{final}"
            if final.strip():
                self._write(clean(rest.rstrip()) + "\n\n")

    def progress(self, text: str) -> None:
        """Say how far long work is, at most once a second."""
        now = time.monotonic()
        if now >= self._next_progress:
            self._next_progress = now + SECONDS_BETWEEN_PROGRESS
            with contextlib.suppress(OSError):  # nobody has to read it
                print(clean(text), file=self._err, flush=True)

    def forget(self) -> None:
        """Nothing of what was typed is held."""

    def _write(self, text: str) -> None:
        if self._gone or not text:
            return
        encoding = self._out.encoding or "utf-8"
        try:
            self._out.write(text.encode(encoding, "replace").decode(encoding))
            self._out.flush()
        except OSError as error:
            self._gone = True
            self._failure = None if isinstance(error, BrokenPipeError) else error
            to_nowhere(self._out)


def to_nowhere(out: TextIO) -> None:
    """Let the interpreter's own last flush succeed: what is still buffered has nobody to go to."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, out.fileno())
    os.close(nowhere)


async def _nothing() -> AsyncIterator[str | None]:
    nothing: tuple[str, ...] = ()
    for line in nothing:
        yield line


async def _lines(stdin: TextIO) -> AsyncIterator[str | None]:
    """Lines of a pipe, a file or a terminal. No thread: one that waits in a read would keep the process from ending."""
    splitter = Splitter()
    while chunk := await _read(stdin.fileno()):
        for line in splitter.feed(chunk):
            yield line
    for line in splitter.end():
        yield line


async def _read(fd: int) -> bytes:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(fd, ready.set)
    except PermissionError:  # a file on disk: it cannot be waited for, and it never has to be
        ready.set()
    try:
        await ready.wait()
        return os.read(fd, CHUNK)
    except OSError as error:
        raise TransportError(f"standard input cannot be read: {error.strerror}") from error
    finally:
        loop.remove_reader(fd)
