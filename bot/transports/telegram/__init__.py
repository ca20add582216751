"""Telegram: private chats, groups and topics, by polling or by webhook. Here is what it keeps; nothing heavy is imported."""

from pathlib import Path

from bot.registry import Registry
from bot.transports.telegram import store


def register(registry: Registry) -> None:
    """Add its tables, which are there also where no token is set: what was kept can be exported and erased."""
    registry.migrations("telegram", Path(__file__).parent / "migrations")
    registry.personal_data("telegram", tables=("telegram_replies", "telegram_chats"), export=store.export, erase=store.erase)
    registry.on_chat_moved(store.move)
