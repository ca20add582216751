"""Erasure wins: over what is under way, over what waits, over another replica, over a crash; and it leaves no byte behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot import Database, ExtractOptions, MemoryOptions, Recall, open_database
from bot.testing import MockAIProvider, TestBot, create_test_bot
from plugins.memory import MIGRATIONS, create_memory
from tests.plugins.memory.conftest import Clock, Script
from tests.tables import everything

ANA, LEO = "test:ana", "test:leo"
CANARY = "CANARIO8213"
OPTIONS = MemoryOptions(auto_extract=ExtractOptions(debounce_ms=600_000), resolve=True)
ROOT = Path(__file__).resolve().parents[3]


def found(text: str = CANARY) -> str:
    return json.dumps({"facts": [f"Vive en {text}"]})


def finding(prompt: Any) -> str:
    """A model that finds the canary, and says it in its answers too."""
    return found() if prompt.schema else f"Vives en {CANARY}"


async def erase(bot: TestBot) -> None:
    await bot.say("/forget_me", user=ANA)
    await bot.say("sí", user=ANA)


def files_with_the_canary(folder: Path) -> list[str]:
    """The raw bytes of every file: the log and its free pages too."""
    return [file.name for file in folder.iterdir() if CANARY.encode() in file.read_bytes()]


# ------------------------------------------------------------------------------------------ at every await point


class Interrupting:
    """A Database that starts something once, just before its n-th statement or transaction."""

    def __init__(self, database: Database, at: int, start: Callable[[], Awaitable[Any]]) -> None:
        self.agent_id = database.agent_id
        self.seen = 0
        self.started: asyncio.Future[Any] | None = None
        self._database = database
        self._at = at
        self._start = start

    async def _pass(self, *, inside: bool) -> None:
        self.seen += 1
        if self.seen == self._at:
            self.started = asyncio.ensure_future(self._start())
            await asyncio.sleep(0.002 if inside else 0)  # inside a transaction it has to wait for its turn
            if not inside:
                await self.started

    async def all(self, sql: str, params: Any = ()) -> Any:
        await self._pass(inside=False)
        return await self._database.all(sql, dict(params))

    async def one(self, sql: str, params: Any = ()) -> Any:
        await self._pass(inside=False)
        return await self._database.one(sql, dict(params))

    async def tuples(self, sql: str, params: Any = ()) -> Any:
        await self._pass(inside=False)
        return await self._database.tuples(sql, dict(params))

    async def write(self, sql: str, params: Any = ()) -> Any:
        await self._pass(inside=False)
        return await self._database.write(sql, dict(params))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        await self._pass(inside=False)
        async with self._database.transaction() as tx:
            yield Inside(tx, self)
        await self._pass(inside=False)

    async def scrub(self) -> bool:
        return await self._database.scrub()


class Inside:
    """A Transaction whose statements count too."""

    def __init__(self, tx: Any, outer: Interrupting) -> None:
        self.agent_id = tx.agent_id
        self._tx, self._outer = tx, outer

    def __getattr__(self, name: str) -> Any:
        async def counted(*args: Any) -> Any:
            await self._outer._pass(inside=True)
            return await getattr(self._tx, name)(*args)

        return counted


async def run_with_forget_at(url: str, at: int) -> tuple[int, list[str]]:
    """An extraction from staging to its end, with all forgotten at one point of it; how many points there were, and what is left."""
    async with open_database(url, agent_id=f"bot {at}", migrations=[MIGRATIONS]) as database:
        other = create_memory(True, database=database)
        interrupting = Interrupting(database, at, lambda: other.forget(ANA))
        memory = create_memory(OPTIONS, provider=Script(found()), database=interrupting)  # type: ignore[arg-type]
        await memory.stage_extraction(None, ANA, f"Vivo en {CANARY}", "")
        await memory.idle()
        if interrupting.started is not None:
            await interrupting.started
        return interrupting.seen, [fact.text for fact in await other.facts(ANA)]


async def test_forgetting_at_every_await_point_of_an_extraction(engine_url: str) -> None:
    """Whenever all is forgotten once the words were said, nothing of them is remembered afterwards."""
    points, kept = await run_with_forget_at(engine_url, at=0)
    assert kept == [f"Vive en {CANARY}"]
    left = {at: (await run_with_forget_at(engine_url, at))[1] for at in range(1, points + 1)}

    before_it_was_said = {1, 2}  # the transaction that stages had not begun, or noted the generation after the forgetting
    assert points > 12
    assert {at: facts for at, facts in left.items() if facts and at not in before_it_was_said} == {}


# ------------------------------------------------------------------------------------------ in the bot


@asynccontextmanager
async def a_bot(url: str, provider: Any = None) -> AsyncIterator[TestBot]:
    provider = provider or MockAIProvider(reply=finding)
    async with create_test_bot(provider=provider, memory=OPTIONS, database_url=url) as bot:
        yield bot


async def test_a_queued_extraction_does_not_survive(engine_url: str) -> None:
    """What waits to be looked at is erased with its person."""
    async with a_bot(engine_url) as bot:
        await bot.say(f"Vivo en {CANARY}", user=ANA)
        await erase(bot)
        await bot.ai.idle()

        assert await bot.ai.memory(ANA) == []
        assert CANARY not in repr(await everything(bot.database))


async def test_an_extraction_under_way_on_another_replica_is_discarded(engine_url: str) -> None:
    """One process is waiting for the model when another erases the person."""

    class Gated(MockAIProvider):
        def __init__(self) -> None:
            super().__init__(reply=finding)
            self.asked, self.gate = asyncio.Event(), asyncio.Event()

        async def complete(self, prompt: Any) -> Any:
            self.asked.set()
            await self.gate.wait()
            return await super().complete(prompt)

    gated = Gated()
    async with a_bot(engine_url, gated) as one, a_bot(engine_url, gated) as other:
        extraction = asyncio.create_task(one.ai.extract_memory(ANA, f"Vivo en {CANARY}", ""))
        await asyncio.wait_for(gated.asked.wait(), 5)
        await other.delete_subject(ANA)
        gated.gate.set()

        assert await extraction == []
        assert await other.ai.memory(ANA) == []
        assert await other.database.all(f"SELECT * FROM memory_budget WHERE subject = '{ANA}'") == []


async def test_an_erasure_during_a_call_that_counts(engine_url: str) -> None:
    """What a call cost bears the person's name: it is not counted once they are gone, however often the model is asked again."""

    class Erasing(MockAIProvider):
        async def complete(self, prompt: Any) -> Any:
            if prompt.schema:
                await bot.delete_subject(ANA)
            return await super().complete(prompt)

    provider = Erasing(reply=lambda prompt: "no JSON" if prompt.schema else "Vale")
    async with a_bot(engine_url, provider) as bot:
        await bot.say(f"Vivo en {CANARY}", user=ANA)
        await bot.ai.idle()

        assert sum(call.schema is not None for call in provider.calls) == 1
        assert await bot.database.all("SELECT * FROM memory_budget") == []
        assert CANARY not in repr(await everything(bot.database))


