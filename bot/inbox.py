"""Inbox, outbox and jobs: three queues of one form, in tables, so that nothing that was accepted is lost when the process ends.

A row is put once for each id, claimed by one worker at a time in the order of its line (a chat, or a person), and then done, put back, or
given up after a few attempts. A claim is a lease: the worker renews it, and a row of a worker that died is claimed again when it ends.
What was done keeps its id alone, so that a redelivery is known; what it said is overwritten.
"""

import asyncio
import contextlib
import itertools
import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bot.ports import Database, Reader, Row, Transaction
from bot.values import Job

LEASE_MS = 30_000
RENEW_SECONDS = 10.0
MOST_ATTEMPTS = 3
KEEP_DONE_MS = 8 * 86_400_000  # platforms redeliver for up to seven days
IDLE_POLL_SECONDS = 0.2
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
        self.table = table
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

    async def waiting(self, *, kind: str | None = None, line: str | None = None) -> int:
        """How many rows are not done: of one kind, of one line, or of all."""
        name = "waiting_kind" if kind else "waiting_line" if line else "waiting"
        row = await self._database.one(self._sql[name], {"kind": kind or "", "line": line or ""})
        return int(row["n"]) if row else 0

    async def state(self, entry_id: str) -> str | None:
        """`new`, `claimed`, `done` or `failed`; None for a row that is not there."""
        row = await self._database.one(self._sql["state"], {"id": entry_id})
        return None if row is None else str(row["state"])

    async def next_due_ms(self) -> int | None:
        """Milliseconds until the next row that waits for its time, or None where none does."""
        row = await self._database.one(self._sql["next_due"])
        return None if row is None or row["due_at"] is None else max(0, int(row["due_at"]) - self._clock())

    async def due_now(self, entry_id: str) -> None:
        """End the waiting time of one row."""
        await self._write("due_now", {"id": entry_id, "now": self._clock()}, None)
        self.notify()

    async def hurry(self, kind: str | None = None) -> None:
        """End the waiting time of rows that were put with one."""
        async with self._database.transaction() as tx:
            await tx.run(self._sql["hurry_kind" if kind else "hurry"], {"now": self._clock(), "kind": kind or ""})
        self.notify()

    async def done(self, entry_id: str, *, tx: Transaction | None = None) -> None:
        """Mark a row as done, and overwrite what it said."""
        await self._write("done", {"id": entry_id, "now": self._clock()}, tx)

    async def failed(self, entry_id: str) -> None:
        """Give a row up, and overwrite what it said."""
        await self._write("failed", {"id": entry_id, "now": self._clock()}, None)

    async def retry(self, entry: Entry) -> bool:
        """Put a row back after a failure, with a growing wait; False where that was its last attempt and it is given up."""
        if entry.attempts >= MOST_ATTEMPTS:
            await self.failed(entry.id)
            return False
        due_at = self._clock() + BACK_OFF_MS[min(entry.attempts, len(BACK_OFF_MS) - 1)]
        await self._write("release", {"id": entry.id, "due_at": due_at, "attempts": entry.attempts}, None)
        return True

    async def release(self, entry: Entry, *, wait_ms: int = 0) -> None:
        """Give a row back that was not tried, as when the process stops: its attempt does not count."""
        params = {"id": entry.id, "due_at": self._clock() + wait_ms, "attempts": entry.attempts - 1}
        await self._write("release", params, None)

    async def renew(self) -> None:
        """Prolong the leases of this worker's claims."""
        await self._write("renew", {"worker": self._worker, "until": self._clock() + LEASE_MS}, None)

    async def prune(self) -> None:
        """Forget rows that were done so long ago that no platform sends them again."""
        await self._write("prune", {"before": self._clock() - KEEP_DONE_MS}, None)

    async def forget(self, tx: Transaction, user_id: str) -> int:
        """Erase what rows of a person (or of a private chat) say; a row's id stays, so that a redelivery is not taken for new."""
        row = await tx.one(self._sql["said"], {"user_id": user_id})
        await tx.run(self._sql["forget"], {"user_id": user_id})
        return int(row["n"]) if row else 0

    async def said_by(self, reader: Reader, user_id: str) -> list[Any]:
        """What rows of a person hold that is not done, for their export."""
        rows = await reader.all(self._sql["export"], {"user_id": user_id})
        return [json.loads(row["payload"]) for row in rows]

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
        "waiting_line": f"SELECT count(*) AS n FROM {table} WHERE {open_rows} AND line = :line",
        "state": f"SELECT state FROM {table} {this}",
        "waiting_kind": f"SELECT count(*) AS n FROM {table} WHERE {open_rows} AND kind = :kind",
        "next_due": f"SELECT min(due_at) AS due_at FROM {table} WHERE agent_id = :agent_id AND state = 'new'",
        "due_now": f"UPDATE {mine} due_at = :now {this} AND state = 'new'",
        "hurry": f"UPDATE {mine} due_at = :now WHERE agent_id = :agent_id AND state = 'new' AND due_at > :now",
        "hurry_kind": f"UPDATE {mine} due_at = :now WHERE agent_id = :agent_id AND state = 'new' AND due_at > :now AND kind = :kind",
        "done": f"UPDATE {mine} state = 'done', payload = '', due_at = :now {this}",
        "failed": f"UPDATE {mine} state = 'failed', payload = '', due_at = :now {this}",
        "release": f"UPDATE {mine} state = 'new', due_at = :due_at, attempts = :attempts, claimed_by = '', claimed_until = 0 {this}",
        "renew": f"UPDATE {mine} claimed_until = :until WHERE agent_id = :agent_id AND state = 'claimed' AND claimed_by = :worker",
        "prune": f"DELETE FROM {table} WHERE agent_id = :agent_id AND state IN ('done', 'failed') AND due_at < :before",
        "forget": f"UPDATE {mine} state = 'done', payload = '', user_id = '', line = ''"
        " WHERE agent_id = :agent_id AND (user_id = :user_id OR line = :user_id)",
        "export": f"SELECT payload FROM {table} WHERE agent_id = :agent_id AND payload <> ''"
        " AND (user_id = :user_id OR line = :user_id) ORDER BY seq",
        "said": f"SELECT count(*) AS n FROM {table} WHERE agent_id = :agent_id AND payload <> ''"
        " AND (user_id = :user_id OR line = :user_id)",
    }


