"""Inbox, outbox and jobs: three queues of one form, in tables, so that nothing that was accepted is lost when the process ends.

A row is put once for each id, claimed by one worker at a time in the order of its line (a chat, or a person), and then done, put back, or
given up after a few attempts. A claim is a lease: the worker renews it, and a row of a worker that died is claimed again when it ends.
What was done keeps its id alone, so that a redelivery is known; what it said is overwritten.
"""

import asyncio
import itertools
import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bot.ports import Database, Row, Transaction

LEASE_MS = 30_000
RENEW_SECONDS = 10.0
MOST_ATTEMPTS = 3
KEEP_DONE_MS = 8 * 86_400_000  # platforms redeliver for up to seven days
BACK_OFF_MS = (0, 2_000, 15_000)

Table = Literal["inbox", "outbox", "jobs"]


def now_ms() -> int:
    """UTC milliseconds."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A claimed row. `attempts` counts this one; `payload` is what was put."""

    id: str
    kind: str
    line: str
    user_id: str
    payload: Mapping[str, Any]
    attempts: int


class Queue:
    """One of the three tables. `put` inside a transaction; the rest opens its own."""

    def __init__(self, database: Database, table: Table, *, clock: Callable[[], int] = now_ms) -> None:
        self._database = database
        self._table = table
        self._clock = clock
        self._worker = uuid.uuid4().hex
        self._seq = itertools.count(time.time_ns())
        self._sql = _sql(table)
        self.wake = asyncio.Event()

    async def put(
        self,
        tx: Transaction,
        entry_id: str,
        *,
        kind: str,
        line: str,
        payload: Mapping[str, Any],
        user_id: str = "",
        wait_ms: int = 0,
    ) -> bool:
        """Add a row; False where this id was there before. Call `notify` once the transaction is through."""
        row = await tx.one(
            self._sql["put"],
            {
                "id": entry_id,
                "kind": kind,
                "line": line,
                "user_id": user_id,
                "payload": json.dumps(payload, ensure_ascii=False),
                "seq": next(self._seq),
                "due_at": self._clock() + wait_ms,
            },
        )
        return row is not None

    def notify(self) -> None:
        """Wake who waits for a row."""
        self.wake.set()

    async def claim(self, *, urgent: tuple[str, ...] = ()) -> Entry | None:
        """The next row that may run: the oldest whose line has none before it. A row of an `urgent` kind passes its line."""
        now = self._clock()
        async with self._database.transaction() as tx:
            row = await tx.one(
                self._sql["claim"],
                {
                    "now": now,
                    "until": now + LEASE_MS,
                    "worker": self._worker,
                    "urgent": urgent[0] if urgent else "",
                    "urgent_too": urgent[1] if len(urgent) > 1 else "",
                },
            )
        return _entry(row) if row else None

    async def waiting(self, kind: str | None = None) -> int:
        """How many rows are not done, of one kind or of all."""
        row = await self._database.one(self._sql["waiting_kind" if kind else "waiting"], {"kind": kind or ""})
        return int(row["n"]) if row else 0

    async def next_due_ms(self) -> int | None:
        """Milliseconds until the next row that waits for its time, or None where none does."""
        row = await self._database.one(self._sql["next_due"])
        return None if row is None or row["due_at"] is None else max(0, int(row["due_at"]) - self._clock())

    async def hurry(self, kind: str | None = None) -> None:
        """End the waiting time of rows that were put with one."""
        async with self._database.transaction() as tx:
            await tx.run(self._sql["hurry_kind" if kind else "hurry"], {"now": self._clock(), "kind": kind or ""})
        self.notify()

    async def done(self, entry_id: str, *, tx: Transaction | None = None) -> None:
        """Mark a row as done, and overwrite what it said."""
        await self._write("done", {"id": entry_id, "now": self._clock()}, tx)

    async def release(self, entry_id: str, *, attempts: int, later: bool = True) -> bool:
        """Put a row back after a failure, with a growing wait; True where it is given up after its last attempt.

        `later=False` gives a row back that was not tried (the process stops): its attempt does not count.
        """
        if later and attempts >= MOST_ATTEMPTS:
            await self._write("failed", {"id": entry_id, "now": self._clock()}, None)
            return True
        wait = BACK_OFF_MS[min(attempts, len(BACK_OFF_MS) - 1)] if later else 0
        await self._write(
            "release", {"id": entry_id, "due_at": self._clock() + wait, "attempts": attempts if later else attempts - 1}, None
        )
        return False

    async def renew(self) -> None:
        """Prolong the leases of this worker's claims."""
        await self._write("renew", {"worker": self._worker, "until": self._clock() + LEASE_MS}, None)

    async def prune(self) -> None:
        """Forget rows that were done so long ago that no platform sends them again."""
        await self._write("prune", {"before": self._clock() - KEEP_DONE_MS}, None)

    async def forget(self, tx: Transaction, user_id: str) -> int:
        """Erase what rows of a person (or of a private chat) say; a row's id stays, so that a redelivery is not taken for new."""
        return await tx.run(self._sql["forget"], {"user_id": user_id})

    async def _write(self, name: str, params: Mapping[str, Any], tx: Transaction | None) -> None:
        if tx is not None:
            await tx.run(self._sql[name], params)
            return
        async with self._database.transaction() as own:
            await own.run(self._sql[name], params)


