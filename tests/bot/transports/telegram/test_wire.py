"""The wire: what is called with plain fields is what aiogram would send."""

import asyncio
import json
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from aiogram import methods
from aiogram.methods import TelegramMethod

from bot.transports.telegram.formatting import plain
from bot.transports.telegram.pacing import Pacer
from bot.transports.telegram.sending import Sending
from bot.transports.telegram.store import Store
from bot.transports.telegram.streaming import Streaming
from bot.values import Choice, Letter
from tests.bot.transports.telegram.conftest import in_memory, recorded, unmoved
from tests.bot.transports.telegram.test_streaming import Words

LETTER = Letter("a", "telegram:-1009:4", "**¿Sí?** & [más](https://a.b/?c=d+e) 😀", "telegram:7", "5", quotes=True, markdown=True)


async def test_each_plain_call_is_what_aiogram_would_send() -> None:
    """Field by field: its models take the fields that were sent, and make the same body of them."""
    async with recorded() as (wire, api), in_memory() as database:
        store, pacer = Store(database, lambda: 1), Pacer()
        sending = Sending(api, store, pacer, key=b"k" * 32, clock=lambda: 1, moved=unmoved, rich=True)
        streaming = Streaming(api, sending, store, pacer)
        await sending.deliver(replace(LETTER, choices=(Choice("Sí", "yes"), Choice("No", "no"))))
        await sending.edit(7, 5, plain("¿sí?"), keyboard={"inline_keyboard": [[{"text": "Sí", "callback_data": "yes"}]]})
        await sending.deliver(Letter("b", "telegram:8", "| a |\n|---|\n| 1 |", markdown=True))
        await sending.remove(9, 5)
        shown = (
            streaming.show(Letter(key, chat), Words("**uno**", every=0.9)) for key, chat in (("c", "telegram:10"), ("d", "telegram:-11"))
        )
        await asyncio.gather(*shown)
        await api.updates(3, seconds=0, allowed=("message",))
        await api.download("f", max_bytes=1)
        plainly = wire.requests[:]
        for method, _, body in plainly:
            await api.call(_by_aiogram(method, body))

    sent = {method for method, *_ in plainly}
    assert sent == {
        "sendMessage", "editMessageText", "sendRichMessage", "deleteMessage", "sendMessageDraft", "sendChatAction", "getUpdates", "getFile",
    }  # fmt: skip
    assert list(map(_read, plainly)) == list(map(_read, wire.requests[len(plainly) :]))


def _by_aiogram(name: str, body: bytes) -> TelegramMethod[Any]:
    """aiogram's model with the fields of a body; a field that it does not know fails."""
    model = getattr(methods, name[0].upper() + name[1:])
    method = model.model_validate(_fields(body))
    assert not method.model_extra
    return method  # type: ignore[no-any-return]


def _read(request: tuple[str, str, bytes]) -> tuple[str, str, dict[str, Any]]:
    method, kind, body = request
    return method, kind, _fields(body)


def _fields(body: bytes) -> dict[str, Any]:
    return {name: _value(text) for name, text in parse_qsl(body.decode(), keep_blank_values=True)}


def _value(text: str) -> Any:
    """What a field says: JSON, or else the text as it stands."""
    try:
        return json.loads(text)
    except ValueError:
        return text