async def test_nothing_of_a_person_is_left_and_nothing_of_another_is_touched(engine_url: str, tmp_path: Path) -> None:
    """A canary in every place of memory is in no table, no file, and no later call of the model; the other's rows are the same."""
    provider = MockAIProvider(reply=finding)
    async with a_bot(engine_url, provider) as bot:
        recall = bot.parts.find(Recall)
        for who in (ANA, LEO):
            word = CANARY if who == ANA else "LIMA"
            await recall.remember(who, f"Le gusta {word}")
            await recall.remember_keyed(who, "city", f"{word} uno")
            await recall.remember_keyed(who, "city", f"{word} dos")  # the first is kept among what was replaced
        await bot.say(f"Vivo en {CANARY}", user=ANA)
        await bot.ai.idle()
        await bot.say(f"Trabajo en {CANARY}", user=ANA)
        await bot.say("/memory", user=ANA)
        await bot.say("/my_data", user=ANA)
        tables = ("facts", "memory_changes", "memory_subjects")
        leos = [await bot.database.all(f"SELECT * FROM {table} WHERE subject = '{LEO}'") for table in tables]
        assert CANARY in repr(await everything(bot.database))
        await erase(bot)

        assert CANARY not in repr(await everything(bot.database))
        assert [await bot.database.all(f"SELECT * FROM {table} WHERE subject = '{LEO}'") for table in tables] == leos
        assert files_with_the_canary(tmp_path) == []
    assert files_with_the_canary(tmp_path) == []
    async with a_bot(engine_url, provider) as bot:
        calls = len(provider.calls)
        await bot.say("¿Dónde vivo?", user=ANA)
        await bot.ai.idle()
        assert CANARY not in repr([(call.system, call.messages) for call in provider.calls[calls:]])


# ------------------------------------------------------------------------------------------ across a crash

