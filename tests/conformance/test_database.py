"""What `Database` promises, on every engine."""

import asyncio

import pytest

from bot import Database, StorageError
from tests.conformance.conftest import IDS, PUT, Opener, ids

MOST_STEPS = 60


async def test_what_is_written_is_read(db: Database) -> None:
    """A row comes back as a dictionary, whichever way it was written; None, numbers and text keep their values."""
    await db.write(
        "INSERT INTO notes (agent_id, id, body, size, weight) VALUES (:agent_id, :id, :body, :size, :weight)",
        {"id": "a", "body": "año 🎉", "size": 2**62, "weight": 0.25},
    )
    async with db.transaction() as tx:
        await tx.run(PUT, {"id": "b", "body": None})

    rows = await db.all("SELECT id, body, size, weight FROM notes WHERE agent_id = :agent_id ORDER BY id")
    assert rows == [
        {"id": "a", "body": "año 🎉", "size": 2**62, "weight": 0.25},
        {"id": "b", "body": None, "size": None, "weight": None},
    ]


async def test_one_row_or_none(db: Database) -> None:
    """`one` gives the first row, and None where there is none."""
    await db.write(PUT, {"id": "a", "body": ""})

    assert await db.one(IDS) == {"id": "a"}
    assert await db.one("SELECT id FROM notes WHERE agent_id = :agent_id AND id = :id", {"id": "b"}) is None


async def test_a_write_returns_its_rows(db: Database) -> None:
    """`write` hands on what RETURNING gives, and nothing where nothing changed."""
    again = PUT + " ON CONFLICT (agent_id, id) DO NOTHING RETURNING id"

    assert await db.write(again, {"id": "a", "body": ""}) == [{"id": "a"}]
    assert await db.write(again, {"id": "a", "body": ""}) == []


async def test_run_counts_rows(db: Database) -> None:
    """`run` says how many rows its own statement changed."""
    async with db.transaction() as tx:
        await tx.many(PUT, [{"id": str(n), "body": ""} for n in range(5)])
        counts = [
            await tx.run("UPDATE notes SET body = 'x' WHERE agent_id = :agent_id AND id < '3'"),
            await tx.run("DELETE FROM notes WHERE agent_id = :agent_id AND id = '9'"),
            await tx.run("DELETE FROM notes WHERE agent_id = :agent_id"),
        ]

    assert counts == [3, 0, 5]


async def test_several_together_each_give_their_rows(db: Database) -> None:
    """In their order, each seeing what those before it did; after one that fails nothing is written."""
    async with db.transaction() as tx:
        rows = await tx.together([(PUT + " RETURNING id", {"id": "a", "body": ""}), (IDS, {}), (PUT, {"id": "b", "body": ""}), (IDS, {})])
    assert rows == [[{"id": "a"}], [{"id": "a"}], [], [{"id": "a"}, {"id": "b"}]]

    with pytest.raises(StorageError):
        async with db.transaction() as tx:
            await tx.together([(PUT, {"id": "c", "body": ""}), (PUT, {"id": "a", "body": ""})])
    assert await ids(db) == ["a", "b"]


async def test_what_nobody_waits_for_is_there_in_its_order(db: Database) -> None:
    """`soon` goes before the next statement, or with the commit where nothing follows."""
    async with db.transaction() as tx:
        await tx.soon(PUT, {"id": "a", "body": ""})
        await tx.soon("UPDATE notes SET body = 'x' WHERE agent_id = :agent_id")
        assert await tx.one("SELECT body FROM notes WHERE agent_id = :agent_id") == {"body": "x"}
        await tx.soon(PUT, {"id": "b", "body": ""})

    assert await ids(db) == ["a", "b"]


@pytest.mark.parametrize("last", [False, True])
async def test_what_was_required_is_looked_at_before_anything_is_written(db: Database, last: bool) -> None:
    """Fewer rows than `least` are the error that was given, also where a commit comes right behind."""
    wanted = "UPDATE notes SET body = 'x' WHERE agent_id = :agent_id AND id = :id RETURNING id"
    with pytest.raises(KeyError, match="not there"):
        async with db.transaction() as tx:
            await tx.soon(PUT, {"id": "a", "body": ""})
            await tx.soon(wanted, {"id": "b"}, least=1, otherwise=KeyError("not there"))
            if not last:
                await tx.run(PUT, {"id": "c", "body": ""})
    assert await ids(db) == []

    async with db.transaction() as tx:
        await tx.soon(PUT, {"id": "b", "body": ""})
        await tx.soon(wanted, {"id": "b"}, least=1, otherwise=KeyError("not there"))
    assert await ids(db) == ["b"]


