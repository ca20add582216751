"""Inbox, outbox and jobs: three queues of one form, in tables, so that nothing that was accepted is lost when the process ends.

A row is put once for each id, claimed by one worker at a time in the order of its line (a chat, or a person), and then done, put back, or
given up after a few attempts. A claim is a lease: the worker renews it, and a row of a worker that died is claimed again when it ends.
What was done keeps its id alone, so that a redelivery is known; what it said is overwritten.
"""

import asyncio
import contextlib
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict, Unpack

from bot.fence import epoch_of
from bot.ports import Database, Params, Reader, Row, Transaction
from bot.values import Job

log = logging.getLogger(__name__)

LEASE_MS = 30_000
RENEW_SECONDS = 10.0
MOST_ATTEMPTS = 3
KEEP_DONE_MS = 8 * 86_400_000  # platforms redeliver for up to seven days
IDLE_POLL_SECONDS = 0.2
BACK_OFF_MS = (0, 2_000, 15_000)
NEVER = 2**62

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
    via: str
    payload: Mapping[str, Any]
    attempts: int


class NewRow(TypedDict):
    """What a row is put with. `via` names what a process needs to take it (a transport, a kind of job): others leave it."""

    kind: str
    line: str
    payload: Mapping[str, Any]
    user_id: NotRequired[str]
    via: NotRequired[str]
    wait_ms: NotRequired[int]


