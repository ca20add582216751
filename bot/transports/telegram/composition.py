"""How Telegram is put together from the settings."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from bot.settings import Settings
from bot.transports.http import Route
from bot.transports.telegram.hook import webhook_of
from bot.transports.telegram.receiving import webhook
from bot.transports.telegram.transport import Home, Telegram


@dataclass(frozen=True, slots=True)
class Opened:
    """The open transport; with a webhook, its address and secret, and the route that the HTTP server needs."""

    transport: Telegram
    webhook: tuple[str, str] | None
    routes: Sequence[Route]


@asynccontextmanager
async def open_telegram(home: Home, settings: Settings, token: str) -> AsyncIterator[Opened]:
    """The transport with its connections open meanwhile. Raises ConfigurationError."""
    hook = webhook_of(settings)
    transport = Telegram(home, token=token, base=settings.telegram_api_base, a_second=settings.telegram_rate, rich=settings.telegram_rich)
    routes = [] if hook is None else [Route("POST", urlsplit(hook[0]).path or "/", webhook(hook[1], transport.state, transport.take))]
    async with transport.open():
        yield Opened(transport, hook, routes)
