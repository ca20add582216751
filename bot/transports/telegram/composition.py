"""How Telegram is put together from the settings: what can be wrong is said before anything is opened."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from bot.errors import ConfigurationError
from bot.settings import Settings
from bot.transports.http import Route
from bot.transports.telegram.receiving import webhook
from bot.transports.telegram.transport import Home, Telegram

SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}")


@dataclass(frozen=True, slots=True)
class Opened:
    """The open transport; with a webhook, its address and secret, and the route that the HTTP server needs."""

    transport: Telegram
    webhook: tuple[str, str] | None
    routes: Sequence[Route]


def webhook_of(settings: Settings) -> tuple[str, str] | None:
    """The address and the secret of the webhook, or None for polling. Raises ConfigurationError for one without the other."""
    url, secret = settings.telegram_webhook_url, settings.telegram_webhook_secret
    if url is None:
        return None
    if secret is None:
        raise ConfigurationError("TELEGRAM_WEBHOOK_URL is set without TELEGRAM_WEBHOOK_SECRET: anybody could send updates; set both")
    if not SECRET.fullmatch(secret.get_secret_value()):
        raise ConfigurationError("TELEGRAM_WEBHOOK_SECRET cannot work: use 16 to 256 of A-Z a-z 0-9 _ -")
    return url, secret.get_secret_value()


@asynccontextmanager
async def open_telegram(home: Home, settings: Settings, token: str) -> AsyncIterator[Opened]:
    """The transport with its connections open meanwhile. Raises ConfigurationError."""
    hook = webhook_of(settings)
    transport = Telegram(home, token=token, base=settings.telegram_api_base, a_second=settings.telegram_rate, rich=settings.telegram_rich)
    routes = [] if hook is None else [Route("POST", urlsplit(hook[0]).path or "/", webhook(hook[1], transport.state, transport.take))]
    async with transport.open():
        yield Opened(transport, hook, routes)
