"""Group commit: statements that stand alone and come together are committed together, as if each had been by itself."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.database.connection import Connection, Outcome, TooLong
from bot.database.writing import OneWriter

Begin = Callable[[], Awaitable[object]]
Alone = Callable[[str, dict[str, Any]], Awaitable[Outcome]]


@dataclass(slots=True)
class _Waiting:
    """A statement, and who waits for what it gives."""

    sql: str
    params: dict[str, Any]
    answer: "asyncio.Future[Outcome]"


class GroupCommit:
    """Collects what comes in one turn of the event loop: a commit costs as much as the statements of several.

    `begin` opens a transaction on the connection, and waits for other processes; `alone` executes one statement as a transaction of its
    own, however long it takes. Both are called in the writer's turn. `seconds` is what a statement may take within a group.
    """

    def __init__(self, connection: Connection, writing: OneWriter, *, begin: Begin, alone: Alone, seconds: float) -> None:
        self._connection = connection
        self._writing = writing
        self._begin = begin
        self._alone = alone
        self._seconds = seconds
        self._waiting: list[_Waiting] = []
        self._at_work: set[asyncio.Task[None]] = set()

    async def execute(self, sql: str, params: dict[str, Any]) -> Outcome:
        """What a statement gives once it is committed. Raises what it raises. One that is cancelled may be executed all the same."""
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(sql, params, answer))
        if len(self._waiting) == 1:
            task = asyncio.create_task(self._commit())
            self._at_work.add(task)
            task.add_done_callback(self._at_work.discard)
        return await answer

    async def settle(self) -> None:
        """Return when nothing is under way."""
        while self._at_work:
            await asyncio.wait(self._at_work)

    async def _commit(self) -> None:
        group: Sequence[_Waiting] = ()
        try:
            async with self._writing:
                group, self._waiting = [one for one in self._waiting if not one.answer.done()], []
                if len(group) > 1 and await self._together(group):
                    return
                for one in group:
                    await self._by_itself(one)
        finally:
            for one in group:  # those that nobody answers any more
                one.answer.cancel()

    async def _by_itself(self, one: _Waiting) -> None:
        """Execute one, and give up where nobody waits for it any more."""
        task, under_way = asyncio.current_task(), True

        def stop(answer: "asyncio.Future[Outcome]") -> None:
            if under_way and task is not None:
                task.cancel()

        one.answer.add_done_callback(stop)
        try:
            outcome: Outcome | Exception = await self._alone(one.sql, one.params)
        except asyncio.CancelledError:
            if task is None or not one.answer.cancelled() or task.uncancel():
                raise
            return
        except Exception as error:  # noqa: BLE001 - it is raised where the statement came from
            outcome = error
        finally:
            under_way = False
        _tell(one, outcome)

    async def _together(self, group: Sequence[_Waiting]) -> bool:
        """Execute them in one transaction; False with nothing written where that fails, or one of them is long."""
        try:
            await self._begin()
        except Exception as error:  # noqa: BLE001 - it is raised where the statements came from
            for one in group:
                _tell(one, error)
            return True
        outcomes: list[Outcome | Exception] = []
        try:
            for one in group:
                try:
                    outcomes.append(self._connection.at_once(one.sql, one.params, seconds=self._seconds))
                except TooLong:
                    return False
                except Exception as error:  # noqa: BLE001 - it is raised where the statement came from
                    if not self._connection.in_transaction:  # a full disk, say, undoes the others too
                        return False
                    outcomes.append(error)
            self._connection.at_once("COMMIT")
        except Exception:  # noqa: BLE001 - each by itself finds out what is wrong
            return False
        finally:
            if self._connection.in_transaction:
                self._connection.at_once("ROLLBACK")
        for one, outcome in zip(group, outcomes, strict=True):
            _tell(one, outcome)
        return True


def _tell(one: _Waiting, outcome: Outcome | Exception) -> None:
    if one.answer.done():
        return
    if isinstance(outcome, Exception):
        one.answer.set_exception(outcome)
    else:
        one.answer.set_result(outcome)
