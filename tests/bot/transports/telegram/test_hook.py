"""The settings of the webhook: both or none, and a secret that Telegram takes."""

import pytest

from bot.errors import ConfigurationError
from bot.settings import Settings, read
from bot.transports.telegram.hook import webhook_of

URL = {"TELEGRAM_WEBHOOK_URL": "https://example.org/hook"}


def test_without_an_address_it_polls() -> None:
    """A secret alone is no webhook."""
    assert webhook_of(read(Settings, {"TELEGRAM_WEBHOOK_SECRET": "a-secret-of-the-webhook"})) is None


def test_both_make_a_webhook() -> None:
    """As they were given."""
    settings = read(Settings, {**URL, "TELEGRAM_WEBHOOK_SECRET": "a-secret-of-the-webhook"})

    assert webhook_of(settings) == ("https://example.org/hook", "a-secret-of-the-webhook")


@pytest.mark.parametrize("secret", ["", "short", "a secret with spaces", "ñandú-de-los-secretos", "x" * 257])
def test_a_webhook_without_a_secret_is_refused(secret: str) -> None:
    """Anybody could send updates; the variable is named, and what is in it is not."""
    with pytest.raises(ConfigurationError, match="TELEGRAM_WEBHOOK_SECRET") as raised:
        webhook_of(read(Settings, {**URL, "TELEGRAM_WEBHOOK_SECRET": secret}))

    assert not secret or secret not in str(raised.value)
