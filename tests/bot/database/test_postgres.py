"""What only PostgreSQL can get wrong: addresses, servers that go away, other processes, and what stays of deleted rows."""

import asyncio
import traceback
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bot import ConfigurationError, Database, StorageError, open_database
from bot.app import configure
from bot.database import password, postgres, shown
from bot.database.postgres import CONNECTIONS, fault
from bot.log import Redaction
from bot.registry import Registry
from tests.standins.postgres_server import PASSWORD, PostgresServer

PLANT = "INSERT INTO users (agent_id, user_id, profile, created_at, updated_at) VALUES (:agent_id, :id, :body, 0, 0)"
DELETE = "DELETE FROM users WHERE agent_id = :agent_id AND user_id = :id"
IDS = "SELECT user_id FROM users WHERE agent_id = :agent_id ORDER BY user_id"
OTHERS = "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'sabio'"
BREAK = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sabio'"


@pytest.fixture
async def db(postgres_url: str) -> AsyncIterator[Database]:
    """An open database with the process's tables."""
    async with open_database(postgres_url) as database:
        yield database


async def ids(db: Database) -> list[str]:
    """Who is in `users`."""
    return [row["user_id"] for row in await db.all(IDS)]


# ---------------------------------------------------------------------------------------------- addresses, and servers that do not answer


async def opening_fails(url: str) -> str:
    """What opening a database says that cannot be opened: on one line, and without the password, in its traceback too."""
    with pytest.raises((StorageError, ConfigurationError)) as caught:
        async with open_database(url):
            pass
    assert "\n" not in str(caught.value)
    told = "".join(traceback.format_exception(caught.value))
    assert "s3cret" not in told
    return str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "ana:s3cret@host:port/db",
        "ana:s3cret/word@host/db",
        "ana:s3cret@host:99999999/db",
        "ana:s3cret#@[::/db",
        "ana:s3cret@host/db?port=x",
    ],
)
async def test_an_address_that_cannot_be_read(address: str) -> None:
    """It names the variable, and how a password is written that has such signs."""
    said = await opening_fails(f"postgresql://{address}")

    assert "BOT_DATABASE_URL" in said


async def test_a_wrong_password(postgres: PostgresServer) -> None:
    """It says what to check."""
    said = await opening_fails(postgres.url(password="s3cret"))

    assert "password authentication failed" in said
    assert "check the user and the password in BOT_DATABASE_URL" in said


async def test_a_database_that_is_not_there(postgres: PostgresServer) -> None:
    """It is named, and how it is made."""
    said = await opening_fails(postgres.url("nowhere"))

    assert "127.0.0.1" in said
    assert '"nowhere" does not exist' in said
    assert "createdb" in said


async def test_a_server_that_is_down() -> None:
    """Nobody listens there."""
    said = await opening_fails("postgresql://ana:s3cret@127.0.0.1:1/db")

    assert "'postgresql://127.0.0.1:1/db'" in said
    assert "check that the server is up" in said


