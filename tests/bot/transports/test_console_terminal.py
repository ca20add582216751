"""The terminal chat with a person at the keys: a child process behind a pseudo-terminal."""

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.settings import ROOT
from bot.transports.console import typed
from tests.standins.pseudo_terminal import PseudoTerminal

PROMPT = "\x1b[?2004h"  # prompt_toolkit asks for pastes in brackets when it prompts
CTRL_C, CTRL_D, ENTER = "\x03", "\x04", "\r"


class Person:
    """Someone who reads before they type."""

    def __init__(self, terminal: PseudoTerminal) -> None:
        self.terminal = terminal
        self._read = terminal.hear(PROMPT)

    def say(self, text: str) -> None:
        """Type a line, and wait for the next prompt."""
        self.terminal.press(text + ENTER)
        self._read = self.terminal.hear(PROMPT, after=self._read)

    def start(self, text: str, *, until: str) -> None:
        """Type a line, and wait until its answer is under way."""
        self.terminal.press(text + ENTER)
        self._read = self.terminal.hear(until, after=self._read)

    def press(self, keys: str) -> None:
        """Press keys, and wait for the next prompt."""
        self.terminal.press(keys)
        self._read = self.terminal.hear(PROMPT, after=self._read)

    def hear(self, words: str) -> None:
        """Wait for words."""
        self._read = self.terminal.hear(words, after=self._read)

    def leave(self) -> list[str]:
        """Press Ctrl-D; everything that was on the screen."""
        self.terminal.press(CTRL_D)
        assert self.terminal.ended() == 0
        return self.terminal.see()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Where the chat keeps its history."""
    return tmp_path / "data"


@pytest.fixture
def terminal(data: Path) -> Iterator[PseudoTerminal]:
    """A chat in a terminal of 12 rows."""
    with opened(data) as terminal:
        yield terminal


def until(happens: Callable[[], bool]) -> None:
    """Wait until something happens."""
    end = time.monotonic() + 30
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.01)


def opened(data: Path) -> PseudoTerminal:
    """A chat that keeps its history in `data`."""
    command = [sys.executable, "-m", "tests.bot.transports.talker", str(data)]
    return PseudoTerminal(command, env={**os.environ, "NO_COLOR": ""}, cwd=str(ROOT), rows=12)


def test_a_conversation(terminal: PseudoTerminal) -> None:
    """A line is a message, and its answer stands below it when the next prompt comes; Ctrl-D leaves."""
    person = Person(terminal)
    person.say("hola")
    person.say("adiós")

    seen = person.leave()

    assert seen[seen.index("> hola") :][:6] == ["> hola", "You said: 'hola'", "", "> adiós", "You said: 'adiós'", ""]
    assert "Thinking" not in "".join(seen)


def test_an_answer_is_rendered_and_its_sources_are_marked(terminal: PseudoTerminal) -> None:
    """Markdown is rendered with its line breaks, an address shows, HTML is text, and the sources line is quieter with bright numbers."""
    person = Person(terminal)
    person.say("markdown")

    seen = person.leave()

    start = seen.index("> markdown") + 1
    assert seen[start : start + 4] == ["Tres días, aquí (http://x.example) <b>", "hoy [1].", "", "Fuentes: [1] faq"]
    assert "\x1b[2;3mFuentes: \x1b[0m\x1b[1;36m[1]" in terminal.written
    assert "evil" not in terminal.written


def test_a_long_answer_is_whole_in_the_scrollback(terminal: PseudoTerminal) -> None:
    """An answer taller than the terminal is shown by its end while it is written, and stands whole, once, when it has ended."""
    person = Person(terminal)
    person.say("long")

    seen = person.leave()

    rows = [line for line in seen if "row" in line]
    assert rows == [f" • row {n} of the answer" for n in range(60)]


def test_it_streams(terminal: PseudoTerminal) -> None:
    """What there is of an answer shows before it has ended; the first Ctrl-C stops it, and what there is stays."""
    person = Person(terminal)
    person.start("endless", until="It begins and goes on")

    person.press(CTRL_C)
    seen = person.leave()

    assert seen[seen.index("> endless") :][:3] == ["> endless", "It begins and goes on", ""]


def test_an_answer_that_breaks_off_stays(terminal: PseudoTerminal) -> None:
    """Where an answer fails half way, what there is of it stays above the words about it."""
    person = Person(terminal)
    person.say("fails")

    seen = person.leave()

    assert seen[seen.index("> fails") :][:4] == ["> fails", "It begins", "", "It broke off"]


def test_a_second_interrupt_leaves(terminal: PseudoTerminal) -> None:
    """Where the first Ctrl-C stops nothing, a second one leaves the chat; keys pressed meanwhile are not drawn, and later ones are."""
    person = Person(terminal)
    person.start("hangs", until="Thinking")
    terminal.press("typed")
    person.hear("Thinking")

    terminal.press(CTRL_C)
    person.hear("Thinking")
    terminal.press(CTRL_C)

    assert terminal.ended() == 0
    assert "typed" not in terminal.written
    assert terminal.echoes()


def test_an_interrupt_at_the_prompt(terminal: PseudoTerminal) -> None:
    """Ctrl-C clears a line that was begun; at an empty prompt it says how to leave."""
    person = Person(terminal)
    terminal.press("half a li")
    person.hear("half a li")
    person.press(CTRL_C)
    person.press(CTRL_C)

    seen = person.leave()

    assert seen.count("To leave, press Ctrl-D.") == 1
    assert not [line for line in seen if "You said" in line]


def test_progress_is_one_line(terminal: PseudoTerminal) -> None:
    """How far work is shows in one line that changes, and that is gone when the answer stands."""
    person = Person(terminal)
    person.say("works")

    seen = person.leave()

    assert "1 of 3" in terminal.written
    assert seen[seen.index("> works") :][:3] == ["> works", "All done", ""]


def test_a_paste_is_one_message(terminal: PseudoTerminal, data: Path) -> None:
    """Lines that are pasted are one message, sent by Enter."""
    person = Person(terminal)
    person.say("\x1b[200~uno\ndos\x1b[201~")

    assert "You said: 'uno\\ndos'" in person.leave()
    assert typed(data) == ["uno\ndos"]


def test_commands_are_completed(terminal: PseudoTerminal) -> None:
    """Tab completes the name of a command."""
    person = Person(terminal)
    terminal.press("/my")
    person.hear("/my_data")  # offered while it is typed
    person.say("\t")

    assert "You said: '/my_data'" in person.leave()


def test_what_was_typed_is_kept_for_its_owner(terminal: PseudoTerminal, data: Path) -> None:
    """What was typed can be had again in the next chat, from a file that its owner alone can read."""
    person = Person(terminal)
    person.say("recuerda esto")
    person.leave()

    with opened(data) as later:
        again = Person(later)
        again.say("\x1b[A")
        seen = again.leave()

    assert "You said: 'recuerda esto'" in seen
    assert typed(data) == ["recuerda esto"]  # said twice in a row, kept once
    assert stat.S_IMODE((data / "console_history").stat().st_mode) == 0o600


def test_erasure_takes_what_was_typed(terminal: PseudoTerminal, data: Path) -> None:
    """After an erasure what was typed is neither in a file nor to be had with the arrow keys."""
    person = Person(terminal)
    person.say("Vivo en Bogotá")
    person.say("erase")
    person.say("\x1b[A" + "después")

    seen = person.leave()

    assert "You said: 'después'" in seen
    assert "Erased 1" in seen
    assert "Bogot" not in (data / "console_history").read_text(encoding="utf-8")


def test_an_erasure_in_another_terminal(terminal: PseudoTerminal, data: Path) -> None:
    """What was typed here before is not to be had any more either, and what comes after is its owner's alone."""
    person = Person(terminal)
    person.say("Vivo en Bogotá")
    terminal.press("hola ")
    (data / "console_history").unlink()
    until(lambda: (data / "console_history").exists())  # it was seen, and begun anew
    person.press("a\x1b[A\x1b[A todos" + ENTER)
    person.say("\x1b[A\x1b[A" + "!")

    seen = person.leave()

    assert "You said: 'hola a todos'" in seen
    assert "You said: 'hola a todos!'" in seen
    assert "Bogot" not in (data / "console_history").read_text(encoding="utf-8")
    assert stat.S_IMODE((data / "console_history").stat().st_mode) == 0o600
