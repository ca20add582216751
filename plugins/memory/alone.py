"""Memory by hand, with no process around it: a database of its own, opened at first use, and extraction as tasks of the event loop."""

import asyncio
import contextlib
import contextvars
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from bot import BotError, Database, Job, Marks, Migrations, Row, Transaction, open_database

log = logging.getLogger(__name__)

MIGRATIONS = Migrations("memory", Path(__file__).parent / "migrations")


class OwnDatabase:
    """A Database that is opened when it is first used. It is closed by `aclose`, or with the event loop."""

    agent_id = "default"

    def __init__(self, url: str = "sqlite:///:memory:") -> None:
        self._url = url
        self._lock = asyncio.Lock()
        self._holder: AbstractAsyncContextManager[Database] | None = None
        self._database: Database | None = None

    async def _open(self) -> Database:
        if self._database is None:
            async with self._lock:
                if self._database is None:
                    self._holder = open_database(self._url, migrations=[MIGRATIONS], core=False)
                    self._database = await self._holder.__aenter__()
        return self._database

    async def aclose(self) -> None:
        """Close the database; what was in memory is gone."""
        holder, self._holder, self._database = self._holder, None, None
        if holder is not None:
            await holder.__aexit__(None, None, None)

    async def all(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        """The rows of one SELECT."""
        return await (await self._open()).all(sql, params or {})

    async def one(self, sql: str, params: Mapping[str, Any] | None = None) -> Row | None:
        """The first row, or None."""
        return await (await self._open()).one(sql, params or {})

    async def tuples(self, sql: str, params: Mapping[str, Any] | None = None) -> Sequence[Sequence[Any]]:
        """The rows of one SELECT as bare values."""
        return await (await self._open()).tuples(sql, params or {})

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """One writer at a time; an exception rolls back."""
        async with (await self._open()).transaction() as tx:
            yield tx

    async def write(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        """One statement that is a transaction of its own."""
        return await (await self._open()).write(sql, params or {})

    async def scrub(self) -> bool:
        """Overwrite what was deleted wherever the engine still holds it."""
        return await (await self._open()).scrub()


class NoFence:
    """The Fence where nothing but this memory can erase: what memory itself notes is enough."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def mark(self, *subjects: str) -> Marks:
        """Nothing to note."""
        return {}

    def transaction(self, marks: Marks) -> AbstractAsyncContextManager[Transaction]:
        """A plain transaction."""
        return self._database.transaction()

    async def bump(self, tx: Transaction, *subjects: str) -> None:
        """Nothing to change."""


class TaskJobs:
    """The Jobs port as tasks: one job at a time, in the order in which they were put."""

    def __init__(self, run: Callable[[Job], Awaitable[None]]) -> None:
        self._run = run
        self._one_at_a_time = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._hurry = asyncio.Event()

    async def put(self, tx: Transaction, kind: str, subject: str, payload: Mapping[str, Any], *, wait_ms: int = 0) -> None:
        """Start a task that waits, then runs the job."""
        job = Job(uuid.uuid4().hex, kind, subject, payload, {})
        # in a context of its own: the one here may say that it is inside a transaction
        task = asyncio.create_task(self._later(job, wait_ms / 1000), context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _later(self, job: Job, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # wait_for of Python 3.11 can swallow a cancellation
                await self._hurry.wait()
        async with self._one_at_a_time:
            try:
                await self._run(job)
            except BotError as error:  # a task has nobody to tell: the words wait for the next one
                log.warning("job %s failed: %s", job.id, error.code)

    async def idle(self, kind: str | None = None) -> None:
        """End all waiting, and return when no job is left."""
        while self._tasks:
            self._hurry.set()
            await asyncio.wait(set(self._tasks))
        self._hurry.clear()

    async def aclose(self) -> None:
        """Cancel what waits or runs."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
