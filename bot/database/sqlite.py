"""The embedded engine: one writer connection behind a lock, readers apart, in WAL mode; deleted content is overwritten."""

import asyncio
import contextlib
import itertools
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite

from bot.database.text import clean
from bot.database.trips import TOGETHER, Connection, Outcome, Statement, Trips
from bot.database.writing import OneWriter, State, check_can_be_kept, check_takes_more, to_its_end
from bot.errors import StorageError
from bot.ports import Database, Params, Row, Transaction

T = TypeVar("T")

BUSY_MS = 10_000
READERS = 2
WAL_TRIES, SCRUB_TRIES, TRY_SECONDS = 40, 10, 0.05
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
                _make_private(path)
                sqlite3.connect(where).close()  # where this fails inside aiosqlite, its thread goes on and reports to a loop that is closed
            writer = await stack.enter_async_context(_connect(where))
            if path is not None:
                await _use_wal(writer)
            readers = [await stack.enter_async_context(_connect(where)) for _ in range(READERS)] if path is not None else [writer]
        yield SQLite(writer, readers, where=where, agent_id=agent_id)


def _make_private(path: Path) -> None:
    """A new file is for its owner alone, and so are those that SQLite makes beside it. What goes wrong, SQLite says in its own words."""
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


@asynccontextmanager
async def _connect(where: str) -> AsyncIterator[aiosqlite.Connection]:
    async with aiosqlite.connect(where, isolation_level=None, cached_statements=256, factory=Connection) as connection:
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


