"""The embedded engine: one writer connection behind a lock, readers apart, in WAL mode; deleted content is overwritten."""

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite

from bot.errors import StorageError
from bot.ports import Database, Params, Row, Transaction

T = TypeVar("T")

BUSY_MS = 10_000
READERS = 2
WAL_TRIES, SCRUB_TRIES, TRY_SECONDS = 40, 20, 0.05
NO_PARAMS: Mapping[str, Any] = {}

_PRAGMAS = (
    f"PRAGMA busy_timeout = {BUSY_MS}",
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA synchronous = NORMAL",
)


@asynccontextmanager
async def open_sqlite(path: Path | None, *, agent_id: str) -> AsyncIterator[Database]:
    """A SQLite file, or one in memory where `path` is None. Its folder is made. Raises StorageError where it cannot be written."""
    where = ":memory:" if path is None else str(path)
    async with AsyncExitStack() as stack:
        with _storage_errors(where):
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            writer = await stack.enter_async_context(_connect(where))
            if path is not None:
                await _use_wal(writer)
            readers = [await stack.enter_async_context(_connect(where)) for _ in range(READERS)] if path is not None else [writer]
        yield SQLite(writer, readers, where=where, agent_id=agent_id)


@asynccontextmanager
async def _connect(where: str) -> AsyncIterator[aiosqlite.Connection]:
    async with aiosqlite.connect(where, isolation_level=None, cached_statements=256) as connection:
        connection.row_factory = sqlite3.Row
        for pragma in _PRAGMAS:
            await connection.execute_fetchall(pragma)
        yield connection


async def _use_wal(writer: aiosqlite.Connection) -> None:
    """Two processes that start together can find the switch locked, and the busy time-out does not cover it: try for a while."""
    for attempt in itertools.count(1):
        try:
            await writer.execute_fetchall("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or attempt >= WAL_TRIES:
                raise
            await asyncio.sleep(TRY_SECONDS)
        else:
            return


class _Statements:
    """What reading and writing share: one statement on one connection, its parameters cleaned, its errors ours."""

    def __init__(self, connection: aiosqlite.Connection, where: str, agent_id: str) -> None:
        self._connection = connection
        self._where = where
        self.agent_id = agent_id

    async def all(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        with _storage_errors(self._where):
            rows = await self._connection.execute_fetchall(sql, self._filled(params))
        return [dict(row) for row in rows]

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        rows = await self.all(sql, params)
        return rows[0] if rows else None

    async def run(self, sql: str, params: Params = NO_PARAMS) -> int:
        # the writer's own count, read on both sides, saves a second trip to the connection's thread
        before = self._connection.total_changes
        with _storage_errors(self._where):
            await self._connection.execute_fetchall(sql, self._filled(params))
        return self._connection.total_changes - before

    async def many(self, sql: str, rows: Sequence[Params]) -> None:
        with _storage_errors(self._where):
            cursor = await self._connection.executemany(sql, [self._filled(row) for row in rows])
            await cursor.close()

    def _filled(self, params: Params) -> dict[str, Any]:
        return {"agent_id": self.agent_id, **{name: clean(value) for name, value in params.items()}}


class SQLite:
    """The Database over one SQLite file. In memory there is one connection, so reads wait for a transaction of another task."""

    def __init__(self, writer: aiosqlite.Connection, readers: Sequence[aiosqlite.Connection], *, where: str, agent_id: str) -> None:
        self._writer = writer
        self._where = where
        self._transaction = _Statements(writer, where, agent_id)
        self._readers = itertools.cycle([_Statements(reader, where, agent_id) for reader in readers])
        self._alone = readers[0] is writer
        self._lock = asyncio.Lock()
        self._inside: ContextVar[bool] = ContextVar("inside", default=False)
        self.agent_id = agent_id

    async def all(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        """The rows of one SELECT, as dictionaries."""
        if self._alone and not self._inside.get():
            async with self._lock:
                return await self._transaction.all(sql, params)
        return await next(self._readers).all(sql, params)

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        """The first row, or None."""
        rows = await self.all(sql, params)
        return rows[0] if rows else None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """One writer at a time; an exception or a cancellation rolls back."""
        async with self._lock:
            token = self._inside.set(True)
            try:
                await self._settled("BEGIN IMMEDIATE")
                try:
                    yield self._transaction
                except BaseException:
                    await self._settled("ROLLBACK")
                    raise
                await self._commit()
            finally:
                self._inside.reset(token)

    async def scrub(self) -> bool:
        """Write the log back into the file and cut it to nothing, so that no deleted content stays in it."""
        if self._alone:
            return True
        async with self._lock:
            for _ in range(SCRUB_TRIES):
                row = await self._transaction.one("PRAGMA wal_checkpoint(TRUNCATE)")
                if row is not None and row["busy"] == 0:
                    return True
                await asyncio.sleep(TRY_SECONDS)
        return False

    async def _commit(self) -> None:
        try:
            await self._settled("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                await self._settled("ROLLBACK")
            raise

    async def _settled(self, statement: str) -> None:
        """Run one of BEGIN, COMMIT and ROLLBACK to its end, whatever is cancelled: the connection's thread does not stop half-way."""
        with _storage_errors(self._where):
            try:
                await _to_its_end(self._writer.execute_fetchall(statement))
            except asyncio.CancelledError:
                if statement == "BEGIN IMMEDIATE" and self._writer.in_transaction:
                    await _to_its_end(self._writer.execute_fetchall("ROLLBACK"))
                raise


async def _to_its_end(work: Awaitable[T]) -> T:
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except sqlite3.Error:
            break
    if cancelled is not None:
        raise cancelled
    return task.result()


@contextmanager
def _storage_errors(where: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        hint = {
            "unable to open database file": "check that its folder exists and may be written",
            "attempt to write a readonly database": "check that the file and its folder may be written",
            "database or disk is full": "make room on the disk",
            "file is not a database": "it is something else; name another file",
        }.get(str(error), "")
        raise StorageError(f"the database {where!r}: {error}" + (f": {hint}" if hint else "")) from error


def clean(value: Any) -> Any:
    """A parameter without NUL and lone surrogates, which no engine keeps."""
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    return value.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
