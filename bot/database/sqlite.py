"""The embedded engine: one writer connection behind a lock, readers apart, in WAL mode; deleted content is overwritten.

Most statements take some ten µs, and a thread's answer ten times as long: so what is short is executed on the event loop. What may hold
the loop up does not run there: long statements, the log's way into the file, the wait for another process.
"""

import asyncio
import contextlib
import logging
import math
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

from bot.database.connection import Connection, Long, Outcome, TooLong
from bot.database.group_commit import GroupCommit
from bot.database.text import clean
from bot.database.writing import NO_PARAMS, OneWriter, Statements, check_can_be_kept, check_takes_more, to_its_end
from bot.errors import StorageError
from bot.ports import Database, Params, Row, Transaction

log = logging.getLogger(__name__)

BEGIN = "BEGIN IMMEDIATE"
BUSY_SECONDS = 10.0  # how long another process that is writing is waited for
FIRST_WAIT, LONGEST_WAIT = 0.001, 0.05  # seconds, until its lock is tried again
QUICK = 0.005  # seconds that a statement may take on the event loop
MANY = 16  # executions of one statement that are no longer short
AT_A_STRETCH = 32  # statements until others get their turn on the event loop
CHECKPOINT_ROWS = 2000  # changed, until the log goes into the file: some four thousand pages of it
CHECKPOINT_BYTES = 16 << 20  # that the log has grown by, until it does all the same
COMMITS_BETWEEN_LOOKS = 8  # at the log's size
CLOSING_SECONDS = 5.0  # that a write is waited for, which waits for a transaction that somebody holds open, say
SCRUB_TRIES, TRY_SECONDS = 10, 0.05
HINTS = {  # by what SQLite says
    "unable to open database file": "check that its folder exists and may be written",
    "attempt to write a readonly database": "check that the file and its folder may be written",
    "database or disk is full": "make room on the disk",
    "disk I/O error": "check that the disk works and has room",
    "file is not a database": "it is something else; name another file",
    "database is locked": "another process is writing to it; try again when that is done",
}


@asynccontextmanager
async def open_sqlite(path: Path | None, *, agent_id: str) -> AsyncIterator[Database]:
    """A SQLite file, or one in memory where `path` is None. Its folder is made. Raises StorageError where it cannot be written."""
    where = ":memory:" if path is None else str(path)
    async with AsyncExitStack() as stack:
        with _storage_errors(where):
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                _make_private(path)
            connections = []
            for _ in range(1 if path is None else 3):
                connections.append(Connection(where))
                stack.push_async_callback(connections[-1].close)
            if path is not None:
                await _when_free(connections[0], "PRAGMA journal_mode = WAL")
        database = SQLite(connections[0], connections[1:], where=where, agent_id=agent_id)
        stack.push_async_callback(database.settle)
        yield database


def _make_private(path: Path) -> None:
    """A new file is for its owner alone, and so are those that SQLite makes beside it. What goes wrong, SQLite says in its own words."""
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


async def _when_free(connection: Connection, sql: str, params: dict[str, Any] | None = None, *, seconds: float = math.inf) -> Outcome:
    """Execute a statement as soon as no other process is in its way; it is looked for again and again, while others go on."""
    until, wait = time.monotonic() + BUSY_SECONDS, FIRST_WAIT
    while True:
        try:
            return connection.at_once(sql, params or {}, seconds=seconds)
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > until:
                raise
        await asyncio.sleep(wait)
        wait = min(wait * 2, LONGEST_WAIT)


def _is_busy(error: BaseException | None) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


