"""The terminal as a transport: for a person at the keys, or for lines from a pipe."""

import asyncio
import errno
import os
import re
import stat
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path, PurePath
from typing import Literal, Protocol, TextIO
from uuid import uuid4

from bot.errors import BadRequest, BotError, Gettext, TransportError
from bot.ports import ReplyStream
from bot.transports.console_piped import Piped
from bot.transports.console_seat import NAME
from bot.transports.console_text import clean
from bot.values import Attachment, Update
from bot.words import marked as _

PERSON = "console:local"
EXPORTS = "exports"
HISTORY = "console_history"


WHY = {
    errno.EACCES: _("it may not be written to"),
    errno.EPERM: _("it may not be written to"),
    errno.EROFS: _("it may not be written to"),
    errno.ENOSPC: _("the disk is full"),
    errno.EDQUOT: _("the disk is full"),
    errno.EEXIST: _("something that is no folder stands there"),
    errno.ENOTDIR: _("something that is no folder stands there"),
}


class CannotWrite(TransportError):
    """A file that was to be sent cannot be written; whoever asked for it is told where, and why."""

    message = _("I could not write {name} into the folder {folder}: {reason}.")

    def __init__(self, name: str, folder: Path, error: OSError) -> None:
        super().__init__(f"{name!r} cannot be written under {folder}: {error.strerror or error}")
        self._name, self._folder, self._error = name, folder, error

    def words(self, gettext: Gettext) -> str:
        """Which file, which folder, and why."""
        reason = gettext(WHY[self._error.errno]) if self._error.errno in WHY else self._error.strerror or str(self._error)
        return gettext(self.message).format(name=self._name, folder=self._folder, reason=reason)


class Screen(Protocol):
    """One of the two ways to talk in a terminal: Terminal, or Piped."""

    async def ask(self) -> str | None: ...

    async def attend(self, settle: Callable[[], Awaitable[None]], stop: Callable[[], Awaitable[None]]) -> bool: ...

    def say(self, text: str, *, verbatim: bool = False) -> None: ...

    async def show(self, fragments: ReplyStream) -> None: ...

    def progress(self, text: str) -> None: ...

    def forget(self) -> None: ...


