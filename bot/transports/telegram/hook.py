"""The settings of the webhook, looked at before anything heavy is imported or opened."""

import re

from bot.errors import ConfigurationError
from bot.settings import Settings

SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}")


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
