"""The engine for several processes: PostgreSQL by asyncpg, over a bounded pool; each bot has one writer at a time in all of them."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

import asyncpg
from asyncpg.pool import Pool
from asyncpg.pool import PoolConnectionProxy as Connection

from bot.database.dialect import numbered, table
from bot.database.text import clean
from bot.database.writing import NO_PARAMS, OneWriter, Statements, check_can_be_kept, check_takes_more, to_its_end
from bot.errors import ConfigurationError, StorageError
from bot.ports import Params, Row, Transaction

T = TypeVar("T")

OLDEST = 15
CONNECTIONS = 5  # of one process: the writer's, and those that read
STATEMENTS = 300  # that a connection keeps prepared: more than we have
CONNECT_SECONDS, QUEUE_SECONDS, STATEMENT_SECONDS, END_SECONDS = 10, 30, 60, 10
LOCK_SECONDS = 30
MIGRATION_SECONDS = 1800
SCRUB_TRIES, TRY_SECONDS = 10, 0.05
MOST_REWRITTEN = 256 * 2**20  # bytes of a table that is written anew at an erasure: nobody reads it meanwhile

# The settings end with the transaction, so that they also hold behind a pooler that hands the connection on.
_BEGIN = (
    "BEGIN; SET LOCAL lock_timeout = '{patience}s'; SET LOCAL idle_in_transaction_session_timeout = '{patience}s';"
    " SELECT pg_advisory_xact_lock({key})"
)
_OURS = (
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid"
    " WHERE c.relkind = 'r' AND n.nspname = current_schema() AND a.attnum > 0 AND NOT a.attisdropped"
    " AND EXISTS (SELECT 1 FROM pg_attribute ours WHERE ours.attrelid = c.oid AND ours.attname = 'agent_id')"
)
_TABLES = f"SELECT DISTINCT c.oid::regclass::text AS name{_OURS} ORDER BY name"
_SAMPLED = (
    "SELECT c.oid::regclass::text AS name,"
    f" string_agg('ALTER COLUMN ' || quote_ident(a.attname) || ' SET STATISTICS 0', ', ') AS changes{_OURS}"
    " AND a.atttypid IN ('text'::regtype, 'bytea'::regtype) AND COALESCE(a.attstattarget, -1) <> 0 GROUP BY c.oid ORDER BY 1"
)
_SIZE = "SELECT pg_total_relation_size($1::text::regclass)"
_HELD = "SELECT COALESCE(n_dead_tup, 0) FROM pg_stat_all_tables WHERE relid = $1::text::regclass"
_LOCKED = "55P03"

# What the library says of a connection that is no more, or that is just being lost.
_LOST = ("released back to the pool", "connection is closed", "connection was closed", "another operation")
_HINTS: tuple[tuple[type[BaseException], str], ...] = (
    (asyncpg.InvalidPasswordError, "check the user and the password in BOT_DATABASE_URL"),
    (asyncpg.InvalidAuthorizationSpecificationError, "check the user and the password in BOT_DATABASE_URL, and the server's pg_hba.conf"),
    (asyncpg.InvalidCatalogNameError, "create it, as with createdb, or name another one in BOT_DATABASE_URL"),
    (asyncpg.InsufficientPrivilegeError, "the bot's role has to own its tables, and to be allowed to create some in its schema"),
    (asyncpg.TooManyConnectionsError, f"each process needs up to {CONNECTIONS} connections"),
    (asyncpg.CannotConnectNowError, "the server is starting or stopping; try again when it is up"),
    (asyncpg.ReadOnlySQLTransactionError, "name the primary server, not a standby"),
    (asyncpg.DiskFullError, "make room on the server's disk"),
    (asyncpg.LockNotAvailableError, "another process is writing to it; try again when that is done"),
    (asyncpg.PostgresConnectionError, "the server went away; try again when it is up"),
    (asyncpg.AdminShutdownError, "the server went away; try again when it is up"),
    (asyncpg.CrashShutdownError, "the server went away; try again when it is up"),
    (TimeoutError, "check that the server works, and what else it is doing"),
    (OSError, "check that the server is up, and its address in BOT_DATABASE_URL"),
)


@asynccontextmanager
async def open_postgres(url: str, *, where: str, agent_id: str) -> AsyncIterator["PostgreSQL"]:
    """A database of a PostgreSQL server; `where` is how errors call it, without its password.

    Raises ConfigurationError for an address that cannot be read, StorageError where the server cannot be reached or used.
    """
    pool = asyncpg.create_pool(
        url,
        min_size=0,  # what the library keeps open by itself it also logs about by itself
        max_size=CONNECTIONS,
        timeout=CONNECT_SECONDS,
        statement_cache_size=STATEMENTS,
        init=_prepared,
        reset=_as_it_is,
        server_settings={"application_name": "sabio"},
    )
    try:
        await _fits(pool, where)
        yield PostgreSQL(pool, where=where, agent_id=agent_id)
    finally:
        await to_its_end(_closed(pool))


async def _fits(pool: Pool, where: str) -> None:
    try:
        with _storage_errors(where):
            await pool
            async with pool.acquire() as connection:
                unfit = fault(connection.get_server_version().major, str(connection.get_settings().server_encoding))
    except ValueError:  # its text may hold the password
        raise ConfigurationError(
            f"BOT_DATABASE_URL={where!r} cannot be read: use postgresql://user:password@host:port/database, with signs such as @ / # % in"
            " the password written as %40 %2F %23 %25"
        ) from None
    if unfit:
        raise StorageError(f"the database {where!r}: {unfit}")


def fault(version: int, encoding: str) -> str:
    """Why a server cannot be used, or nothing."""
    if version < OLDEST:
        return f"the server is PostgreSQL {version}, and the bot needs {OLDEST} or newer"
    if encoding.upper().replace("-", "") != "UTF8":
        return f"its encoding is {encoding}, which cannot hold every text: create it anew with ENCODING 'UTF8'"
    return ""


async def _prepared(connection: Connection) -> None:
    """A sum over BIGINT is NUMERIC, and it comes as a number like any other."""
    await connection.set_type_codec("numeric", schema="pg_catalog", encoder=str, decoder=_number, format="text")


async def _as_it_is(connection: Connection) -> None:
    """Nothing that we do outlasts a transaction, so a connection goes back without a trip to the server."""


async def _closed(pool: Pool) -> None:
    try:
        async with asyncio.timeout(END_SECONDS):
            await pool.close()
    except (TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
        pool.terminate()


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdigit() else float(text)


class _Transaction(Statements):
    """What `transaction()` gives. It begins with its first statement, and after one that failed it takes no more."""

    def __init__(self, pool: Pool, *, begin: str, seconds: int, where: str, agent_id: str, tables: bool) -> None:
        self._pool = pool
        self._begin = begin
        self._seconds = seconds
        self._where = where
        self._tables = tables
        self._connection: Connection | None = None
        self.agent_id = agent_id

    async def all(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        """The rows of one statement, as dictionaries."""
        prepared, names = self._numbered(sql)
        async with self._statement() as connection:
            rows = await connection.fetch(prepared, *_filled(names, params, self.agent_id), timeout=self._seconds)
        return [dict(row) for row in rows]

    async def run(self, sql: str, params: Params = NO_PARAMS) -> int:
        """One statement; how many rows it changed."""
        prepared, names = self._numbered(sql)
        async with self._statement() as connection:
            return _changed(await connection.execute(prepared, *_filled(names, params, self.agent_id), timeout=self._seconds))

    async def many(self, sql: str, rows: Sequence[Params]) -> None:
        """One statement for each row of parameters, in one trip."""
        prepared, names = self._numbered(sql)
        async with self._statement() as connection:
            await connection.executemany(prepared, [_filled(names, row, self.agent_id) for row in rows], timeout=self._seconds)

    async def commit(self) -> None:
        """Keep what was written. A cancellation that comes meanwhile is raised when that is done."""
        check_can_be_kept(self.state, self._where)
        if self._connection is not None:
            with _storage_errors(self._where):
                done = await to_its_end(self._connection.execute("COMMIT", timeout=self._seconds))
            if done != "COMMIT":
                raise StorageError(f"the database {self._where!r}: nothing of this transaction was written")

    async def end(self, *, undo: bool) -> None:
        """Give the connection back, whatever is cancelled; one on which undoing fails is closed, and the server undoes it."""
        self.state = "over"
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await to_its_end(self._given_back(connection, undo))

    async def _given_back(self, connection: Connection, undo: bool) -> None:
        try:
            if undo:
                await connection.execute("ROLLBACK", timeout=END_SECONDS)
        except Exception:  # noqa: BLE001 - whatever the library says of a connection that was lost: the server undoes it
            with suppress(asyncpg.InterfaceError):  # it is no more the pool's
                connection.terminate()
        with suppress(asyncpg.InterfaceError, asyncpg.InternalClientError, asyncpg.PostgresError, OSError):
            await self._pool.release(connection, timeout=END_SECONDS)

    @asynccontextmanager
    async def _statement(self) -> AsyncIterator[Connection]:
        check_takes_more(self.state, self._where)
        try:
            with _storage_errors(self._where):
                if self._connection is None:
                    self._connection = await self._pool.acquire(timeout=QUEUE_SECONDS)
                    await self._connection.execute(self._begin, timeout=self._seconds)
                    self.state = "open"
                yield self._connection
        except BaseException:
            self.state = "failed"
            raise

    def _numbered(self, sql: str) -> tuple[str, tuple[str, ...]]:
        return numbered(table(sql) if self._tables else sql)


class PostgreSQL:
    """The Database over one PostgreSQL database."""

    def __init__(self, pool: Pool, *, where: str, agent_id: str, migrates: bool = False) -> None:
        self._pool = pool
        self._where = where
        self._migrates = migrates
        self._seconds = MIGRATION_SECONDS if migrates else STATEMENT_SECONDS
        patience = MIGRATION_SECONDS if migrates else LOCK_SECONDS
        self._begin = _BEGIN.format(patience=patience, key=lock_key("migrations" if migrates else f"agent {agent_id}"))
        self._writing = OneWriter()
        self.agent_id = agent_id

    def for_migrations(self) -> "PostgreSQL":
        """The same database for who makes tables: one at a time whichever bot it is, with time for it, and with the types of PostgreSQL."""
        return PostgreSQL(self._pool, where=self._where, agent_id=self.agent_id, migrates=True)

    async def keep_no_samples(self) -> None:
        """Let the server keep no values of our text for its planner: an erasure does not reach those."""
        async with self.for_migrations().transaction() as tx:
            for row in await tx.all(_SAMPLED):
                await tx.run(f"ALTER TABLE {row['name']} {row['changes']}")

    async def all(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        """The rows of one SELECT, as dictionaries."""
        return [dict(row) for row in await self._read(sql, params)]

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        """The first row, or None."""
        rows = await self._read(sql, params)
        return dict(rows[0]) if rows else None

    async def tuples(self, sql: str, params: Params = NO_PARAMS) -> list[Sequence[Any]]:
        """The rows of one SELECT as bare values."""
        return [tuple(row) for row in await self._read(sql, params)]

    async def write(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        """One statement that is a transaction of its own; the rows that it returns."""
        async with self.transaction() as tx:
            return await tx.all(sql, params)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """One writer at a time for each bot; an exception or a cancellation rolls back. It begins with its first statement.

        A cancellation that comes while it commits is raised when it has: then what was written stays.
        """
        async with self._writing:
            tx = _Transaction(
                self._pool, begin=self._begin, seconds=self._seconds, where=self._where, agent_id=self.agent_id, tables=self._migrates
            )
            try:
                yield tx
                await tx.commit()
            except BaseException:
                await tx.end(undo=True)
                raise
            await tx.end(undo=False)

    async def scrub(self) -> bool:
        """Leave nothing of deleted content in the files of the bot's tables: False where another transaction holds that up.

        VACUUM alone leaves the bytes of deleted rows in their pages, so each table is written anew; one that is so large that nobody could
        wait for that is only vacuumed. The server's log of changes and its backups are the operator's.
        """
        with _storage_errors(self._where):
            left = [str(row["name"]) for row in await self._pool.fetch(_TABLES, timeout=STATEMENT_SECONDS)]
        for attempt in range(SCRUB_TRIES):
            if attempt:
                await asyncio.sleep(TRY_SECONDS)
            left = [name for name in left if not await self._scrubbed(name)]
            if not left:
                return True
        return False

    async def _scrubbed(self, name: str) -> bool:
        """One table, without waiting for anybody: while it waited, everybody else would."""
        skipped: list[asyncpg.PostgresLogMessage] = []

        def note(_connection: object, message: asyncpg.PostgresLogMessage) -> None:
            skipped.append(message)

        async with self._writing:
            with _storage_errors(self._where):
                async with self._pool.acquire(timeout=QUEUE_SECONDS) as connection:
                    connection.add_log_listener(note)
                    try:
                        await connection.execute(f"VACUUM (SKIP_LOCKED) {name}", timeout=MIGRATION_SECONDS)
                        held = await connection.fetchval(_HELD, name, timeout=STATEMENT_SECONDS)
                        size = await connection.fetchval(_SIZE, name, timeout=STATEMENT_SECONDS)
                        if not held and size <= MOST_REWRITTEN:  # rows that somebody may still see would be copied
                            await connection.execute(f"VACUUM (FULL, SKIP_LOCKED) {name}", timeout=MIGRATION_SECONDS)
                    finally:
                        connection.remove_log_listener(note)
        if any(message.sqlstate != _LOCKED for message in skipped):
            raise StorageError(f"the database {self._where!r}: the bot's role has to own {name}, else nothing there can be overwritten")
        return not skipped and not held

    async def _read(self, sql: str, params: Params) -> list[asyncpg.Record]:
        prepared, names = numbered(sql)
        with _storage_errors(self._where):
            async with self._pool.acquire(timeout=QUEUE_SECONDS) as connection:
                rows: list[asyncpg.Record] = await connection.fetch(
                    prepared, *_filled(names, params, self.agent_id), timeout=STATEMENT_SECONDS
                )
                return rows


def lock_key(name: str) -> int:
    """The number of an advisory lock: of all numbers in the database, ours are those that nobody else comes upon."""
    return int.from_bytes(hashlib.sha256(f"sabio {name}".encode()).digest()[:8], "big", signed=True)


def _filled(names: Sequence[str], params: Params, agent_id: str) -> list[Any]:
    return [agent_id if name == "agent_id" and name not in params else clean(params[name]) for name in names]


def _changed(status: str) -> int:
    """How many rows, by what the server says of a statement that is through: `INSERT 0 3`, `UPDATE 3`, `CREATE TABLE`."""
    found = re.fullmatch(r"(?:INSERT \d+|UPDATE|DELETE|MERGE) (\d+)", status)
    return int(found[1]) if found else 0


@contextmanager
def _storage_errors(where: str) -> Iterator[None]:
    """Foreign errors become ours, without the values that they quote: those are what people wrote."""
    try:
        yield
    except asyncpg.ClientConfigurationError as error:
        raise ValueError from error
    except KeyError as error:
        raise StorageError(f"the database {where!r}: a statement lacks its parameter {error.args[0]!r}") from error
    except asyncpg.PostgresError as error:
        error.detail = None
        if isinstance(error, asyncpg.DataError):
            error.args = ("a value has a type or a size that its column does not take",)
        raise StorageError(_said(where, error, error.args[0] if error.args else "")) from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, OverflowError) as error:
        raise StorageError(_said(where, error, _reason(error))) from error


def _reason(error: BaseException) -> str:
    text = str(error) or "no answer in time"
    return "the server went away" if any(sign in text for sign in _LOST) else text


def _said(where: str, error: BaseException, reason: object) -> str:
    hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), "")
    return f"the database {where!r}: {' '.join(str(reason).split())}" + (f": {hint}" if hint else "")