class Console:
    """The transport of `console:local`: it sends, streams, edits one line of progress, and carries files.

    `name` is its own among the terminals on one database: each is a chat of its own (`chat_key`), all of them of the one person.
    `accept` stores an update and wakes the dispatcher; `settle` returns when every accepted update has been answered. `commands` are
    completed as they stand (`/help`). What the terminal writes to disk stands under `data_dir`, readable by its owner alone.
    """

    def __init__(
        self,
        *,
        name: str = NAME,
        accept: Callable[[Update], Awaitable[object]],
        settle: Callable[[], Awaitable[None]],
        gettext: Gettext,
        data_dir: Path,
        commands: Sequence[str] = (),
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
    ) -> None:
        self.name = name
        self.chat_key = PERSON if name == NAME else f"{name}:local"
        self._ = gettext
        self._accept = accept
        self._settle = settle
        self._data = data_dir
        self._commands = commands
        self._streams = (stdin or sys.stdin, stdout or sys.stdout, stderr or sys.stderr)
        self._opened: Screen | None = None

    async def run(self) -> None:
        """Read until the end of input, each message after the answer to the one before. Raises TransportError where that breaks."""
        while (text := await self._screen.ask()) is not None:
            try:
                await self._accept(self._update("message", text))
                if not await self._screen.attend(self._settle, self._stop):
                    break
            except BotError as error:
                self._screen.say(error.words(self._))

    async def send(self, chat_key: str, text: str, *, reply_to: str | None = None) -> None:
        """Show a text that came whole."""
        self._screen.say(text)

    async def stream(self, chat_key: str, fragments: ReplyStream) -> None:
        """Show an answer while it is written; what there is of it stays whatever ends it."""
        await self._screen.show(fragments)

    async def progress(self, chat_key: str, key: str, text: str) -> None:
        """Show how far long work is."""
        self._screen.progress(text)

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        """A local file: `attachment.file_id` is its path. Raises BadRequest where it is none, or over `max_bytes`."""
        name = PurePath(attachment.file_id).name
        try:
            data = await asyncio.to_thread(_contents, attachment.file_id, max_bytes + 1)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise BadRequest(self._("I cannot read {name}: it is no file that I may open.").format(name=name)) from error
        if len(data) > max_bytes:
            raise BadRequest(self._("{name} is too large: {limit} bytes is the most I take.").format(name=name, limit=max_bytes))
        return data

    async def send_file(self, chat_key: str, name: str, data: bytes) -> None:
        """Write a file under `exports/`, beside those that are there, and say where it is. Raises CannotWrite."""
        name = clean(PurePath(name).name) or "file"
        try:
            path = await asyncio.to_thread(_export, self._data / EXPORTS, name, data)
        except OSError as error:
            raise CannotWrite(name, self._data / EXPORTS, error) from error
        self._screen.say(self._("I wrote it to {path}").format(path=path), verbatim=True)

    async def erase_files(self) -> int:
        """Remove what the terminal keeps of its person: files that were sent, and what was typed. How many files left."""
        removed = await asyncio.to_thread(erase_files, self._data)
        if self._opened:
            self._opened.forget()
        return removed

    async def _stop(self) -> None:
        await self._accept(self._update("stop", ""))

    def _update(self, kind: Literal["message", "stop"], text: str) -> Update:
        return Update(id=f"{self.name}:{uuid4().hex}", transport=self.name, chat_key=self.chat_key, sender=PERSON, text=text, kind=kind)

    @property
    def _screen(self) -> Screen:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    @property
    def is_at_the_keys(self) -> bool:
        """Whether a person reads and writes in a terminal, as opposed to lines that come through a pipe."""
        stdin, stdout, _stderr = self._streams
        return bool(stdin and stdin.isatty() and stdout.isatty())

    def _open(self) -> Screen:
        stdin, stdout, stderr = self._streams
        if not self.is_at_the_keys:
            return Piped(stdin=stdin, stdout=stdout, stderr=stderr, gettext=self._)
        from bot.transports.console_terminal import Terminal

        return Terminal(stdin=stdin, stdout=stdout, gettext=self._, history=self._data / HISTORY, commands=self._commands)


def erase_files(data_dir: Path) -> int:
    """Remove what any terminal chat has kept under `data_dir`; how many files left. Raises OSError."""
    exports = data_dir / EXPORTS
    files = [path for path in exports.glob("*") if path.is_file() or path.is_symlink()]
    if (history := data_dir / HISTORY).exists():
        files.append(history)
    for path in files:
        path.unlink(missing_ok=True)
    return len(files)


def typed(data_dir: Path) -> list[str]:
    """What was typed in a terminal chat and is kept for the arrow keys, oldest first. Raises OSError."""
    history = data_dir / HISTORY
    text = history.read_text(encoding="utf-8", errors="replace") if history.exists() else ""
    entries = re.findall(r"(?:^\+.*\n)+", text, re.MULTILINE)
    return ["\n".join(line.removeprefix("+") for line in entry.splitlines()) for entry in entries]


def _contents(path: str, most: int) -> bytes:
    """At most so many bytes of a regular file: a pipe or a device might never end."""
    fd = os.open(Path(path).expanduser(), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(f"{path} is no regular file")
        return file.read(most)


def _export(folder: Path, name: str, data: bytes) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in (folder / (f"{PurePath(name).stem}-{n}{PurePath(name).suffix}" if n > 1 else name) for n in range(1, 10_000)):
        try:
            fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            continue
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return path
    raise OSError(f"{folder} holds too many files named {name!r}")
