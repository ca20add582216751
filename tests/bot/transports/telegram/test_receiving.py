"""Receiving: nothing is acknowledged before it is stored."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import aiohttp

from bot.errors import StorageError
from bot.transports.http import Route, serve
from bot.transports.telegram.api import Api
from bot.transports.telegram.receiving import AT_ONCE, SECRET_HEADER, State, Together, poll, webhook
from tests.standins.telegram_server import TOKEN, telegram_server


class Intake:
    """Takes updates, but for the first times, when the storage is away."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.taken: list[int] = []
        self.done = asyncio.Event()

    async def __call__(self, updates: Sequence[Any]) -> None:
        if updates and self.failures:
            self.failures -= 1
            raise StorageError("the disk is full")
        self.taken += [update["update_id"] for update in updates]
        if self.taken:
            self.done.set()


async def test_polling_acknowledges_only_what_was_stored() -> None:
    """While the storage is away, Telegram keeps the updates: the offset stands still."""
    async with telegram_server() as server, Api(TOKEN, base=server.url) as api:
        number = await server.update(message={"text": "hola"})
        intake = Intake(1)
        polling = asyncio.create_task(poll(api, State(), intake))
        await asyncio.wait_for(intake.done.wait(), 10)
        await server.until(lambda: number + 1 in server.offsets)
        polling.cancel()

    assert intake.taken == [number]
    assert server.offsets == [0, 0, number + 1]


async def test_a_server_that_does_not_hold_the_question_is_not_asked_without_end() -> None:
    """It answers at once with nothing, or with what was acknowledged long ago."""

    class Hasty:
        asked = 0

        async def updates(self, offset: int | None, **how: Any) -> list[Any]:
            self.asked += 1
            await asyncio.sleep(0)
            return [{"update_id": 5}] if self.asked % 2 else []

    hasty = Hasty()
    polling = asyncio.create_task(poll(cast(Api, hasty), State(), Intake(0)))
    await asyncio.sleep(3 * AT_ONCE)
    polling.cancel()

    assert hasty.asked <= 5


async def test_a_webhook_answers_503_while_the_storage_is_away() -> None:
    """So Telegram sends it again."""
    intake = Intake(1)
    route = Route("POST", "/hook", webhook("secret-secret-secret", State(), intake))
    async with serve("127.0.0.1", 0, routes=[route]) as address, aiohttp.ClientSession() as session:
        statuses = []
        for _ in range(2):
            async with session.post(
                f"{address.url}/hook", json={"update_id": 3}, headers={SECRET_HEADER: "secret-secret-secret"}
            ) as response:
                statuses.append(response.status)

    assert statuses == [503, 200]
    assert intake.taken == [3]


class Slow:
    """Takes a first batch when it is told to; `fails` raises for a batch that it does not like."""

    def __init__(self, fails: Callable[[list[int]], Exception | None] = lambda batch: None) -> None:
        self.may = asyncio.Event()
        self.begun = asyncio.Event()
        self.batches: list[list[int]] = []
        self._fails = fails

    async def __call__(self, updates: Sequence[int]) -> None:
        self.batches.append(list(updates))
        self.begun.set()
        await self.may.wait()
        if error := self._fails(list(updates)):
            raise error


async def _taken(take: Slow) -> list[BaseException | None]:
    """What comes of the update 1, and of 2 to 4 that come while it is being stored."""
    together = Together(take)
    first = asyncio.create_task(together.take(1))
    await take.begun.wait()
    others = [asyncio.create_task(together.take(n)) for n in (2, 3, 4)]
    await asyncio.sleep(0)
    assert not first.done()
    take.may.set()
    return await asyncio.gather(first, *others, return_exceptions=True)


async def test_what_comes_while_one_is_stored_is_stored_in_one_go() -> None:
    """Nobody is told before their own is stored, and those that waited share a trip."""
    take = Slow()

    assert await _taken(take) == [None] * 4
    assert take.batches == [[1], [2, 3, 4]]


async def test_a_storage_that_is_away_fails_each_that_waited() -> None:
    """Each of them comes again."""
    away = StorageError("the disk is full")
    take = Slow(lambda batch: away if 3 in batch else None)

    assert await _taken(take) == [None, away, away, away]


async def test_an_update_that_breaks_a_batch_fails_alone() -> None:
    """Else one that no try can store would keep the others out for ever."""
    wrong = ValueError("what nobody foresaw")
    take = Slow(lambda batch: wrong if 3 in batch else None)

    assert await _taken(take) == [None, None, wrong, None]


async def test_who_no_longer_waits_fails_nobody() -> None:
    """The connection of one is closed while it waits; the others are stored."""
    take = Slow()
    together = Together(take)
    first, gone, last = (asyncio.create_task(together.take(n)) for n in (1, 2, 3))
    await take.begun.wait()
    gone.cancel()
    take.may.set()

    await asyncio.gather(first, last)
    await together.take(4)
    assert gone.cancelled()
    assert take.batches == [[1, 2, 3], [4]]
