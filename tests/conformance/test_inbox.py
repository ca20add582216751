"""Inbox, outbox and jobs as tables, on every engine: nothing is lost, nothing is done twice, and each line keeps its order."""

import asyncio
from collections.abc import Sequence

import pytest

from bot import Database
from bot.fence import SubjectFence
from bot.inbox import BACK_OFF_MS, KEEP_DONE_MS, LEASE_MS, MOST_ATTEMPTS, Entry, JobQueue, Queue, job_of
from tests.conformance.conftest import raced
from tests.conftest import Clock

URGENT = ("stop", "button")


@pytest.fixture
def queue(db: Database, clock: Clock) -> Queue:
    """The inbox of this test's database, its time set by hand."""
    return Queue(db, "inbox", clock=clock)


async def put(queue: Queue, *names: str, kind: str = "message", wait_ms: int = 0) -> None:
    """Rows named `line.n`: `a.1` is the first of line a."""
    for name in names:
        await queue.put(None, name, kind=kind, line=name.split(".")[0], user_id="ana", payload={"said": name}, wait_ms=wait_ms)


async def claimed(queue: Queue, *, urgent: tuple[str, ...] = (), only_urgent: bool = False) -> list[str]:
    """All that can be claimed now."""
    found = []
    while entry := await queue.claim(urgent=urgent, only_urgent=only_urgent):
        found.append(entry.id)
    return found


async def claim(queue: Queue) -> Entry:
    """The next row, which is there."""
    entry = await queue.claim()
    assert entry is not None
    return entry


async def test_an_entry_is_what_was_put(queue: Queue) -> None:
    """Whatever JSON it was, with whatever characters."""
    payload = {"text": "año 🎉\nA", "n": [1, None, 0.5], "deep": {"ok": True}}
    await queue.put(None, "u1", kind="message", line="chat", user_id="ana", via="console", payload=payload)

    assert await queue.claim() == Entry("u1", "message", "chat", "ana", "console", payload, 1)


async def test_several_are_claimed_at_once(queue: Queue) -> None:
    """The first of each line, oldest first, as many as are wanted; the second of a line when its first is done."""
    await put(queue, "b.1", "a.1", "a.2", "c.1", "d.1")
    first = await queue.claims(3)
    second = await queue.claims(3)
    await queue.done("a.1")
    third = await queue.claims(3)

    assert [[entry.id for entry in entries] for entries in (first, second, third)] == [["b.1", "a.1", "c.1"], ["d.1"], ["a.2"]]


async def test_one_id_is_put_once(queue: Queue) -> None:
    """A redelivery is known while the row waits, while it is worked on, and when it is done."""
    first = await queue.put(None, "u1", kind="message", line="chat", payload={})
    waiting = await queue.put(None, "u1", kind="message", line="other", payload={"other": 1})
    entry = await claim(queue)
    working = await queue.put(None, "u1", kind="message", line="chat", payload={})
    await queue.done(entry.id)
    done = await queue.put(None, "u1", kind="message", line="chat", payload={})

    assert [first, waiting, working, done] == [True, False, False, False]
    assert entry.payload == {}
    assert await claimed(queue) == []


async def test_a_put_that_is_rolled_back_was_none(db: Database, queue: Queue) -> None:
    """A row is put with the transaction it belongs to, or not."""
    with pytest.raises(LookupError):
        async with db.transaction() as tx:
            assert await queue.put(tx, "u1", kind="message", line="chat", payload={})
            raise LookupError

    assert await queue.put(None, "u1", kind="message", line="chat", payload={})


async def test_a_line_keeps_its_order(queue: Queue) -> None:
    """One at a time in each line, the oldest first; other lines go on meanwhile."""
    await put(queue, "a.1", "a.2", "b.1", "a.3", "c.1")
    first = await claimed(queue)
    await queue.done("a.1")
    second = await claimed(queue)
    await queue.done("b.1")
    third = await claimed(queue)

    assert (first, second, third) == (["a.1", "b.1", "c.1"], ["a.2"], [])


async def test_what_is_urgent_passes_its_line(queue: Queue) -> None:
    """A stop does not wait for what it is to stop; the others of its line wait for their turn, and not for it."""
    await put(queue, "a.1", "a.2")
    first = await claimed(queue, urgent=URGENT)
    await put(queue, "a.stop", kind="stop")
    await put(queue, "a.button", kind="button")
    second = await claimed(queue, urgent=URGENT)
    await queue.done("a.1")

    assert first == ["a.1"]
    assert second == ["a.stop", "a.button"]
    assert await claimed(queue, urgent=URGENT) == ["a.2"]


