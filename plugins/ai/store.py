"""The `messages` table: what was said in each chat, and the replies by the turn that they answered."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bot import Database, Message, Reader, Row, Transaction, new_row_id

LATEST = 1 << 53  # milliseconds, far from now: a time that a file claims
_as_json = json.JSONEncoder(ensure_ascii=False).encode  # made once: json.dumps makes one for each call
_COLUMNS = "id, chat_key, user_id, role, content, created_at"
_HEAD = (
    "SELECT (SELECT id FROM messages WHERE agent_id = :agent_id AND chat_key = :chat_key ORDER BY seq DESC LIMIT 1) AS last,"
    " (SELECT MAX(seq) FROM messages WHERE agent_id = :agent_id AND chat_key = :chat_key) AS seq,"
    " (SELECT reply FROM messages WHERE agent_id = :agent_id AND chat_key = :chat_key AND turn_id = :turn_id"
    " AND role = 'assistant') AS reply,"
    " (SELECT epoch FROM subjects WHERE agent_id = :agent_id AND subject = :chat_key) AS epoch"
)
_NEWEST = f"SELECT {_COLUMNS} FROM messages WHERE agent_id = :agent_id AND chat_key = :chat_key ORDER BY seq DESC LIMIT :limit"
_NEWEST_BUT = _NEWEST.replace(" ORDER BY", " AND (message IS NULL OR message <> :without) ORDER BY")
_SEQ = "(SELECT COALESCE(MAX(seq), 0) + {n} FROM messages WHERE agent_id = :agent_id AND chat_key = :chat_key)"
_INSERT = "INSERT INTO messages (agent_id, id, chat_key, user_id, role, content, created_at, seq, turn_id, reply, message) VALUES "
_ADD = f"{_INSERT}(:agent_id, :id, :chat_key, :user_id, :role, :content, :created_at, {_SEQ.format(n=1)}, NULL, NULL, NULL)"
# Both messages of a turn in one statement: a trip to the database costs more than the rows.
_ADD_TURN = (
    f"{_INSERT}(:agent_id, :asked, :chat_key, :user_id, 'user', :question, :asked_at, {_SEQ.format(n=1)}, :turn_id, NULL, :message),"
    f" (:agent_id, :answered, :chat_key, :user_id, 'assistant', :answer, :answered_at, {_SEQ.format(n=2)}, :turn_id, :reply, :message)"
    " ON CONFLICT (agent_id, chat_key, turn_id, role) DO NOTHING"
)
_REVISED = (
    "DELETE FROM messages WHERE agent_id = :agent_id AND chat_key = :chat_key AND message = :message AND COALESCE(turn_id, '') <> :turn_id"
)
_PRUNE = (
    "DELETE FROM messages WHERE agent_id = :agent_id AND chat_key = :chat_key AND seq < (SELECT MIN(kept.seq) FROM"
    " (SELECT seq FROM messages WHERE agent_id = :agent_id AND chat_key = :chat_key ORDER BY seq DESC LIMIT :keep) kept)"
)
_EMPTY = "DELETE FROM messages WHERE agent_id = :agent_id AND chat_key = :chat_key"
_OF_PERSON = "agent_id = :agent_id AND (user_id = :user_id OR chat_key = :user_id)"
_CHATS = f"SELECT DISTINCT chat_key FROM messages WHERE {_OF_PERSON}"
_EXPORT = f"SELECT {_COLUMNS} FROM messages WHERE {_OF_PERSON} ORDER BY created_at, seq"
_THERE = (
    "SELECT id FROM messages WHERE agent_id = :agent_id AND chat_key = :chat_key AND user_id = :user_id AND role = :role"
    " AND content = :content AND created_at = :created_at"
)
_ERASE = f"DELETE FROM messages WHERE {_OF_PERSON}"
# The old rows come after those that the new chat may have already, in their own order; the ids of its messages mean others there.
_MOVE = (
    "UPDATE messages SET chat_key = :new, message = NULL, seq = seq + (SELECT COALESCE(MAX(there.seq), 0) FROM messages there"
    " WHERE there.agent_id = :agent_id AND there.chat_key = :new) WHERE agent_id = :agent_id AND chat_key = :old"
)
_COUNT = "SELECT COUNT(*) AS n FROM messages WHERE agent_id = :agent_id"
_COUNT_CHATS = "SELECT COUNT(DISTINCT chat_key) AS n FROM messages WHERE agent_id = :agent_id"


@dataclass(frozen=True, slots=True)
class Head:
    """Where a chat stands: the id of its last message, and the stored reply of a turn that was answered before.

    `seq` is the number of that message: they are counted up, whatever leaves. `epoch` is what the fence would mark now.
    """

    last: str | None
    reply: dict[str, Any] | None
    seq: int = 0
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What a turn leaves behind: the question, the answer, and the reply as it can be given again.

    `message` is the platform's id of the question; `revises`: it was edited, and this takes the place of the turn that it had.
    """

    question: Message
    answer: Message
    reply: dict[str, Any]
    turn_id: str | None = None
    message: str | None = None
    revises: bool = False


