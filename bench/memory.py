"""Facts written and read a second beside bare aiosqlite with the same pragmas and statements, and what a slow extractor costs a reply.

`python -m bench.memory [rounds]`. Both sides take turns in one run, so that a busy machine slows both, and on one core: how long one thread
takes to wake another differs three-fold with the cores that the system happens to choose, and says nothing about either side.
"""

import asyncio
import gc
import itertools
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import aiosqlite

from bot import Completion, ExtractOptions, MemoryOptions, Prompt, open_database
from bot.database.connection import PRAGMAS
from bot.testing import TestBot, create_test_bot
from plugins.memory import MIGRATIONS, create_memory
from plugins.memory.facts import normalise
from plugins.memory.store import _HELD, _STATE, _TRIM

FACTS, A_ROUND, ROUNDS, TURNS = 50, 20, 150, 150
SUBJECT = {"agent_id": "default", "subject": "telegram:123", "namespace": "ai.memory"}


def numbers() -> "itertools.count[int]":
    """Numbers that make each fact another one: SQLite writes no page for a row that stays the same."""
    return itertools.count(10_000)


class Bare:
    """What Memory does, as statements on a connection of aiosqlite and nothing else."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def write(self, text: str) -> None:
        """One fact, with the cap, in one transaction."""
        now = time.time_ns() // 1_000_000
        row = {"kind": "text", "key": normalise(text), "id": uuid.uuid4().hex, "value": text, "source": "manual", "evidence": "said"}
        run = self._connection.execute_fetchall
        await run("BEGIN IMMEDIATE")
        await run(_STATE, SUBJECT | row | {"now": now, "expires_at": None})
        await run(_TRIM, SUBJECT | {"now": now, "most": FACTS})
        await run("COMMIT")

    async def read(self) -> int:
        """All facts of a person."""
        return len(list(await self._connection.execute_fetchall(_HELD, SUBJECT)))


async def rate(times: int, work: Callable[[], Awaitable[Any]]) -> float:
    """How often a second."""
    started = time.perf_counter()
    for _ in range(times):
        await work()
    return times / (time.perf_counter() - started)


async def beside_bare(folder: Path, rounds: int) -> None:
    """Print the rates of both, and their ratio."""
    number = numbers()
    async with open_database(f"sqlite:///{folder / 'memory.db'}", migrations=[MIGRATIONS]) as database:
        memory = create_memory(MemoryOptions(max_facts=FACTS), database=database)
        async with open_database(f"sqlite:///{folder / 'bare.db'}", migrations=[MIGRATIONS]):
            pass  # the same tables
        async with aiosqlite.connect(folder / "bare.db", isolation_level=None, cached_statements=256) as connection:
            for pragma in (*PRAGMAS, "PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 1000"):  # ours brings its log in by itself
                await connection.execute_fetchall(pragma)
            bare = Bare(connection)
            sides: dict[tuple[str, str], Callable[[], Awaitable[Any]]] = {
                ("written", "memory"): lambda: memory.remember("telegram:123", f"Le gusta el libro número {next(number)}"),
                ("written", "bare"): lambda: bare.write(f"Le gusta el libro número {next(number)}"),
                ("read", "memory"): lambda: memory.facts("telegram:123"),
                ("read", "bare"): bare.read,
            }
            rates: dict[tuple[str, str], list[float]] = {side: [] for side in sides}
            for _ in range(rounds + 1):
                for side, work in sides.items():
                    rates[side].append(await rate(A_ROUND, work))
    for what, each in (("written", 1), ("read", FACTS)):
        mine, theirs = rates[(what, "memory")][1:], rates[(what, "bare")][1:]
        ratio = statistics.median(m / t for m, t in zip(mine, theirs, strict=True))
        print(
            f"facts {what} a second, medians of {rounds} rounds: memory {statistics.median(mine) * each:,.0f}, bare aiosqlite"
            f" {statistics.median(theirs) * each:,.0f}, median of the ratios {ratio:.2f} (of the best {max(mine) / max(theirs):.2f})"
        )


class Model:
    """Answers at once, and takes `seconds` to extract."""

    name = model = "scripted"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def complete(self, prompt: Prompt) -> Completion:
        """An extraction, in its time."""
        await asyncio.sleep(self._seconds)
        return Completion('{"facts": []}')

    async def stream(self, prompt: Prompt) -> Any:
        """A reply, at once."""
        yield "Hola."


async def reply_times(folder: Path, *extractors: float | None) -> list[list[float]]:
    """Milliseconds of each reply of bots whose extraction takes so many seconds (None: no extraction), a turn of each in turn."""
    async with AsyncExitStack() as stack:
        bots = [await stack.enter_async_context(a_bot(folder, seconds)) for seconds in extractors]
        spent: list[list[float]] = [[] for _ in bots]
        for turn in range(TURNS):
            for bot, times in zip(bots, spent, strict=True):
                started = time.perf_counter()
                await bot.ai.reply_in_chat(f"chat:{turn}", "Vivo en Bogotá y tengo un perro", user_id=f"person:{turn}")
                times.append((time.perf_counter() - started) * 1000)
    return [times[20:] for times in spent]


def a_bot(folder: Path, seconds: float | None) -> AbstractAsyncContextManager[TestBot]:
    """A bot over a file of its own."""
    extract = False if seconds is None else ExtractOptions(debounce_ms=0, max_calls_per_day=1_000_000)
    url = f"sqlite:///{folder / f'{uuid.uuid4().hex}.db'}"
    return create_test_bot(provider=Model(seconds or 0), memory=MemoryOptions(auto_extract=extract), database_url=url)


def p95(values: list[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(values, n=20)[-1]


async def main(rounds: int) -> None:
    """Print all figures."""
    gc.disable()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        await beside_bare(folder, rounds)
        without, slow = await reply_times(folder, None, 10)
    for what, times in (("without extraction", without), ("an extractor of 10 s", slow)):
        print(f"reply, {what}: median {statistics.median(times):.1f} ms, p95 {p95(times):.1f} ms")
    print(f"p95 of a 10 s extractor less that without extraction: {p95(slow) - p95(without):+.1f} ms")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
