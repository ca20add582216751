"""What changed by itself in a person's memory, kept for 30 days so that they can take it back."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bot import Fact, Reader, Row, Transaction

from .facts import identity

KEEP_MS = 30 * 86_400_000

_MINE = "agent_id = :agent_id AND subject = :subject AND namespace = :namespace"
_OLD = "kind, key, value, source, evidence, pinned, created_at, updated_at, expires_at"
_ADDED = (
    f"INSERT INTO memory_changes (agent_id, id, subject, namespace, batch, changed_at, fact_id, {_OLD})"
    " VALUES (:agent_id, :id, :subject, :namespace, :batch, :now, :fact_id, '', '', '', '', '', 0, 0, 0, NULL)"
)
# The old row is copied where it stands, by its id.
_REPLACED = (
    f"INSERT INTO memory_changes (agent_id, id, subject, namespace, batch, changed_at, fact_id, {_OLD})"
    f" SELECT agent_id, :id, subject, namespace, :batch, CAST(:now AS BIGINT), :fact_id, {_OLD} FROM facts WHERE {_MINE} AND id = :old_id"
)
_LATEST = f"SELECT batch FROM memory_changes WHERE {_MINE} AND changed_at > :since ORDER BY changed_at DESC, id DESC LIMIT 1"
_BATCH = f"SELECT fact_id, {_OLD} FROM memory_changes WHERE {_MINE} AND batch = :batch ORDER BY changed_at, id"
_DROP_BATCH = f"DELETE FROM memory_changes WHERE {_MINE} AND batch = :batch"
_LISTED = (
    f"SELECT id, fact_id, changed_at, {_OLD} FROM memory_changes WHERE {_MINE} AND kind <> '' AND changed_at > :since"
    " ORDER BY changed_at, id"
)
_DROP_ONE = "DELETE FROM memory_changes WHERE agent_id = :agent_id AND subject = :subject AND id = :id"
_DROP_OF_ROW = (
    f"DELETE FROM memory_changes WHERE {_MINE} AND ((fact_id = :fact_id AND kind <> 'text')"
    " OR (CAST(:keyed AS BIGINT) = 1 AND kind = 'keyed' AND key = :key))"
)
_MOVE = "UPDATE memory_changes SET subject = :new WHERE agent_id = :agent_id AND subject = :old"
_DROP_ALL = f"DELETE FROM memory_changes WHERE {_MINE}"
_PRUNE = "DELETE FROM memory_changes WHERE agent_id = :agent_id AND changed_at <= :before"
_EXPORT = (
    f"SELECT namespace, batch, changed_at, fact_id, {_OLD} FROM memory_changes WHERE agent_id = :agent_id AND subject = :subject"
    " ORDER BY changed_at, id"
)
_ERASE = "DELETE FROM memory_changes WHERE agent_id = :agent_id AND subject = :subject"


@dataclass(frozen=True, slots=True)
class Step:
    """One row of a change: the fact that came, and the row that it replaced (None: it was only added)."""

    batch: str
    fact_id: str
    old: Row | None


class Changes:
    """The changes of one namespace; each method works inside the transaction that it is given, but for those that read."""

    def __init__(self, *, namespace: str, clock: Callable[[], int]) -> None:
        self._namespace = namespace
        self._clock = clock
        self._last = 0

    async def added(self, tx: Transaction, subject: str, batch: str, fact_id: str) -> None:
        """A fact came that replaced nothing."""
        await tx.run(_ADDED, self._of(subject) | {"id": uuid.uuid4().hex, "batch": batch, "fact_id": fact_id, "now": self._tick()})

    async def replaced(self, tx: Transaction, subject: str, batch: str, *, old_id: str, fact_id: str) -> None:
        """Keep the row with `old_id`, which `fact_id` takes the place of; called before it is changed or removed."""
        params = {"id": uuid.uuid4().hex, "batch": batch, "old_id": old_id, "fact_id": fact_id, "now": self._tick()}
        await tx.run(_REPLACED, self._of(subject) | params)

    async def take_latest(self, tx: Transaction, subject: str) -> list[Step]:
        """The steps of the last change that can still be taken back, which is then no longer kept."""
        params = self._of(subject) | {"since": self._clock() - KEEP_MS}
        latest = await tx.one(_LATEST, params)
        if latest is None:
            return []
        batch = self._of(subject) | {"batch": latest["batch"]}
        rows = await tx.all(_BATCH, batch)
        await tx.run(_DROP_BATCH, batch)
        return [Step(latest["batch"], row["fact_id"], row if row["kind"] else None) for row in rows]

    async def listed(self, reader: Reader, subject: str) -> list[Row]:
        """The facts that were replaced and can still be brought back, oldest change first."""
        return await reader.all(_LISTED, self._of(subject) | {"since": self._clock() - KEEP_MS})

    async def forget(self, tx: Transaction, subject: str, text: str) -> int:
        """A person forgot a fact: what was replaced and says the same is not kept either."""
        rows = [row for row in await self.listed(tx, subject) if identity(old_text(row)) == identity(text)]
        return sum([await tx.run(_DROP_ONE, {"subject": subject, "id": row["id"]}) for row in rows])

    async def forget_row(self, tx: Transaction, subject: str, fact: Fact) -> None:
        """A fact is forgotten: that it came cannot be taken back any more, and what its key was before is forgotten with it."""
        params = self._of(subject) | {"fact_id": fact.id, "keyed": int(fact.kind == "keyed"), "key": fact.key}
        await tx.run(_DROP_OF_ROW, params)

    async def forget_all(self, tx: Transaction, subject: str) -> int:
        """Nothing can be brought back any more; how many replaced facts there were."""
        rows = await self.listed(tx, subject)
        await tx.run(_DROP_ALL, self._of(subject))
        return len(rows)

    async def prune(self, tx: Transaction) -> None:
        """Drop what can no longer be taken back."""
        await tx.run(_PRUNE, {"before": self._clock() - KEEP_MS})

    def _tick(self) -> int:
        """Now, and later than the last one, so that the last change is known."""
        self._last = max(self._clock(), self._last + 1)
        return self._last

    def _of(self, subject: str) -> dict[str, Any]:
        return {"subject": subject, "namespace": self._namespace}


def old_text(row: Row) -> str:
    """How a replaced fact read."""
    return f"{row['key']}: {row['value']}" if row["kind"] == "keyed" else str(row["value"])


async def export(reader: Reader, user_id: str) -> list[dict[str, Any]]:
    """What can be taken back of a person's memory, as plain JSON values."""
    return [dict(row) for row in await reader.all(_EXPORT, {"subject": user_id})]


async def erase(tx: Transaction, user_id: str) -> int:
    """Remove it."""
    return await tx.run(_ERASE, {"subject": user_id})


async def move(tx: Transaction, old: str, new: str) -> None:
    """A room has another id: what changed there goes along."""
    await tx.run(_MOVE, {"old": old, "new": new})
