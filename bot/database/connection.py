"""One SQLite connection: what is short is executed at once, on the event loop; what may be long, in a thread of the connection's own."""

import asyncio
import contextlib
import math
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

Params = dict[str, Any] | Sequence[dict[str, Any]]
"""The parameters of a statement, or of each time that it is executed."""

NONE: dict[str, Any] = {}
OPENING_SECONDS = 10.0  # that another process is waited for, which opens the same file for the first time
LONG_FOR = 60.0  # seconds that a statement which was not short is taken to be long
AGAIN_SECONDS = 0.02  # between two interrupts
STEPS = 100  # of SQLite's machine between two looks at the clock: as many rows may have to come from the disk

PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA wal_autocheckpoint = 0",  # it would come in the middle of somebody's commit, and wait for the disk there
    "PRAGMA busy_timeout = 0",  # once it is open, it waits for no lock of another process by itself: that would hold the event loop up
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one statement returned, and how many rows it changed."""

    rows: list[Any]
    changed: int


class TooLong(Exception):
    """A statement was not through in its time; SQLite may say so of one that is, so a change has to be undone."""


class Long:
    """Statements that were begun on the event loop in vain: for a while they are taken to be long.

    A PRAGMA always is: one that looks through the whole file is a single step, which SQLite does not interrupt.
    """

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def __contains__(self, sql: str) -> bool:
        return (bool(self._until) and self._until.get(sql, 0.0) > time.monotonic()) or sql.startswith("PRAGMA")

    def add(self, sql: str) -> None:
        """Note that one is long."""
        now = time.monotonic()
        self._until = {one: until for one, until in self._until.items() if until > now} | {sql: now + LONG_FOR}


class Connection:
    """A connection to a SQLite file, or to a database in memory of its own. Raises what `sqlite3` raises.

    While something is under way in the thread nobody may ask for anything else: who owns the connection sees to that.
    """

    def __init__(self, where: str) -> None:
        self._sqlite = sqlite3.connect(where, timeout=OPENING_SECONDS, isolation_level=None, cached_statements=256, check_same_thread=False)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sqlite")  # it is started when it is first needed
        self._until = math.inf
        self._closed = False
        try:
            self._sqlite.row_factory = sqlite3.Row
            self._sqlite.set_progress_handler(self._is_over, STEPS)
            for pragma in PRAGMAS:
                self._sqlite.execute(pragma)
        except BaseException:
            self._sqlite.close()
            raise

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; an error can have ended it."""
        return not self._closed and self._sqlite.in_transaction

    def at_once(self, sql: str, params: Params = NONE, *, seconds: float = math.inf) -> Outcome:
        """Execute a statement here and now.

        Raises TooLong after `seconds`. Of a change inside a transaction SQLite may have undone all of it then, or nothing.
        """
        if self._closed:  # the thread may be closing it at this moment
            raise sqlite3.ProgrammingError("it is closed")
        if seconds < math.inf:
            self._until = time.perf_counter() + seconds
        before = self._sqlite.total_changes
        try:
            done = self._sqlite.execute(sql, params) if isinstance(params, dict) else self._sqlite.executemany(sql, params)
            rows = done.fetchall()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT and time.perf_counter() > self._until:
                raise TooLong from error
            raise
        finally:
            self._until = math.inf
        return Outcome(rows, self._sqlite.total_changes - before)

    async def in_thread(self, sql: str, params: Params = NONE) -> Outcome:
        """Execute a statement in the thread. A cancellation interrupts it, and is raised once the thread is through with it."""
        return await self._by_thread(lambda: self._without_clock(sql, params), self.interrupt)

    def _without_clock(self, sql: str, params: Params) -> Outcome:
        """Execute a statement that may take its time: a thread that looks at the clock waits for the interpreter's lock each time."""
        if not self._closed:
            self._sqlite.set_progress_handler(None, STEPS)
        try:
            return self.at_once(sql, params)
        finally:
            if not self._closed:
                self._sqlite.set_progress_handler(self._is_over, STEPS)

    def interrupt(self) -> None:
        """End what is under way in the thread, if anything is."""
        if not self._closed:
            self._sqlite.interrupt()

    async def close(self) -> None:
        """Close it: the last to leave a file writes its log into it, so the thread does that."""
        self._closed = True
        try:
            await self._by_thread(self._sqlite.close)
        finally:
            self._thread.shutdown(wait=False)

    async def _by_thread(self, work: Callable[[], T], interrupt: Callable[[], None] = lambda: None) -> T:
        done = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            while not done.done():
                interrupt()  # again and again: the thread may not have begun
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([done], timeout=AGAIN_SECONDS)
            done.exception()  # seen, so that it is not reported as lost
            raise

    def _is_over(self) -> bool:
        return time.perf_counter() > self._until
