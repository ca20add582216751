"""What is still to be looked at for facts, behind what erasure it stands, and what extraction may cost in a day."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bot import Database, MemoryState, Reader, Transaction, new_row_id

from .evidence import ENOUGH, share

DAY_MS = 86_400_000
KEEP_MS = DAY_MS  # words that no extraction took within a day are dropped

_THIS = "agent_id = :agent_id AND subject = :subject"
_ENTER = (
    "INSERT INTO memory_subjects (agent_id, subject, generation, writes, paused) VALUES (:agent_id, :subject, :generation, 0, 0)"
    " ON CONFLICT (agent_id, subject) DO UPDATE SET writes = memory_subjects.writes + 1 RETURNING generation, paused"
)
_PASS = f"UPDATE memory_subjects SET writes = writes + 1 WHERE {_THIS} AND generation = :generation AND paused = 0 RETURNING generation"
_STATE = f"SELECT paused, quiet FROM memory_subjects WHERE {_THIS}"
_CHOOSE = f"UPDATE memory_subjects SET paused = :paused, quiet = :quiet WHERE {_THIS}"
_RENEW = f"UPDATE memory_subjects SET generation = :generation WHERE {_THIS}"
_ADD = (
    "INSERT INTO memory_queue (agent_id, id, subject, generation, said, replied, chat_key, created_at)"
    " VALUES (:agent_id, :id, :subject, :generation, :said, :replied, :chat_key, :now)"
)
_WAITING = f"SELECT id, generation, said, replied, chat_key, created_at FROM memory_queue WHERE {_THIS} ORDER BY created_at, id"
_DROP = f"DELETE FROM memory_queue WHERE {_THIS} AND id = :id"
_DROP_ALL = f"DELETE FROM memory_queue WHERE {_THIS}"
_DROP_OLD = "DELETE FROM memory_queue WHERE agent_id = :agent_id AND created_at < :before"
_SPEND = (
    "INSERT INTO memory_budget (agent_id, subject, day, calls, tokens) VALUES (:agent_id, :subject, :day, :calls, :tokens)"
    " ON CONFLICT (agent_id, subject) DO UPDATE SET"
    " calls = CASE WHEN memory_budget.day = excluded.day THEN memory_budget.calls + excluded.calls ELSE excluded.calls END,"
    " tokens = CASE WHEN memory_budget.day = excluded.day THEN memory_budget.tokens + excluded.tokens ELSE excluded.tokens END,"
    " day = excluded.day"
)
_BOOK = (
    f"{_SPEND} WHERE memory_budget.day <> excluded.day"
    " OR (memory_budget.calls < :most_calls AND memory_budget.tokens < :most_tokens) RETURNING calls"
)


@dataclass(frozen=True, slots=True)
class Words:
    """What a person said in one turn, and what the assistant replied. `generation` is that of the time they were said."""

    id: str
    generation: int
    said: str
    replied: str
    at: int
    chat_key: str = ""


class Queue:
    """The words that wait. Each method works inside the transaction that it is given, but for those that read."""

    def __init__(self, database: Database, *, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock
        self._last = 0

    async def enter(self, tx: Transaction, subject: str) -> tuple[int, bool]:
        """The generation of a subject, and whether its memory is paused; the row is made where there is none."""
        row = await tx.one(_ENTER, {"subject": subject, "generation": secrets.randbits(62)})
        return (int(row["generation"]), bool(row["paused"])) if row else (0, True)

    async def passes(self, tx: Transaction, subject: str, generation: int) -> bool:
        """Whether nothing was erased or paused since this generation was noted; the row is locked until the transaction ends."""
        return await tx.one(_PASS, {"subject": subject, "generation": generation}) is not None

    async def renew(self, tx: Transaction, subject: str) -> None:
        """All was forgotten: what waits is dropped, and what is under way will not pass."""
        await tx.run(_RENEW, {"subject": subject, "generation": secrets.randbits(62)})
        await tx.run(_DROP_ALL, {"subject": subject})

    async def state(self, reader: Reader, subject: str) -> MemoryState:
        """What a person chose."""
        row = await reader.one(_STATE, {"subject": subject})
        return MemoryState(bool(row["paused"]), bool(row["quiet"])) if row else MemoryState()

    async def choose(self, tx: Transaction, subject: str, chosen: MemoryState) -> None:
        """Keep what a person chose. What waits is dropped by a pause, and what is under way will not pass."""
        await self.enter(tx, subject)
        await tx.run(_CHOOSE, {"subject": subject, "paused": int(chosen.paused), "quiet": int(chosen.quiet)})
        if chosen.paused:
            await self.renew(tx, subject)

    async def add(self, tx: Transaction, subject: str, generation: int, *, said: str, replied: str, chat_key: str) -> str:
        """Let words wait; returns their id."""
        self._last = max(self._clock(), self._last + 1)
        words = {"said": said, "replied": replied, "chat_key": chat_key, "now": self._last}
        words_id = new_row_id()
        await tx.run(_ADD, {"id": words_id, "subject": subject, "generation": generation, **words})
        return words_id

    async def waiting(self, subject: str) -> list[Words]:
        """What waits for a subject, oldest first."""
        rows = await self._database.all(_WAITING, {"subject": subject})
        return [Words(r["id"], int(r["generation"]), r["said"], r["replied"], int(r["created_at"]), r["chat_key"]) for r in rows]

    async def drop(self, tx: Transaction, subject: str, words: Sequence[Words]) -> None:
        """These were looked at."""
        await tx.many(_DROP, [{"subject": subject, "id": one.id} for one in words])

    async def forget(self, tx: Transaction, subject: str, fact: str) -> None:
        """A person forgot a fact: words of theirs that wait and bear it out are not looked at any more, else they would bring it back."""
        for row in await tx.all(_WAITING, {"subject": subject}):
            if share(fact, row["said"]) >= ENOUGH:
                await tx.run(_DROP, {"subject": subject, "id": row["id"]})

    async def take(self, tx: Transaction, subject: str, words: Sequence[Words]) -> list[Words]:
        """Drop `words`, which were looked at, if all are still there; those that are. What was never in the table counts as there."""
        if len(words) == 1 and words[0].id:
            return list(words) if await tx.run(_DROP, {"subject": subject, "id": words[0].id}) else []
        there = {row["id"] for row in await tx.all(_WAITING, {"subject": subject})}
        left = [one for one in words if not one.id or one.id in there]
        if len(left) == len(words):
            await self.drop(tx, subject, [one for one in words if one.id])
        return left

    async def prune(self, tx: Transaction) -> None:
        """Drop words that nothing took for a day."""
        await tx.run(_DROP_OLD, {"before": self._clock() - KEEP_MS})

    async def book(self, tx: Transaction, subject: str, *, most_calls: int, most_tokens: int) -> bool:
        """Count one more call of today; False, and nothing counted, where a bound was reached."""
        bounds = {"most_calls": most_calls, "most_tokens": most_tokens}
        return await tx.one(_BOOK, {**self._spent(subject, 1, 0), **bounds}) is not None

    async def spend(self, tx: Transaction, subject: str, *, calls: int = 0, tokens: int = 0) -> None:
        """Add to what a subject's extraction cost today."""
        await tx.run(_SPEND, self._spent(subject, calls, tokens))

    def _spent(self, subject: str, calls: int, tokens: int) -> dict[str, Any]:
        return {"subject": subject, "day": self._clock() // DAY_MS, "calls": calls, "tokens": tokens}


# ---------------------------------------------------------------------------------------------- what the process asks of the tables


async def export(reader: Reader, user_id: str) -> dict[str, Any]:
    """What a person chose, and their words that still wait, as plain JSON values."""
    chosen = await reader.one(_STATE, {"subject": user_id})
    rows = await reader.all(_WAITING, {"subject": user_id})
    return {
        "paused": bool(chosen and chosen["paused"]),
        "quiet": bool(chosen and chosen["quiet"]),
        "waiting": [{"said": row["said"], "replied": row["replied"], "created_at": row["created_at"]} for row in rows],
    }


async def erase(tx: Transaction, user_id: str) -> int:
    """Remove a person from the three tables; how many waiting words there were."""
    for table in ("memory_subjects", "memory_budget"):
        await tx.run(f"DELETE FROM {table} WHERE {_THIS}", {"subject": user_id})
    return await tx.run(_DROP_ALL, {"subject": user_id})
