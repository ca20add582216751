"""Several statements in one trip to a connection's thread: with aiosqlite a trip costs more than most statements."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

TOGETHER = "several statements; after one that fails the rest is left"
EACH = "several statements, each by itself"


class Thread(Protocol):
    """What is asked of an aiosqlite connection whose factory is `Connection`."""

    def execute_fetchall(self, sql: str, parameters: Iterable[Any] | None = None) -> Awaitable[Iterable[Any]]: ...


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a transaction. `params` of several rows execute it for each; fewer rows than `least` are an error: `otherwise`."""

    sql: str
    params: Mapping[str, Any] | Sequence[Mapping[str, Any]] = field(default_factory=dict)
    least: int = 0
    otherwise: Exception | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one statement returned, and how many rows it changed."""

    rows: list[Any]
    changed: int


class _Outcomes(list[Outcome]):
    """What a trip brings back, in the form of a cursor: all that aiosqlite asks of one is this."""

    def fetchall(self) -> "_Outcomes":
        return self


@dataclass(slots=True)
class _Trip:
    """Statements of several tasks, and what became of each once the thread has been at them."""

    statements: Sequence[Statement]
    outcomes: list[Outcome | Exception] = field(default_factory=list)


class Connection(sqlite3.Connection):
    """Takes several statements at once: a trip to the connection's thread costs more than most statements."""

    def execute(self, sql: str, *parameters: Any) -> Any:
        if sql == TOGETHER:
            return _Outcomes(map(self._outcome, parameters[0]))
        if sql == EACH:
            [trip] = parameters[0]
            trip.outcomes = list(map(self._outcome_or_error, trip.statements))
            return _Outcomes()
        return super().execute(sql, *parameters)

    def _outcome(self, statement: Statement) -> Outcome:
        before = self.total_changes
        if isinstance(statement.params, Mapping):
            rows = super().execute(statement.sql, statement.params).fetchall()
        else:
            rows = super().executemany(statement.sql, statement.params).fetchall()
        return Outcome(rows, self.total_changes - before)

    def _outcome_or_error(self, statement: Statement) -> Outcome | Exception:
        try:
            return self._outcome(statement)
        except Exception as error:  # noqa: BLE001 - it is raised where the statement came from
            return error


class Trips:
    """Statements of several tasks that want one connection go together, each by itself: where it writes, a transaction of its own.

    Whoever finds nobody under way goes at once, and takes those along who come while it waits until the connection is `free`. Those who
    come later go next.
    """

    def __init__(self, connection: Thread, free: Callable[[], AbstractAsyncContextManager[None]] = nullcontext) -> None:
        self._connection = connection
        self._free = free
        self._waiting: list[tuple[Statement, asyncio.Future[Outcome | Exception]]] = []
        self._under_way = False
        self._tasks: set[asyncio.Task[object]] = set()

    @property
    def before(self) -> int:
        """How many are before one who comes now."""
        return self._under_way + len(self._waiting)

    async def take(self, statement: Statement) -> Outcome:
        """What a statement gives. Raises what it raises in the thread. One that is cancelled may be executed all the same."""
        outcome = await self._wait(statement) if self._under_way else (await self._go(statement))[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _wait(self, statement: Statement) -> Outcome | Exception:
        answer: asyncio.Future[Outcome | Exception] = asyncio.get_running_loop().create_future()
        self._waiting.append((statement, answer))
        return await answer

    async def _go(self, *own: Statement) -> list[Outcome | Exception]:
        """What becomes of these, and of those that wait."""
        self._under_way = True
        try:
            async with self._free():
                others, self._waiting = [one for one in self._waiting if not one[1].done()], []
                trip = _Trip([*own, *(statement for statement, _ in others)])
                answers = [answer for _, answer in others]
                try:
                    await self._connection.execute_fetchall(EACH, [trip])
                except asyncio.CancelledError:  # the thread goes on, and the others want to know
                    if answers:
                        self._aside(self._tell_later(trip, answers))
                    raise
                except Exception as error:  # noqa: BLE001 - it is raised where the statements came from
                    trip.outcomes = [error] * len(trip.statements)
                _tell(answers, trip.outcomes[len(own) :])
            return trip.outcomes
        finally:
            self._under_way = bool(self._waiting)
            if self._waiting:
                self._aside(self._go())

    async def _tell_later(self, trip: _Trip, answers: Sequence["asyncio.Future[Outcome | Exception]"]) -> None:
        try:
            await self._connection.execute_fetchall("SELECT 1")  # after what the thread is at
            _tell(answers, trip.outcomes[-len(answers) :])
        except Exception as error:  # noqa: BLE001 - it is raised where the statements came from
            _tell(answers, [error] * len(answers))
        finally:
            for answer in answers:
                answer.cancel()

    def _aside(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _tell(answers: Sequence["asyncio.Future[Outcome | Exception]"], outcomes: Sequence[Outcome | Exception]) -> None:
    for answer, outcome in zip(answers, outcomes, strict=True):
        if not answer.done():
            answer.set_result(outcome)
