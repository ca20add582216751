"""The terminal chat over pipes, and what it writes to disk."""

import asyncio
import errno
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from io import StringIO
from pathlib import Path
from typing import TextIO

import pytest

from bot.errors import BadRequest, ModelUnavailable, StorageError, TransportError
from bot.i18n import Catalogs
from bot.ports import Edits, Files, Streams
from bot.transports.console import Console
from bot.transports.console_text import LONGEST_LINE
from bot.values import Attachment, Passage, Reply, Update

Answer = Callable[[Console, Update], Awaitable[None]]


class Scripted:
    """An answer in fragments; an exception among them is raised there."""

    def __init__(self, *fragments: str | Exception, reply: Reply | None = None) -> None:
        self._fragments = fragments
        self._steps = self._run()
        self._final = reply
        self.reply: Reply | None = None

    async def _run(self) -> AsyncIterator[str]:
        for fragment in self._fragments:
            if isinstance(fragment, Exception):
                raise fragment
            yield fragment
        words = "".join(f for f in self._fragments if isinstance(f, str))
        self.reply = self._final or Reply(text=words, answer=words)

    async def stop(self) -> None:
        """Nothing is under way."""

    def __aiter__(self) -> AsyncIterator[str]:
        return self._steps

    async def __anext__(self) -> str:
        return await anext(self._steps)


class Talk:
    """A console between two pipes; each update is answered by `answer` when the console waits for it."""

    def __init__(self, data_dir: Path, answer: Answer, given: bytes, *, stdout: TextIO | None = None) -> None:
        self.updates: list[Update] = []
        self._answer = answer
        self._waiting: list[Update] = []
        read, write = os.pipe()
        self._stdin = os.fdopen(read, encoding="utf-8")
        self._given = (write, given)
        self._heard, out = os.pipe()
        pipe = os.fdopen(out, "w", encoding="utf-8")
        self._stdout = stdout or pipe
        if stdout:
            pipe.close()
        self._stderr_fd, err = os.pipe()
        self._stderr = os.fdopen(err, "w", encoding="utf-8")
        self.console = Console(
            accept=self._accept,
            settle=self._settle,
            gettext=lambda message: message,
            data_dir=data_dir,
            stdin=self._stdin,
            stdout=self._stdout,
            stderr=self._stderr,
        )

    async def _accept(self, update: Update) -> None:
        self.updates.append(update)
        self._waiting.append(update)

    async def _settle(self) -> None:
        while self._waiting:
            await self._answer(self.console, self._waiting.pop(0))

    async def run(self) -> str:
        """What was written, when the input has ended."""
        write, given = self._given

        async def type_it() -> None:
            with os.fdopen(write, "wb") as keys:
                await asyncio.to_thread(keys.write, given)
                await asyncio.to_thread(keys.flush)

        heard = asyncio.create_task(asyncio.to_thread(_all, self._heard))
        typing = asyncio.create_task(type_it())
        try:
            await asyncio.wait_for(self.console.run(), 10)
            await typing
        finally:
            self._stdin.close()
            self._stdout.close()
            self._stderr.close()
        return (await heard).decode()

    def stderr(self) -> str:
        """What went to standard error."""
        return _all(self._stderr_fd).decode()