async def test_only_what_is_urgent(queue: Queue) -> None:
    """Where all hands are busy, the urgent rows alone can be asked for."""
    await put(queue, "a.1", "b.1")
    await put(queue, "a.stop", kind="stop")

    assert await claimed(queue, urgent=URGENT, only_urgent=True) == ["a.stop"]


async def test_a_row_waits_for_its_time(queue: Queue, clock: Clock) -> None:
    """One that is put with a wait is claimed when that is over, and those behind it in its line wait along."""
    await put(queue, "a.1", wait_ms=5_000)
    await put(queue, "a.2", "b.1")
    early, due = await claimed(queue), await queue.next_due_ms()
    clock.advance(seconds=5)

    assert (early, due) == (["b.1"], 5_000)
    assert await claimed(queue) == ["a.1"]


async def test_nothing_is_due_that_waits_for_its_line(queue: Queue) -> None:
    """A row whose time has come and that is behind another is no reason to look again at once."""
    await put(queue, "a.1", "a.2")
    await claimed(queue)

    assert await queue.next_due_ms() is None


async def test_waiting_can_be_ended(queue: Queue) -> None:
    """For one row, for one kind, for all."""
    await put(queue, "a.1", "b.1", wait_ms=5_000)
    await put(queue, "c.1", kind="other", wait_ms=5_000)
    await put(queue, "d.1", kind="third", wait_ms=5_000)
    await queue.due_now("b.1")
    one = await claimed(queue)
    await queue.hurry("other")
    kind = await claimed(queue)
    await queue.hurry()

    assert (one, kind, await claimed(queue)) == (["b.1"], ["c.1"], ["a.1", "d.1"])


async def test_what_waits_is_counted(queue: Queue) -> None:
    """By kind and by line; what is worked on counts, what is done does not."""
    await put(queue, "a.1", "a.2", "b.1")
    await put(queue, "c.1", kind="other")
    await queue.done((await claim(queue)).id)
    await claim(queue)

    assert await queue.waiting() == 3
    assert await queue.waiting(line="a") == 1
    assert await queue.waiting(kind="message") == 2
    assert await queue.waiting_kinds() == {"message": 2, "other": 1}


# ---------------------------------------------------------------------------------------------- waiting for a row


async def test_the_end_of_a_row_tells_of_those_behind_it(db: Database, queue: Queue) -> None:
    """Who waits is woken where another is in its line, however the row ended and whoever put the other, and not where none is."""
    other = Queue(db, "inbox")
    await put(other, "a.1", "a.2", "b.1", "c.1", "c.2")
    entries = {entry.id: entry for entry in await queue.claims(3)}
    woken = []
    for name, ended in (("b.1", queue.done), ("a.1", queue.done), ("c.1", queue.failed)):
        queue.look()
        await ended(name, line=entries[name].line)
        woken.append(await queue.wait(0.0))

    assert woken == [False, True, True]
    assert await claimed(queue) == ["a.2", "c.2"]


async def test_what_comes_due_is_waited_for_until_then(queue: Queue, clock: Clock) -> None:
    """Who put a row with a wait knows when it is due, and who gave one back; nobody needs to wake them."""
    await put(queue, "a.1", wait_ms=5)
    await put(queue, "b.1")
    await queue.release(await claim(queue), wait_ms=3)
    queue.look()
    async with asyncio.timeout(10):
        woken = await queue.wait(60)
    clock.advance(seconds=1)

    assert not woken
    assert await claimed(queue) == ["a.1", "b.1"]


async def test_what_another_put_comes_due_too(db: Database, queue: Queue, clock: Clock) -> None:
    """Once it was looked for. What is due already is not waited for."""
    await put(Queue(db, "inbox", clock=clock), "a.1", "b.1", wait_ms=5)
    await queue.look_ahead()
    queue.look()
    async with asyncio.timeout(10):
        woken = await queue.wait(60)

    assert not woken


async def test_who_waits_is_woken_for_what_comes_due_sooner(queue: Queue) -> None:
    """A row that is put meanwhile and comes due before the wait is over changes how long it is; one that comes due later does not."""
    queue.look()
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(queue.wait(0.5))
        await asyncio.sleep(0)
        await put(queue, "a.1", wait_ms=60_000)
    woken_by_later = await waiting
    queue.look()
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(queue.wait(60))
        await asyncio.sleep(0)
        await put(queue, "b.1", wait_ms=30_000)

    assert (woken_by_later, await waiting) == (False, True)


