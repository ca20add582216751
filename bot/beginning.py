"""What an update begins with, in one read: epochs, what its people chose, and whether an earlier run has stored its answer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.fence import SubjectFence
from bot.ports import Database, Marks, Row
from bot.values import Update

_BEGIN = (
    "SELECT (SELECT epoch FROM subjects WHERE agent_id = :agent_id AND subject = :sender) AS sender_epoch,"
    " (SELECT epoch FROM subjects WHERE agent_id = :agent_id AND subject = :chat) AS chat_epoch,"
    " (SELECT language FROM users WHERE agent_id = :agent_id AND user_id = :sender) AS language,"
    " (SELECT profile FROM users WHERE agent_id = :agent_id AND user_id = :sender) AS profile,"
    " (SELECT language FROM users WHERE agent_id = :agent_id AND user_id = :room) AS room_language,"
    " (SELECT state FROM outbox WHERE agent_id = :agent_id AND id = :answer) AS answer"
)


@dataclass(frozen=True, slots=True)
class Beginning:
    """`marks` are the epochs; `language` is what the person chose, `room_language` what the group did. `answered`: by an earlier run."""

    marks: Marks
    language: str | None
    profile: Mapping[str, Any]
    room_language: str | None
    answered: bool


async def begin(database: Database, fence: SubjectFence, update: Update, *, answer_id: str) -> Beginning:
    """What an update begins with. Who has no epoch is given one, and then all is read again: no epoch is younger than what goes with it."""
    params = {
        "sender": update.sender or "",
        "chat": update.chat_key,
        "room": (update.room or update.chat_key) if update.is_group else "",
        "answer": answer_id,
    }
    row = await _read(database, params)
    found = {update.sender: row["sender_epoch"], update.chat_key: row["chat_epoch"]}
    marks = {subject: epoch for subject, epoch in found.items() if subject and epoch is not None}
    subjects = [subject for subject in found if subject]
    if len(marks) < len(subjects):
        marks = dict(await fence.mark(*subjects))
        row = await _read(database, params)
    profile = json.loads(row["profile"]) if row["profile"] else {}
    return Beginning(marks, row["language"], profile, row["room_language"], row["answer"] is not None)


async def _read(database: Database, params: Mapping[str, Any]) -> Row:
    row = await database.one(_BEGIN, params)
    assert row is not None
    return row
