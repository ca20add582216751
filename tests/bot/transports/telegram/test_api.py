"""The wire: every failure is one of ours, and the token is in none of them."""

from collections.abc import AsyncIterator

import pytest
from aiogram.methods import GetMe

from bot.errors import BotError, ConfigurationError, TransportError, TransportUnavailable, Undeliverable
from bot.transports.telegram.api import UNTOLD_WAIT, Api, ChatMoved, Conflict, Pause, Refused, Unauthorized
from tests.bot.transports.telegram.conftest import recorded
from tests.standins.telegram_server import TOKEN, Telegram, telegram_server


@pytest.fixture
async def server() -> AsyncIterator[Telegram]:
    """A stand-in."""
    async with telegram_server() as made:
        yield made


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("400 Bad Request: can't parse entities", Refused),
        ('400 Bad Request: unsupported start tag "muy privado" at byte offset 0', Refused),
        ("400 Bad Request: message can't be edited: 'muy privado", Refused),
        ("400 Bad Request: chat not found", Undeliverable),
        ("401 Unauthorized", Unauthorized),
        ("403 Forbidden: bot was blocked by the user", Undeliverable),
        ("404 Not Found", Refused),
        ("409 Conflict: terminated by other getUpdates request", Conflict),
        ("413 Request Entity Too Large", Refused),
        ("418 I'm a teapot", Refused),
        ("429 Too Many Requests: retry after 7", Pause),
        ("420 FLOOD", Pause),
        ("500 Internal Server Error", TransportUnavailable),
        ("html", TransportUnavailable),
        ("drop_before", TransportUnavailable),
        ("drop_after", TransportUnavailable),
    ],
)
async def test_each_failure_is_one_of_ours(server: Telegram, fault: str, error: type[BotError]) -> None:
    """The text says what Telegram said, without the token and without the words that were to be sent."""
    server.faults["sendMessage"].append(fault)
    async with Api(TOKEN, base=server.url) as api:
        with pytest.raises(error) as raised:
            await api.send("sendMessage", chat_id=1, text="muy privado")

    shown = f"{raised.value!r} {raised.value.__cause__!r} {raised.value.__context__ if not raised.value.__suppress_context__ else ''}"
    assert TOKEN not in shown
    assert "muy privado" not in shown


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (200, b"[]", TransportUnavailable),
        (200, b"null", TransportUnavailable),
        (200, b"[" * 100_000, TransportUnavailable),
        (200, b'{"result": 1}', TransportUnavailable),
        (200, b'{"ok": false}', Refused),
        (201, b'{"ok": "yes", "result": 1}', Refused),
        (302, b'{"ok": true, "result": 1}', Refused),
        (400, b'{"ok": false, "description": "\xff"}', TransportUnavailable),
        (400, b'{"ok": false, "description": null, "parameters": null}', Refused),
        (403, b"<html>blocked by a proxy</html>", TransportUnavailable),
        (403, b'{"ok": false, "description": 5, "parameters": []}', Undeliverable),
        (429, b'{"ok": false, "description": "retry after 0"}', Pause),
        (500, b'{"ok": false}', TransportUnavailable),
        (502, b"", TransportUnavailable),
    ],
)
async def test_an_odd_answer_is_one_of_our_failures(status: int, body: bytes, error: type[BotError]) -> None:
    """Whatever stands between the bot and Telegram, and whatever another server leaves out."""
    async with recorded() as (wire, api):
        wire.answers.append((status, body))
        with pytest.raises(TransportError) as raised:
            await api.ask("getMe")

    assert type(raised.value) is error


@pytest.mark.parametrize(("said", "seconds"), [("7", 7), ('"7"', 7), ("1.2", 2), ("0", 9), ("null", 9), ("1e999", 9), ('"soon"', 9)])
async def test_the_field_of_a_wait_may_be_odd(said: str, seconds: int) -> None:
    """Never shorter than what is asked; what is no number is looked for in the words."""
    async with recorded() as (wire, api):
        wire.answers.append((429, f'{{"ok": false, "description": "retry after 9", "parameters": {{"retry_after": {said}}}}}'.encode()))
        with pytest.raises(Pause) as raised:
            await api.ask("getMe")

    assert raised.value.seconds == seconds


async def test_a_group_that_moved_says_where_to(server: Telegram) -> None:
    """The new id comes with the error."""
    server.migrated[-5] = -1005
    async with Api(TOKEN, base=server.url) as api:
        with pytest.raises(ChatMoved) as raised:
            await api.send("sendMessage", chat_id=-5, text="x")

    assert raised.value.new == -1005


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        ("429 Too Many Requests: retry after 7", 7),
        ("429 Too Many Requests: retry after 9 s", 9),  # in words alone, without the field
        ("429 Too Many Requests", UNTOLD_WAIT),
        ("420 FLOOD_WAIT_5", 5),
    ],
)
async def test_retry_after_is_told(server: Telegram, fault: str, seconds: int) -> None:
    """In seconds, wherever the server says it; never a failure of the message."""
    server.faults["getMe"].append(fault)
    async with Api(TOKEN, base=server.url) as api:
        with pytest.raises(Pause) as raised:
            await api.call(GetMe())

    assert raised.value.seconds == seconds


async def test_a_server_that_is_away(server: Telegram) -> None:
    """No address, no answer: unavailable, and no token."""
    async with Api(TOKEN, base="http://127.0.0.1:9") as api:
        with pytest.raises(TransportUnavailable) as raised:
            await api.call(GetMe())

    assert TOKEN not in str(raised.value)


async def test_a_file_is_fetched_up_to_a_size(server: Telegram) -> None:
    """More than that is not read to its end; its address, which holds the token, is in no error."""
    server.files["f"] = b"x" * 1000
    async with Api(TOKEN, base=server.url) as api:
        assert await api.download("f", max_bytes=1000) == b"x" * 1000
        assert await api.download("f", max_bytes=999) is None
        del server.files["f"]
        with pytest.raises(BotError) as raised:
            await api.download("f", max_bytes=10)

    assert TOKEN not in f"{raised.value} {raised.value.__cause__}"


def test_a_token_that_is_none_is_refused() -> None:
    """Before anything is sent, and without showing it."""
    with pytest.raises(ConfigurationError) as raised:
        Api("not-a-token")

    assert "not-a-token" not in str(raised.value)