# ---------------------------------------------------------------------------------------------- put as claimed


async def put_claimed(db: Database, queue: Queue, name: str) -> Entry | None:
    """A row that is to be this worker's from the start."""
    async with db.transaction() as tx:
        return await queue.put_claimed(tx, name, kind="message", line=name.split(".")[0], user_id="ana", payload={"said": name})


async def test_a_row_that_is_claimed_from_the_start(db: Database, queue: Queue, clock: Clock) -> None:
    """It is this worker's, for its first attempt, as if it had been claimed; its lease ends as any other, and what comes later waits."""
    entry = await put_claimed(db, queue, "a.1")
    await put(queue, "a.2")
    others = await claimed(queue)
    clock.advance(seconds=LEASE_MS / 1000 + 0.001)
    again = await claim(Queue(db, "inbox", clock=clock))

    assert entry == Entry("a.1", "message", "a", "ana", "", {"said": "a.1"}, 1)
    assert others == []
    assert (again.id, again.attempts) == ("a.1", 2)


@pytest.mark.parametrize("said", ["año 🎉\n", "nul \0", "half \ud83d", "\udc80"])
async def test_a_row_claimed_from_the_start_says_what_it_would_say_later(db: Database, queue: Queue, said: str) -> None:
    """Whoever claims it next reads the same, also where the database takes out what no engine keeps."""
    payload = {"text": said, "choices": [["yes", "sí", 300]], "none": None, "n": 0.5, "deep": {"ok": True}}
    async with db.transaction() as tx:
        entry = await queue.put_claimed(tx, "a.1", kind="reply", line="a", user_id="ana", via="test", payload=payload)
    assert entry is not None
    await queue.release(entry)

    assert await queue.claim() == entry


async def test_a_row_is_not_claimed_before_those_of_its_line(db: Database, queue: Queue) -> None:
    """Where another waits, or is worked on, whoever put it, a row waits behind it, and in no other line."""
    await put(Queue(db, "inbox"), "a.1", "b.1")
    await claim(queue)
    put_late = [await put_claimed(db, queue, name) for name in ("a.2", "b.2", "c.1")]
    await queue.done("a.1", line="a")
    found = await claimed(queue)

    assert [entry and entry.id for entry in put_late] == [None, None, "c.1"]
    assert sorted(found) == ["a.2", "b.1"]


async def test_a_row_that_was_there_is_not_claimed_anew(db: Database, queue: Queue) -> None:
    """Neither one that waits nor one that is done: what was put first counts."""
    await put(queue, "a.1", "b.1")
    await queue.done("b.1")

    assert [await put_claimed(db, queue, name) for name in ("a.1", "b.1")] == [None, None]
    assert await claimed(queue) == ["a.1"]


async def test_a_claimed_row_whose_transaction_failed(db: Database, queue: Queue) -> None:
    """It is not there, and giving it back changes nothing."""
    with pytest.raises(KeyError):
        async with db.transaction() as tx:
            entry = await queue.put_claimed(tx, "a.1", kind="message", line="a", payload={})
            raise KeyError
    assert entry is not None
    await queue.release(entry)

    assert await queue.state("a.1") is None


# ---------------------------------------------------------------------------------------------- leases and attempts


async def test_a_dead_workers_row_is_claimed_again(db: Database, queue: Queue, clock: Clock) -> None:
    """When its lease ends, by another worker; the attempts count, and its line has waited."""
    await put(queue, "a.1", "a.2")
    await claim(queue)
    other = Queue(db, "inbox", clock=clock)
    early = await claimed(other)
    clock.advance(seconds=LEASE_MS / 1000 + 0.001)
    again = await claim(other)

    assert early == []
    assert (again.id, again.attempts) == ("a.1", 2)


async def test_a_living_worker_renews(db: Database, queue: Queue, clock: Clock) -> None:
    """A lease that was renewed is not taken over, however long the work takes; only one's own are renewed."""
    await put(queue, "a.1", "b.1")
    await claim(queue)
    other = Queue(db, "inbox", clock=clock)
    await claim(other)
    for _ in range(5):
        clock.advance(seconds=LEASE_MS / 2000)
        await queue.renew()

    assert await claimed(other) == ["b.1"]


