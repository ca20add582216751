"""Several processes on one database, on every engine that they can share: each has connections of its own, and knows of no other."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from bot import Database, SubjectErased, open_database
from bot.database import postgres
from bot.fence import SubjectFence
from bot.inbox import Queue, now_ms
from bot.personal_data import Everyone, Profile, own_data
from tests.conformance.conftest import raced

ANA = "test:ana"
PROCESSES = 3


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[list[Database]]:
    """The database as each process has it."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(open_database(url)) for _ in range(PROCESSES)]


@pytest.fixture
async def processes(engine_url: str) -> AsyncIterator[list[Database]]:
    """The processes of this test."""
    async with opened(engine_url) as databases:
        yield databases


async def race(processes: list[Database]) -> None:
    """Writers that marked before another process erases, let loose around it in any order: not one row of theirs is left."""
    chance, outcomes = random.Random(7), set()
    fences = [SubjectFence(database) for database in processes]
    people = Everyone(processes[0], fences[0], {data.name: data for data in own_data([])}, clock=now_ms)
    for _ in range(25):
        marks = await fences[0].mark(ANA)

        async def write(n: int, marks: dict[str, int] = marks) -> None:
            await asyncio.sleep(chance.random() * 0.004)
            profile = Profile(processes[n % PROCESSES], fences[n % PROCESSES], ANA, clock=now_ms, marks=lambda: marks)
            try:
                await profile.set("plugin", str(n), n)
            except SubjectErased:
                outcomes.add("erased")
            else:
                outcomes.add("written")

        async def erase() -> None:
            await asyncio.sleep(chance.random() * 0.004)
            await people.erase(ANA)

        await asyncio.gather(*(write(n) for n in range(6)), erase())

        assert await processes[1].all("SELECT user_id FROM users WHERE agent_id = :agent_id") == []
    assert outcomes == {"written", "erased"}


async def test_no_late_write_survives_an_erasure_elsewhere(processes: list[Database]) -> None:
    """Whichever process erases, and whichever writes."""
    await race(processes)


async def test_the_fence_does_not_lean_on_the_lock(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On PostgreSQL the writers of a bot wait for each other; the fence holds where they do not."""
    monkeypatch.setattr(postgres, "lock_key", lambda name: random.getrandbits(60))
    async with opened(postgres_url) as processes:
        await race(processes)


async def test_each_row_is_claimed_once(processes: list[Database]) -> None:
    """However the workers of several processes race: never two of one line at a time, and each line in its order."""
    queues = [Queue(database, "inbox") for database in processes]
    for n in range(6):
        for line in "abcde":
            await queues[n % PROCESSES].put(None, f"{line}.{n}", kind="message", line=line, payload={})
    order = await raced(queues, 30, seconds=30)

    assert len(set(order)) == 30
    assert [[one for one in order if one[0] == line] for line in "abcde"] == [[f"{line}.{n}" for n in range(6)] for line in "abcde"]


async def test_one_id_is_put_once(processes: list[Database]) -> None:
    """A redelivery to another process is known."""
    queues = [Queue(database, "inbox") for database in processes]
    put = await asyncio.gather(*(queue.put(None, f"u{n}", kind="message", line="a", payload={}) for n in range(10) for queue in queues))

    assert sum(put) == 10