class Messages:
    """The MessageStore over the database; a turn is written with `add_turn`, inside its own transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def head(self, chat_key: str, turn_id: str | None) -> Head:
        """The end of a chat, and the reply that `turn_id` has got, if any: one trip to the database."""
        row = await self._database.one(_HEAD, {"chat_key": chat_key, "turn_id": turn_id or ""})
        assert row is not None, "a SELECT of values has one row"
        return Head(row["last"], json.loads(row["reply"]) if row["reply"] else None, int(row["seq"] or 0), row["epoch"])

    async def get_history(self, chat_key: str, limit: int, *, without: str | None = None) -> list[Message]:
        """The newest `limit` messages of a chat, oldest first; `without` those of the turn that answered this message."""
        params = {"chat_key": chat_key, "limit": limit}
        rows = await self._database.all(*((_NEWEST, params) if without is None else (_NEWEST_BUT, {**params, "without": without})))
        return [_message(row) for row in reversed(rows)]

    async def append_message(self, chat_key: str, message: Message) -> None:
        """Add one message that belongs to no turn."""
        row = {"id": new_row_id(), "chat_key": chat_key, "user_id": message.user_id, "role": message.role}
        async with self._database.transaction() as tx:
            await tx.run(_ADD, {**row, "content": message.content, "created_at": message.at})

    async def add_turn(self, tx: Transaction, chat_key: str, turn: Turn) -> str | None:
        """Add both messages of a turn inside a transaction; the id of the answer, or None where this turn was answered before."""
        answered = new_row_id()
        row = {
            "chat_key": chat_key,
            "user_id": turn.question.user_id,
            "asked": new_row_id(),
            "question": turn.question.content,
            "asked_at": turn.question.at,
            "answered": answered,
            "answer": turn.answer.content,
            "answered_at": turn.answer.at,
            "turn_id": turn.turn_id,
            "reply": _as_json(turn.reply),
            "message": turn.message,
        }
        if turn.revises and turn.message is not None:
            await tx.run(_REVISED, {"chat_key": chat_key, "message": turn.message, "turn_id": turn.turn_id or ""})
        return answered if await tx.run(_ADD_TURN, row) else None

    async def prune(self, tx: Transaction, chat_key: str, *, keep: int) -> int:
        """Delete the messages of a chat but for the newest `keep`; how many left."""
        return await tx.run(_PRUNE, {"chat_key": chat_key, "keep": keep})

    async def empty(self, tx: Transaction, chat_key: str) -> int:
        """Delete the messages of a chat; how many left."""
        return await tx.run(_EMPTY, {"chat_key": chat_key})


def _message(row: Row) -> Message:
    return Message(row["role"], row["content"], int(row["created_at"]), row["user_id"])


# ---------------------------------------------------------------------------------------------- personal data, chats that move, counts


async def export(reader: Reader, user_id: str) -> list[dict[str, Any]]:
    """What a person said, and what they were answered, in every chat."""
    rows = await reader.all(_EXPORT, {"user_id": user_id})
    return [{"chat": row["chat_key"], "role": row["role"], "content": row["content"], "at": row["created_at"]} for row in rows]


async def restore(tx: Transaction, user_id: str, exported: Any) -> int:
    """Take back what `export` gave, at the end of each chat; a message that is there already stays one."""
    came = 0
    for one in exported:
        message = {"chat_key": one["chat"], "role": one["role"], "content": one["content"], "created_at": one["at"]}
        texts = all(isinstance(message[name], str) for name in ("chat_key", "content"))
        if message["role"] not in ("user", "assistant") or not texts or type(one["at"]) is not int or not 0 <= one["at"] < LATEST:
            raise ValueError("a message has a chat, a role, a content and a time")
        if await tx.one(_THERE, {**message, "user_id": user_id}) is None:
            came += await tx.run(_ADD, {**message, "id": new_row_id(), "user_id": user_id})
    return came


async def erase(tx: Transaction, user_id: str) -> int:
    """Delete it; how many messages left."""
    return await tx.run(_ERASE, {"user_id": user_id})


async def chats(reader: Reader, user_id: str) -> Sequence[str]:
    """The chats that hold words of a person."""
    return [str(row["chat_key"]) for row in await reader.all(_CHATS, {"user_id": user_id})]


async def move(tx: Transaction, old: str, new: str) -> None:
    """A group's id has changed: its messages go along."""
    await tx.run(_MOVE, {"old": old, "new": new})


def counting(sql: str) -> Callable[[Reader], Any]:
    """A number for `/stats`."""

    async def count(reader: Reader) -> int:
        row = await reader.one(sql)
        return int(row["n"]) if row else 0

    return count


count_messages = counting(_COUNT)
count_chats = counting(_COUNT_CHATS)
