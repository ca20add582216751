"""The queues on SQLite: how a claim finds its row among many, and that two processes share a file. The rest is in tests/conformance."""

import re
from pathlib import Path

import pytest

from bot import Database, open_database
from bot.inbox import Queue, _sql

DONE, WAITING = 100_000, 1_000
FILL = "INSERT INTO inbox VALUES (:agent_id, :id, 'message', :line, 'ana', '', '{}', :state, :seq, 0, 0, '', 0)"


def plan_params() -> dict[str, object]:
    """A value for each name that the statements use."""
    names = [
        "now",
        "until",
        "worker",
        "urgent",
        "urgent_too",
        "kind",
        "line",
        "id",
        "user_id",
        "due_at",
        "attempts",
        "before",
        "any_via",
        "most",
        "via",
    ]
    return dict.fromkeys(names, 0)


async def plan(db: Database, sql: str) -> str:
    """How SQLite means to go about a statement."""
    return "\n".join(row["detail"] for row in await db.all(f"EXPLAIN QUERY PLAN {sql}", plan_params()))


@pytest.mark.parametrize(
    "name", ["claim", "claim_urgent", "waiting", "waiting_kind", "waiting_kinds", "next_due", "said", "forget", "renew"]
)
async def test_only_open_rows_are_looked_at(tmp_path: Path, name: str) -> None:
    """What is done costs nothing: the statements that run all the time go by the indexes over open rows, and sort nothing to claim."""
    async with open_database(f"sqlite:///{tmp_path}/bot.db") as db:
        steps = await plan(db, _sql("inbox")[name])

    by_index = re.findall(r"(?:SCAN|SEARCH) (\w+) (?:USING (?:COVERING )?INDEX (\w+))?", steps)
    assert by_index
    assert {index for _, index in by_index} <= {"inbox_open", "inbox_line", "sqlite_autoindex_inbox_1"}, steps
    assert {index for table, index in by_index if table in ("mine", "earlier")} <= {"inbox_open", "inbox_line"}, steps
    if name.startswith("claim"):
        assert "TEMP B-TREE" not in steps


async def test_a_long_past_and_a_long_queue(tmp_path: Path) -> None:
    """With 100,000 rows done and 1,000 waiting in 50 lines the right rows are claimed, by few steps of the engine."""
    async with open_database(f"sqlite:///{tmp_path}/bot.db") as db:
        async with db.transaction() as tx:
            await tx.many(FILL, [{"id": f"d{n}", "line": "", "state": "done", "seq": n} for n in range(DONE)])
            await tx.many(FILL, [{"id": f"w{n}", "line": str(n // 20), "state": "new", "seq": DONE + n} for n in range(WAITING)])
        queue = Queue(db, "inbox")
        claimed = [await queue.claim() for _ in range(50)]
        steps = await plan(db, _sql("inbox")["claim"])

        assert [entry.id for entry in claimed if entry] == [f"w{20 * n}" for n in range(50)]
        assert await queue.claim() is None
        assert "inbox_open" in steps


async def test_two_processes_share_a_file(tmp_path: Path) -> None:
    """Two workers with connections of their own claim each row once."""
    url = f"sqlite:///{tmp_path}/bot.db"
    async with open_database(url) as first, open_database(url) as second:
        queues = [Queue(first, "inbox"), Queue(second, "inbox")]
        for n in range(40):
            await queues[0].put(None, str(n), kind="message", line=str(n), payload={})
        claimed: list[str] = []
        for _ in range(20):
            for queue in queues:
                entry = await queue.claim()
                assert entry is not None
                claimed.append(entry.id)

        assert claimed == [str(n) for n in range(40)]
        assert await queues[0].claim() is None
