"""What only SQLite can get wrong: modes, locks of other processes, full disks, and bytes that stay behind."""

import asyncio
import os
import random
import sqlite3
from collections.abc import Awaitable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bot import ConfigurationError, Database, StorageError, Transaction, open_database
from bot.database import connection as connections
from bot.database import sqlite as engine
from bot.registry import Migrations

PLANT = "INSERT INTO users (agent_id, user_id, profile, created_at, updated_at) VALUES (:agent_id, :id, :body, 0, 0)"
CHANGE = "UPDATE users SET profile = :body WHERE agent_id = :agent_id AND user_id = :id"
DELETE = "DELETE FROM users WHERE agent_id = :agent_id AND user_id = :id"
CANARY = b"CANARY"

NOTES = """
CREATE TABLE notes (agent_id TEXT NOT NULL, id TEXT NOT NULL, body TEXT, PRIMARY KEY (agent_id, id));
CREATE INDEX notes_body ON notes (agent_id, body);
"""
NOTE = "INSERT INTO notes (agent_id, id, body) VALUES (:agent_id, :id, :body)"
CHANGE_NOTE = "UPDATE notes SET body = :body WHERE agent_id = :agent_id AND id = :id"
DELETE_NOTE = "DELETE FROM notes WHERE agent_id = :agent_id AND id = :id"


def url(tmp_path: Path) -> str:
    """Of the database of a test."""
    return f"sqlite:///{tmp_path / 'bot.db'}"


@contextmanager
def neighbour(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection as another process has it."""
    with closing(sqlite3.connect(tmp_path / "bot.db", isolation_level=None, timeout=0)) as connection:
        yield connection


def left(tmp_path: Path) -> dict[str, int]:
    """How often the canary is in each file of the database."""
    return {path.name: path.read_bytes().count(CANARY) for path in sorted(tmp_path.glob("bot.db*"))}


async def pragma(db: Database, name: str) -> object:
    """What the writer's connection is set to."""
    async with db.transaction() as tx:
        row = await tx.one(f"PRAGMA {name}")
    return None if row is None else next(iter(row.values()))


async def test_the_modes_it_runs_in(tmp_path: Path) -> None:
    """Readers and the writer do not block each other, what is deleted is overwritten, and SQLite never waits where all others would."""
    async with open_database(url(tmp_path)) as db:
        modes = [await pragma(db, name) for name in ("journal_mode", "secure_delete", "busy_timeout", "temp_store")]

    assert modes == ["wal", 1, 0, 2]


async def test_the_folder_is_made(tmp_path: Path) -> None:
    """A database in a folder that is not there yet makes it."""
    async with open_database(f"sqlite:///{tmp_path}/new/folder/bot.db") as db:
        await db.one("SELECT 1 AS one")

    assert (tmp_path / "new" / "folder" / "bot.db").exists()


@pytest.mark.parametrize("bad", ["", "sqlite:///", "sqlite://bot.db", "bot.db", "mysql://x/y", "mysql://bot:s3cret@host/db"])
async def test_a_url_that_cannot_work(bad: str) -> None:
    """It is refused in one line that names the variable, and a password in it is not shown."""
    with pytest.raises(ConfigurationError, match="BOT_DATABASE_URL") as caught:
        async with open_database(bad):
            pass

    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value)


async def test_a_password_in_a_url_is_not_shown() -> None:
    """Also where the engine is one that nobody knows."""
    with pytest.raises(ConfigurationError) as caught:
        async with open_database("postgresql+asyncpg://bot:s3cret@host/db"):
            pass

    assert "s3cret" not in str(caught.value)


# ---------------------------------------------------------------------------------------------- what can be wrong with a file


async def opening_fails(path: Path) -> str:
    """What opening a database says that cannot be opened."""
    with pytest.raises(StorageError) as caught:
        async with open_database(f"sqlite:///{path}"):
            pass
    return str(caught.value)


async def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    """The error names it and says what to look at."""
    (tmp_path / "bot.db").mkdir()

    said = await opening_fails(tmp_path / "bot.db")
    assert "bot.db" in said
    assert "check that its folder exists and may be written" in said


