"""Where facts are kept: one statement per intent, in the SQL that both engines share."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from bot import Database, Fact, Reader, Row, Transaction

from .facts import identity, normalise, one_line

_COLUMNS = "id, subject, kind, key, value, source, created_at, updated_at, expires_at, pinned"  # in the order of Fact
_MINE = "agent_id = :agent_id AND subject = :subject AND namespace = :namespace"
_DEAD = "facts.expires_at <= excluded.updated_at"  # NULL, which is permanent, compares as false

_NOT_PAUSED = "NOT EXISTS (SELECT 1 FROM memory_subjects WHERE agent_id = :agent_id AND subject = :subject AND paused = 1)"

# Nothing is written for a person who paused it: no row comes back then. Restating renews: a life that is given, else the life that the
# fact had. A row whose life is over counts as none.
_STATE = f"""
INSERT INTO facts
    (agent_id, subject, namespace, kind, key, id, value, source, evidence, stated, pinned, created_at, updated_at, expires_at)
SELECT
    :agent_id, :subject, :namespace, :kind, :key, :id, :value, :source, :evidence, 1, 0,
    CAST(:now AS BIGINT), CAST(:now AS BIGINT), CAST(:expires_at AS BIGINT)
WHERE {_NOT_PAUSED}
ON CONFLICT (agent_id, subject, namespace, kind, key) DO UPDATE SET
    stated = CASE WHEN {_DEAD} THEN 1 ELSE facts.stated + 1 END,
    id = CASE WHEN {_DEAD} THEN excluded.id ELSE facts.id END,
    created_at = CASE WHEN {_DEAD} THEN excluded.created_at ELSE facts.created_at END,
    value = CASE WHEN {_DEAD} OR facts.kind = 'keyed' THEN excluded.value ELSE facts.value END,
    source = CASE WHEN {_DEAD} OR excluded.source = 'manual' THEN excluded.source ELSE facts.source END,
    evidence = CASE WHEN {_DEAD} OR excluded.source = 'manual' OR facts.kind = 'keyed' THEN excluded.evidence ELSE facts.evidence END,
    expires_at = CASE WHEN {_DEAD} OR excluded.expires_at IS NOT NULL OR facts.expires_at IS NULL THEN excluded.expires_at
        ELSE excluded.updated_at + facts.expires_at - facts.updated_at END,
    updated_at = excluded.updated_at
RETURNING stated, id"""

_HELD = f"SELECT {_COLUMNS} FROM facts WHERE {_MINE} ORDER BY updated_at, id"
_READ = f"SELECT {_COLUMNS} FROM facts WHERE {_MINE} AND {_NOT_PAUSED} ORDER BY updated_at, id"
# What is over the cap leaves in the transaction that went over it, and what has expired leaves with it. Extracted facts go before given
# ones, pinned ones last, and among equals those that were not stated for the longest time.
_OVER = f"""
{_MINE} AND id NOT IN (
    SELECT id FROM facts WHERE {_MINE} AND (expires_at IS NULL OR expires_at > :now)
    ORDER BY CASE WHEN pinned = 1 THEN 0 WHEN source = 'manual' THEN 1 ELSE 2 END, updated_at DESC, id DESC LIMIT :most
)"""
_TRIM = f"DELETE FROM facts WHERE {_OVER} RETURNING {_COLUMNS}"
_TRIM_STATED = f"DELETE FROM facts WHERE {_OVER} AND {_NOT_PAUSED} RETURNING {_COLUMNS}"
_EXPIRE = "DELETE FROM facts WHERE agent_id = :agent_id AND expires_at <= :now"
_FORGET_ONE = f"DELETE FROM facts WHERE {_MINE} AND id = :id"
_RENAME = (
    "UPDATE facts SET key = :key, value = :value, source = 'manual', evidence = 'edited', updated_at = CAST(:now AS BIGINT),"
    " expires_at = CAST(:now AS BIGINT) + expires_at - updated_at"
    f" WHERE {_MINE} AND id = :id RETURNING id"
)
_TAKEN = f"SELECT id, expires_at FROM facts WHERE {_MINE} AND kind = :kind AND key = :key"
_PIN = f"UPDATE facts SET pinned = :pinned WHERE {_MINE} AND id = :id"
_RESTORE = """
INSERT INTO facts
    (agent_id, subject, namespace, kind, key, id, value, source, evidence, stated, pinned, created_at, updated_at, expires_at)
