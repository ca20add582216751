"""Takes back what an export holds of memory: whatever the file says, by the rules of every other way in."""

import re
import secrets
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bot import MemoryOptions, Transaction

from .changes import old_text
from .facts import one_line, why_not, why_not_keyed
from .store import Draft

REFUSED = "refused: "
FULL = "FULL"  # there is no room below the cap, and what is held already stays
LARGEST = 1 << 62

_COLUMNS = "kind, key, value, source, evidence, pinned, created_at, updated_at, expires_at"
_NAMED = ", ".join(f":{name}" for name in _COLUMNS.split(", "))
_FACT = (
    f"INSERT INTO facts (agent_id, subject, namespace, id, stated, {_COLUMNS})"
    f" VALUES (:agent_id, :subject, :namespace, :id, :stated, {_NAMED})"
    " ON CONFLICT (agent_id, subject, namespace, kind, key) DO NOTHING"
)
_HELD = "SELECT kind, key FROM facts WHERE agent_id = :agent_id AND subject = :subject AND namespace = :namespace"
_CHANGE = (
    f"INSERT INTO memory_changes (agent_id, id, subject, namespace, batch, changed_at, fact_id, {_COLUMNS})"
    f" VALUES (:agent_id, :id, :subject, :namespace, :batch, :changed_at, :fact_id, {_NAMED})"
)
_CHANGED = "SELECT id FROM memory_changes WHERE agent_id = :agent_id AND subject = :subject LIMIT 1"
_CHOSEN = "SELECT paused FROM memory_subjects WHERE agent_id = :agent_id AND subject = :subject"
_CHOOSE = (
    "INSERT INTO memory_subjects (agent_id, subject, generation, writes, paused, quiet)"
    " VALUES (:agent_id, :subject, :generation, 0, :paused, :quiet)"
)


@dataclass(slots=True)
class Restoring:
    """The three kinds of data. `options` are those of the memory that it is for, once that is built.

    Each method returns how many rows came under the name of its kind, and how many were left out under `refused: CODE`; it raises
    ValueError, KeyError or TypeError for data of another form.
    """

    options: MemoryOptions = field(default_factory=MemoryOptions)

    async def facts(self, tx: Transaction, user_id: str, exported: Any) -> Mapping[str, int]:
        """Facts, the person's own and the youngest first where not all have room."""
        rows = [_checked(raw) | {"id": _id(raw["id"]), "stated": _number(raw["stated"])} for raw in exported]
        rows.sort(key=lambda row: (row["pinned"], row["source"] == "manual", row["updated_at"]), reverse=True)
        held: dict[str, set[tuple[str, str]]] = {}
        outcome: Counter[str] = Counter(facts=0)
        for row in rows:
            if reason := self._why_not(row):
                outcome[REFUSED + reason] += 1
                continue
            namespace = row["namespace"]
            if namespace not in held:
                there = await tx.all(_HELD, {"subject": user_id, "namespace": namespace})
                held[namespace] = {(one["kind"], one["key"]) for one in there}
            draft = Draft(one_line(row["value"]), row["key"] if row["kind"] == "keyed" else None)
            if (draft.kind, draft.row_key) in held[namespace]:
                continue
            if len(held[namespace]) >= self.options.max_facts:
                outcome[REFUSED + FULL] += 1
                continue
            held[namespace].add((draft.kind, draft.row_key))
            outcome["facts"] += await tx.run(_FACT, row | {"subject": user_id, "key": draft.row_key, "value": draft.value})
        return outcome

    async def changes(self, tx: Transaction, user_id: str, exported: Any) -> Mapping[str, int]:
        """What can be taken back, where nothing of this person can be taken back yet."""
        if await tx.one(_CHANGED, {"subject": user_id}):
            return {"replaced_facts": 0}
        outcome: Counter[str] = Counter(replaced_facts=0)
        for raw in exported:
            row = _checked(raw, added=True)
            if row["kind"] and (reason := self._why_not(row)):
                outcome[REFUSED + reason] += 1
                continue
            ids = {"id": uuid.uuid4().hex, "subject": user_id, "batch": _id(raw["batch"]), "fact_id": _id(raw["fact_id"])}
            texts = {name: one_line(row[name]) for name in ("key", "value")}
            outcome["replaced_facts"] += await tx.run(_CHANGE, row | ids | texts | {"changed_at": _number(raw["changed_at"])})
        return outcome

    async def choices(self, tx: Transaction, user_id: str, exported: Any) -> Mapping[str, int]:
        """What a person chose, unless they chose anew. Words that waited are not looked at again: see docs/export.md."""
        paused, quiet = bool(exported["paused"]), bool(exported["quiet"])
        if not (paused or quiet) or await tx.one(_CHOSEN, {"subject": user_id}) is not None:
            return {"memory": 0}
        params = {"subject": user_id, "generation": secrets.randbits(62), "paused": int(paused), "quiet": int(quiet)}
        return {"memory": await tx.run(_CHOOSE, params)}

    def _why_not(self, row: Mapping[str, Any]) -> str | None:
        longest = self.options.max_fact_length
        if row["kind"] == "keyed":
            return why_not_keyed(row["key"], row["value"], max_length=longest)
        return why_not(old_text(dict(row)), max_length=longest)


def _checked(row: Mapping[str, Any], *, added: bool = False) -> dict[str, Any]:
    """The columns of a row that both kinds have, each of its form. `added`: it may be one that replaced nothing, which has no text."""
    texts = {name: _text(row[name]) for name in ("namespace", "kind", "key", "value", "source", "evidence")}
    nothing = added and not texts["kind"]
    if not nothing and (texts["kind"] not in ("text", "keyed") or texts["source"] not in ("manual", "auto")):
        raise ValueError("a fact has a kind (text, keyed) and a source (manual, auto)")
    numbers = {name: _number(row[name]) for name in ("pinned", "created_at", "updated_at")}
    if numbers["pinned"] > 1:
        raise ValueError("pinned is 0 or 1")
    return {**texts, **numbers, "expires_at": None if row["expires_at"] is None else _number(row["expires_at"])}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} is no text")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < LARGEST:
        raise ValueError("a time or a count is a whole number, 0 or more")
    return value


def _id(value: object) -> str:
    if not isinstance(value, str) or re.fullmatch(r"[0-9a-f]{32}", value) is None:
        raise ValueError("an id is 32 hexadecimal digits")
    return value