async def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    """A path below a file cannot be made."""
    (tmp_path / "file").write_text("x")

    assert "file" in await opening_fails(tmp_path / "file" / "bot.db")


async def test_something_else_in_the_file(tmp_path: Path) -> None:
    """A file that is no database is left as it is, and named."""
    (tmp_path / "bot.db").write_text("Dear diary, " * 100)

    assert "is not a database" in await opening_fails(tmp_path / "bot.db")
    assert (tmp_path / "bot.db").read_text() == "Dear diary, " * 100


async def broken(db: Database, setting: str) -> str:
    """What a write says once the writer's connection was set so that it cannot write."""
    async with db.transaction() as tx:
        await tx.all(f"PRAGMA {setting}")
    with pytest.raises(StorageError) as caught:
        async with db.transaction() as tx:
            for n in range(100):
                await tx.run(PLANT, {"id": str(n), "body": "x" * 10_000})
    return str(caught.value)


async def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A transaction that does not fit leaves nothing, says so, and the next one works when there is room."""
    async with open_database(url(tmp_path)) as db:
        said = await broken(db, "max_page_count = 40")
        held = await db.all("SELECT user_id FROM users")
        async with db.transaction() as tx:
            await tx.all("PRAGMA max_page_count = 100000")
        await db.write(PLANT, {"id": "after", "body": "x" * 1_000_000})

    assert said.endswith("database or disk is full: make room on the disk")
    assert held == []


async def test_a_file_that_may_only_be_read(tmp_path: Path) -> None:
    """Writing says so, and reading goes on."""
    async with open_database(url(tmp_path)) as db:
        said = await broken(db, "query_only = ON")

        assert await db.all("SELECT user_id FROM users") == []
        assert "attempt to write a readonly database: check that the file and its folder may be written" in said


async def test_another_process_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for; where that takes too long the error says why, readers go on meanwhile, and afterwards all is well."""
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.1)
    async with open_database(url(tmp_path)) as db:
        with neighbour(tmp_path) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StorageError, match="locked: another process is writing"):
                await db.write(PLANT, {"id": "a", "body": ""})
            with pytest.raises(StorageError, match="locked"):
                async with db.transaction() as tx:
                    await tx.run(PLANT, {"id": "a", "body": ""})
            read = await db.all("SELECT user_id FROM users")
            waiting = asyncio.create_task(db.write(PLANT, {"id": "b", "body": ""}))
            await asyncio.sleep(0.02)
            other.execute("COMMIT")
            await waiting

        assert read == []
        assert await db.all("SELECT user_id FROM users") == [{"user_id": "b"}]


async def test_it_closes_under_cancellation(tmp_path: Path) -> None:
    """A task that is cancelled with a database open, statements under way, leaves no lock on the file."""

    async def use() -> None:
        async with open_database(url(tmp_path)) as db, asyncio.TaskGroup() as tasks:
            for n in range(50):
                tasks.create_task(db.write(PLANT, {"id": str(n), "body": ""}))

    using = asyncio.create_task(use())
    await asyncio.sleep(0.05)
    using.cancel()
    await asyncio.wait([using], timeout=5)

    with neighbour(tmp_path) as other:
        other.execute("BEGIN EXCLUSIVE")
        other.execute("ROLLBACK")


# ---------------------------------------------------------------------------------------------- what is long

COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT max(i) AS most FROM n"
FILL = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})"
    " INSERT INTO users (agent_id, user_id, profile, created_at, updated_at) SELECT :agent_id, 'user' || i, '{{}}', 0, 0 FROM n"
)
LONG = 2_000_000  # steps: about half a second
MANY = 100_000
GOES_ON = 20  # turns of the event loop, where one that is held up has two or three


async def turns_during(work: Awaitable[object]) -> tuple[int, object]:
    """How many turns the event loop has for others while something is done, and what that gives."""
    task = asyncio.ensure_future(work)
    turns = 0
    while not task.done():
        turns += 1
        await asyncio.sleep(0.001)
    return turns, task.result()


