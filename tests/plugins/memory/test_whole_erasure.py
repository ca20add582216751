"""A canary in every place that a person's words can reach is, after /forget_me, in none of them; and an erasure always comes to its end."""

import asyncio
import io
import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing, nullcontext
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from aiohttp import web
from prompt_toolkit.history import FileHistory

from bot import ExtractOptions, Job, MemoryOptions, Parts, Prompt, Recall, Registry, StorageError, Update
from bot.testing import MockAIProvider, TestBot, create_test_bot
from bot.transports.console import HISTORY, PERSON, Console
from tests.e2e.child import Place
from tests.standins.model_server import model_server, says
from tests.tables import everything

ANA, LEO, ROOM = PERSON, "test:leo", "test:room"
CANARY = "CANARIO8213"
OPTIONS = MemoryOptions(auto_extract=ExtractOptions(debounce_ms=600_000), resolve=True, notices=True)
ROOT = Path(__file__).resolve().parents[3]


class Parrot(MockAIProvider):
    """A model that says what it hears, keeps what it is sent, and finds it for a fact; `gate` holds up answers to "espera"."""

    def __init__(self) -> None:
        super().__init__(self.said)
        self.gate, self.held_up = asyncio.Event(), asyncio.Event()

    def said(self, prompt: Prompt) -> str:
        heard = str(prompt.messages[-1]["content"])
        if prompt.schema is None:
            return f"Entiendo: {heard}"
        word = CANARY if CANARY in heard else "LIMA"
        if f"Trabajo en {word}" in heard and '"id": "m1"' in heard:
            return json.dumps({"facts": [], "replacements": [{"id": "m1", "fact": f"Trabaja en {word}"}]})
        return json.dumps({"facts": [f"Vive en {word} desde siempre"]})

    async def _next(self, prompt: Prompt) -> Any:
        if "espera" in str(prompt.messages[-1]["content"]) and prompt.schema is None:
            self.held_up.set()
            await self.gate.wait()
        return await super()._next(prompt)


def diary(registry: Registry) -> None:
    """A plugin whose jobs bear words, and are never due."""

    async def run(parts: Parts, job: Job) -> None:
        raise AssertionError("it is never due")

    registry.job("diary.write", run)


@asynccontextmanager
async def a_bot(url: str, data: Path, provider: MockAIProvider) -> AsyncIterator[TestBot]:
    settings = {"BOT_DATA_DIR": str(data)}
    async with create_test_bot(provider=provider, memory=OPTIONS, database_url=url, settings=settings, plugins=[diary]) as bot:
        console = Console(
            accept=bot.accept,
            settle=lambda: bot.settled(PERSON),
            gettext=str,
            data_dir=data,
            stdin=io.StringIO(),
            stdout=io.StringIO(),
            stderr=io.StringIO(),
        )
        bot.attach(console)
        yield bot


async def typed(bot: TestBot, text: str, *, number: int) -> None:
    """What the person writes at the terminal."""
    await bot.accept(Update(id=f"console:{number}", transport="console", chat_key=PERSON, sender=PERSON, text=text))
    await bot.settled(PERSON)


def rows_of(rows: Mapping[str, list[Mapping[str, Any]]], who: str) -> dict[str, str]:
    """The rows that name a person, byte for byte."""
    return {name: repr([row for row in table if who in row.values()]) for name, table in rows.items()}


def holding(rows: Mapping[str, list[Mapping[str, Any]]]) -> set[str]:
    """The tables that hold the canary."""
    return {name for name, table in rows.items() if CANARY in repr(table)}


def files_with_the_canary(data: Path) -> set[str]:
    """By their raw bytes: of the database where it is a file, its log and free pages, exports, history."""
    return {str(path.relative_to(data)) for path in data.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()}


async def plant(bot: TestBot, provider: Parrot, data: Path) -> None:
    """The canary in every place; the other person has the like, with another word."""
    recall = bot.parts.find(Recall)
    for who, word in ((LEO, "LIMA"), (ANA, CANARY)):
        await recall.remember(who, f"Le gusta {word}")
        await recall.remember_keyed(who, "city", f"{word} uno")
        await recall.remember_keyed(who, "city", f"{word} dos")  # the first is kept among what was replaced
        await bot.user(who).set("plugin", "note", word)
        await bot.library.add_bytes(f"{word}.txt", f"La receta de {word} lleva azafrán.".encode(), owner=who, owner_is_admin=False)
        await recall.extract(who, f"Vivo en {word}", "")
        await recall.extract(who, f"Trabajo en {word}", "")
        await bot.say(f"Hola desde {word}", user=who, chat=ROOM, group=True)
    for number, text in enumerate(
        (f"Me llamo {CANARY}", f"/remember Mi gato es {CANARY}", f"/remember {CANARY}: mi PIN es 4321", "/my_data")
    ):
        await typed(bot, text, number=number)
    FileHistory(data / HISTORY).append_string(f"Me llamo {CANARY}")
    async with bot.database.transaction() as tx:
        await bot.core.jobs.put(tx, "diary.write", ANA, {"words": CANARY}, wait_ms=600_000)
    await bot.core.outbox.put(None, "unsent", kind="reply", line="absent:1", user_id=ANA, via="absent", payload={"text": CANARY})
    for number, text in enumerate((f"espera {CANARY}", f"y luego {CANARY}")):  # one is under way, the other waits
        await bot.accept(Update(id=f"test:{number}", transport="test", chat_key="test:other", sender=ANA, text=text, is_group=True))
    await asyncio.wait_for(provider.held_up.wait(), 5)


