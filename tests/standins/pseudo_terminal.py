"""A terminal with nobody at it: a child process on its other side, keys to press, and the screen that a person would see."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

_STEP = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[=>]|([\r\n\x08\x07])|([^\x1b\r\n\x08\x07]+)", re.S)
SECONDS = 30.0


class Screen:
    """What a terminal shows of what was written to it, the rows that scrolled away included."""

    def __init__(self, rows: int, columns: int) -> None:
        self.lines = [""]
        self._rows, self._columns = rows, columns
        self._row = self._column = 0

    def feed(self, text: str) -> None:
        """Obey `text`, whose escape sequences must be whole."""
        for step in _STEP.finditer(text):
            numbers, final, control, words = step.groups()
            if words:
                self._write(words)
            elif control:
                self._control(control)
            elif final and not numbers.startswith("?"):
                self._move(final, int(numbers.split(";")[0] or 0))

    def _write(self, words: str) -> None:
        for character in words:
            if self._column >= self._columns:
                self._control("\r")
                self._control("\n")
            line = self.lines[self._row].ljust(self._column)
            self.lines[self._row] = line[: self._column] + character + line[self._column + 1 :]
            self._column += 1

    def _control(self, control: str) -> None:
        if control == "\r":
            self._column = 0
        elif control == "\x08":
            self._column = max(self._column - 1, 0)
        elif control == "\n":
            self._row += 1
            self.lines += [""] * (self._row + 1 - len(self.lines))

    def _move(self, final: str, number: int) -> None:
        top = max(len(self.lines) - self._rows, 0)  # what scrolled away cannot be reached any more
        match final:
            case "A":
                self._row = max(self._row - max(number, 1), top)
            case "B":
                self._row = min(self._row + max(number, 1), len(self.lines) - 1)
            case "C":
                self._column = min(self._column + max(number, 1), self._columns - 1)
            case "D":
                self._column = max(self._column - max(number, 1), 0)
            case "K":
                line = self.lines[self._row]
                self.lines[self._row] = "" if number == 2 else line[: self._column]
            case "J":
                self.lines[self._row] = self.lines[self._row][: self._column]
                self.lines[self._row + 1 :] = [""] * len(self.lines[self._row + 1 :])


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class PseudoTerminal:
    """Runs a program as if a person sat before it. Leaving the block ends the child, whatever it does."""

    def __init__(
        self, arguments: Sequence[str], *, env: Mapping[str, str], cwd: str | None = None, rows: int = 24, columns: int = 80
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._rows, self._columns = rows, columns
        self.written = ""
        self._undecoded = b""
        self._child = subprocess.Popen(
            arguments,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env={**env, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()
        os.close(self._master)

    def press(self, keys: str) -> None:
        """Type. Ctrl-C is `\\x03`, Ctrl-D `\\x04`, Enter `\\r`."""
        os.write(self._master, keys.encode())

    def hear(self, words: str, *, after: int = 0) -> int:
        """Wait until `words` were written, later than the first `after` characters; returns where they end."""
        until = time.monotonic() + SECONDS
        while (at := self.written.find(words, after)) < 0:
            if not self._read(until - time.monotonic()):
                raise AssertionError(f"{words!r} was not written. What was: {self.written[after:]!r}")
        return at + len(words)

    def see(self) -> list[str]:
        """What was written so far as a person sees it, with what scrolled away: rows without the spaces at their ends."""
        screen = Screen(self._rows, self._columns)
        screen.feed(self.written)
        return [line.rstrip() for line in screen.lines]

    def ended(self) -> int:
        """The exit code of the child, once it has ended by itself."""
        until = time.monotonic() + SECONDS
        while self._read(until - time.monotonic()):
            pass
        return self._child.wait(max(until - time.monotonic(), 1))

    def echoes(self) -> bool:
        """Whether the terminal shows what is typed."""
        return bool(termios.tcgetattr(self._master)[3] & termios.ECHO)

    def terminate(self) -> None:
        """What a container does to stop it."""
        self._child.send_signal(signal.SIGTERM)

    def _read(self, seconds: float) -> bool:
        """Take what there is within that time; False where nothing came, or the child has ended."""
        if not select.select([self._master], [], [], max(seconds, 0))[0]:
            return False
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # Linux says so when the other side is closed
            return False
        self._undecoded += data
        text = self._undecoded.decode("utf-8", "ignore")
        self._undecoded = self._undecoded[len(text.encode()) :]
        self.written += text
        return bool(data)