async def test_another_encoding(postgres: PostgresServer) -> None:
    """A database that cannot hold every text is refused before anything is made in it."""
    name = f"ascii_{uuid.uuid4().hex}"
    postgres.psql(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0")

    assert "ENCODING 'UTF8'" in await opening_fails(postgres.url(name))


def test_what_a_server_has_to_be() -> None:
    """New enough, and with an encoding for every text."""
    assert fault(15, "UTF8") == fault(18, "utf-8") == ""
    assert "PostgreSQL 14, and the bot needs 15" in fault(14, "UTF8")
    assert "LATIN1" in fault(18, "LATIN1")


@pytest.mark.parametrize(
    ("url", "is_shown", "secret"),
    [
        ("postgresql://ana:s3%40cret@host:5432/db", "postgresql://host:5432/db", "s3@cret"),
        ("postgres://host/db?user=ana&password=s3cret", "postgres://host/db", "s3cret"),
        ("postgresql://ana:s3@cret@host/db?sslmode=require", "postgresql://host/db", "s3@cret"),
        ("postgresql:///db?host=/run/postgresql", "postgresql:///db", ""),
        ("sqlite:///data/bot.db", "sqlite:///data/bot.db", ""),
    ],
)
def test_what_is_shown_of_an_address(url: str, is_shown: str, secret: str) -> None:
    """Where it is, never who with what password; the log knows the password, to take it out."""
    assert (shown(url), password(url)) == (is_shown, secret)


def test_the_log_hides_the_password(postgres_url: str) -> None:
    """In an address it is one of the secrets of the process, as it is and as it is written there."""
    configuration = configure({"BOT_DATABASE_URL": postgres_url}, registry=Registry(), toml=Path("no such file"))
    clean = Redaction(configuration.secrets).clean

    assert "s3cret" not in clean(f"{postgres_url} {PASSWORD}")


async def test_a_role_that_may_make_nothing(postgres: PostgresServer) -> None:
    """The error says what rights are missing."""
    name = f"guest_{uuid.uuid4().hex}"
    postgres.psql(f"CREATE ROLE {name} LOGIN PASSWORD 's3cret'")

    said = await opening_fails(postgres.url().replace("postgres:s3cret%2Fpass%40word", f"{name}:s3cret"))
    assert "permission denied" in said
    assert "to own its tables" in said


# ---------------------------------------------------------------------------------------------- connections


async def test_connections_are_bounded(postgres: PostgresServer, db: Database) -> None:
    """However much is asked at once, a process has few; all of it is answered."""
    seen = await asyncio.gather(*(db.one(OTHERS) for _ in range(60)))

    assert max(row["n"] for row in seen if row) <= CONNECTIONS


async def test_closing_leaves_no_connection(postgres: PostgresServer, postgres_url: str) -> None:
    """Cancelled with statements under way too."""

    async def use() -> None:
        async with open_database(postgres_url) as db, asyncio.TaskGroup() as tasks:
            for n in range(50):
                tasks.create_task(db.write(PLANT, {"id": str(n), "body": ""}))

    using = asyncio.create_task(use())
    await asyncio.sleep(0.1)
    using.cancel()
    await asyncio.wait([using], timeout=10)

    async with asyncio.timeout(10):
        while postgres.psql(OTHERS) != "0\n":  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)


async def test_a_connection_that_is_lost_in_the_middle(postgres: PostgresServer, db: Database) -> None:
    """The transaction fails as every other does, nothing of it is written, and the next one works."""
    with pytest.raises(StorageError, match="the server went away"):
        async with db.transaction() as tx:
            await tx.run(PLANT, {"id": "a", "body": ""})
            await asyncio.to_thread(postgres.psql, BREAK)
            await tx.run(PLANT, {"id": "b", "body": ""})
    await db.write(PLANT, {"id": "c", "body": ""})

    assert await ids(db) == ["c"]


async def test_a_server_that_starts_again(postgres: PostgresServer, db: Database) -> None:
    """While it is down each statement says so; when it is up the same process goes on."""
    await db.write(PLANT, {"id": "a", "body": ""})
    await asyncio.to_thread(postgres.stop)
    try:
        with pytest.raises(StorageError, match="the server"):
            await db.write(PLANT, {"id": "b", "body": ""})
        with pytest.raises(StorageError):
            await ids(db)
    finally:
        await asyncio.to_thread(postgres.start)
    await db.write(PLANT, {"id": "c", "body": ""})

    assert await ids(db) == ["a", "c"]


async def test_it_is_killed_in_the_middle_of_a_transaction(postgres: PostgresServer, db: Database) -> None:
    """A server that dies as in a crash has nothing of what was not committed when it is back."""
    with pytest.raises(StorageError):
        async with db.transaction() as tx:
            await tx.run(PLANT, {"id": "a", "body": ""})
            await asyncio.to_thread(postgres.crash)
            await tx.run(PLANT, {"id": "b", "body": ""})

    assert await ids(db) == []


# ---------------------------------------------------------------------------------------------- other processes


