"""The short notice of what was learnt from a chat: in the person's private chat, in their language, with a way to take it back."""

import json
from collections.abc import Sequence

from bot import MemoryOptions, Parts, Transaction
from bot import marked as _

_LANGUAGE = "SELECT language, profile FROM users WHERE agent_id = :agent_id AND user_id = :user_id"
_QUIET = "SELECT quiet FROM memory_subjects WHERE agent_id = :agent_id AND subject = :user_id AND quiet = 1"


NOTICE = _("I'll remember: {facts}. /memory undo takes it back, /memory quiet ends these notices.")


class Notices:
    """Tells people what was learnt. `options` says whether, and so does each person."""

    def __init__(self, parts: Parts, options: MemoryOptions | None) -> None:
        self._parts = parts
        self._on = bool(options and options.notices)

    async def __call__(self, tx: Transaction, subject: str, chat_key: str, facts: Sequence[str]) -> None:
        """Put a notice into the outbox, inside the transaction that keeps the facts."""
        parts = self._parts
        if not self._on or parts.tell is None or await tx.one(_QUIET, {"user_id": subject}) is not None:
            return
        words = parts.translate(await self._language(tx, subject), NOTICE)
        await parts.tell(tx, chat_key, subject, words.format(facts="; ".join(facts)))

    async def _language(self, tx: Transaction, subject: str) -> str:
        """What the person chose, else what they last wrote in, else the bot's default."""
        row = await tx.one(_LANGUAGE, {"user_id": subject})
        known = (row["language"] or json.loads(row["profile"]).get("bot", {}).get("language")) if row else None
        return str(known or self._parts.settings.default_language)