async def test_what_nobody_waits_for_fails_the_transaction_all_the_same(db: Database) -> None:
    """A statement that cannot be executed is a StorageError by the commit at the latest, and nothing is written."""
    with pytest.raises(StorageError):
        async with db.transaction() as tx:
            await tx.soon(PUT, {"id": "a", "body": ""})
            await tx.soon("INSERT INTO nowhere (agent_id) VALUES (:agent_id)")
    assert await ids(db) == []


async def test_writes_and_reads_at_once_each_get_their_own(db: Database) -> None:
    """However many come together: each its own rows, and one that fails fails alone."""
    again = PUT + " RETURNING id"
    written = await asyncio.gather(
        *(db.write(again, {"id": f"{n:02}" if n % 7 else "00", "body": str(n)}) for n in range(50)), return_exceptions=True
    )
    read = await asyncio.gather(
        *(db.one("SELECT body FROM notes WHERE agent_id = :agent_id AND id = :id", {"id": f"{n:02}"}) for n in range(50))
    )

    assert [n for n, rows in enumerate(written) if isinstance(rows, StorageError)] == list(range(7, 50, 7))
    assert [rows for rows in written if not isinstance(rows, BaseException)] == [[{"id": f"{n:02}"}] for n in range(50) if n % 7 or not n]
    assert [row and row["body"] for row in read] == [str(n) if n % 7 or not n else None for n in range(50)]


async def test_one_that_is_cancelled_takes_nobody_along(db: Database) -> None:
    """The first of several that wait together is cancelled at any moment: the others get what they asked for."""
    for steps in range(12):
        doing = [asyncio.create_task(db.write(PUT + " RETURNING id", {"id": f"{steps}-{n}", "body": ""})) for n in range(4)]
        asking = [asyncio.create_task(db.one("SELECT COUNT(*) AS n FROM notes WHERE agent_id = :agent_id")) for _ in range(4)]
        for _ in range(steps):
            await asyncio.sleep(0)
        doing[0].cancel()
        asking[0].cancel()
        async with asyncio.timeout(20):
            others = await asyncio.gather(*doing[1:], *asking[1:])
            await asyncio.gather(doing[0], asking[0], return_exceptions=True)
        assert others[:3] == [[{"id": f"{steps}-{n}"}] for n in range(1, 4)]
        assert all(others[3:])


@pytest.mark.parametrize(
    ("written", "read"),
    [("a\0b", "ab"), ("a\ud800b", "a\ufffdb"), ("\ud83c\udf89", "🎉"), ("\0", ""), ("ñ\0\udfff", "ñ\ufffd")],
)
async def test_text_is_cleaned(db: Database, written: str, read: str) -> None:
    """NUL and lone surrogates never reach the engine; halves of one character find each other."""
    await db.write(PUT, {"id": "a", "body": written})

    assert await db.one("SELECT body FROM notes WHERE agent_id = :agent_id") == {"body": read}


async def test_agents_do_not_see_each_other(open_engine: Opener) -> None:
    """`:agent_id` is filled in by the database: two bots share one, and each has its own rows."""
    async with open_engine(agent_id="one") as first, open_engine(agent_id="two") as second:
        await first.write(PUT, {"id": "a", "body": ""})

        assert (await ids(first), await ids(second)) == (["a"], [])


# ---------------------------------------------------------------------------------------------- transactions


async def test_an_exception_rolls_back(db: Database) -> None:
    """What is raised inside a transaction comes out of it, and nothing of it stays."""
    with pytest.raises(LookupError):
        async with db.transaction() as tx:
            await tx.run(PUT, {"id": "a", "body": ""})
            raise LookupError

    assert await ids(db) == []


async def test_the_next_transaction_finds_nothing_open(db: Database) -> None:
    """After one that was rolled back, and one that held no statement, the next begins and commits."""
    with pytest.raises(LookupError):
        async with db.transaction() as tx:
            await tx.run(PUT, {"id": "a", "body": ""})
            raise LookupError
    async with db.transaction():
        pass
    async with db.transaction() as tx:
        await tx.run(PUT, {"id": "b", "body": ""})

    assert await ids(db) == ["b"]