PLACES = {"facts", "memory_changes", "memory_queue", "messages", "inbox", "outbox", "jobs", "users", "documents", "chunks"}


@asynccontextmanager
async def reading(url: str) -> AsyncIterator[None]:
    """Somebody else who is at an old state of the database."""
    if url.startswith("sqlite:///"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT * FROM facts").fetchall()
            yield
        return
    other = await asyncpg.connect(url)
    try:
        async with other.transaction(isolation="repeatable_read"):
            await other.fetch("SELECT * FROM facts")
            yield
    finally:
        await other.close()


@pytest.fixture
def files(engine: str, engine_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[], set[str]]:
    """Names the files that hold the canary: those in the folder of the data, and the server's for the tables of this test."""
    if engine == "sqlite":
        return lambda: files_with_the_canary(tmp_path)
    server, schema = request.getfixturevalue("postgres"), engine_url.rpartition("=")[2]
    return lambda: files_with_the_canary(tmp_path) | server.files_with(CANARY, schema)


@pytest.mark.parametrize("reader", [False, True], ids=["alone", "with a reader open"])
async def test_nothing_of_a_person_is_left_anywhere(
    engine_url: str, tmp_path: Path, files: Callable[[], set[str]], reader: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Planted in tables, files, RAM and what is under way: after /forget_me the canary is in no table, no byte of a file, no line of the
    log at DEBUG and no later call of the model, after a restart too; and the other person's rows are the same, byte for byte."""
    for name in ("bot", "handlers", "plugins"):
        caplog.set_level(logging.DEBUG, logger=name)
    data, provider = tmp_path / "data", Parrot()
    async with a_bot(engine_url, data, provider) as bot:
        await plant(bot, provider, data)
        before = await everything(bot.database)
        assert holding(before) >= PLACES
        held = {name.removesuffix("-wal") for name in files()}
        assert {f"data/{HISTORY}", "facts" if "facts" in held else "bot.db"} <= held
        assert any(name.startswith("data/exports") for name in held)
        async with reading(engine_url) if reader else nullcontext():
            await typed(bot, "/forget_me", number=10)
            await typed(bot, "sí", number=11)
            provider.gate.set()
            await bot.settled("test:other")
            assert bool(files()) is reader  # it holds an old state of the database, which is not overwritten under it
        await bot.core.people.finish()  # as the process does every ten seconds

        after, calls = await everything(bot.database), len(provider.calls)
        assert holding(after) == set()
        assert {name for name, rows in rows_of(after, ANA).items() if rows != "[]"} == set()
        assert rows_of(after, LEO) == rows_of(before, LEO)
        assert files() == set()
        for who, chat, group in ((ANA, ANA, False), (LEO, ROOM, True), (ANA, ROOM, True), (ANA, "test:other", True)):
            await bot.say("¿Qué sabes de mí, y de la receta?", user=who, chat=chat, group=group)
        await bot.ai.idle()
        assert len(provider.calls) > calls + 4
        assert CANARY not in repr([(call.system, call.messages) for call in provider.calls[calls:]])
    assert files() == set()
    again = Parrot()
    async with a_bot(engine_url, data, again) as bot:
        await bot.say("¿Dónde vivo?", user=ANA)
        await bot.ai.idle()
        assert holding(await everything(bot.database)) == set()
        assert CANARY not in repr([(call.system, call.messages) for call in again.calls])
    assert CANARY not in caplog.text


# ------------------------------------------------------------------------------------------ what fails half-way


def failing(*errors: Exception) -> Any:
    """A plugin whose rows cannot be erased the first few times: it comes last, when all else is erased already."""
    left = list(errors)

    async def export(reader: Any, user_id: str) -> list[str]:
        return []

    async def erase(tx: Any, user_id: str) -> int:
        if left:
            raise left.pop(0)
        return 1

    return lambda registry: registry.personal_data("zeta", tables=(), export=export, erase=erase)


async def test_a_failure_of_storage_erases_nothing_by_half_and_is_tried_again(engine_url: str) -> None:
    """The last of the kinds cannot be erased: nothing is; then it can, and the same yes erases everything."""
    plugin = failing(StorageError("disk full"))
    async with create_test_bot(provider=Parrot(), memory=OPTIONS, database_url=engine_url, plugins=[plugin]) as bot:
        await bot.ai.remember(LEO, "Vive en LIMA")
        await bot.say("/forget_me", user=LEO)
        answering = asyncio.create_task(bot.say("sí", user=LEO))
        for _ in range(500):
            if (await bot.statistics()).get("inbox_failed", 0):
                break
            await asyncio.sleep(0.01)
        kept = await bot.ai.memory(LEO)
        said = await asyncio.wait_for(answering, 10)

        assert kept == ["Vive en LIMA"]
        assert len(said) == 1
        assert await bot.ai.memory(LEO) == []
        assert bot.provider.calls == []  # the yes was never taken for a question


async def test_a_failure_that_nobody_foresaw_is_said_and_erases_nothing() -> None:
    """The person reads that it went wrong, never that all is erased; asked again, it works."""
    async with create_test_bot(provider=Parrot(), memory=OPTIONS, plugins=[failing(RuntimeError("bug"))], language="en") as bot:
        await bot.ai.remember(LEO, "Vive en LIMA")
        await bot.say("/forget_me", user=LEO)
        [failed] = await bot.say("yes", user=LEO)
        kept = await bot.ai.memory(LEO)
        await bot.say("/forget_me", user=LEO)
        [done] = await bot.say("yes", user=LEO)

        assert failed.startswith("Something went wrong on my side (error ")
        assert kept == ["Vive en LIMA"]
        assert done.startswith("Done, everything is erased: 1 fact")
        assert await bot.ai.memory(LEO) == []


KILLED = """
import asyncio, os, signal, sys
from bot.testing import create_test_bot

async def export(reader, user_id):
    return []

async def erase(tx, user_id):
    if sys.argv[2] == "erase":
        os.kill(os.getpid(), signal.SIGKILL)
    return 0

async def clean(user_id):
    os.kill(os.getpid(), signal.SIGKILL)

def plugin(registry):
    registry.personal_data("zeta", tables=(), export=export, erase=erase, clean=clean)

async def main():
    async with create_test_bot(memory=True, plugins=[plugin], database_url=sys.argv[1]) as bot:
        await bot.ai.remember("test:leo", "Vive en CANARIO8213")
        await bot.say("/forget_me", user="test:leo")
        await bot.say("yes", user="test:leo")

asyncio.run(main())
"""


@pytest.mark.parametrize("where", ["erase", "clean"])
async def test_what_a_crash_cut_short_is_finished_by_the_next_start(engine_url: str, files: Callable[[], set[str]], where: str) -> None:
    """Killed inside the transaction, the confirmed erasure runs again from the inbox; killed after it, what is no table is removed then."""
    cleaned = []

    async def clean(user_id: str) -> int:
        cleaned.append(user_id)
        return 1

    async def nothing(*_: object) -> int:
        return 0

    def plugin(registry: Registry) -> None:
        registry.personal_data("zeta", tables=(), export=nothing, erase=nothing, clean=clean)

    command = [sys.executable, "-c", KILLED, engine_url, where]
    ended = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=60)
    async with create_test_bot(memory=True, plugins=[plugin], database_url=engine_url) as bot:
        async with bot.database.transaction() as tx:  # as if the lease of the process that died had run out
            await tx.run("UPDATE inbox SET claimed_until = 0 WHERE state = 'claimed'")
        bot.core.inbox.notify()
        await bot.settled(LEO)
        await bot.core.people.finish()

        assert ended.returncode == -signal.SIGKILL
        assert await bot.ai.memory(LEO) == []
        assert cleaned == [LEO]
        assert files() == set()


# ------------------------------------------------------------------------------------------ the real process


async def test_the_process_at_debug(tmp_path: Path) -> None:
    """As it is run, with a model server and the log at DEBUG: the canary is in no line of the log, in no file, and in no later request."""

    async def model(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        found = json.dumps({"facts": [f"Vive en {CANARY}"]})
        return await says(found if "response_format" in body else f"Hola desde {CANARY}")(request, body)

    (tmp_path / "docs").mkdir()
    place = Place(tmp_path)
    async with model_server(model) as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none", "BOT_LOG_LEVEL": "DEBUG", "BOT_MEMORY_NOTICES": "true"}
        async with place.start(**env) as bot:
            await bot.say(f"Vivo en {CANARY}")
            await bot.hear(f"Hola desde {CANARY}")
            await bot.hear(f"Lo recordaré: Vive en {CANARY}")
            await bot.say(f"/remember Mi gato es {CANARY}")
            await bot.hear("Lo recordaré: Mi gato")
            await bot.say("/my_data")
            await bot.hear("Eso es todo")
            held = place.bytes_of_data()
            await bot.say("/forget_me")
            await bot.hear("¿Lo hago?")
            await bot.say("sí")
            await bot.hear("todo está borrado")
            before, left = len(server.requests), place.bytes_of_data()
            await bot.say("¿Dónde vivo?")
            await bot.hear(f"Hola desde {CANARY}")
            done = await bot.end()

    assert held.count(CANARY.encode()) > 4
    assert CANARY.encode() not in left
    assert len(server.requests) > before
    assert CANARY not in json.dumps(server.requests[before])
    assert CANARY not in done.err
    assert done.code == 0
