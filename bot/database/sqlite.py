"""The embedded engine: one writer connection behind a lock, readers apart, in WAL mode; deleted content is overwritten."""

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import aiosqlite

from bot.errors import StorageError
from bot.ports import Database, Params, Row, Transaction

T = TypeVar("T")

BUSY_MS = 10_000
READERS = 2
WAL_TRIES, SCRUB_TRIES, TRY_SECONDS = 40, 10, 0.05
NO_PARAMS: Mapping[str, Any] = {}
TOGETHER = "several statements; after one that fails the rest is left"
EACH = "several statements, each by itself"

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
                sqlite3.connect(where).close()  # where this fails inside aiosqlite, its thread goes on and reports to a loop that is closed
            writer = await stack.enter_async_context(_connect(where))
            if path is not None:
                await _use_wal(writer)
            readers = [await stack.enter_async_context(_connect(where)) for _ in range(READERS)] if path is not None else [writer]
        yield SQLite(writer, readers, where=where, agent_id=agent_id)


@dataclass(frozen=True, slots=True)
class _Statement:
    """One statement of a transaction. `params` of several rows execute it for each; fewer rows than `least` are an error: `otherwise`."""

    sql: str
    params: Mapping[str, Any] | Sequence[Mapping[str, Any]] = field(default_factory=dict)
    least: int = 0
    otherwise: Exception | None = None


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What one statement returned, and how many rows it changed."""

    rows: list[Any]
    changed: int


class _Outcomes(list[_Outcome]):
    """What a trip brings back, in the form of a cursor: all that aiosqlite asks of one is this."""

    def fetchall(self) -> "_Outcomes":
        return self


@dataclass(slots=True)
class _Trip:
    """Statements of several tasks, and what became of each once the thread has been at them."""

    statements: Sequence[_Statement]
    outcomes: list[_Outcome | Exception] = field(default_factory=list)


class _Connection(sqlite3.Connection):
    """Takes several statements at once: a trip to the connection's thread costs more than most statements."""

    def execute(self, sql: str, *parameters: Any) -> Any:
        if sql == TOGETHER:
            return _Outcomes(map(self._outcome, parameters[0]))
        if sql == EACH:
            trip: _Trip = parameters[0]
            trip.outcomes = list(map(self._outcome_or_error, trip.statements))
            return _Outcomes()
        return super().execute(sql, *parameters)

    def _outcome(self, statement: _Statement) -> _Outcome:
        before = self.total_changes
        if isinstance(statement.params, Mapping):
            rows = super().execute(statement.sql, statement.params).fetchall()
        else:
            rows = super().executemany(statement.sql, statement.params).fetchall()
        return _Outcome(rows, self.total_changes - before)

    def _outcome_or_error(self, statement: _Statement) -> _Outcome | Exception:
        try:
            return self._outcome(statement)
        except Exception as error:  # noqa: BLE001 - it is raised where the statement came from
            return error


@asynccontextmanager
async def _connect(where: str) -> AsyncIterator[aiosqlite.Connection]:
    async with aiosqlite.connect(where, isolation_level=None, cached_statements=256, factory=_Connection) as connection:
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


class _Trips:
    """Statements of several tasks that want one connection go together, each by itself: where it writes, a transaction of its own.

    Whoever finds nobody under way goes at once, and takes those along who come while it waits until the connection is `free`. Those who
    come later go next.
    """

    def __init__(
        self, connection: aiosqlite.Connection, where: str, free: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    ) -> None:
        self._connection = connection
        self._where = where
        self._free = free
        self._waiting: list[tuple[_Statement, asyncio.Future[_Outcome | Exception]]] = []
        self._under_way = False
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def before(self) -> int:
        """How many are before one who comes now."""
        return self._under_way + len(self._waiting)

    async def take(self, statement: _Statement) -> _Outcome:
        """What a statement gives. Raises StorageError. One that is cancelled may be executed all the same."""
        with _storage_errors(self._where):
            outcome = await self._wait(statement) if self._under_way else (await self._go(statement))[0]
            if isinstance(outcome, Exception):
                raise outcome
        return outcome

    async def _wait(self, statement: _Statement) -> _Outcome | Exception:
        answer: asyncio.Future[_Outcome | Exception] = asyncio.get_running_loop().create_future()
        self._waiting.append((statement, answer))
        return await answer

    async def _go(self, *own: _Statement) -> list[_Outcome | Exception]:
        """What becomes of these, and of those that wait."""
        self._under_way = True
        try:
            async with self._free():
                others, self._waiting = [one for one in self._waiting if not one[1].done()], []
                trip = _Trip([*own, *(statement for statement, _ in others)])
                answers = [answer for _, answer in others]
                try:
                    await self._connection.execute_fetchall(EACH, trip)
                except asyncio.CancelledError:  # the thread goes on, and the others want to know
                    self._aside(self._tell_later(trip, answers))
                    raise
                except Exception as error:  # noqa: BLE001 - it is raised where the statements came from
                    trip.outcomes = [error] * len(trip.statements)
                _tell(answers, trip.outcomes[len(own) :])
            return trip.outcomes
        finally:
            self._under_way = bool(self._waiting)
            if self._waiting:
                self._aside(self._go_on())

    async def _go_on(self) -> None:
        await self._go()

    async def _tell_later(self, trip: _Trip, answers: Sequence["asyncio.Future[_Outcome | Exception]"]) -> None:
        try:
            await self._connection.execute_fetchall("SELECT 1")  # after what the thread is at
            _tell(answers, trip.outcomes[-len(answers) :])
        except Exception as error:  # noqa: BLE001 - it is raised where the statements came from
            _tell(answers, [error] * len(answers))
        finally:
            for answer in answers:
                answer.cancel()

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _tell(answers: Sequence["asyncio.Future[_Outcome | Exception]"], outcomes: Sequence[_Outcome | Exception]) -> None:
    for answer, outcome in zip(answers, outcomes, strict=True):
        if not answer.done():
            answer.set_result(outcome)


