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
    """A Database that is opened when it is first used. It is closed by `aclose`, or with the event loop.

    A task of its own opens and closes it: an event loop that ends cancels its tasks, and so what nobody closed is closed in order.
    """

    agent_id = "default"

    def __init__(self, url: str = "sqlite:///:memory:") -> None:
        self._url = url
        self._holding: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[Database] | None = None

    async def _open(self) -> Database:
        if self._opened is None or (self._opened.done() and (self._opened.cancelled() or self._opened.exception())):
            self._opened = asyncio.get_running_loop().create_future()
            # in a context of its own: the one here may say that it is inside a transaction
            self._holding = asyncio.create_task(_hold(self._url, self._opened), context=contextvars.Context())
        return await asyncio.shield(self._opened)

    async def aclose(self) -> None:
        """Close the database; what was in memory is gone."""
        holding, self._holding, self._opened = self._holding, None, None
        if holding is not None:
            holding.cancel()
            await asyncio.wait({holding})

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


async def _hold(url: str, opened: "asyncio.Future[Database]") -> None:
    """Keep a database open until this is cancelled; `opened` gets it, or why there is none."""
    try:
        async with open_database(url, migrations=[MIGRATIONS], core=False) as database:
            opened.set_result(database)
            await asyncio.Event().wait()
    except BotError as error:
        if opened.done():
            raise
        opened.set_exception(error)
    finally:
        opened.cancel()  # nobody waits for ever: this has no effect where there is a result


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