async def test_writers_of_two_processes_wait_for_each_other(postgres_url: str) -> None:
    """What a transaction has read stays true until it ends, whichever process would write: the bots of one id have one writer."""
    async with AsyncExitStack() as stack:
        processes = [await stack.enter_async_context(open_database(postgres_url)) for _ in range(3)]
        await processes[0].write(PLANT, {"id": "n", "body": "0"})

        async def increase(db: Database) -> None:
            for _ in range(10):
                async with db.transaction() as tx:
                    row = await tx.one("SELECT profile FROM users WHERE agent_id = :agent_id AND user_id = 'n'")
                    assert row is not None
                    await asyncio.sleep(0)
                    await tx.run(
                        "UPDATE users SET profile = :body WHERE agent_id = :agent_id AND user_id = 'n'",
                        {"body": str(int(row["profile"]) + 1)},
                    )

        await asyncio.gather(*map(increase, processes))

        assert await processes[1].one("SELECT profile FROM users WHERE agent_id = :agent_id") == {"profile": "30"}


async def test_writers_of_two_bots_do_not(postgres_url: str) -> None:
    """Another bot of the same database goes on."""
    async with open_database(postgres_url) as one, open_database(postgres_url, agent_id="other") as other, one.transaction() as tx:
        await tx.run(PLANT, {"id": "a", "body": ""})
        async with asyncio.timeout(5):
            await other.write(PLANT, {"id": "a", "body": ""})

        assert await ids(other) == ["a"]