def _entry(row: Row) -> Entry:
    return Entry(row["id"], row["kind"], row["line"], row["user_id"], json.loads(row["payload"]), int(row["attempts"]))


def _sql(table: Table) -> dict[str, str]:
    mine = f"{table} SET"
    this = "WHERE agent_id = :agent_id AND id = :id"
    open_rows = "agent_id = :agent_id AND state IN ('new', 'claimed')"
    columns = "id, kind, line, user_id, payload, attempts"
    return {
        "put": f"INSERT INTO {table} (agent_id, id, kind, line, user_id, payload, state, seq, due_at, attempts, claimed_by, claimed_until)"
        " VALUES (:agent_id, :id, :kind, :line, :user_id, :payload, 'new', :seq, :due_at, 0, '', 0)"
        " ON CONFLICT (agent_id, id) DO NOTHING RETURNING id",
        "claim": f"UPDATE {mine} state = 'claimed', attempts = attempts + 1, claimed_by = :worker, claimed_until = :until"
        f" WHERE agent_id = :agent_id AND id = (SELECT mine.id FROM {table} mine WHERE mine.agent_id = :agent_id"
        " AND (mine.state = 'new' OR (mine.state = 'claimed' AND mine.claimed_until < :now)) AND mine.due_at <= :now"
        " AND (mine.kind IN (:urgent, :urgent_too) OR NOT EXISTS"
        f" (SELECT 1 FROM {table} before WHERE before.agent_id = mine.agent_id AND before.line = mine.line"
        " AND before.state IN ('new', 'claimed') AND before.seq < mine.seq AND before.kind NOT IN (:urgent, :urgent_too)))"
        f" ORDER BY mine.seq LIMIT 1) RETURNING {columns}",
        "waiting": f"SELECT count(*) AS n FROM {table} WHERE {open_rows}",
        "waiting_kind": f"SELECT count(*) AS n FROM {table} WHERE {open_rows} AND kind = :kind",
        "next_due": f"SELECT min(due_at) AS due_at FROM {table} WHERE agent_id = :agent_id AND state = 'new'",
        "hurry": f"UPDATE {mine} due_at = :now WHERE agent_id = :agent_id AND state = 'new' AND due_at > :now",
        "hurry_kind": f"UPDATE {mine} due_at = :now WHERE agent_id = :agent_id AND state = 'new' AND due_at > :now AND kind = :kind",
        "done": f"UPDATE {mine} state = 'done', payload = '', due_at = :now {this}",
        "failed": f"UPDATE {mine} state = 'failed', payload = '', due_at = :now {this}",
        "release": f"UPDATE {mine} state = 'new', due_at = :due_at, attempts = :attempts, claimed_by = '', claimed_until = 0 {this}",
        "renew": f"UPDATE {mine} claimed_until = :until WHERE agent_id = :agent_id AND state = 'claimed' AND claimed_by = :worker",
        "prune": f"DELETE FROM {table} WHERE agent_id = :agent_id AND state IN ('done', 'failed') AND due_at < :before",
        "forget": f"UPDATE {mine} state = 'done', payload = '', user_id = '', line = ''"
        " WHERE agent_id = :agent_id AND (user_id = :user_id OR line = :user_id)",
    }