class _Transaction:
    """What `transaction()` gives. It begins with its first trip; after a statement that failed it takes no more, as on PostgreSQL."""

    state: Literal["new", "open", "failed", "over"] = "new"

    def __init__(self, connection: aiosqlite.Connection, where: str, agent_id: str) -> None:
        self._connection = connection
        self._where = where
        self.agent_id = agent_id
        self._soon: list[_Statement] = []

    async def all(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        return _rows(await self._trip(_Statement(sql, _filled(params, self.agent_id))))

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        return next(iter(await self.all(sql, params)), None)

    async def run(self, sql: str, params: Params = NO_PARAMS) -> int:
        return (await self._trip(_Statement(sql, _filled(params, self.agent_id)))).changed

    async def many(self, sql: str, rows: Sequence[Params]) -> None:
        await self._trip(_Statement(sql, [_filled(row, self.agent_id) for row in rows]))

    async def soon(self, sql: str, params: Params = NO_PARAMS, *, least: int = 0, otherwise: Exception | None = None) -> None:
        self._check()
        self._soon.append(_Statement(sql, _filled(params, self.agent_id), least, otherwise))

    async def commit(self) -> None:
        """End it. What is checked is looked at first: a commit cannot be taken back. Raises what `otherwise` is."""
        if any(statement.otherwise for statement in self._soon):
            await self._trip()
        if self._soon or self.state == "open":
            await self._trip(_Statement("COMMIT"))

    async def _trip(self, *last: _Statement) -> _Outcome:
        """What has waited for a trip, and what is asked now, whose outcome is returned."""
        self._check()
        begin = [_Statement("BEGIN IMMEDIATE")] if self.state == "new" else []
        going, self._soon = [*begin, *self._soon, *last], []
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
        last_outcome: _Outcome = outcomes[-1]
        return last_outcome

    def _check(self) -> None:
        if self.state == "over":
            raise RuntimeError("this transaction is over: its statements belong inside its `async with`")
        if self.state == "failed":
            raise StorageError(
                f"the database {self._where!r}: an earlier statement of this transaction failed, so nothing of it is written"
            )


class SQLite:
    """The Database over one SQLite file. In memory there is one connection, so reads wait for a transaction of another task."""

    def __init__(self, writer: aiosqlite.Connection, readers: Sequence[aiosqlite.Connection], *, where: str, agent_id: str) -> None:
        self._writer = writer
        self._where = where
        self._alone = readers[0] is writer
        self._writes = _Trips(writer, where, self._writing)
        self._reads = [_Trips(reader, where) for reader in readers]
        self._lock = asyncio.Lock()
        self._holder: asyncio.Task[Any] | None = None
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

    async def _read(self, sql: str, params: Params) -> _Outcome:
        shared = self._alone and not (self._open and self._inside.get() is self._open)
        trips = self._writes if shared else min(self._reads, key=lambda reader: reader.before)
        return await trips.take(_Statement(sql, _filled(params, self.agent_id)))

    async def write(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        """One statement that is a transaction of its own, in one trip to the thread; the rows that it returns."""
        self._is_no_holder()
        return _rows(await self._writes.take(_Statement(sql, _filled(params, self.agent_id))))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """One writer at a time; an exception or a cancellation rolls back. It begins with its first statement.

        A cancellation that comes while it commits is raised when it has: then what was written stays.
        """
        async with self._writing():
            tx = self._open = _Transaction(self._writer, self._where, self.agent_id)
            self._inside.set(tx)  # never reset: it counts while this transaction is the open one
            try:
                yield tx
                await self._commit(tx)
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
            async with self._writing():
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
            await _to_its_end(self._writer.execute_fetchall(f"PRAGMA busy_timeout = {BUSY_MS}"))

    async def _log_is_cut(self) -> bool:
        rows = list(await self._writer.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)"))
        return bool(rows) and rows[0]["busy"] == 0

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        self._is_no_holder()
        async with self._lock:
            self._holder = asyncio.current_task()
            try:
                yield
            finally:
                self._holder = None

    def _is_no_holder(self) -> None:
        if self._holder is not None and self._holder is asyncio.current_task():
            raise RuntimeError("a write inside a transaction of the same task would wait for itself: use the transaction")

    async def _commit(self, tx: _Transaction) -> None:
        if tx.state == "failed":
            raise StorageError(f"the database {self._where!r}: a statement of this transaction failed, so nothing of it is written")
        await tx.commit()

    async def _rolled_back(self) -> None:
        """Undo what is open, whatever is cancelled; the thread first ends what it is at, so that nothing of it comes later."""
        with _storage_errors(self._where):
            await _to_its_end(self._writer.rollback())


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


def _rows(outcome: _Outcome) -> list[Row]:
    return [dict(row) for row in outcome.rows]


def clean(value: Any) -> Any:
    """A parameter without NUL and lone surrogates, which no engine keeps."""
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    return value.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