class JobQueue:
    """The Jobs port over the `jobs` table: each job bears the epoch that its subject had when it was queued."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.settled = asyncio.Condition()

    async def put(self, tx: Transaction, kind: str, subject: str, payload: Mapping[str, Any], *, wait_ms: int = 0) -> None:
        """Queue a job inside a transaction; it starts when its time has come, after the earlier ones of its subject."""
        row = await tx.one("SELECT epoch FROM subjects WHERE agent_id = :agent_id AND subject = :subject", {"subject": subject})
        marks = {subject: int(row["epoch"])} if row else {}
        body = {"payload": payload, "marks": marks}
        await self.queue.put(tx, uuid.uuid4().hex, kind=kind, line=subject, user_id=subject, payload=body, wait_ms=wait_ms)
        self.queue.notify()

    async def idle(self, kind: str | None = None) -> None:
        """Run what waits, its delay ended, and return when no job (of this kind) is left to run."""
        while await self.queue.waiting(kind=kind):
            await self.queue.hurry(kind)
            async with self.settled:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.settled.wait(), IDLE_POLL_SECONDS)

    async def finished(self) -> None:
        """Told by the worker after each job."""
        async with self.settled:
            self.settled.notify_all()


def job_of(entry: Entry) -> Job:
    """The job that a claimed row of `jobs` is."""
    return Job(entry.id, entry.kind, entry.line, entry.payload["payload"], entry.payload["marks"], entry.attempts)