class Queue:
    """One of the three tables. `put` inside a transaction; the rest opens its own."""

    def __init__(self, database: Database, table: Table, *, clock: Callable[[], int] = now_ms) -> None:
        self._database = database
        self.table = table
        self._clock = clock
        self._worker = uuid.uuid4().hex
        self._seq = 0
        self._sql = _sql(table)
        self._due_at = NEVER  # when the next row comes due, as far as this process knows
        self._waits_until = 0  # until when who waits for a row does so, if nobody wakes them
        self._wake = asyncio.Event()

    async def put(self, tx: Transaction | None, entry_id: str, **row: Unpack[NewRow]) -> bool:
        """Add a row, with a `tx` of None in a transaction of its own; False where this id was there before.

        Call `notify` once the transaction is through.
        """
        return bool(await self._write("put", self._new(entry_id, row), tx))

    async def put_soon(self, tx: Transaction, entry_id: str, **row: Unpack[NewRow]) -> None:
        """The same where nobody needs to know whether it was new: it costs no trip to the database of its own."""
        await tx.soon(self._sql["put"], self._new(entry_id, row))

    async def put_claimed(self, tx: Transaction, entry_id: str, **row: Unpack[NewRow]) -> Entry | None:
        """Put a row that this worker has from the start, to be worked on as soon as the transaction is through; None where it cannot.

        Where others wait in its line it is put behind them, as `put` does, and one whose id was there before is as it was. The payload of
        the entry is the one that was given where the database has kept it as it was written, so it has to be of plain JSON values.
        """
        params = self._new(entry_id, row)
        rows = await tx.all(self._sql["put_claimed"], params | {"worker": self._worker, "until": self._clock() + LEASE_MS})
        if not rows or rows[0]["state"] != "claimed":
            return None
        return _entry(rows[0], row["payload"] if rows[0]["payload"] == params["payload"] else None)

    def _new(self, entry_id: str, row: NewRow) -> dict[str, Any]:
        # by the clock, so that what two processes put into one line keeps its order; above the last, so that it does where the clock stands
        self._seq = max(self._seq + 1, time.time_ns())
        wait_ms = row.get("wait_ms", 0)
        return {
            "id": entry_id,
            "kind": row["kind"],
            "line": row["line"],
            "user_id": row.get("user_id", ""),
            "via": row.get("via", ""),
            "payload": json.dumps(row["payload"], ensure_ascii=False),
            "seq": self._seq,
            "due_at": self._due_in(wait_ms) if wait_ms else self._clock(),
        }

    def _due_in(self, wait_ms: int) -> int:
        due_at = self._clock() + wait_ms
        self._due_at = min(self._due_at, due_at)
        if due_at < self._waits_until:
            self.notify()
        return due_at

    def notify(self) -> None:
        """Wake who waits for a row."""
        self._wake.set()

    def look(self) -> None:
        """Note that who looks now sees what was put until now: `wait` is for what comes later."""
        self._wake.clear()

    async def wait(self, seconds: float) -> bool:
        """Return when a row that can be claimed may be there: True where one was put or is free, False by the time alone.

        That time is over after so many seconds, or when a row comes due that this process knows of.
        """
        now = self._clock()
        left = min(seconds, max(self._due_at - now, 1) / 1000)
        self._waits_until = now + int(left * 1000)
        try:
            async with asyncio.timeout(left):  # wait_for of Python 3.11 can swallow a cancellation
                await self._wake.wait()
        except TimeoutError:
            pass
        finally:
            self._waits_until = 0
        return self._wake.is_set()

    async def look_ahead(self) -> None:
        """Find out when the next row comes due, whoever put it, so that `wait` knows."""
        self._due_at = NEVER
        if (left := await self.next_due_ms()) is not None:
            self._due_in(left)

    async def claim(self, *, urgent: tuple[str, ...] = (), only_urgent: bool = False, via: Collection[str] | None = None) -> Entry | None:
        """The next row that may run, as `claims` has it."""
        return next(iter(await self.claims(urgent=urgent, only_urgent=only_urgent, via=via)), None)

    async def claims(
        self, most: int = 1, *, urgent: tuple[str, ...] = (), only_urgent: bool = False, via: Collection[str] | None = None
    ) -> list[Entry]:
        """The next rows that may run, oldest first: those whose line has none before them. A row of an `urgent` kind passes its line.

        `via` is what this process has; None takes any row. One whose lease has ended counts as waiting. One that cannot be read is given
        up, and the next is taken.
        """
        name = "claim_urgent" if only_urgent else "claim"
        while True:
            now = self._clock()
            first, second = (*urgent, "", "")[:2]
            params = {
                "now": now,
                "until": now + LEASE_MS,
                "worker": self._worker,
                "urgent": first,
                "urgent_too": second,
                "any_via": int(via is None),
                "via": f"|{'|'.join(['', *(via or ())])}|",
                "most": most,
            }
            rows = await self._write(name, params)
            entries = [entry for row in sorted(rows, key=lambda row: int(row["seq"])) if (entry := await self._read(row)) is not None]
            if entries or not rows:
                return entries

    async def _read(self, row: Row) -> Entry | None:
        try:
            return _entry(row)
        except (ValueError, TypeError):
            log.error("%s %s cannot be read, and is set aside", self.table, row["id"])
            await self.failed(str(row["id"]), line=str(row["line"]))
            return None

    async def waiting(self, *, kind: str | None = None, line: str | None = None) -> int:
        """How many rows are not done: of one kind, of one line, or of all."""
        name = "waiting_kind" if kind else "waiting_line" if line else "waiting"
        row = await self._database.one(self._sql[name], {"kind": kind or "", "line": line or ""})
        return int(row["n"]) if row else 0

    async def waiting_kinds(self) -> Mapping[str, int]:
        """How many rows of each kind are not done."""
        return {row["kind"]: int(row["n"]) for row in await self._database.all(self._sql["waiting_kinds"])}

    async def state(self, entry_id: str) -> str | None:
        """`new`, `claimed`, `done` or `failed`; None for a row that is not there."""
        row = await self._database.one(self._sql["state"], {"id": entry_id})
        return None if row is None else str(row["state"])

    async def next_due_ms(self) -> int | None:
        """Milliseconds until the next row whose time has not come yet, or None where there is none.

        Rows whose time has come and that are not claimed wait for the one before them in their line: `done` and `failed` tell of them.
        """
        now = self._clock()
        row = await self._database.one(self._sql["next_due"], {"now": now})
        return None if row is None or row["due_at"] is None else int(row["due_at"]) - now

    async def due_now(self, entry_id: str) -> None:
        """End the waiting time of one row."""
        await self._write("due_now", {"id": entry_id, "now": self._clock()})
        self.notify()

    async def hurry(self, kind: str | None = None) -> None:
        """End the waiting time of rows that were put with one."""
        await self._write("hurry_kind" if kind else "hurry", {"now": self._clock(), "kind": kind or ""})
        self.notify()

    async def done(self, entry_id: str, *, line: str = "", tx: Transaction | None = None) -> None:
        """Mark a row as done: what it said is overwritten, and whose it was. Where others are in its `line`, who waits is woken."""
        await self._end("done", entry_id, line, tx)

    async def failed(self, entry_id: str, *, line: str = "") -> None:
        """Give a row up: what it said is overwritten, and whose it was. Where others are in its `line`, who waits is woken."""
        await self._end("failed", entry_id, line)

    async def _end(self, name: Literal["done", "failed"], entry_id: str, line: str, tx: Transaction | None = None) -> None:
        rows = await self._write(name, {"id": entry_id, "now": self._clock(), "line": line}, tx)
        if any(row["others"] for row in rows):
            self.notify()

    async def retry(self, entry: Entry) -> bool:
        """Put a row back after a failure, with a growing wait; False where that was its last attempt and it is given up."""
        if entry.attempts >= MOST_ATTEMPTS:
            await self.failed(entry.id, line=entry.line)
            return False
        await self._give_back(entry.id, BACK_OFF_MS[min(entry.attempts, len(BACK_OFF_MS) - 1)], entry.attempts)
        return True

    async def release(self, entry: Entry, *, wait_ms: int = 0) -> None:
        """Give a row back that was not tried: its attempt does not count."""
        await self._give_back(entry.id, wait_ms, entry.attempts - 1)

    async def release_all(self) -> None:
        """Give back every row that this worker holds, as when the process stops: their attempts do not count."""
        await self._write("release_all", {"worker": self._worker})

    async def renew(self) -> None:
        """Prolong the leases of this worker's claims."""
        await self._write("renew", {"worker": self._worker, "until": self._clock() + LEASE_MS})

    async def prune(self) -> None:
        """Forget rows that were done so long ago that no platform sends them again."""
        await self._write("prune", {"before": self._clock() - KEEP_DONE_MS})

    async def unclaimed(self, tx: Transaction, line: str) -> list[tuple[str, Mapping[str, Any]]]:
        """The rows of a line that nobody has claimed yet, oldest first: `(id, payload)`."""
        rows = await tx.all(self._sql["unclaimed"], {"line": line})
        return [(str(row["id"]), json.loads(row["payload"])) for row in rows]

    async def rewrite(self, tx: Transaction, entry_id: str, payload: Mapping[str, Any], *, wait_ms: int = 0) -> bool:
        """Change what a row says, and when it is due; False where it was claimed meanwhile."""
        body = json.dumps(payload, ensure_ascii=False)
        return bool(await self._write("rewrite", {"id": entry_id, "payload": body, "due_at": self._due_in(wait_ms)}, tx))

    async def move(self, tx: Transaction, old: str, new: str, payload_of: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Put the rows of a line that nobody has claimed yet into another."""
        for entry_id, payload in await self.unclaimed(tx, old):
            body = json.dumps(payload_of(payload), ensure_ascii=False)
            await tx.run(self._sql["move"], {"id": entry_id, "line": new, "payload": body})

    async def forget(self, tx: Transaction, user_id: str) -> int:
        """Erase what rows of a person (or of a private chat) say; a row's id stays, so that a redelivery is not taken for new."""
        row = await tx.one(self._sql["said"], {"user_id": user_id})
        await tx.run(self._sql["forget"], {"user_id": user_id, "now": self._clock()})
        return int(row["n"]) if row else 0

    async def said_by(self, reader: Reader, user_id: str) -> list[Any]:
        """What rows of a person hold that is not done, for their export."""
        rows = await reader.all(self._sql["export"], {"user_id": user_id})
        return [json.loads(row["payload"]) for row in rows]

    async def _give_back(self, entry_id: str, wait_ms: int, attempts: int) -> None:
        # only what this worker still holds: a row that was erased, or claimed anew after its lease, is left as it is
        params = {"id": entry_id, "worker": self._worker, "due_at": self._due_in(wait_ms), "attempts": attempts}
        await self._write("release", params)
        self.notify()

    async def _write(self, name: str, params: Params, tx: Transaction | None = None) -> list[Row]:
        return await (tx.all if tx is not None else self._database.write)(self._sql[name], params)


def _entry(row: Row, known: Mapping[str, Any] | None = None) -> Entry:
    payload = json.loads(row["payload"]) if known is None else known
    return Entry(row["id"], row["kind"], row["line"], row["user_id"], row["via"], payload, int(row["attempts"]))


def _sql(table: Table) -> dict[str, str]:
    mine = f"{table} SET"
    this = "WHERE agent_id = :agent_id AND id = :id"
    is_open = "state IN ('new', 'claimed')"  # in these words: the partial indexes are for rows of which they are true
    open_rows = f"agent_id = :agent_id AND {is_open}"
    person = f"{open_rows} AND (user_id = :user_id OR line = :user_id)"  # the others say nothing any more
    columns = "id, kind, line, user_id, via, payload, attempts, seq"
    over = "payload = '', user_id = '', line = '', due_at = :now"
    in_line = f"SELECT 1 FROM {table} other WHERE other.agent_id = :agent_id AND other.line = :line AND other.{is_open}"
    tells_of_others = f"RETURNING CASE WHEN EXISTS ({in_line} AND other.id <> :id) THEN 1 ELSE 0 END AS others"

    def claim(which: str) -> str:
        return (
            f"UPDATE {mine} state = 'claimed', attempts = attempts + 1, claimed_by = :worker, claimed_until = :until"
            f" WHERE agent_id = :agent_id AND id IN (SELECT mine.id FROM {table} mine WHERE mine.agent_id = :agent_id AND mine.{is_open}"
            f" AND mine.claimed_until < :now AND mine.due_at <= :now AND {ours} AND {which} ORDER BY mine.seq LIMIT :most)"
            f" RETURNING {columns}"
        )

    ours = "(CAST(:any_via AS BIGINT) = 1 OR CAST(:via AS TEXT) LIKE '%|' || mine.via || '|%')"
    urgent = "mine.kind IN (:urgent, :urgent_too)"
    first_of_its_line = (
        f"NOT EXISTS (SELECT 1 FROM {table} earlier WHERE earlier.agent_id = mine.agent_id AND earlier.line = mine.line"
        f" AND earlier.{is_open} AND earlier.seq < mine.seq AND earlier.kind NOT IN (:urgent, :urgent_too))"
    )

    def put(state: str, attempts: str, worker: str, until: str, returning: str) -> str:
        return (
            f"INSERT INTO {table}"
            " (agent_id, id, kind, line, user_id, via, payload, state, seq, due_at, attempts, claimed_by, claimed_until)"
            f" VALUES (:agent_id, :id, :kind, :line, :user_id, :via, :payload, {state}, :seq, :due_at, {attempts}, {worker}, {until})"
            f" ON CONFLICT (agent_id, id) DO NOTHING RETURNING {returning}"
        )

    def unless_others(claimed: str, waits: str) -> str:
        return f"CASE WHEN EXISTS ({in_line}) THEN {waits} ELSE {claimed} END"

    return {
        "put": put("'new'", "0", "''", "0", "id"),
        "put_claimed": put(
            unless_others("'claimed'", "'new'"),
            unless_others("1", "0"),
            unless_others("CAST(:worker AS TEXT)", "''"),
            unless_others("CAST(:until AS BIGINT)", "0"),
            f"state, {columns}",
        ),
        "claim": claim(f"({urgent} OR {first_of_its_line})"),
        "claim_urgent": claim(urgent),
        "waiting": f"SELECT count(*) AS n FROM {table} WHERE {open_rows}",
        "waiting_line": f"SELECT count(*) AS n FROM {table} WHERE {open_rows} AND line = :line",
        "waiting_kind": f"SELECT count(*) AS n FROM {table} WHERE {open_rows} AND kind = :kind",
        "waiting_kinds": f"SELECT kind, count(*) AS n FROM {table} WHERE {open_rows} GROUP BY kind",
        "state": f"SELECT state FROM {table} {this}",
        "next_due": f"SELECT min(due_at) AS due_at FROM {table} WHERE {open_rows} AND state = 'new' AND due_at > :now",
        "unclaimed": f"SELECT id, payload FROM {table} WHERE {open_rows} AND state = 'new' AND line = :line ORDER BY seq",
        "rewrite": f"UPDATE {mine} payload = :payload, due_at = :due_at {this} AND state = 'new' RETURNING id",
        "move": f"UPDATE {mine} line = :line, payload = :payload {this} AND state = 'new'",
        "due_now": f"UPDATE {mine} due_at = :now {this} AND state = 'new'",
        "hurry": f"UPDATE {mine} due_at = :now WHERE {open_rows} AND state = 'new' AND due_at > :now",
        "hurry_kind": f"UPDATE {mine} due_at = :now WHERE {open_rows} AND state = 'new' AND due_at > :now AND kind = :kind",
        "done": f"UPDATE {mine} state = 'done', {over} {this} {tells_of_others}",
        "failed": f"UPDATE {mine} state = 'failed', {over} {this} {tells_of_others}",
        "release": f"UPDATE {mine} state = 'new', due_at = :due_at, attempts = :attempts, claimed_by = '', claimed_until = 0"
        f" {this} AND state = 'claimed' AND claimed_by = :worker",
        "release_all": f"UPDATE {mine} state = 'new', attempts = attempts - 1, claimed_by = '', claimed_until = 0"
        f" WHERE {open_rows} AND claimed_by = :worker AND state = 'claimed'",
        "renew": f"UPDATE {mine} claimed_until = :until WHERE {open_rows} AND state = 'claimed' AND claimed_by = :worker",
        "prune": f"DELETE FROM {table} WHERE agent_id = :agent_id AND state IN ('done', 'failed') AND due_at < :before",
        "forget": f"UPDATE {mine} state = 'done', {over} WHERE {person}",
        "export": f"SELECT payload FROM {table} WHERE {person} AND payload <> '' ORDER BY seq",
        "said": f"SELECT count(*) AS n FROM {table} WHERE {person} AND payload <> ''",
    }


class JobQueue:
    """The Jobs port over the `jobs` table: each job bears the epoch that its subject had when it was queued.

    `kinds` are those that this process can run. Where no worker runs, `idle` works itself, by `work`.
    """

    def __init__(self, queue: Queue, *, kinds: Collection[str] = ()) -> None:
        self.queue = queue
        self._kinds = kinds
        self._settled = asyncio.Event()
        self.attended = False
        self.work: Callable[[Entry], Awaitable[None]] | None = None

    async def put(self, tx: Transaction, kind: str, subject: str, payload: Mapping[str, Any], *, wait_ms: int = 0) -> None:
        """Queue a job inside a transaction; it starts when its time has come, after the earlier ones of its subject."""
        body = {"payload": payload, "marks": {subject: await epoch_of(tx, subject)}}
        await self.queue.put_soon(tx, uuid.uuid4().hex, kind=kind, line=subject, user_id=subject, via=kind, payload=body, wait_ms=wait_ms)
        if not wait_ms:
            self.queue.notify()

    async def idle(self, kind: str | None = None) -> None:
        """Run what waits, its delay ended, and return when no job (of this kind) is left that this process can run."""
        while True:
            settled = self._settled  # noted before looking, so that what ends in between is not missed
            waiting = await self.queue.waiting_kinds()
            if not any(n and name in self._kinds and kind in (None, name) for name, n in waiting.items()):
                return
            await self.queue.hurry(kind)
            if not self.attended and self.work and (entry := await self.queue.claim(via=self._kinds)):
                await self.work(entry)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_POLL_SECONDS):  # wait_for of Python 3.11 can swallow a cancellation
                    await settled.wait()

    def finished(self) -> None:
        """Told by the worker after each job, whatever became of it."""
        self._settled.set()
        self._settled = asyncio.Event()


def job_of(entry: Entry) -> Job:
    """The job that a claimed row of `jobs` is."""
    return Job(entry.id, entry.kind, entry.line, entry.payload["payload"], entry.payload["marks"], entry.attempts)
