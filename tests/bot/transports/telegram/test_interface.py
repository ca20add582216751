"""Menus and descriptions: set at the server when they changed, and not at every start."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from bot.context import Context
from bot.registry import Command
from bot.transports.telegram.api import Api
from bot.transports.telegram.interface import Menus, bring_up_to_date
from bot.transports.telegram.store import Store
from tests.bot.transports.telegram.conftest import wired
from tests.standins.telegram_server import Telegram


async def _nothing(ctx: Context) -> None: ...


HELP = Command("help", "What I can do", _nothing)
INGEST = Command("ingest", "Take in a file", _nothing, who="admins")
MENUS = Menus([HELP, INGEST], ["es", "en"], "es", ["telegram:99"], lambda lang, text: f"{lang}: {text}")
CALLS = 3 * 5  # no language, and two: two descriptions, the menus of private chats, of groups and of one admin


@dataclass
class Shelf:
    """A stand-in, and what is noted of it."""

    server: Telegram
    api: Api
    store: Store


@pytest.fixture
async def shelf() -> AsyncIterator[Shelf]:
    """A stand-in and a database in memory."""
    async with wired() as (server, api, database):
        yield Shelf(server, api, Store(database, lambda: 1))


async def test_what_has_not_changed_is_not_set_again(shelf: Shelf) -> None:
    """A second start makes no call."""
    first = await bring_up_to_date(shelf.api, shelf.store, MENUS)
    second = await bring_up_to_date(shelf.api, shelf.store, MENUS)

    assert (first, second) == (CALLS, 0)
    assert len(shelf.server.calls) == CALLS


async def test_only_what_changed_is_set(shelf: Shelf) -> None:
    """A command for admins alone is in the menus of admins alone."""
    await bring_up_to_date(shelf.api, shelf.store, MENUS)
    shelf.server.calls.clear()
    made = await bring_up_to_date(shelf.api, shelf.store, replace(MENUS, commands=[HELP, replace(INGEST, help="Take in a file or a text")]))

    assert made == 3
    assert {call.args["scope"]["type"] for call in shelf.server.calls} == {"chat"}


async def test_what_was_refused_is_tried_at_the_next_start(shelf: Shelf) -> None:
    """An admin who never wrote to the bot has no chat for a menu; the others are set."""
    shelf.server.faults["setMyCommands"].extend(["", "", "400 Bad Request: chat not found"])
    first = await bring_up_to_date(shelf.api, shelf.store, MENUS)
    second = await bring_up_to_date(shelf.api, shelf.store, MENUS)

    assert (first, second) == (CALLS - 1, 1)


async def test_a_server_that_is_away_is_waited_for(shelf: Shelf) -> None:
    """One bad moment at the start does not leave the menus as they were until the next; what was set is not set again."""
    shelf.server.faults["setMyDescription"].extend(["", "html"])
    shelf.server.faults["setMyCommands"].append("429 Too Many Requests: retry after 1")
    first = await bring_up_to_date(shelf.api, shelf.store, MENUS)
    second = await bring_up_to_date(shelf.api, shelf.store, MENUS)

    assert (first, second) == (CALLS, 0)
    assert len(shelf.server.calls) == CALLS