class _Transaction(Statements):
    """What `transaction()` gives. It begins with its first statement; after one that failed it takes no more, as on PostgreSQL.

    Once something in it was long, the rest goes to the thread too: what came before may have made it so.
    """

    def __init__(self, database: "SQLite", connection: Connection, where: str) -> None:
        self._database = database
        self._connection = connection
        self._where = where
        self._is_long = False
        self._is_busy = False
        self._stretch = 0
        self.changed = 0
        self.agent_id = database.agent_id

    async def __aenter__(self) -> Transaction:
        await self._database.enter(self)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self._database.leave(self, undo=error is not None)

    async def all(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        return _rows(await self._execute(sql, _filled(params, self.agent_id)))

    async def run(self, sql: str, params: Params = NO_PARAMS) -> int:
        return (await self._execute(sql, _filled(params, self.agent_id))).changed

    async def many(self, sql: str, rows: Sequence[Params]) -> None:
        self._is_long |= len(rows) > MANY
        await self._execute(sql, [_filled(row, self.agent_id) for row in rows])

    async def commit(self) -> None:
        """Keep what was written. A cancellation that comes meanwhile is raised when that is done."""
        check_can_be_kept(self.state, self._where)
        if self.state == "open":
            await to_its_end(self._execute("COMMIT", {})) if self._is_long else await self._execute("COMMIT", {})

    async def roll_back(self) -> None:
        """Undo what is open, whatever is cancelled."""
        with _storage_errors(self._where):
            if self._connection.in_transaction:  # a full disk has ended it
                await to_its_end(self._connection.in_thread("ROLLBACK")) if self._is_long else self._connection.at_once("ROLLBACK")

    async def _execute(self, sql: str, params: dict[str, Any] | Sequence[dict[str, Any]]) -> Outcome:
        check_takes_more(self.state, self._where)
        if self._is_busy:
            raise RuntimeError("the statements of a transaction are awaited one after the other")
        self._is_busy = True
        try:
            with _storage_errors(self._where):
                outcome = await self._done(sql, params)
        except BaseException:
            self.state = "failed"
            raise
        finally:
            self._is_busy = False
        self.changed += outcome.changed
        return outcome

    async def _done(self, sql: str, params: dict[str, Any] | Sequence[dict[str, Any]]) -> Outcome:
        if self.state == "new":
            await _when_free(self._connection, BEGIN)
            self.state = "open"
        if self._is_long:
            return await self._connection.in_thread(sql, params)
        self._stretch += 1  # its own count: to let others run in the midst of a short transaction would make all writers wait for it
        if self._stretch % AT_A_STRETCH == 0:
            await asyncio.sleep(0)
        begun = time.perf_counter()
        outcome = self._connection.at_once(sql, params)
        self._is_long = time.perf_counter() > begun + QUICK
        return outcome


class SQLite:
    """The Database over one SQLite file. In memory there is one connection, so reads wait for a transaction of another task.

    Of the `readers` one reads on the event loop, the other in its thread.
    """

    def __init__(self, writer: Connection, readers: Sequence[Connection], *, where: str, agent_id: str) -> None:
        self._writer = writer
        self._reader, self._far_reader = readers or (writer, writer)
        self._where = where
        self._alone = not readers
        self._writing = OneWriter()
        self._long = Long()
        self._writes = GroupCommit(writer, self._writing, begin=partial(_when_free, writer, BEGIN), long=self._long, seconds=QUICK)
        self._reading_far = asyncio.Lock()
        self._stretch = 0
        self._changed = self._commits = self._log_bytes = 0
        self._checkpoint: asyncio.Task[None] | None = None
        self._open: _Transaction | None = None
        self._inside: ContextVar[_Transaction | None] = ContextVar("inside", default=None)
        self.agent_id = agent_id

    async def settle(self) -> None:
        """Bring what was written into the file, before the connections are closed: another process may not be the last to leave it.

        A long read is cut off, a long write waited for, some seconds.
        """
        self._far_reader.interrupt()
        await to_its_end(self._writes.settle(seconds=CLOSING_SECONDS))
        if self._checkpoint is not None:
            self._checkpoint.cancel()
            await to_its_end(asyncio.wait([self._checkpoint]))
        if self._changed and not self._alone:
            with contextlib.suppress(sqlite3.Error):
                async with self._reading_far:
                    await self._far_reader.in_thread("PRAGMA wal_checkpoint(PASSIVE)")

    # ------------------------------------------------------------------------------------ reading

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
        await self._let_others()
        with _storage_errors(self._where):
            filled = _filled(params, self.agent_id)
            if not self._alone:
                return await self._read_from(self._reader, self._far_reader, self._reading_far, sql, filled)
            if self._open is not None and self._inside.get() is self._open:
                return self._writer.at_once(sql, filled)
            async with self._writing:
                return await self._read_from(self._writer, self._writer, contextlib.nullcontext(), sql, filled)

    async def _read_from(
        self, near: Connection, far: Connection, turn: AbstractAsyncContextManager[object], sql: str, params: dict[str, Any]
    ) -> Outcome:
        """Read on the event loop; what is long in the far one's thread, in its turn."""
        if sql not in self._long:
            try:
                return await _when_free(near, sql, params, seconds=QUICK)
            except TooLong:
                self._long.add(sql)
        async with turn:
            return await far.in_thread(sql, params)

    # ------------------------------------------------------------------------------------ writing

    async def write(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        """One statement that is a transaction of its own; the rows that it returns."""
        self._writing.refuse_holder()
        with _storage_errors(self._where):
            outcome = await self._writes.execute(sql, _filled(params, self.agent_id))
        self._note_changed(outcome.changed)
        return _rows(outcome)

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """One writer at a time; an exception or a cancellation rolls back. It begins with its first statement."""
        return _Transaction(self, self._writer, self._where)

    async def enter(self, tx: _Transaction) -> None:
        """Wait for the writer's turn, and let a transaction have it."""
        await self._let_others()
        await self._writing.__aenter__()
        self._open = tx
        self._inside.set(tx)  # never reset: it counts while this transaction is the open one

    async def leave(self, tx: _Transaction, *, undo: bool) -> None:
        """Keep or undo what a transaction wrote, and give the turn to the next."""
        try:
            if not undo:
                await tx.commit()
        except BaseException:
            undo = True
            raise
        finally:
            try:
                if undo and tx.state != "new":
                    await tx.roll_back()
            finally:
                tx.state, self._open = "over", None
                await self._writing.__aexit__()
        self._note_changed(tx.changed)

    # ------------------------------------------------------------------------------------ what is long, and what goes on behind

    async def _let_others(self) -> None:
        """A task whose statements are all short would never let go of the event loop."""
        self._stretch += 1
        if self._stretch >= AT_A_STRETCH:
            self._stretch = 0
            await asyncio.sleep(0)

    def _note_changed(self, rows: int) -> None:
        if self._alone:
            return
        self._changed += rows
        self._commits += 1
        if self._checkpoint is None and (self._changed >= CHECKPOINT_ROWS or self._log_has_grown()):
            self._checkpoint = asyncio.create_task(self._write_back())

    def _log_has_grown(self) -> bool:
        """Whether few rows made a long log. Its file keeps the length that it once had: it grows where there is more of it than ever."""
        if self._commits % COMMITS_BETWEEN_LOOKS:
            return False
        with contextlib.suppress(OSError):
            size = os.stat(f"{self._where}-wal").st_size
            if size > self._log_bytes + CHECKPOINT_BYTES:
                self._log_bytes = size
                return True
        return False

    async def _write_back(self) -> None:
        """Bring the log into the file, so that it does not grow: in a thread, since it waits for the disk.

        Most of it while others write, and what they wrote meanwhile when they do not: else the log would never begin anew.
        """
        try:
            async with self._reading_far:
                await self._far_reader.in_thread("PRAGMA wal_checkpoint(PASSIVE)")
            async with self._writing:
                self._changed = 0
                await self._writer.in_thread("PRAGMA wal_checkpoint(PASSIVE)")
        except sqlite3.Error as error:  # it stays in the log, where it is as safe, until the next time
            log.warning("the database %r: its log stays as long as it is: %s", self._where, error)
        finally:
            self._checkpoint = None

    # ------------------------------------------------------------------------------------ scrubbing

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
            async with self._writing, self._reading_far:
                if await self._scrubbed():
                    return True
        return False

    async def _scrubbed(self) -> bool:
        try:
            with _storage_errors(self._where):
                if not await self._log_is_cut():
                    return False
                await self._writer.in_thread("VACUUM")
                return await self._log_is_cut()
        except StorageError as error:
            if _is_busy(error.__cause__):
                return False
            raise

    async def _log_is_cut(self) -> bool:
        rows = (await self._writer.in_thread("PRAGMA wal_checkpoint(TRUNCATE)")).rows
        return bool(rows) and rows[0]["busy"] == 0


class _storage_errors:  # noqa: N801 - used as a function is; as a generator it would cost as much as a short statement
    """What SQLite raises inside of it comes out as a StorageError that says what to do."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        if isinstance(error, sqlite3.Error | OSError | OverflowError):
            hint = HINTS.get(str(error), "")
            raise StorageError(f"the database {self._where!r}: {error}" + (f": {hint}" if hint else "")) from error


def _filled(params: Params, agent_id: str) -> dict[str, Any]:
    filled = {"agent_id": agent_id, **params}
    for name, value in params.items():
        if isinstance(value, str):  # a call for each of the others would cost as much as the statement
            filled[name] = clean(value)
    return filled


def _rows(outcome: Outcome) -> list[Row]:
    return [dict(row) for row in outcome.rows]