VALUES
    (:agent_id, :subject, :namespace, :kind, :key, :id, :value, :source, :evidence, 1, :pinned, :created_at, :updated_at, :expires_at)
ON CONFLICT (agent_id, subject, namespace, kind, key) DO UPDATE SET value = excluded.value"""
_FORGET_KEY = f"DELETE FROM facts WHERE {_MINE} AND kind = :kind AND key = :key"
_FORGET_ALL = f"DELETE FROM facts WHERE {_MINE}"
_EXPORT = (
    f"SELECT namespace, evidence, stated, {_COLUMNS} FROM facts WHERE agent_id = :agent_id AND subject = :subject ORDER BY updated_at, id"
)
_ERASE = "DELETE FROM facts WHERE agent_id = :agent_id AND subject = :subject"
_COUNT = "SELECT count(*) AS n FROM facts WHERE agent_id = :agent_id"
_MOVE = (
    "UPDATE facts SET subject = :new WHERE agent_id = :agent_id AND subject = :old AND NOT EXISTS (SELECT 1 FROM facts there"
    " WHERE there.agent_id = facts.agent_id AND there.subject = :new AND there.namespace = facts.namespace AND there.kind = facts.kind"
    " AND there.key = facts.key)"
)


def now_ms() -> int:
    """UTC milliseconds."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Draft:
    """A fact before it has a row. `key` is None for a free text."""

    value: str
    key: str | None = None

    @property
    def kind(self) -> str:
        """Which of the two kinds of fact it is."""
        return "text" if self.key is None else "keyed"

    @property
    def row_key(self) -> str:
        """What makes it unique for its subject."""
        return identity(self.value) if self.key is None else normalise(self.key)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of drafts: those that were new and those that were known, by the ids of their rows, and who left for them."""

    new: Mapping[str, Draft] = field(default_factory=dict)
    known: Mapping[str, Draft] = field(default_factory=dict)
    evicted: tuple[Fact, ...] = ()
    paused: bool = False


class Facts:
    """The facts of one namespace. Methods that take a transaction write inside it; the others open their own."""

    def __init__(self, database: Database, *, namespace: str, max_facts: int, clock: Callable[[], int]) -> None:
        self._database = database
        self._namespace = namespace
        self._max_facts = max_facts
        self._clock = clock
        self._last = 0

    async def get_facts(self, subject: str) -> list[Fact]:
        """Live facts, oldest first. Those whose life is over are removed, not only left out."""
        return await self._live(await self._database.tuples(_HELD, self._of(subject)))

    async def read(self, subject: str) -> list[Fact]:
        """The same, but none of a person who paused their memory."""
        return await self._live(await self._database.tuples(_READ, self._of(subject)))

    async def _live(self, rows: Sequence[Sequence[Any]]) -> list[Fact]:
        now = self._clock()
        held = [_fact(row) for row in rows]
        live = [fact for fact in held if fact.expires_at is None or fact.expires_at > now]
        if len(live) < len(held):
            async with self._database.transaction() as tx:
                await self.expire(tx)
        return live

    async def save_fact(self, fact: Fact) -> bool:
        """Keep a fact as it is given, in a transaction of its own; True where it is new."""
        draft = Draft(fact.value, fact.key if fact.kind == "keyed" else None)
        life = None if fact.expires_at is None else fact.expires_at - self._clock()
        async with self._database.transaction() as tx:
            outcome = await self.say(tx, fact.subject, [draft], life_ms=life, source=fact.source, evidence="api")
        return bool(outcome.new)

    async def say(
        self,
        tx: Transaction,
        subject: str,
        drafts: Sequence[Draft],
        *,
        life_ms: int | None,
        source: str,
        evidence: str,
        most_new: int | None = None,
    ) -> Outcome:
        """State facts of a subject. No more than `most_new` are added, and what the cap does not hold is not new."""
        stated = {"source": source, "evidence": evidence}
        wanted = list(drafts) if most_new is None else await self._bounded(tx, subject, drafts, most_new)
        now = self._clock()
        statements = [(_STATE, self._row(subject, draft, life_ms) | stated) for draft in wanted]
        # all in one trip to the database; where memory is paused, none of them does anything
        *rows, trimmed = await tx.together([*statements, (_TRIM_STATED, self._of(subject) | {"now": now, "most": self._max_facts})])
        new: dict[str, Draft] = {}
        known: dict[str, Draft] = {}
        for draft, row in zip(wanted, rows, strict=True):
            if not row:
                return Outcome(paused=True)
            (new if row[0]["stated"] == 1 else known)[row[0]["id"]] = draft
        evicted = _evicted(trimmed, now)
        gone = {fact.id for fact in evicted}
        return Outcome(
            {id: draft for id, draft in new.items() if id not in gone}, known, tuple(fact for fact in evicted if fact.id not in new)
        )

    async def _bounded(self, tx: Transaction, subject: str, drafts: Sequence[Draft], most_new: int) -> list[Draft]:
        """The drafts that are held already, and so many of the others."""
        now = self._clock()
        found = await tx.together([(_TAKEN, self._of(subject) | {"kind": draft.kind, "key": draft.row_key}) for draft in drafts])
        kept: list[Draft] = []
        new: set[tuple[str, str]] = set()
        for draft, rows in zip(drafts, found, strict=True):
            fact = draft.kind, draft.row_key
            if fact not in new and not any(_is_live(row, now) for row in rows):
                if len(new) >= most_new:
                    continue
                new.add(fact)
            kept.append(draft)
        return kept

    def _row(self, subject: str, draft: Draft, life_ms: int | None) -> dict[str, Any]:
        now = self._tick()
        return self._of(subject) | {
            "kind": draft.kind,
            "key": draft.row_key,
            "id": uuid.uuid4().hex,
            "value": one_line(draft.value),
            "now": now,
            "expires_at": None if life_ms is None else now + life_ms,
        }

    async def find(self, tx: Transaction, subject: str, draft: Draft) -> str | None:
        """The id of the row that a draft would renew, if there is one."""
        row = await tx.one(_TAKEN, self._of(subject) | {"kind": draft.kind, "key": draft.row_key})
        return str(row["id"]) if row else None

    async def _trim(self, tx: Transaction, subject: str) -> list[Fact]:
        now = self._clock()
        rows = await tx.all(_TRIM, self._of(subject) | {"now": now, "most": self._max_facts})
        return _evicted(rows, now)

    async def rename(self, tx: Transaction, subject: str, fact_id: str, draft: Draft) -> bool:
        """Give a fact another text, which renews its life. Where another row says that already, this one leaves for it.

        False where there is none.
        """
        other = await self.find(tx, subject, draft)
        if other is not None and other != fact_id:
            return bool(await self.drop(tx, subject, fact_id))
        params = self._of(subject) | {"id": fact_id, "key": draft.row_key, "value": one_line(draft.value), "now": self._tick()}
        return await tx.one(_RENAME, params) is not None

    async def pin(self, tx: Transaction, subject: str, fact_id: str, pinned: bool) -> bool:
        """Let a fact go into every prompt, or no more."""
        return await tx.run(_PIN, self._of(subject) | {"id": fact_id, "pinned": int(pinned)}) > 0

    async def restore(self, tx: Transaction, subject: str, old: Row) -> list[Fact]:
        """Bring a row back as it was, a keyed one in place of the value that its key has now; who left to make room."""
        kept = ("kind", "key", "value", "source", "evidence", "pinned", "created_at", "updated_at", "expires_at")
        await tx.run(_RESTORE, self._of(subject) | {"id": uuid.uuid4().hex} | {name: old[name] for name in kept})
        return await self._trim(tx, subject)

    async def is_of(self, tx: Transaction, subject: str, fact_id: str, evidence: str) -> bool:
        """Whether a fact is as this change left it: whoever stated or edited it since then left another evidence."""
        row = await tx.one(f"SELECT evidence FROM facts WHERE {_MINE} AND id = :id", self._of(subject) | {"id": fact_id})
        return row is not None and row["evidence"] == evidence

    async def find_id(self, tx: Transaction, subject: str, fact_id: str) -> str | None:
        """The id of a fact that is still there."""
        row = await tx.one(f"SELECT id FROM facts WHERE {_MINE} AND id = :id", self._of(subject) | {"id": fact_id})
        return str(row["id"]) if row else None

    async def held(self, tx: Transaction, subject: str) -> list[Fact]:
        """All rows of a subject, read inside a transaction."""
        return [fact_of(row) for row in await tx.all(_HELD, self._of(subject))]

    async def drop(self, tx: Transaction, subject: str, fact_id: str) -> int:
        """Remove one fact by its id."""
        return await tx.run(_FORGET_ONE, self._of(subject) | {"id": fact_id})

    async def drop_keyed(self, tx: Transaction, subject: str, key: str) -> int:
        """Remove the value of a key."""
        return await tx.run(_FORGET_KEY, self._of(subject) | {"kind": "keyed", "key": normalise(key)})

    async def drop_all(self, tx: Transaction, subject: str) -> int:
        """Remove all facts of a subject; how many there were."""
        return await tx.run(_FORGET_ALL, self._of(subject))

    async def expire(self, tx: Transaction) -> int:
        """Remove every fact whose life is over, of whomever."""
        return await tx.run(_EXPIRE, {"now": self._clock()})

    def _of(self, subject: str) -> dict[str, Any]:
        return {"subject": subject, "namespace": self._namespace}

    def _tick(self) -> int:
        """Now, in milliseconds, and later than the last one: facts stated in one millisecond still have an order."""
        self._last = max(self._clock(), self._last + 1)
        return self._last


def _evicted(trimmed: Sequence[Row], now: int) -> list[Fact]:
    """Who left to make room: what had expired was none any more."""
    return [fact_of(row) for row in trimmed if _is_live(row, now)]


def _is_live(row: Row, now: int) -> bool:
    return row["expires_at"] is None or row["expires_at"] > now


def fact_of(row: Row) -> Fact:
    """The value of a row of `_COLUMNS`."""
    return _fact(tuple(row.values()))


# A frozen value is made by one object.__setattr__ a field. Every turn reads up to fifty facts, and filling the slots halves that time.
_SLOTS = [getattr(Fact, field.name).__set__ for field in fields(Fact)]


def _fact(row: Sequence[Any]) -> Fact:
    fact: Fact = object.__new__(Fact)
    a, b, c, d, e, f, g, h, i, j = _SLOTS
    id, subject, kind, key, value, source, created_at, updated_at, expires_at, pinned = row
    a(fact, id), b(fact, subject), c(fact, kind), d(fact, key), e(fact, value)
    f(fact, source), g(fact, created_at), h(fact, updated_at), i(fact, expires_at), j(fact, bool(pinned))
    return fact


# ---------------------------------------------------------------------------------------------- what the process asks of the table


async def export(reader: Reader, user_id: str) -> list[dict[str, Any]]:
    """A person's facts of every namespace, as plain JSON values."""
    return [dict(row) for row in await reader.all(_EXPORT, {"subject": user_id})]


async def erase(tx: Transaction, user_id: str) -> int:
    """Remove a person's facts of every namespace; how many there were."""
    return await tx.run(_ERASE, {"subject": user_id})


async def move(tx: Transaction, old: str, new: str) -> None:
    """Give a room's facts to the id that its chat has now; what that one knows already stays as it is."""
    await tx.run(_MOVE, {"old": old, "new": new})
    await erase(tx, old)


async def count(reader: Reader) -> int:
    """How many facts there are, of all."""
    row = await reader.one(_COUNT)
    return int(row["n"]) if row else 0