async def test_failures_wait_longer_each_time(queue: Queue, clock: Clock) -> None:
    """A row is put back with a growing wait, keeps its place in the line, and is given up after a few attempts."""
    await put(queue, "a.1", "a.2")
    waits: list[int] = []
    for _ in range(MOST_ATTEMPTS - 1):
        entry = await claim(queue)
        assert await queue.retry(entry)
        assert await claimed(queue) == []
        waits.append(await queue.next_due_ms() or 0)
        clock.advance(seconds=waits[-1] / 1000)
    last = await claim(queue)

    assert waits == sorted(waits) == list(BACK_OFF_MS[1:])
    assert (last.id, last.attempts) == ("a.1", MOST_ATTEMPTS)
    assert not await queue.retry(last)
    assert await queue.state("a.1") == "failed"
    assert await claimed(queue) == ["a.2"]


async def test_a_row_that_was_not_tried_loses_no_attempt(queue: Queue) -> None:
    """What is given back untouched is as it was before."""
    await put(queue, "a.1")
    await queue.release(await claim(queue))

    assert (await claim(queue)).attempts == 1


async def test_stopping_gives_everything_back(db: Database, queue: Queue, clock: Clock) -> None:
    """All rows of this worker, none of another's; the next start has them at once, in order."""
    await put(queue, "a.1", "b.1", "c.1")
    await claim(queue)
    await claim(queue)
    other = Queue(db, "inbox", clock=clock)
    await claim(other)
    await queue.release_all()
    next_start = Queue(db, "inbox", clock=clock)

    assert [(entry.id, entry.attempts) for entry in (await claim(next_start), await claim(next_start))] == [("a.1", 1), ("b.1", 1)]
    assert await claimed(next_start) == []


async def test_two_workers_never_have_the_same_row(db: Database) -> None:
    """However they race, each row is claimed once, and never two of one line at a time."""
    workers = [Queue(db, "inbox") for _ in range(3)]
    await put(workers[0], *(f"{line}.{n}" for n in range(8) for line in "abcd"))
    order = await raced(workers, 32, seconds=20)

    assert len(set(order)) == 32
    assert [[one for one in order if one[0] == line] for line in "abcd"] == [[f"{line}.{n}" for n in range(8)] for line in "abcd"]


async def test_workers_of_two_processes_keep_a_lines_order(db: Database) -> None:
    """What another process put later comes later, though that process started first."""
    older, newer = Queue(db, "inbox"), Queue(db, "inbox")
    await put(newer, "a.1")
    await put(older, "a.2")
    await put(newer, "a.3")

    for name in ("a.1", "a.2", "a.3"):
        assert (await claim(older)).id == name
        await older.done(name)


async def test_a_row_that_cannot_be_read_is_set_aside(db: Database, queue: Queue) -> None:
    """It blocks nobody: the next one of its line is claimed in its place."""
    await put(queue, "a.1", "a.2")
    await db.write("UPDATE inbox SET payload = '{broken' WHERE agent_id = :agent_id AND id = 'a.1'")

    assert (await claim(queue)).id == "a.2"
    assert await queue.state("a.1") == "failed"


# ---------------------------------------------------------------------------------------------- what is kept


async def rows(db: Database, *columns: str) -> Sequence[dict[str, object]]:
    """The rows of the inbox."""
    return [dict(row) for row in await db.all(f"SELECT {', '.join(columns)} FROM inbox WHERE agent_id = :agent_id ORDER BY id")]


async def test_what_is_done_keeps_its_id_alone(db: Database, queue: Queue) -> None:
    """Neither what was said nor who said it where."""
    await put(queue, "a.1", "b.1")
    await queue.done((await claim(queue)).id)
    await queue.failed((await claim(queue)).id)

    nothing = {"payload": "", "user_id": "", "line": ""}
    assert await rows(db, "id", "state", "payload", "user_id", "line") == [
        {"id": "a.1", "state": "done"} | nothing,
        {"id": "b.1", "state": "failed"} | nothing,
    ]


async def test_old_rows_are_forgotten(db: Database, queue: Queue, clock: Clock) -> None:
    """An id is kept for as long as a platform may send it again; what still waits is kept however old it is."""
    await put(queue, "a.1", "b.1", "c.1")
    await queue.done("a.1")
    clock.advance(seconds=KEEP_DONE_MS / 1000)
    await queue.failed("b.1")
    await queue.prune()
    kept = await rows(db, "id")
    clock.advance(seconds=1)
    await queue.prune()

    assert kept == [{"id": name} for name in ("a.1", "b.1", "c.1")]
    assert await rows(db, "id") == [{"id": "b.1"}, {"id": "c.1"}]


