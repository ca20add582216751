"""What the parts of the transport work with in their tests: a stand-in for Telegram, its API, a database in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.database import open_database
from bot.ports import Database
from bot.registry import Migrations
from bot.transports import telegram
from bot.transports.telegram.api import Api
from tests.standins.telegram_server import TOKEN, Telegram, telegram_server


@asynccontextmanager
async def wired() -> AsyncIterator[tuple[Telegram, Api, Database]]:
    """The three of them, open."""
    migrations = [Migrations("telegram", Path(telegram.__file__).parent / "migrations")]
    async with (
        telegram_server() as server,
        Api(TOKEN, base=server.url) as api,
        open_database("sqlite:///:memory:", migrations=migrations) as database,
    ):
        yield server, api, database


async def unmoved(old: int, new: int) -> None:
    """For a test in which no group moves."""
