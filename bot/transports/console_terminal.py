"""The terminal chat with a person at the keys: a prompt with editing and history, and Ctrl-C that stops an answer.

It is imported when standard input and output are a terminal; prompt_toolkit is imported nowhere else.
"""

import asyncio
import contextlib
import logging
import os
import signal
import termios
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import create_output

from bot.errors import Gettext
from bot.ports import ReplyStream
from bot.transports.console_render import Display

PROMPT = "> "
SECONDS_BETWEEN_LOOKS = 0.5  # at whether another terminal has erased what was typed
log = logging.getLogger(__name__)


class Terminal:
    """One prompt at a time: after a line is sent, the next prompt comes when its answer stands.

    While an answer is under way the first Ctrl-C asks to stop it, and a second one leaves the chat. It must run in the main thread: it
    takes SIGINT while it waits, and gives it back.
    """

    def __init__(self, *, stdin: TextIO, stdout: TextIO, gettext: Gettext, history: Path, commands: Sequence[str]) -> None:
        self._ = gettext
        self._keys = stdin.fileno()
        self._history = history
        self._erasable = _opened(history)
        self._display = Display(stdout, waiting=self._("Thinking…"))
        self._session: PromptSession[str] = PromptSession(
            input=create_input(stdin),
            output=create_output(stdout),
            history=_kept(history, self._erasable),
            completer=WordCompleter(list(commands), sentence=True),
            reserve_space_for_menu=5,
            key_bindings=_bindings(),
        )
        self._greeted = False

    async def ask(self) -> str | None:
        """What the person writes next; None when they leave."""
        if not self._greeted:
            self._greeted = True
            self._display.say(self._("Ask me anything. /help says what I can do, Ctrl-C stops an answer, Ctrl-D leaves."))
        while True:
            watching = asyncio.create_task(self._watch())
            try:
                text = await self._session.prompt_async(PROMPT, set_exception_handler=False)
            except EOFError:
                return None
            except KeyboardInterrupt:
                if not self._session.default_buffer.text:
                    self._display.say(self._("To leave, press Ctrl-D."))
                continue
            finally:
                watching.cancel()
            if text.strip():
                return text

    async def _watch(self) -> None:
        """Forget what was typed once another terminal of the same person has erased it, also while a prompt waits."""
        while True:
            if self._erasable is not None and os.fstat(self._erasable).st_nlink == 0:
                self.forget()
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)

    async def attend(self, settle: Callable[[], Awaitable[None]], stop: Callable[[], Awaitable[None]]) -> bool:
        """Wait until the answer is there. True: the chat goes on; False: the person left."""
        waiting = asyncio.ensure_future(settle())
        stopping: list[asyncio.Future[None]] = []

        def interrupted() -> None:
            if stopping:
                waiting.cancel()
            else:
                stopping.append(asyncio.ensure_future(stop()))

        try:
            with _typing_hidden(self._keys), _on_interrupt(interrupted):
                self._display.wait()
                await asyncio.wait({waiting})
                if waiting.cancelled():
                    return False
                await asyncio.gather(waiting, *stopping)
                return True
        finally:
            self._display.rest()
            for task in (waiting, *stopping):
                task.cancel()

    def say(self, text: str, *, verbatim: bool = False) -> None:
        """Show an answer that came whole."""
        self._above_the_prompt(lambda: self._display.say(text, verbatim=verbatim))

    async def show(self, fragments: ReplyStream) -> None:
        """Show an answer while it is written."""
        if self._session.app.is_running:  # nobody waits for it (it was left over by a process that died): no live part over a prompt
            fragments_text = "".join([fragment async for fragment in fragments])
            self.say(fragments.reply.text if fragments.reply else fragments_text)
        else:
            await self._display.show(fragments)

    def progress(self, text: str) -> None:
        """Say how far long work is, in one line that changes."""
        if not self._session.app.is_running:
            self._display.wait(text)

    def forget(self) -> None:
        """Let go of what was typed, but for what is being typed: the caller removed the file."""
        if self._erasable is not None:
            os.close(self._erasable)
        self._erasable = _opened(self._history)
        self._session.history = self._session.default_buffer.history = _kept(self._history, self._erasable)
        self._session.default_buffer.reset(self._session.default_buffer.document)

    def _above_the_prompt(self, write: Callable[[], None]) -> None:
        if self._session.app.is_running:
            run_in_terminal(write)
        else:
            write()


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("escape", "enter")
    def begin_a_line(event: KeyPressEvent) -> None:
        """Alt-Enter begins a new line; Enter sends."""
        event.current_buffer.insert_text("\n")

    return bindings


class Kept(FileHistory):
    """What was typed, in a file. A disk that is full costs the history, not the chat."""

    def store_string(self, string: str) -> None:
        """Add one entry."""
        try:
            os.close(_owned(Path(os.fsdecode(self.filename))))  # another terminal may have removed it
            super().store_string(string)
        except OSError as error:
            log.warning("the terminal's history is not kept: %s", error.strerror)


def _kept(path: Path, opened: int | None) -> History:
    return InMemoryHistory() if opened is None else Kept(path)


def _opened(path: Path) -> int | None:
    """The file of what was typed, open so that its removal can be seen; None where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _owned(path)
    except OSError as error:
        log.warning("the terminal's history is not kept: %s", error.strerror)
        return None


def _owned(path: Path) -> int:
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.fchmod(fd, 0o600)
    return fd


@contextlib.contextmanager
def _typing_hidden(fd: int) -> Iterator[None]:
    """Keys that are pressed meanwhile are kept for the next prompt, and not drawn into the answer."""
    before = termios.tcgetattr(fd)
    hidden = list(before)
    hidden[3] = before[3] & ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSANOW, hidden)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, before)


@contextlib.contextmanager
def _on_interrupt(call: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C calls this, and nothing else, meanwhile."""
    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)
    loop.add_signal_handler(signal.SIGINT, call)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before or signal.default_int_handler)
