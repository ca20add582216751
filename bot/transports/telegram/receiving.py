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


def webhook(
    secret: str, state: State, take: Callable[[Sequence[Any]], Awaitable[None]]
) -> "Callable[[web.Request], Awaitable[web.Response]]":
    """The route of the webhook. 403 without the secret, 413 for too much, 400 for what is no JSON, 503 where it cannot be stored."""
    from aiohttp import web

    async def receive(request: "web.Request") -> "web.Response":
        given = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode()):
            return web.Response(status=403)
        body = await request.read()  # raises 413 by itself
        try:
            update = json.loads(body)
        except (ValueError, RecursionError):
            return web.Response(status=400)
        try:
            await take([update])
        except (StorageError, TransportError) as error:
            log.error("telegram: an update cannot be taken now, and comes again: %s", error)
            return web.Response(status=503)
        return web.Response()

    return receive