CRASHING = """
import asyncio, sys
from bot.testing import MockAIProvider, create_test_bot
from bot import ExtractOptions, MemoryOptions

class Stuck(MockAIProvider):
    async def complete(self, prompt):
        print("asked", flush=True)
        await asyncio.sleep(60)

async def main():
    options = MemoryOptions(auto_extract=ExtractOptions(debounce_ms=0))
    async with create_test_bot(provider=Stuck(reply="Hola."), memory=options, database_url=sys.argv[1]) as bot:
        await bot.say("Vivo en CANARIO8213", user="test:ana")
        await asyncio.sleep(60)

asyncio.run(main())
"""


def crash_while_extracting(url: str) -> None:
    """Start a bot, let it extract, and kill it while the model is asked."""
    process = subprocess.Popen(
        [sys.executable, "-c", CRASHING, url], cwd=ROOT, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"asked\n"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        process.stdout.close()


async def end_leases(bot: TestBot) -> None:
    """As if the lease of the process that died had run out."""
    async with bot.database.transaction() as tx:
        await tx.run("UPDATE jobs SET claimed_until = 0 WHERE state = 'claimed'")


@pytest.mark.parametrize("erased", [False, True])
async def test_after_a_crash_an_extraction_resumes_unless_its_person_was_erased(engine_url: str, erased: bool) -> None:
    """A killed process loses no words, and what was erased meanwhile does not come back with them."""
    await asyncio.to_thread(crash_while_extracting, engine_url)
    async with a_bot(engine_url) as bot:
        if erased:
            await bot.delete_subject(ANA)
        await end_leases(bot)
        await bot.ai.idle()

        assert await bot.ai.memory(ANA) == ([] if erased else [f"Vive en {CANARY}"])


# ------------------------------------------------------------------------------------------ a slow worker, a broken one


async def test_the_worker_outlives_what_breaks(engine_url: str) -> None:
    """A job that raises whatever it raises does not keep the next one from running."""

    def answer(prompt: Any) -> str:
        if not prompt.schema:
            return "Hola."
        if "romper" in repr(prompt.messages):
            raise RuntimeError("no adapter foresaw this")
        return found()

    async with a_bot(engine_url, MockAIProvider(reply=answer)) as bot:
        await bot.say("romper", user=LEO)
        await bot.say("Vivo lejos", user=ANA)
        recall = bot.parts.find(Recall)
        for _ in range(200):
            await bot.core.jobs.queue.hurry("memory.extract")
            if await recall.facts(ANA):
                break
            await asyncio.sleep(0.02)

        assert [fact.text for fact in await recall.facts(ANA)] == [f"Vive en {CANARY}"]
        assert await bot.say("¿Sigues ahí?", user=LEO) == ["Hola."]


@pytest.mark.parametrize("asked", [False, True], ids=["while it waits", "while the model is asked"])
async def test_one_fact_is_forgotten_before_it_is_found(database: Database, clock: Clock, asked: bool) -> None:
    """Words that bear out a fact which is forgotten meanwhile do not bring it back; what else was said is looked at all the same."""

    def answer(prompt: Any) -> str:
        words = prompt.messages[0]["content"]
        return json.dumps({"facts": [fact for word, fact in (("Vivo", f"Vive en {CANARY}"), ("perro", "Tiene un perro")) if word in words]})

    script = Script(answer)
    script.gate = asyncio.Event()
    async with create_memory(OPTIONS, provider=script, database=database, clock=clock) as memory:
        await memory.remember(ANA, f"Vive en {CANARY}")
        await memory.stage_extraction(None, ANA, f"Vivo en {CANARY}", "")
        await memory.stage_extraction(None, ANA, "Tengo un perro", "")
        if asked:
            idle = asyncio.create_task(memory.idle())
            await asyncio.wait_for(script.asked.wait(), 5)
        assert await memory.forget(ANA, f"vive en {CANARY}.") == 1
        script.gate.set()
        await (idle if asked else memory.idle())

        assert [fact.text for fact in await memory.facts(ANA)] == ["Tiene un perro"]
        assert len(script.calls) == 1 + asked


async def test_what_is_said_after_forgetting_is_remembered(clock: Clock) -> None:
    """Forgetting ends what was said before it, not what comes after."""
    async with create_memory(OPTIONS, provider=Script(found()), clock=clock) as memory:
        await memory.stage_extraction(None, ANA, "uno", "")
        await memory.forget(ANA)
        await memory.stage_extraction(None, ANA, "dos", "")
        await memory.idle()

        assert len(await memory.facts(ANA)) == 1