async def test_forgetting_a_person(db: Database, queue: Queue) -> None:
    """What their rows say goes, in a private chat and in a room; a redelivery is still known; others keep theirs."""
    await queue.put(None, "u1", kind="message", line="ana", user_id="ana", payload={"text": "x"})
    await queue.put(None, "u2", kind="message", line="room", user_id="ana", payload={"text": "x"})
    await queue.put(None, "u3", kind="message", line="ana", user_id="", payload={"text": "x"})
    await queue.put(None, "u4", kind="message", line="room", user_id="bob", payload={"text": "his"})
    said = await queue.said_by(db, "ana")
    async with db.transaction() as tx:
        count = await queue.forget(tx, "ana")

    assert said == [{"text": "x"}] * 3
    assert count == 3
    assert await queue.said_by(db, "ana") == []
    assert not await queue.put(None, "u1", kind="message", line="ana", payload={})
    assert await claimed(queue) == ["u4"]


@pytest.mark.parametrize("ending", ["done", "failed", "retry", "release", "release_all"])
async def test_forgotten_while_it_was_worked_on(db: Database, queue: Queue, ending: str) -> None:
    """Whatever the worker then says of the row, it does not come back."""
    await put(queue, "a.1", "a.2")
    entry = await claim(queue)
    async with db.transaction() as tx:
        await queue.forget(tx, "ana")
    await {
        "done": lambda: queue.done(entry.id),
        "failed": lambda: queue.failed(entry.id),
        "retry": lambda: queue.retry(entry),
        "release": lambda: queue.release(entry),
        "release_all": queue.release_all,
    }[ending]()

    assert await claimed(queue) == []
    assert await rows(db, "payload", "user_id", "line") == [{"payload": "", "user_id": "", "line": ""}] * 2


# ---------------------------------------------------------------------------------------------- jobs


@pytest.fixture
def jobs(db: Database) -> JobQueue:
    """The jobs of this test's database, with the kinds that it can run."""
    return JobQueue(Queue(db, "jobs"), kinds=("count", "fail"))


async def test_a_job_bears_the_epoch_of_its_subject(db: Database, jobs: JobQueue) -> None:
    """So that what it writes after an erasure is stopped, also where nobody had noted the person before."""
    async with db.transaction() as tx:
        await jobs.put(tx, "count", "ana", {"n": 1})
    job = job_of(await claim(jobs.queue))

    assert (job.kind, job.subject, job.payload, job.attempts) == ("count", "ana", {"n": 1}, 1)
    assert job.marks == await SubjectFence(db).mark("ana")


async def test_a_job_wakes_who_looks_for_jobs_when_it_may_start(db: Database, jobs: JobQueue) -> None:
    """One that is to wait wakes nobody as it is put: there is nothing to claim yet."""
    woken = []
    for wait_ms in (60_000, 0):
        jobs.queue.look()
        async with db.transaction() as tx:
            await jobs.put(tx, "count", "ana", {}, wait_ms=wait_ms)
        woken.append(await jobs.queue.wait(0.0))

    assert woken == [False, True]


async def test_idle_works_where_no_worker_does(db: Database, jobs: JobQueue) -> None:
    """A process that only asks one question still finishes its jobs, their delay ended, when it is told to."""
    ran: list[str] = []

    async def work(entry: Entry) -> None:
        ran.append(entry.kind)
        await jobs.queue.done(entry.id)

    jobs.work = work
    async with db.transaction() as tx:
        await jobs.put(tx, "count", "ana", {}, wait_ms=60_000)
        await jobs.put(tx, "fail", "bob", {}, wait_ms=60_000)
    async with asyncio.timeout(5):
        await jobs.idle("count")
        first = list(ran)
        await jobs.idle()

    assert "count" in first
    assert sorted(ran) == ["count", "fail"]


async def test_idle_does_not_wait_for_what_nobody_runs(db: Database, jobs: JobQueue) -> None:
    """A job of a plugin that was removed stays, and holds nobody up."""
    async with db.transaction() as tx:
        await jobs.put(tx, "of a plugin that is gone", "ana", {})
    async with asyncio.timeout(5):
        await jobs.idle()

    assert await jobs.queue.waiting() == 1


async def test_a_row_that_needs_what_another_process_has(queue: Queue) -> None:
    """It is left to it, and holds up no other line."""
    await queue.put(None, "t.1", kind="reply", line="t", via="telegram", payload={})
    await queue.put(None, "c.1", kind="reply", line="c", via="console", payload={})
    await queue.put(None, "a.1", kind="reply", line="a", payload={})

    found = [await queue.claim(via=["console", "tele"]) for _ in range(3)]

    assert [entry and entry.id for entry in found] == ["c.1", "a.1", None]
    assert await claimed(queue) == ["t.1"]
