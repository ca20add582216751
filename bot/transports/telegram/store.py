"""What Telegram needs to remember: what was sent for each letter, which chats it may not write to, what was set at the server."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.ports import Database, Reader, Transaction
from bot.values import Letter

KEEP_MS = 8 * 86_400_000  # people can edit for two days; the outbox knows its rows for eight

_SAVE = (
    "INSERT INTO telegram_replies (agent_id, letter, chat_key, user_id, question, asked, parts, sent_at)"
    " VALUES (:agent_id, :letter, :chat_key, :user_id, :question, :asked, :parts, :now)"
    " ON CONFLICT (agent_id, letter) DO UPDATE SET parts = excluded.parts, user_id = excluded.user_id, question = excluded.question,"
    " asked = excluded.asked"
)
_PARTS = "SELECT parts FROM telegram_replies WHERE agent_id = :agent_id AND letter = :letter"
_LAST = (
    "SELECT question, asked, parts FROM telegram_replies WHERE agent_id = :agent_id AND chat_key = :chat_key AND user_id = :user_id"
    " AND question > 0 ORDER BY question DESC, sent_at DESC LIMIT 1"
)
_PRUNE = "DELETE FROM telegram_replies WHERE agent_id = :agent_id AND sent_at < :before"
_STAND = (
    "INSERT INTO telegram_chats (agent_id, chat_key, present, told, updated_at) VALUES (:agent_id, :chat_key, :present, 0, :now)"
    " ON CONFLICT (agent_id, chat_key) DO UPDATE SET present = excluded.present, updated_at = excluded.updated_at"
)
_TELL = (
    "INSERT INTO telegram_chats (agent_id, chat_key, present, told, updated_at) VALUES (:agent_id, :chat_key, 1, 1, :now)"
    " ON CONFLICT (agent_id, chat_key) DO UPDATE SET told = 1"
)
_TOLD = "SELECT told FROM telegram_chats WHERE agent_id = :agent_id AND chat_key = :chat_key"
_ABSENT = "SELECT chat_key FROM telegram_chats WHERE agent_id = :agent_id AND present = 0"
_SETTING = "SELECT value FROM telegram_settings WHERE agent_id = :agent_id AND name = :name"
_SET = (
    "INSERT INTO telegram_settings (agent_id, name, value) VALUES (:agent_id, :name, :value)"
    " ON CONFLICT (agent_id, name) DO UPDATE SET value = excluded.value"
)
_MINE = "agent_id = :agent_id AND (user_id = :user_id OR chat_key = :user_id)"


@dataclass(frozen=True, slots=True)
class Part:
    """A message that was sent: `final` where it says what it is to say, else it is shown while the answer is written."""

    message: int
    final: bool = True


@dataclass(frozen=True, slots=True)
class Answered:
    """The last message that a person was answered in a chat, a digest of it, and the messages of the answer."""

    question: int
    asked: str
    parts: tuple[Part, ...]


class Store:
    """The tables of this transport. `absent` has the chats that it may not write to, held in RAM too."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock
        self.absent: set[str] = set()

    async def open(self) -> None:
        """Read what is held in RAM, and let go what is too old to matter."""
        self.absent = {str(row["chat_key"]) for row in await self._database.all(_ABSENT)}
        await self._database.write(_PRUNE, {"before": self._clock() - KEEP_MS})

    async def parts(self, letter_id: str) -> list[Part]:
        """What was sent of a letter."""
        row = await self._database.one(_PARTS, {"letter": letter_id})
        return _parts(row["parts"]) if row else []

    async def save(self, letter: Letter, parts: Sequence[Part]) -> None:
        """Keep what was sent of a letter."""
        question = int(letter.question) if letter.question and letter.question.isdigit() else 0
        params = {
            "letter": letter.id,
            "chat_key": letter.chat_key,
            "user_id": letter.user_id,
            "question": question,
            "asked": letter.asked,
            "parts": json.dumps([[part.message, int(part.final)] for part in parts]),
            "now": self._clock(),
        }
        await self._database.write(_SAVE, params)

    async def last(self, chat_key: str, user_id: str) -> Answered | None:
        """The last that a person was answered in a chat."""
        row = await self._database.one(_LAST, {"chat_key": chat_key, "user_id": user_id})
        return Answered(int(row["question"]), row["asked"], tuple(_parts(row["parts"]))) if row else None

    async def stand(self, chat_key: str, *, present: bool) -> None:
        """Note whether the bot may write to a chat. What does not change is not written."""
        if present == (chat_key not in self.absent):
            return
        await self._database.write(_STAND, {"chat_key": chat_key, "present": int(present), "now": self._clock()})
        (self.absent.discard if present else self.absent.add)(chat_key)

    async def was_told(self, chat_key: str) -> bool:
        """Whether a group has been told how to reach the bot."""
        row = await self._database.one(_TOLD, {"chat_key": chat_key})
        return row is not None and bool(row["told"])

    async def note_told(self, chat_key: str) -> None:
        """Note that it has."""
        await self._database.write(_TELL, {"chat_key": chat_key, "now": self._clock()})

    async def setting(self, name: str) -> str | None:
        """What was last set at the server under a name."""
        row = await self._database.one(_SETTING, {"name": name})
        return row["value"] if row else None

    async def keep_setting(self, name: str, value: str) -> None:
        """Note what was set."""
        await self._database.write(_SET, {"name": name, "value": value})


def _parts(text: str) -> list[Part]:
    return [Part(int(message), bool(final)) for message, final in json.loads(text)]


# ---------------------------------------------------------------------------------------------- personal data, chats that move


async def export(reader: Reader, user_id: str) -> list[dict[str, Any]]:
    """Where a person was answered, and when: the numbers of messages, no words."""
    rows = await reader.all(
        f"SELECT chat_key, question, sent_at FROM telegram_replies WHERE {_MINE} ORDER BY sent_at", {"user_id": user_id}
    )
    return [{"chat": row["chat_key"], "message": row["question"], "at": row["sent_at"]} for row in rows]


async def erase(tx: Transaction, user_id: str) -> int:
    """Delete it. That a person has blocked the bot goes too: the server says it again when it matters."""
    await tx.run("DELETE FROM telegram_chats WHERE agent_id = :agent_id AND chat_key = :user_id", {"user_id": user_id})
    return await tx.run(f"DELETE FROM telegram_replies WHERE {_MINE}", {"user_id": user_id})


async def move(tx: Transaction, old: str, new: str) -> None:
    """A group's id has changed. The numbers of its messages begin anew, so those of old replies go; that it was told stays."""
    await tx.run("DELETE FROM telegram_replies WHERE agent_id = :agent_id AND chat_key = :old", {"old": old})
    await tx.run(
        "INSERT INTO telegram_chats (agent_id, chat_key, present, told, updated_at) SELECT agent_id, CAST(:new AS TEXT), 1, told,"
        " updated_at FROM telegram_chats WHERE agent_id = :agent_id AND chat_key = :old ON CONFLICT (agent_id, chat_key) DO NOTHING",
        {"old": old, "new": new},
    )
    await tx.run("DELETE FROM telegram_chats WHERE agent_id = :agent_id AND chat_key = :old", {"old": old})
