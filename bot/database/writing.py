"""What both engines make of writing: one at a time, nothing more after a failure, and an end that no cancellation cuts short."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from typing import Any, Literal, TypeVar

from bot.errors import StorageError
from bot.ports import Params, Row

T = TypeVar("T")
NO_PARAMS: Params = {}
State = Literal["new", "open", "failed", "over"]


class OneWriter:
    """Lets the tasks of this process write one after the other: `async with`. Raises RuntimeError for one that would wait for itself."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._holder: asyncio.Task[Any] | None = None

    async def __aenter__(self) -> None:
        self.refuse_holder()
        await self._lock.acquire()
        self._holder = asyncio.current_task()

    async def __aexit__(self, *_: object) -> None:
        self._holder = None
        self._lock.release()

    def refuse_holder(self) -> None:
        """Raise RuntimeError in the task that holds the turn."""
        if self._holder is not None and self._holder is asyncio.current_task():
            raise RuntimeError("a write inside a transaction of the same task would wait for itself: use the transaction")


class Statements(ABC):
    """What the transactions of both engines make of `all`: one row, several statements, and one that has to return so many rows."""

    state: State = "new"

    @abstractmethod
    async def all(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        """The rows of one statement, as dictionaries."""

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        """The first row, or None."""
        return next(iter(await self.all(sql, params)), None)

    async def together(self, statements: Sequence[tuple[str, Params]]) -> list[list[Row]]:
        """Several statements, one after the other; the rows that each returns."""
        return [await self.all(sql, params) for sql, params in statements]

    async def soon(self, sql: str, params: Params = NO_PARAMS, *, least: int = 0, otherwise: Exception | None = None) -> None:
        """One statement, at once; where it returns fewer rows than `least`, `otherwise` is raised."""
        rows = await self.all(sql, params)
        if otherwise is not None and len(rows) < least:
            self.state = "failed"
            raise otherwise


def check_takes_more(state: State, where: str) -> None:
    """Raise RuntimeError where a transaction is over, StorageError where one of its statements failed."""
    if state == "over":
        raise RuntimeError("this transaction is over: its statements belong inside its `async with`")
    if state == "failed":
        raise StorageError(f"the database {where!r}: an earlier statement of this transaction failed, so nothing of it is written")


def check_can_be_kept(state: State, where: str) -> None:
    """Raise StorageError where a statement failed, although whoever wrote it went on."""
    if state == "failed":
        raise StorageError(f"the database {where!r}: a statement of this transaction failed, so nothing of it is written")


async def to_its_end(work: Awaitable[T]) -> T:
    """What the work gives. A cancellation meanwhile is raised when it has ended, in place of what it gives or raises."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except Exception:  # noqa: BLE001 - it is raised below
            break
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()