async def test_reading_first_then_writing(db: Database) -> None:
    """A transaction that begins with a SELECT holds back other writers from there on: what it read stays true."""
    await db.write("INSERT INTO notes (agent_id, id, size) VALUES (:agent_id, 'n', 0)")

    async def increase() -> None:
        async with db.transaction() as tx:
            row = await tx.one("SELECT size FROM notes WHERE agent_id = :agent_id AND id = 'n'")
            assert row is not None
            await asyncio.sleep(0)
            await tx.run("UPDATE notes SET size = :size WHERE agent_id = :agent_id AND id = 'n'", {"size": row["size"] + 1})

    await asyncio.gather(*(increase() for _ in range(20)))

    assert await db.one("SELECT size FROM notes WHERE agent_id = :agent_id") == {"size": 20}


async def test_a_neighbours_rollback_takes_nothing_along(db: Database) -> None:
    """An insert that was acknowledged stays while other tasks roll back all around it."""

    async def fails(n: int) -> None:
        with pytest.raises(LookupError):
            async with db.transaction() as tx:
                await tx.run(PUT, {"id": f"bad{n}", "body": ""})
                await asyncio.sleep(0)
                raise LookupError

    async def succeeds(n: int) -> str:
        await db.write(PUT, {"id": f"good{n:02}", "body": ""})
        return f"good{n:02}"

    done = await asyncio.gather(*(work for n in range(25) for work in (fails(n), succeeds(n))))

    assert await ids(db) == [name for name in done if name]


async def test_a_failed_statement_ends_a_transaction(db: Database) -> None:
    """Whoever goes on after a StorageError inside a transaction gets another, and nothing is written: on every engine alike."""
    with pytest.raises(StorageError):
        async with db.transaction() as tx:
            await tx.run(PUT, {"id": "a", "body": ""})
            with pytest.raises(StorageError):
                await tx.run("INSERT INTO nowhere (x) VALUES (1)")
            with pytest.raises(StorageError):
                await tx.run(PUT, {"id": "b", "body": ""})

    assert await ids(db) == []


async def test_a_swallowed_failure_is_not_a_commit(db: Database) -> None:
    """A transaction whose last statement failed says so at its end, though nobody let the error out."""
    with pytest.raises(StorageError):
        async with db.transaction() as tx:
            await tx.run(PUT, {"id": "a", "body": ""})
            with pytest.raises(StorageError):
                await tx.run(PUT, {"id": "a", "body": ""})

    assert await ids(db) == []


async def test_a_transaction_is_over_at_its_end(db: Database) -> None:
    """What was kept of a transaction cannot write into somebody else's."""
    async with db.transaction() as kept:
        pass

    with pytest.raises(RuntimeError, match="over"):
        await kept.run(PUT, {"id": "a", "body": ""})


async def test_a_transaction_inside_another(db: Database) -> None:
    """It would wait for itself: that is said at once, and the outer one can go on."""
    async with db.transaction() as tx:
        with pytest.raises(RuntimeError, match="inside"):
            async with db.transaction():
                pass
        with pytest.raises(RuntimeError, match="inside"):
            await db.write(PUT, {"id": "b", "body": ""})
        await tx.run(PUT, {"id": "a", "body": ""})

    assert await ids(db) == ["a"]


async def test_reading_inside_a_transaction_does_not_wait(db: Database) -> None:
    """A task that reads beside its own open transaction gets an answer, in tasks of its own too."""
    async with asyncio.timeout(5), db.transaction() as tx:
        await tx.run(PUT, {"id": "a", "body": ""})
        await db.one("SELECT 1 AS one")
        both = await asyncio.gather(db.one("SELECT 1 AS one"), db.one("SELECT 2 AS one"))

    assert both == [{"one": 1}, {"one": 2}]


async def test_others_do_not_see_what_is_not_committed(db: Database) -> None:
    """Another task sees the rows of a transaction when it is through, and not before."""
    inside, seen = asyncio.Event(), asyncio.Event()

    async def look() -> list[str]:
        await inside.wait()
        found = asyncio.ensure_future(ids(db))
        await asyncio.wait([found], timeout=0.05)  # in memory it waits for the transaction's end
        seen.set()
        return await found

    looking = asyncio.create_task(look())
    with pytest.raises(LookupError):
        async with db.transaction() as tx:
            await tx.run(PUT, {"id": "a", "body": ""})
            inside.set()
            await seen.wait()
            raise LookupError

    assert await looking == []