async def test_a_long_read_holds_nobody_up(tmp_path: Path) -> None:
    """Others go on while it is under way, they read and write too, and each gets its own."""
    async with open_database(url(tmp_path)) as db:

        async def others() -> list[str]:
            for n in range(3):
                await db.write(PLANT, {"id": str(n), "body": ""})
            return [row["user_id"] for row in await db.all("SELECT user_id FROM users ORDER BY user_id")]

        for _ in range(2):  # the second time it is known
            long, short = asyncio.create_task(turns_during(db.one(COUNT.format(LONG)))), asyncio.create_task(others())
            turns, found = await long
            assert await short == ["0", "1", "2"]
            assert found == {"most": LONG}
            assert turns > GOES_ON
            await db.write("DELETE FROM users")


async def test_a_long_write_holds_nobody_up(tmp_path: Path) -> None:
    """By itself and within a transaction, it is done once, and whole."""
    async with open_database(url(tmp_path)) as db:
        alone, _ = await turns_during(db.write(FILL.format(MANY)))
        count = await db.one("SELECT count(*) AS n FROM users")

        async def inside() -> int:
            async with db.transaction() as tx:
                await tx.many(DELETE, [{"id": f"user{n}"} for n in range(1, MANY // 4)])
                return await tx.run("DELETE FROM users")

        within, deleted = await turns_during(inside())

    assert count == {"n": MANY}
    assert deleted == MANY - MANY // 4 + 1
    assert min(alone, within) > GOES_ON


async def test_a_wait_for_another_process_holds_nobody_up(tmp_path: Path) -> None:
    """Its lock is tried again and again in between."""
    async with open_database(url(tmp_path)) as db:
        with neighbour(tmp_path) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = asyncio.create_task(turns_during(db.write(PLANT, {"id": "a", "body": ""})))
            await asyncio.sleep(0.2)
            other.execute("COMMIT")
            turns, _ = await waiting

    assert turns > GOES_ON


async def test_what_never_ends_can_be_cancelled(tmp_path: Path) -> None:
    """The thread is free again, nothing was written, and the next ones work."""
    async with open_database(url(tmp_path)) as db:
        for endless in (db.write(FILL.format(10**15)), db.all(COUNT.format(10**15))):
            task = asyncio.create_task(endless)
            await asyncio.sleep(0.1)
            task.cancel()
            async with asyncio.timeout(10):
                await asyncio.wait([task])
            assert task.cancelled()

        assert await db.all("SELECT user_id FROM users") == []
        assert await db.one(COUNT.format(LONG)) == {"most": LONG}
        await db.write(PLANT, {"id": "a", "body": ""})


async def test_one_of_several_fills_the_disk(tmp_path: Path) -> None:
    """What comes together is committed together, and still only the one that does not fit fails, whatever it undid of the others."""
    async with open_database(url(tmp_path)) as db:
        await pragma(db, "max_page_count = 60")
        sizes = [10, 10, 1_000_000, 10]
        done = await asyncio.gather(
            *(db.write(PLANT, {"id": f"{n}", "body": "x" * size}) for n, size in enumerate(sizes)), return_exceptions=True
        )
        held = await db.all("SELECT user_id FROM users ORDER BY user_id")

    assert [isinstance(one, StorageError) for one in done] == [False, False, True, False]
    assert [row["user_id"] for row in held] == ["0", "1", "3"]


async def test_one_of_several_is_long(tmp_path: Path) -> None:
    """It is done once and so are the others, one that is cancelled meanwhile holds nobody up."""
    async with open_database(url(tmp_path)) as db:
        endless = asyncio.create_task(db.write(FILL.format(10**15)))
        others = [asyncio.create_task(db.write(PLANT, {"id": name, "body": ""})) for name in "ab"]
        await asyncio.sleep(0.1)
        endless.cancel()
        async with asyncio.timeout(20):
            await asyncio.gather(*others)
        held = await db.all("SELECT user_id FROM users ORDER BY user_id")

    assert held == [{"user_id": "a"}, {"user_id": "b"}]


async def test_several_wait_for_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait together; where it takes too long each says so."""
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.1)
    async with open_database(url(tmp_path)) as db:
        with neighbour(tmp_path) as other:
            other.execute("BEGIN IMMEDIATE")
            refused = await asyncio.gather(*(db.write(PLANT, {"id": name, "body": ""}) for name in "abc"), return_exceptions=True)
            waiting = asyncio.gather(*(db.write(PLANT, {"id": name, "body": ""}) for name in "de"))
            await asyncio.sleep(0.02)
            other.execute("COMMIT")
            await waiting

        assert all("locked" in str(error) and isinstance(error, StorageError) for error in refused)
        assert await db.all("SELECT user_id FROM users ORDER BY user_id") == [{"user_id": "d"}, {"user_id": "e"}]


async def test_a_statement_is_executed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However late SQLite says that it took too long: it may say so of one that is through."""
    monkeypatch.setattr(engine, "QUICK", 0.0)
    monkeypatch.setattr(connections, "LONG_FOR", 0.0)
    async with open_database(url(tmp_path)) as db:
        for n in range(600):
            await db.write(PLANT, {"id": str(n), "body": ""})
            await db.write("UPDATE users SET updated_at = updated_at + 1 WHERE user_id = :id", {"id": str(n)})
        held = await db.one("SELECT count(*) AS n, min(updated_at) AS least, max(updated_at) AS most FROM users")

    assert held == {"n": 600, "least": 1, "most": 1}


async def test_a_long_write_waits_for_another_process(tmp_path: Path) -> None:
    """One that is known to be long too."""
    async with open_database(url(tmp_path)) as db:
        await db.write(FILL.format(MANY))
        with neighbour(tmp_path) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = asyncio.create_task(db.write(FILL.replace("'user'", "'more'").format(MANY)))
            await asyncio.sleep(0.1)
            other.execute("COMMIT")
            await waiting
            other.execute("BEGIN IMMEDIATE")
            again = asyncio.create_task(db.write(FILL.replace("'user'", "'other'").format(3)))
            known = asyncio.create_task(db.write("DELETE FROM users"))
            await asyncio.sleep(0.1)
            other.execute("COMMIT")
            await asyncio.gather(again, known)

        assert await db.one("SELECT count(*) AS n FROM users") == {"n": 0}


async def test_the_statements_of_a_transaction_come_one_after_the_other(tmp_path: Path) -> None:
    """Two at once are refused, and nothing is written."""
    async with open_database(url(tmp_path)) as db:
        with pytest.raises(RuntimeError, match="one after the other"):
            async with db.transaction() as tx:
                await tx.many(PLANT, [{"id": str(n), "body": ""} for n in range(100)])
                await asyncio.gather(tx.run(CHANGE, {"id": "1", "body": "a"}), tx.run(CHANGE, {"id": "2", "body": "b"}))

        assert await db.all("SELECT user_id FROM users") == []


@pytest.mark.parametrize("changed", [False, True])
async def test_it_closes_while_others_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: bool) -> None:
    """Whoever waits to write, or holds a transaction open, holds it up for a while at most; what was acknowledged is there."""
    monkeypatch.setattr(engine, "CLOSING_SECONDS", 0.1)
    acknowledged, go_on = 0, asyncio.Event()
    async with asyncio.timeout(20):
        async with open_database(url(tmp_path)) as db:

            async def writes() -> None:
                nonlocal acknowledged
                while True:
                    await db.write(PLANT, {"id": f"{acknowledged}", "body": ""})
                    acknowledged += 1

            async def holds() -> None:
                async with db.transaction() as tx:
                    await tx.run(PLANT, {"id": "held", "body": ""})
                    await go_on.wait()
                    await tx.run(PLANT, {"id": "held too", "body": ""})

            writing = asyncio.create_task(writes())
            await asyncio.sleep(0.05 if changed else 0)
            holding = asyncio.create_task(holds())
            await asyncio.sleep(0.02)
        go_on.set()
        done, _ = await asyncio.wait([writing, holding])
    with neighbour(tmp_path) as process:
        held = process.execute("SELECT count(*) FROM users").fetchall()

    assert all(task.cancelled() or isinstance(task.exception(), StorageError) for task in done)
    assert held == [(acknowledged,)]


async def test_a_long_log_of_few_rows(tmp_path: Path) -> None:
    """It is brought into the file too."""
    async with open_database(url(tmp_path)) as db:
        for n in range(1_000):
            await db.write(PLANT, {"id": str(n), "body": "x" * 100_000})
        size = (tmp_path / "bot.db-wal").stat().st_size

    assert size < 64 << 20  # of 100 MB that were written


async def test_short_ones_let_others_have_their_turn(tmp_path: Path) -> None:
    """A task that asks and asks and waits for nothing else does not keep the event loop to itself."""
    asked = 0
    async with open_database(url(tmp_path)) as db:

        async def asks() -> None:
            nonlocal asked
            while True:
                await db.one("SELECT 1 AS one")
                asked += 1

        asking = asyncio.create_task(asks())
        for _ in range(5):
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])

    assert 0 < asked < 1000


