"""How updates come in: by polling or by webhook, stored before they are acknowledged, each decoded by itself."""

import asyncio
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bot.errors import StorageError, TransportError
from bot.transports.telegram.api import Api, Conflict, Pause
from bot.transports.telegram.reading import update_id

if TYPE_CHECKING:
    from aiohttp import web

log = logging.getLogger(__name__)

POLL_SECONDS = 25
ALLOWED = ("message", "edited_message", "callback_query", "my_chat_member", "stopped_message_generation")
AT_ONCE = 0.5  # seconds; an answer that is empty and comes sooner has not waited, so the next question does
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"


@dataclass(slots=True)
class State:
    """How it stands with Telegram; `/readyz` asks. `problem` is None where all is well."""

    problem: TransportError | None = None

    async def check(self) -> None:
        """Raise what is wrong."""
        if self.problem is not None:
            raise self.problem


class Back:
    """How long to wait after a failure: twice as long each time, or what was asked for."""

    def __init__(self) -> None:
        self._next = FIRST_WAIT

    def after(self, error: TransportError | StorageError) -> float:
        """Seconds to wait now."""
        wait, self._next = self._next, min(self._next * 2, LONGEST_WAIT)
        return error.seconds if isinstance(error, Pause) else wait

    def well(self) -> None:
        """It worked: the next failure begins anew."""
        self._next = FIRST_WAIT


async def until_it_works(state: State, what: str, work: Callable[[], Awaitable[Any]]) -> Any:
    """Try something until Telegram takes it. Raises ConfigurationError (a wrong token), which no waiting mends."""
    back = Back()
    while True:
        try:
            result = await work()
        except TransportError as error:
            state.problem = error
            wait = back.after(error)
            log.warning("telegram: %s did not work, tried again in %.0f s: %s", what, wait, error)
            await asyncio.sleep(wait)
        else:
            state.problem = None
            return result


async def poll(api: Api, state: State, take: Callable[[Sequence[Any]], Awaitable[None]]) -> None:
    """Ask for updates for ever. What was taken is stored, so asking for those after it acknowledges nothing that could be lost."""
    offset: int | None = None
    back = Back()
    while True:
        try:
            asked = time.monotonic()
            updates = await api.updates(offset, seconds=POLL_SECONDS, allowed=ALLOWED)
            took = time.monotonic() - asked
            state.problem = None
            await take(updates)
            back.well()
        except (TransportError, StorageError) as error:
            wait = await _failed(api, state, error, back)
            await asyncio.sleep(wait)
            continue
        numbers = [number for number in map(update_id, updates) if number is not None]
        if took < AT_ONCE and len(numbers) == len(updates) and max(numbers, default=-1) < (offset or 0):
            await asyncio.sleep(AT_ONCE)  # nothing new: some servers and proxies do not hold the question
        if numbers:
            offset = max(numbers) + 1
        elif updates:  # none of them has a number: nothing can be acknowledged
            await asyncio.sleep(back.after(TransportError("updates without numbers")))


async def _failed(api: Api, state: State, error: TransportError | StorageError, back: Back) -> float:
    wait = back.after(error)
    if isinstance(error, StorageError):
        log.error("telegram: updates cannot be stored, and wait at Telegram: %s", error)
        return wait
    state.problem = error
    if isinstance(error, Conflict):
        if "webhook" in str(error):
            from aiogram.methods import DeleteWebhook

            log.warning("telegram: a webhook was set, and is taken away, since this bot polls")
            await until_it_works(state, "deleteWebhook", lambda: api.call(DeleteWebhook(drop_pending_updates=False)))
            return 0.0
        log.error("telegram: another process polls with the same token (409): stop one of them; tried again in %.0f s", wait)
    else:
        log.warning("telegram: no updates for now, tried again in %.0f s: %s", wait, error)
    return wait


class Together:
    """Takes updates that arrive while others are being stored in one go with each other; each caller waits for its own.

    What is wrong with one of them alone fails that one alone; a storage that is away fails each of those that it was to hold.
    """

    def __init__(self, take: Callable[[Sequence[Any]], Awaitable[None]]) -> None:
        self._take = take
        self._waiting: list[tuple[Any, asyncio.Future[None]]] = []
        self._taking: asyncio.Task[None] | None = None

    async def take(self, update: Any) -> None:
        """Return once it is stored. Raises what `take` raises."""
        stored = asyncio.get_running_loop().create_future()
        self._waiting.append((update, stored))
        if self._taking is None:
            self._taking = asyncio.create_task(self._all())
        await stored

    async def _all(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                if len(batch) == 1 or not await self._stored(batch):
                    for one in batch:
                        await self._stored([one], last=True)
        finally:
            self._taking = None
            for _, stored in self._waiting:
                stored.cancel()

    async def _stored(self, batch: Sequence[tuple[Any, asyncio.Future[None]]], *, last: bool = False) -> bool:
        """Whether those who wait for a batch were told; where it might be one that fails it, they are not unless it is the `last` try."""
        failure: Exception | None = None
        try:
            await self._take([update for update, _ in batch])
        except (StorageError, TransportError) as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - it goes to whom it belongs to
            if not last:
                return False
            failure = error
        except BaseException:
            for _, stored in batch:
                stored.cancel()
            raise
        for _, stored in batch:
            if not stored.done():  # who waited may be gone
                stored.set_exception(failure) if failure else stored.set_result(None)
        return True


def webhook(
    secret: str, state: State, take: Callable[[Sequence[Any]], Awaitable[None]]
) -> "Callable[[web.Request], Awaitable[web.Response]]":
    """The route of the webhook. 403 without the secret, 413 for too much, 400 for what is no JSON, 503 where it cannot be stored."""
    from aiohttp import web

    expected, together = secret.encode(), Together(take)

    async def receive(request: "web.Request") -> "web.Response":
        given = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), expected):
            return web.Response(status=403)
        body = await request.read()  # raises 413 by itself
        try:
            update = json.loads(body)
        except (ValueError, RecursionError):
            return web.Response(status=400)
        try:
            await together.take(update)
        except (StorageError, TransportError) as error:
            log.error("telegram: an update cannot be taken now, and comes again: %s", error)
            return web.Response(status=503)
        return web.Response()

    return receive