async def test_a_task_started_inside_outlives_the_transaction(db: Database) -> None:
    """A task that was started inside a transaction counts as outside once that has ended: it sees nothing of the next."""
    go = asyncio.Event()

    async def later() -> list[str]:
        await go.wait()
        return await ids(db)

    async with db.transaction():
        started = asyncio.create_task(later())
        await asyncio.sleep(0)
    with pytest.raises(LookupError):
        async with db.transaction() as tx:
            await tx.run(PUT, {"id": "a", "body": ""})
            go.set()
            await asyncio.wait([started], timeout=0.05)
            raise LookupError

    assert await started == []


# ---------------------------------------------------------------------------------------------- cancellation


async def work(db: Database, rows: int) -> None:
    """A transaction with every kind of statement in it, and a moment between them."""
    async with db.transaction() as tx:
        await tx.one(IDS)
        await tx.run(PUT, {"id": "a", "body": ""})
        await asyncio.sleep(0)
        await tx.many(PUT, [{"id": f"b{n}", "body": ""} for n in range(rows - 1)])
        await asyncio.sleep(0)
        await tx.run("UPDATE notes SET body = 'x' WHERE agent_id = :agent_id")


@pytest.mark.parametrize("rows", [3, 1000])
@pytest.mark.parametrize("twice", [False, True])
async def test_cancelled_at_every_step(db: Database, twice: bool, rows: int) -> None:
    """Wherever a transaction is cancelled, all of it is there or nothing, no lock is held, and the next one works at once."""
    outcomes: set[str] = set()
    for steps in range(MOST_STEPS):
        task = asyncio.create_task(work(db, rows))
        for _ in range(steps):
            if task.done():
                break
            await asyncio.sleep(0.0002)
        task.cancel()
        if twice:
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.wait([task])
        async with asyncio.timeout(5):
            left = await ids(db)
            await db.write("DELETE FROM notes WHERE agent_id = :agent_id")

        assert len(left) in (0, rows)
        outcomes.add(f"{'cancelled' if task.cancelled() else 'done'} {len(left)}")
    assert {"cancelled 0", f"done {rows}"} <= outcomes


async def test_cancelled_while_it_waits_for_its_turn(db: Database) -> None:
    """Who is cancelled in the queue of writers leaves it, and those behind go on."""
    async with db.transaction() as tx:
        await tx.run(PUT, {"id": "a", "body": ""})
        waiting = [asyncio.create_task(db.write(PUT, {"id": name, "body": ""})) for name in "bc"]
        await asyncio.sleep(0)
        waiting[0].cancel()

    await asyncio.wait(waiting, timeout=5)
    assert await ids(db) == ["a", "c"]


async def test_a_cancelled_write_is_whole(db: Database) -> None:
    """A single statement that is cancelled happened or did not, and what follows sees which."""
    for n in range(30):
        task = asyncio.create_task(db.write(PUT, {"id": f"{n:02}", "body": ""}))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        async with db.transaction() as tx:
            there = await tx.one("SELECT count(*) AS n FROM notes WHERE agent_id = :agent_id")
            changed = await tx.run("DELETE FROM notes WHERE agent_id = :agent_id")

        assert there == {"n": changed}


# ---------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        ("SELECT nothing FROM nowhere", {}),
        ("SELEKT 1", {}),
        (PUT, {"id": None, "body": ""}),
        (PUT, {"id": "a", "body": object()}),
        (PUT, {"id": "a"}),
        ("INSERT INTO notes (agent_id, id, size) VALUES (:agent_id, 'a', :size)", {"size": 2**64}),
    ],
)
async def test_every_failure_is_a_storage_error(db: Database, sql: str, params: dict[str, object]) -> None:
    """Whatever the engine raises comes out as ours, with the engine's own behind it; and the database goes on."""
    with pytest.raises(StorageError) as caught:
        await db.write(sql, params)
    with pytest.raises(StorageError):
        await db.all(sql, params)
    with pytest.raises(StorageError):
        async with db.transaction() as tx:
            await tx.run(sql, params)

    assert caught.value.__cause__ is not None
    await db.write(PUT, {"id": "after", "body": ""})
    assert await ids(db) == ["after"]


async def test_scrubbing_keeps_what_is_there(db: Database) -> None:
    """Overwriting what was deleted leaves the rest as it was."""
    async with db.transaction() as tx:
        await tx.many(PUT, [{"id": f"{n:03}", "body": "x" * n} for n in range(200)])
        await tx.run("DELETE FROM notes WHERE agent_id = :agent_id AND size IS NULL AND id > '100'")
    before = await ids(db)

    assert await db.scrub()
    assert await ids(db) == before
    assert len(before) == 101