def _all(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as file:
        return file.read()


async def echo(console: Console, update: Update) -> None:
    """Say the message back."""
    await console.send(update.chat_key, f"<{update.text}>")


async def test_a_line_is_a_message(tmp_path: Path) -> None:
    """One line is one message, in order; blank ones are skipped; each answer is followed by a blank line, and nothing else is written."""
    talk = Talk(tmp_path, echo, "uno\r\n\n   \ndos\ntrés".encode())

    written = await talk.run()

    assert written == "<uno>\n\n<dos>\n\n<trés>\n\n"
    assert [(u.kind, u.chat_key, u.sender, u.lang) for u in talk.updates] == [("message", "console:local", "console:local", None)] * 3
    assert len({u.id for u in talk.updates}) == 3
    assert all(u.id.startswith("console:") for u in talk.updates)


async def test_the_next_line_waits_for_the_answer(tmp_path: Path) -> None:
    """A message is accepted after the one before it has been answered."""
    order: list[str] = []

    async def answer(console: Console, update: Update) -> None:
        order.append(f"asked {update.text}")
        await asyncio.sleep(0)
        order.append(f"answered {update.text}")

    await Talk(tmp_path, answer, b"1\n2\n").run()

    assert order == ["asked 1", "answered 1", "asked 2", "answered 2"]


async def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """Input that is not UTF-8, and a mark at its start, cost neither the line nor the chat."""
    talk = Talk(tmp_path, echo, b"\xef\xbb\xbfuno\n\xff\xfe\ndos\n")

    assert await talk.run() == "<uno>\n\n<\ufffd\ufffd>\n\n<dos>\n\n"


async def test_a_line_of_a_megabyte(tmp_path: Path) -> None:
    """A line up to the limit is a message; a longer one is refused in words, and the chat goes on."""

    async def size(console: Console, update: Update) -> None:
        await console.send(update.chat_key, str(len(update.text)))

    written = await Talk(tmp_path, size, b"x" * 1_000_000 + b"\n" + b"y" * (LONGEST_LINE + 1) + b"\nz\n").run()

    assert written == f"1000000\n\nThat line is too long: {LONGEST_LINE} bytes is the most I take.\n\n1\n\n"


async def test_a_file_as_input(tmp_path: Path) -> None:
    """Input can be a file on disk, which cannot be waited for as a pipe can."""
    (tmp_path / "lines").write_text("uno\ndos\n", encoding="utf-8")
    seen: list[str] = []
    waiting: list[Update] = []

    async def accept(update: Update) -> None:
        waiting.append(update)

    async def settle() -> None:
        seen.append(waiting.pop().text)

    with (tmp_path / "lines").open(encoding="utf-8") as stdin, (tmp_path / "out").open("w", encoding="utf-8") as stdout:
        console = Console(accept=accept, settle=settle, gettext=str, data_dir=tmp_path, stdin=stdin, stdout=stdout)
        await console.run()

    assert seen == ["uno", "dos"]


async def test_an_answer_in_fragments(tmp_path: Path) -> None:
    """An answer that comes in fragments is written whole, with its sources."""

    async def answer(console: Console, update: Update) -> None:
        reply = Reply(text="a\nb\n\nFuentes: [1] faq", answer="a\nb", citations=[Passage(text="b", citation="faq")])
        await console.stream(update.chat_key, Scripted("a", "\n", "b", "\n\nFuentes: [1] faq", reply=reply))

    assert await Talk(tmp_path, answer, b"?\n").run() == "a\nb\n\nFuentes: [1] faq\n\n"


async def test_the_final_text_is_written_whole(tmp_path: Path) -> None:
    """Where the final text is another than what came as fragments, it is written whole after it."""

    async def answer(console: Console, update: Update) -> None:
        await console.stream(update.chat_key, Scripted("draft\nwith more", reply=Reply(text="final", answer="final")))

    assert await Talk(tmp_path, answer, b"?\n").run() == "draft\n\nfinal\n\n"


async def test_an_answer_that_breaks_off(tmp_path: Path) -> None:
    """What there is of an answer stays when its stream fails, and the failure goes to who asked for it."""

    async def answer(console: Console, update: Update) -> None:
        with pytest.raises(ModelUnavailable):
            await console.stream(update.chat_key, Scripted("one\ntw", ModelUnavailable("down")))
        await console.send(update.chat_key, "sorry")

    assert await Talk(tmp_path, answer, b"?\n").run() == "one\ntw\n\nsorry\n\n"


async def test_no_escape_sequence_comes_out(tmp_path: Path) -> None:
    """What a model or a document says cannot steer the terminal, whole or in fragments."""

    async def answer(console: Console, update: Update) -> None:
        await console.send(update.chat_key, "\x1b]0;evil\x07said")
        await console.stream(update.chat_key, Scripted("\x1b[2", "Jwritten"))

    assert await Talk(tmp_path, answer, b"?\n").run() == "said\n\nwritten\n\n"


async def test_progress_is_no_answer(tmp_path: Path) -> None:
    """How far work is goes to standard error, and no more than once a second."""

    async def answer(console: Console, update: Update) -> None:
        for n in range(5):
            await console.progress(update.chat_key, "key", f"{n} of 5")
        await console.send(update.chat_key, "done")

    talk = Talk(tmp_path, answer, b"?\n")

    assert await talk.run() == "done\n\n"
    assert talk.stderr() == "0 of 5\n"


async def test_a_message_that_cannot_be_stored(tmp_path: Path) -> None:
    """Where a message cannot be accepted, that is said in its place and the next one is taken."""
    talk = Talk(tmp_path, echo, b"lost\nkept\n")
    store = talk.console._accept

    async def full_once(update: Update) -> None:
        if update.text == "lost":
            raise StorageError("disk full")
        await store(update)

    talk.console._accept = full_once

    assert await talk.run() == f"{StorageError.message}\n\n<kept>\n\n"


async def test_nobody_reads(tmp_path: Path) -> None:
    """When the reader of the answers goes away, the chat ends: no exception, and no further message is taken."""
    read, write = os.pipe()
    os.close(read)
    talk = Talk(tmp_path, echo, b"1\n2\n3\n", stdout=os.fdopen(write, "w", encoding="utf-8"))

    await talk.run()

    assert [u.text for u in talk.updates] == ["1"]


async def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """Answers that cannot be written for another reason end the chat with an error that says so."""
    talk = Talk(tmp_path, echo, b"1\n", stdout=open("/dev/full", "w", encoding="utf-8"))  # noqa: ASYNC230, SIM115 - a device

    with pytest.raises(TransportError, match="standard output cannot be written: No space left"):
        await talk.run()


def test_a_pipe_brings_no_libraries_along() -> None:
    """Over a pipe neither the editing nor the rendering of the terminal is imported."""
    code = (
        "import asyncio, io, pathlib, sys; from bot.transports.console import Console\n"
        "async def nothing(*_): pass\n"
        "asyncio.run(Console(accept=nothing, settle=nothing, gettext=str, data_dir=pathlib.Path('.')).run())\n"
        "print(sorted({'rich', 'prompt_toolkit', 'aiohttp'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], input="hola\n", capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


# ---------------------------------------------------------------------------------------------- files


def quiet(tmp_path: Path, said: StringIO | None = None) -> Console:
    """A console that is never run: it says things, and has files."""

    async def nothing(update: Update | None = None) -> None:
        return None

    return Console(accept=nothing, settle=nothing, gettext=str, data_dir=tmp_path / "data", stdout=said or StringIO())


def test_what_it_can() -> None:
    """It sends, streams, edits a line of progress and carries files."""
    assert all(issubclass(Console, capability) for capability in (Streams, Edits, Files))


async def test_a_file_is_the_persons_alone(tmp_path: Path) -> None:
    """A file that is sent stands under exports, readable by its owner alone, and the words say where; none is written over."""
    said = StringIO()
    console = quiet(tmp_path, said)

    await console.send_file("console:local", "../my_data.json", b"one")
    await console.send_file("console:local", "my_data.json", b"two")

    first, second = tmp_path / "data/exports/my_data.json", tmp_path / "data/exports/my_data-2.json"
    assert (first.read_bytes(), second.read_bytes()) == (b"one", b"two")
    assert {stat.S_IMODE(path.stat().st_mode) for path in (first, second)} == {0o600}
    assert stat.S_IMODE(first.parent.stat().st_mode) == 0o700
    assert said.getvalue() == f"I wrote it to {first}\n\nI wrote it to {second}\n\n"


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EACCES, "no se puede escribir en ella"),
        (errno.EROFS, "no se puede escribir en ella"),
        (errno.ENOSPC, "el disco está lleno"),
        (errno.ENOTDIR, "en su lugar hay algo que no es una carpeta"),
        (errno.EIO, "Input/output error"),
    ],
)
async def test_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, why: str) -> None:
    """Whoever asked for it is told which folder, and why; what was begun is gone. The log has it too."""

    def fails(*given: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fdopen", fails)
    with pytest.raises(TransportError) as raised:
        await quiet(tmp_path).send_file("console:local", "my_data.json", b"{}")

    folder = tmp_path / "data/exports"
    assert raised.value.words(Catalogs.load().gettext("es")) == f"No pude escribir my_data.json en la carpeta {folder}: {why}."
    assert str(raised.value) == f"'my_data.json' cannot be written under {folder}: {os.strerror(number)}"
    assert list(folder.iterdir()) == []


async def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """That is said as well."""
    (tmp_path / "data").write_text("no folder")

    with pytest.raises(TransportError) as raised:
        await quiet(tmp_path).send_file("console:local", "my_data.json", b"{}")

    assert "something that is no folder stands there" in raised.value.words(str)


async def test_erasing_leaves_no_file(tmp_path: Path) -> None:
    """Erasure removes what was sent and what was typed, and says how many files that were."""
    console = quiet(tmp_path)
    await console.send_file("console:local", "my_data.json", b"{}")
    (tmp_path / "data/console_history").write_text("+/remember Vivo en Bogotá\n")

    removed = await console.erase_files()

    assert removed == 2
    assert [path for path in (tmp_path / "data").rglob("*") if path.is_file()] == []
    assert await console.erase_files() == 0


async def test_a_local_file_is_fetched(tmp_path: Path) -> None:
    """A file is read by its path, up to the limit and no further."""
    console = quiet(tmp_path)
    (tmp_path / "notes.txt").write_bytes(b"12345")
    notes = Attachment(file_id=str(tmp_path / "notes.txt"), name="notes.txt")

    assert await console.fetch(notes, max_bytes=5) == b"12345"
    with pytest.raises(BadRequest, match=r"notes\.txt is too large: 4 bytes"):
        await console.fetch(notes, max_bytes=4)


@pytest.mark.parametrize("kind", ["absent", "folder", "fifo", "nul"])
async def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    """A path that is no regular file is refused in words, at once: a pipe is not waited for."""
    path = tmp_path / kind
    if kind == "folder":
        path.mkdir()
    if kind == "fifo":
        os.mkfifo(path)
    name = "nul\0" if kind == "nul" else str(path)

    with pytest.raises(BadRequest, match="I cannot read"):
        await asyncio.wait_for(quiet(tmp_path).fetch(Attachment(file_id=name, name=kind), max_bytes=10), 5)
