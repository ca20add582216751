"""What the parts of the transport work with in their tests: a stand-in for Telegram, its API, a database in memory."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from bot.database import open_database
from bot.ports import Database
from bot.registry import Migrations
from bot.transports import telegram
from bot.transports.telegram.api import Api
from tests.standins.telegram_server import TOKEN, Telegram, telegram_server


@asynccontextmanager
async def wired() -> AsyncIterator[tuple[Telegram, Api, Database]]:
    """The three of them, open."""
    async with telegram_server() as server, Api(TOKEN, base=server.url) as api, in_memory() as database:
        yield server, api, database


def in_memory() -> AbstractAsyncContextManager[Database]:
    """A database with the transport's tables."""
    return open_database("sqlite:///:memory:", migrations=[Migrations("telegram", Path(telegram.__file__).parent / "migrations")])


@dataclass
class Wire:
    """What came over the wire, byte by byte: `requests` has method, content type and body; `answers` are given in turn, then a message."""

    requests: list[tuple[str, str, bytes]] = field(default_factory=list)
    answers: deque[tuple[int, bytes]] = field(default_factory=deque)

    async def handle(self, request: web.Request) -> web.Response:
        """One call."""
        self.requests.append((request.match_info["method"], request.headers["Content-Type"], await request.read()))
        status, body = self.answers.popleft() if self.answers else (200, b'{"ok": true, "result": {"message_id": 5}}')
        return web.Response(status=status, body=body)


@asynccontextmanager
async def recorded() -> AsyncIterator[tuple[Wire, Api]]:
    """A server that takes anything, and the API over it."""
    wire, app = Wire(), web.Application()
    app.router.add_post("/bot{token}/{method}", wire.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with Api(TOKEN, base=f"http://127.0.0.1:{runner.addresses[0][1]}") as api:
            yield wire, api
    finally:
        await runner.cleanup()


async def unmoved(old: int, new: int) -> None:
    """For a test in which no group moves."""
