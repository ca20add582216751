"""Group commit: statements that stand alone and come together are committed together, as if each had been by itself."""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.database.connection import Connection, Long, Outcome, TooLong
from bot.database.writing import OneWriter


@dataclass(slots=True)
class _Waiting:
    """A statement, and who waits for what it gives. One that is `apart` undid what came before it, and begins the next group."""

    sql: str
    params: dict[str, Any]
    answer: "asyncio.Future[Outcome]"
    apart: bool = False


class GroupCommit:
    """Collects what comes in one turn of the event loop: a commit costs as much as the statements of several.

    `begin` opens a transaction on the connection, and waits for other processes. What is `long`, and what takes longer than `seconds`
    although nobody knew, is executed in the thread. All of it is done in the writer's turn.
    """

    def __init__(
        self, connection: Connection, writing: OneWriter, *, begin: Callable[[], Awaitable[object]], long: Long, seconds: float
    ) -> None:
        self._connection = connection
        self._writing = writing
        self._begin = begin
        self._long = long
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

    async def settle(self, *, seconds: float) -> None:
        """Return when what is under way now has ended; what has not after so many seconds is given up."""
        if self._at_work:
            _, left = await asyncio.wait(set(self._at_work), timeout=seconds)
            for task in left:
                task.cancel()

    async def _commit(self) -> None:
        group: list[_Waiting] = []
        try:
            async with self._writing:
                group = self._take()
                left = [one for one in group if not one.answer.done()]
                while left:
                    done = await self._together(left)
                    if not done:
                        await self._in_thread(left[0])
                    left = left[max(done, 1) :]
                    if left:
                        await asyncio.sleep(0)
        finally:
            for one in group or self._take():  # those that nobody answers any more
                one.answer.cancel()

    def _take(self) -> list[_Waiting]:
        taken, self._waiting = self._waiting, []
        return taken

    async def _together(self, group: Sequence[_Waiting]) -> int:
        """Execute the first ones in one transaction; how many of them have their answers. 0: the first one is long."""
        if group[0].sql in self._long:
            return 0
        try:
            await self._begin()
        except Exception as error:  # noqa: BLE001 - it is raised where the statements came from
            return _told(group, [error] * len(group))
        outcomes: list[Outcome | Exception] = []
        until = time.perf_counter() + self._seconds
        try:
            for one in group:
                if outcomes and (one.apart or one.sql in self._long or time.perf_counter() > until):
                    break
                try:
                    outcomes.append(self._connection.at_once(one.sql, one.params, seconds=self._seconds))
                except TooLong:
                    self._long.add(one.sql)
                    return await self._again(group[: len(outcomes)])
                except Exception as error:  # noqa: BLE001 - it is raised where the statement came from
                    undone = not self._connection.in_transaction  # by a full disk, say: the others too
                    if undone and outcomes:
                        one.apart = True
                        return await self._again(group[: len(outcomes)])
                    outcomes.append(error)
                    if undone:
                        break
            if self._connection.in_transaction:
                self._connection.at_once("COMMIT")
        except sqlite3.Error as error:
            if len(outcomes) > 1:
                for one in group[: len(outcomes)]:
                    one.apart = True
                return await self._again(group[:1])
            outcomes = [error]
        finally:
            self._roll_back()
        return _told(group, outcomes)

    async def _again(self, group: Sequence[_Waiting]) -> int:
        """Execute those again that were undone with another."""
        self._roll_back()
        return await self._together(group) if group else 0

    async def _in_thread(self, one: _Waiting) -> None:
        """Execute one, however long it takes, and give up where nobody waits for it any more."""
        task, under_way = asyncio.current_task(), True

        def stop(answer: "asyncio.Future[Outcome]") -> None:
            if under_way and task is not None:
                task.cancel()

        one.answer.add_done_callback(stop)
        try:
            await self._begin()
            outcome: Outcome | Exception = await self._connection.in_thread(one.sql, one.params)
            await self._connection.in_thread("COMMIT")
        except asyncio.CancelledError:
            if task is None or not one.answer.cancelled() or task.uncancel():
                raise
            return
        except Exception as error:  # noqa: BLE001 - it is raised where the statement came from
            outcome = error
        finally:
            under_way = False
            self._roll_back()
        _told([one], [outcome])

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self._connection.at_once("ROLLBACK")


def _told(group: Sequence[_Waiting], outcomes: Sequence[Outcome | Exception]) -> int:
    """Give each its outcome; how many there were."""
    for one, outcome in zip(group, outcomes, strict=False):
        if one.answer.done():
            continue
        if isinstance(outcome, Exception):
            one.answer.set_exception(outcome)
        else:
            one.answer.set_result(outcome)
    return len(outcomes)