async def test_the_log_does_not_grow(tmp_path: Path) -> None:
    """What was written goes from the log into the file, while it is open and by who closes it although others have it open."""
    async with open_database(url(tmp_path)) as other:
        async with open_database(url(tmp_path)) as db:
            for n in range(20_000):
                await db.write("INSERT INTO subjects (agent_id, subject, epoch, writes) VALUES (:agent_id, :id, 0, 0)", {"id": str(n)})
            size = (tmp_path / "bot.db-wal").stat().st_size
        (tmp_path / "alone.db").write_bytes((tmp_path / "bot.db").read_bytes())
        with closing(sqlite3.connect(tmp_path / "alone.db")) as file:
            held = file.execute("SELECT count(*) FROM subjects").fetchall()
        await other.one("SELECT 1 AS one")

    assert held == [(20_000,)]
    assert size < 64 << 20  # three pages a row are 240 MB


# ---------------------------------------------------------------------------------------------- what stays behind


async def plant(tx: Transaction, size: int) -> list[str]:
    """Canaries of many sizes in a row, rows of others in between."""
    planted = []
    for n in range(40):
        await tx.run(PLANT, {"id": f"CANARY{n}", "body": "CANARY" + "x" * (size * n // 40)})
        await tx.run(PLANT, {"id": f"other{n}", "body": "y" * (n * 37 % 900)})
        planted.append(f"CANARY{n}")
    return planted


@pytest.mark.parametrize("size", [10, 500, 20_000])
async def test_nothing_stays_of_what_was_deleted(tmp_path: Path, size: int) -> None:
    """Neither the file nor its log holds a byte of it, on overflow pages and in indexes too, while the database is still open."""
    async with open_database(url(tmp_path)) as db:
        async with db.transaction() as tx:
            planted = await plant(tx, size)
        before = left(tmp_path)
        async with db.transaction() as tx:
            await tx.many(DELETE, [{"id": one} for one in planted])

        assert await db.scrub()
        assert before["bot.db-wal"] > 0
        assert left(tmp_path) == {"bot.db": 0, "bot.db-shm": 0, "bot.db-wal": 0}


async def test_nothing_stays_of_what_was_shortened(tmp_path: Path) -> None:
    """A value that was replaced by a shorter one is gone as well."""
    async with open_database(url(tmp_path)) as db:
        for n, size in enumerate((20, 3_000, 50_000)):
            await db.write(PLANT, {"id": str(n), "body": "x" * size + "CANARY"})
        await db.scrub()
        before = left(tmp_path)
        for n in range(3):
            await db.write(CHANGE, {"id": str(n), "body": "{}"})

        assert await db.scrub()
        assert before["bot.db"] == 3
        assert sum(left(tmp_path).values()) == 0


async def shuffled(db: Database, seed: int) -> None:
    """Rows come, change and go in any order, among those of others; in the end none of the canaries is left."""
    chance = random.Random(seed)
    there: list[str] = []
    async with db.transaction() as tx:
        for _ in range(400):
            name = f"CANARY{chance.random()}"
            if chance.random() < 0.6 or not there:
                there.append(name)
                await tx.run(NOTE, {"id": name, "body": name + "z" * chance.choice([0, 5, 100, 900, 6000])})
            elif chance.random() < 0.5:
                await tx.run(CHANGE_NOTE, {"id": chance.choice(there), "body": "CANARY" + "y" * chance.choice([0, 50, 1500])})
            else:
                await tx.run(DELETE_NOTE, {"id": there.pop(chance.randrange(len(there)))})
        for _ in range(50):
            await tx.run(NOTE, {"id": f"other{chance.random()}", "body": "plain" * chance.choice([1, 30, 300])})
        chance.shuffle(there)
        await tx.many(DELETE_NOTE, [{"id": one} for one in there])


async def test_nothing_stays_of_what_was_moved(tmp_path: Path) -> None:
    """SQLite leaves copies of rows behind as it moves them between pages, and `secure_delete` does not know of those."""
    copies = 0
    for seed in range(6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        (folder / "0001_notes.sql").write_text(NOTES, encoding="utf-8")
        async with open_database(url(folder), migrations=[Migrations("notes", folder)]) as db:
            await shuffled(db, seed)
            with neighbour(folder) as other:
                other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            copies += sum(left(folder).values())

            assert await db.scrub()
            assert sum(left(folder).values()) == 0
            assert await db.one("SELECT count(*) AS n FROM notes") == {"n": 50}
    assert copies > 0  # else this test has nothing to find


async def test_a_reader_holds_a_scrub_up(tmp_path: Path) -> None:
    """While a reader is at an old state of the file, scrubbing gives up soon, writers go on, and a later try succeeds."""
    async with open_database(url(tmp_path)) as db:
        await db.write(PLANT, {"id": "CANARY", "body": ""})
        with neighbour(tmp_path) as other:
            other.execute("BEGIN")
            other.execute("SELECT * FROM users").fetchall()
            await db.write(DELETE, {"id": "CANARY"})
            async with asyncio.timeout(3):
                scrubbing = asyncio.create_task(db.scrub())
                await asyncio.sleep(0.06)
                await db.write(PLANT, {"id": "meanwhile", "body": ""})
                held_up = await scrubbing
            other.execute("COMMIT")

        assert held_up is False
        assert await db.scrub()
        assert sum(left(tmp_path).values()) == 0


async def test_a_writer_holds_a_scrub_up(tmp_path: Path) -> None:
    """Another process that is writing is no error either."""
    async with open_database(url(tmp_path)) as db:
        with neighbour(tmp_path) as other:
            other.execute("BEGIN IMMEDIATE")
            held_up = await db.scrub()
            other.execute("ROLLBACK")

        assert held_up is False
        assert await db.scrub()


async def test_an_idle_reader_holds_nothing_up(tmp_path: Path) -> None:
    """A connection that is open and reads nothing at the moment is in nobody's way."""
    async with open_database(url(tmp_path)) as db, open_database(url(tmp_path)) as other:
        await db.write(PLANT, {"id": "CANARY", "body": ""})
        await other.all("SELECT * FROM users")
        await db.write(DELETE, {"id": "CANARY"})

        assert await db.scrub()
        assert sum(left(tmp_path).values()) == 0
        assert await other.all("SELECT * FROM users") == []


async def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    """The file, its log and what lies beside it; one that was there keeps the rights that somebody gave it."""
    (tmp_path / "old.db").touch(mode=0o640)
    async with open_database(f"sqlite:///{tmp_path}/new.db") as new, open_database(f"sqlite:///{tmp_path}/old.db") as old:
        for db in (new, old):
            await db.write("CREATE TABLE notes (id TEXT)")
        rights = {name: os.stat(tmp_path / name).st_mode & 0o777 for name in os.listdir(tmp_path)}

    assert {name: mode for name, mode in rights.items() if name.startswith("new")} == {
        "new.db": 0o600,
        "new.db-wal": 0o600,
        "new.db-shm": 0o600,
    }
    assert rights["old.db"] == 0o640
