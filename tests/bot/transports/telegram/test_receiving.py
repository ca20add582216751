"""Receiving: nothing is acknowledged before it is stored."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import aiohttp

from bot.errors import StorageError
from bot.transports.http import Route, serve
from bot.transports.telegram.api import Api
from bot.transports.telegram.receiving import AT_ONCE, SECRET_HEADER, State, poll, webhook
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