async def test_who_waits_too_long_gives_up(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that holds the lock for long is an error to the other, not a hang; afterwards all goes on."""
    monkeypatch.setattr(postgres, "LOCK_SECONDS", 1)
    async with open_database(postgres_url) as impatient:
        monkeypatch.undo()
        async with open_database(postgres_url) as one:
            async with one.transaction() as tx:
                await tx.run(PLANT, {"id": "a", "body": ""})
                with pytest.raises(StorageError, match="another process is writing to it"):
                    await impatient.write(PLANT, {"id": "b", "body": ""})
            await impatient.write(PLANT, {"id": "c", "body": ""})

            assert await ids(one) == ["a", "c"]


async def test_cancelled_while_another_process_writes(postgres_url: str) -> None:
    """Who waits for it leaves at once, and writes nothing later."""
    async with open_database(postgres_url) as one, open_database(postgres_url) as other:
        async with one.transaction() as tx:
            await tx.run(PLANT, {"id": "a", "body": ""})
            waiting = asyncio.create_task(other.write(PLANT, {"id": "b", "body": ""}))
            await asyncio.sleep(0.1)
            waiting.cancel()
            await asyncio.wait([waiting], timeout=5)
            assert waiting.cancelled()
        await other.write(PLANT, {"id": "c", "body": ""})

        assert await ids(one) == ["a", "c"]


# ---------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        (PLANT, {"id": "taken", "body": "CANARY"}),
        (PLANT, {"id": "CANARY", "body": 7}),
        (PLANT, {"id": "CANARY", "body": None}),
        ("SELECT CAST(CAST(:x AS TEXT) AS BIGINT) AS n", {"x": "CANARY"}),
        ("UPDATE users SET created_at = :x WHERE agent_id = :agent_id", {"x": "CANARY"}),
    ],
)
async def test_an_error_quotes_no_values(db: Database, sql: str, params: dict[str, object]) -> None:
    """What people wrote does not reach the log by what the engine says of it, nor by what raised that."""
    await db.write(PLANT, {"id": "taken", "body": ""})
    with pytest.raises(StorageError) as caught:
        await db.write(sql, params)

    assert "CANARY" not in "".join(traceback.format_exception(caught.value))


async def test_a_sum_is_a_number(db: Database) -> None:
    """As any other: a sum over BIGINT is NUMERIC there."""
    await db.write(PLANT, {"id": "a", "body": ""})
    row = await db.one("SELECT sum(created_at + 2) AS n, sum(created_at) / 2.0 AS half, avg(created_at + 1) AS mean FROM users")

    assert row == {"n": 2, "half": 0.0, "mean": 1.0}
    assert row is not None
    assert isinstance(row["n"], int)


async def test_text_is_ordered_by_its_characters(db: Database) -> None:
    """In every text of every table, whatever language the database has; the documents are read from one id to the next."""
    sql = (
        "SELECT table_name || '.' || column_name AS name, collation_name FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND data_type = 'text'"
    )
    collations = {row["name"]: row["collation_name"] for row in await db.all(sql)}

    assert len(collations) > 20
    assert {name for name, collation in collations.items() if collation != "C"} == set()


# ---------------------------------------------------------------------------------------------- what stays behind


async def planted(db: Database, canary: str) -> list[str]:
    """Canaries of many sizes, rows of others in between."""
    names = [f"{canary}{n}" for n in range(60)]
    for n, name in enumerate(names):
        await db.write(PLANT, {"id": name, "body": canary + "x" * (n * 97 % 3_000)})
        await db.write(PLANT, {"id": f"other{n}", "body": "y" * (n * 37 % 900)})
    return names


async def test_nothing_stays_of_what_was_deleted(postgres: PostgresServer, postgres_url: str, db: Database) -> None:
    """No file of the server holds a byte of it but its log of changes: neither tables, indexes nor the samples of its planner."""
    canary = f"CANARY{uuid.uuid4().hex}"
    names = await planted(db, canary)
    schema = postgres_url.rpartition("=")[2]
    postgres.psql(f"ANALYZE {schema}.users")
    before = postgres.files_with(canary, schema)
    async with db.transaction() as tx:
        await tx.many(DELETE, [{"id": name} for name in names])
    postgres.psql(f"VACUUM {schema}.users")
    vacuumed = postgres.files_with(canary, schema)

    assert await db.scrub()
    postgres.psql("CHECKPOINT")
    files = [path for path in postgres.data.rglob("*") if path.is_file() and canary.encode() in path.read_bytes()]
    assert before == {"users", "users_pkey"}
    assert vacuumed  # else VACUUM would do
    assert {path.parent.name for path in files} <= {"pg_wal"}
    assert len(await ids(db)) == 60


async def test_a_reader_holds_a_scrub_up(postgres_url: str, db: Database) -> None:
    """While somebody is at an old state of the tables, it says that it has to come again; nobody waits for it."""
    async with open_database(postgres_url, agent_id="other") as other:
        await db.write(PLANT, {"id": "CANARY", "body": ""})
        async with other.transaction() as tx:
            await tx.all("SELECT user_id FROM users")
            await db.write(DELETE, {"id": "CANARY"})
            async with asyncio.timeout(5):
                held_up = await db.scrub()
                await db.write(PLANT, {"id": "meanwhile", "body": ""})

        assert held_up is False
        assert await db.scrub()
        assert await ids(db) == ["meanwhile"]


async def test_a_large_table_is_vacuumed(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for which nobody could wait is not written anew, and that is no failure."""
    monkeypatch.setattr(postgres, "MOST_REWRITTEN", 0)
    file = "SELECT pg_relation_filenode('users') AS n"
    await db.write(PLANT, {"id": "a", "body": ""})
    before = await db.one(file)

    assert await db.scrub()
    assert await db.one(file) == before


async def test_tables_of_somebody_else(postgres: PostgresServer, postgres_url: str, db: Database) -> None:
    """A role that does not own them cannot overwrite anything: that is an error which says so, and never a success."""
    name, schema = f"guest_{uuid.uuid4().hex}", postgres_url.rpartition("=")[2]
    rights = f"GRANT ALL ON SCHEMA {schema} TO {name}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {name}"
    postgres.psql(f"CREATE ROLE {name} LOGIN PASSWORD 'guest'; {rights}")
    url = postgres_url.replace("postgres:s3cret%2Fpass%40word", f"{name}:guest")
    async with open_database(url) as guest:
        await guest.write(PLANT, {"id": "a", "body": ""})
        with pytest.raises(StorageError, match="has to own"):
            await guest.scrub()