class _Transaction:
    """What `transaction()` gives. It begins with its first trip; after a statement that failed it takes no more, as on PostgreSQL."""

    state: State = "new"

    def __init__(self, connection: aiosqlite.Connection, where: str, agent_id: str) -> None:
        self._connection = connection
        self._where = where
        self.agent_id = agent_id
        self._soon: list[Statement] = []

    async def all(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        [outcome] = await self._trip(Statement(sql, _filled(params, self.agent_id)))
        return _rows(outcome)

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        return next(iter(await self.all(sql, params)), None)

    async def run(self, sql: str, params: Params = NO_PARAMS) -> int:
        [outcome] = await self._trip(Statement(sql, _filled(params, self.agent_id)))
        return outcome.changed

    async def many(self, sql: str, rows: Sequence[Params]) -> None:
        await self._trip(Statement(sql, [_filled(row, self.agent_id) for row in rows]))

    async def together(self, statements: Sequence[tuple[str, Params]]) -> list[list[Row]]:
        return list(map(_rows, await self._trip(*(Statement(sql, _filled(params, self.agent_id)) for sql, params in statements))))

    async def soon(self, sql: str, params: Params = NO_PARAMS, *, least: int = 0, otherwise: Exception | None = None) -> None:
        check_takes_more(self.state, self._where)
        self._soon.append(Statement(sql, _filled(params, self.agent_id), least, otherwise))

    async def commit(self) -> None:
        """End it. What is checked is looked at first: a commit cannot be taken back. Raises what `otherwise` is."""
        check_can_be_kept(self.state, self._where)
        if any(statement.otherwise for statement in self._soon):
            await self._trip()
        if self._soon or self.state == "open":
            await self._trip(Statement("COMMIT"))

    async def _trip(self, *now: Statement) -> list[Outcome]:
        """What has waited for a trip, and what is asked now, whose outcomes are returned."""
        check_takes_more(self.state, self._where)
        begin = [Statement("BEGIN IMMEDIATE")] if self.state == "new" else []
        going, self._soon = [*begin, *self._soon, *now], []
        self.state = "open"
        try:
            with _storage_errors(self._where):
                outcomes: Any = await self._connection.execute_fetchall(TOGETHER, going)
            for statement, outcome in zip(going, outcomes, strict=True):
                if statement.otherwise is not None and len(outcome.rows) < statement.least:
                    raise statement.otherwise
        except BaseException:
            self.state = "failed"
            raise
        return list(outcomes[len(going) - len(now) :])


class SQLite:
    """The Database over one SQLite file. In memory there is one connection, so reads wait for a transaction of another task."""

    def __init__(self, writer: aiosqlite.Connection, readers: Sequence[aiosqlite.Connection], *, where: str, agent_id: str) -> None:
        self._writer = writer
        self._where = where
        self._alone = readers[0] is writer
        self._writing = OneWriter()
        self._writes = Trips(writer, self._writing.turn)
        self._reads = [Trips(reader) for reader in readers]
        self._open: _Transaction | None = None
        self._inside: ContextVar[_Transaction | None] = ContextVar("inside", default=None)
        self.agent_id = agent_id

    async def all(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        """The rows of one SELECT, as dictionaries."""
        return _rows(await self._read(sql, params))

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        """The first row, or None."""
        rows = await self.all(sql, params)
        return rows[0] if rows else None

    async def tuples(self, sql: str, params: Params = NO_PARAMS) -> list[Sequence[Any]]:
        """The rows of one SELECT as bare values: making dictionaries takes as long as reading them."""
        return (await self._read(sql, params)).rows

    async def _read(self, sql: str, params: Params) -> Outcome:
        shared = self._alone and not (self._open and self._inside.get() is self._open)
        trips = self._writes if shared else min(self._reads, key=lambda reader: reader.before)
        with _storage_errors(self._where):
            return await trips.take(Statement(sql, _filled(params, self.agent_id)))

    async def write(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        """One statement that is a transaction of its own, in one trip to the thread; the rows that it returns."""
        self._writing.refuse_holder()
        with _storage_errors(self._where):
            return _rows(await self._writes.take(Statement(sql, _filled(params, self.agent_id))))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """One writer at a time; an exception or a cancellation rolls back. It begins with its first statement.

        A cancellation that comes while it commits is raised when it has: then what was written stays.
        """
        async with self._writing.turn():
            tx = self._open = _Transaction(self._writer, self._where, self.agent_id)
            self._inside.set(tx)  # never reset: it counts while this transaction is the open one
            try:
                yield tx
                await tx.commit()
            except BaseException:
                if tx.state != "new":
                    await self._rolled_back()
                raise
            finally:
                tx.state, self._open = "over", None

    async def scrub(self) -> bool:
        """Leave nothing of deleted content in the file or its log: False where another connection holds that up.

        `secure_delete` overwrites a row where it is, but not the copies that SQLite left behind as it moved rows between pages: the file is
        written anew, and then the log is written into it and cut to nothing.
        """
        if self._alone:
            return True
        for attempt in range(SCRUB_TRIES):
            if attempt:
                await asyncio.sleep(TRY_SECONDS)
            async with self._writing.turn():
                if await self._scrubbed():
                    return True
        return False

    async def _scrubbed(self) -> bool:
        """One try, which waits for nobody: while the thread waits, every other write does."""
        try:
            with _storage_errors(self._where):
                await self._writer.execute_fetchall("PRAGMA busy_timeout = 0")
                if not await self._log_is_cut():
                    return False
                await self._writer.execute_fetchall("VACUUM")
                return await self._log_is_cut()
        except StorageError as error:
            if isinstance(error.__cause__, sqlite3.OperationalError) and "locked" in str(error):
                return False
            raise
        finally:
            await to_its_end(self._writer.execute_fetchall(f"PRAGMA busy_timeout = {BUSY_MS}"))

    async def _log_is_cut(self) -> bool:
        rows = list(await self._writer.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)"))
        return bool(rows) and rows[0]["busy"] == 0

    async def _rolled_back(self) -> None:
        """Undo what is open, whatever is cancelled; the thread first ends what it is at, so that nothing of it comes later."""
        with _storage_errors(self._where):
            await to_its_end(self._writer.rollback())


@contextmanager
def _storage_errors(where: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError, OverflowError) as error:
        hint = {
            "unable to open database file": "check that its folder exists and may be written",
            "attempt to write a readonly database": "check that the file and its folder may be written",
            "database or disk is full": "make room on the disk",
            "disk I/O error": "check that the disk works and has room",
            "file is not a database": "it is something else; name another file",
            "database is locked": "another process is writing to it; try again when that is done",
        }.get(str(error), "")
        raise StorageError(f"the database {where!r}: {error}" + (f": {hint}" if hint else "")) from error


def _filled(params: Params, agent_id: str) -> dict[str, Any]:
    return {"agent_id": agent_id, **{name: clean(value) for name, value in params.items()}}


def _rows(outcome: Outcome) -> list[Row]:
    return [dict(row) for row in outcome.rows]
