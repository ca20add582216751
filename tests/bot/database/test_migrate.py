"""Tables are brought up to date once, in order, whoever starts at the same time; what is newer is left alone."""

import asyncio
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bot import ConfigurationError, StorageError, open_database
from bot.database.migrate import CORE, migrate, statements, versions_of
from bot.errors import SchemaTooNew
from bot.registry import Migrations
from tests.tables import tables

ROOT = Path(__file__).parents[3]
TABLE = "CREATE TABLE {name} (agent_id TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (agent_id, id));\n"
STARTER = """
import asyncio, sys
from pathlib import Path
from bot import open_database
from bot.registry import Migrations

async def main(url, folder):
    async with open_database(url, migrations=[Migrations("own", Path(folder))]) as db:
        print(len(await db.all("SELECT id FROM counted")))

asyncio.run(main(*sys.argv[1:]))
"""


def folder(tmp_path: Path, **files: str) -> Migrations:
    """Migrations of one owner: `_0001_name="SQL"`."""
    directory = tmp_path / "migrations"
    directory.mkdir(exist_ok=True)
    for name, text in files.items():
        (directory / f"{name.removeprefix('_')}.sql").write_text(text, encoding="utf-8")
    return Migrations("own", directory)


async def test_each_runs_once_and_in_order(tmp_path: Path, engine_url: str) -> None:
    """What ran is not run again; what is new runs at the next start."""
    own = folder(tmp_path, _0001_a=TABLE.format(name="a"), _0002_b="INSERT INTO a (agent_id, id) VALUES ('x', 'once');\n")
    for _ in range(2):
        async with open_database(engine_url, migrations=[own]) as db:
            rows = await db.all("SELECT id FROM a")
    folder(tmp_path, _0003_c="INSERT INTO a (agent_id, id) VALUES ('x', 'then');\n")
    async with open_database(engine_url, migrations=[own]) as db:
        later = await db.all("SELECT id FROM a ORDER BY id")

    assert rows == [{"id": "once"}]
    assert later == [{"id": "once"}, {"id": "then"}]


async def test_two_processes_start_together(tmp_path: Path, engine_url: str) -> None:
    """On a file that is not there yet each migration runs once, and every process comes up."""
    own = folder(
        tmp_path,
        _0001_counted=TABLE.format(name="counted"),
        _0002_rows="".join(f"INSERT INTO counted (agent_id, id) VALUES ('x', '{n}');\n" for n in range(50)),
    )
    command = [sys.executable, "-c", STARTER, engine_url, str(own.directory)]
    started = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: ASYNC220
        for _ in range(4)
    ]
    done = [process.communicate(timeout=60) for process in started]

    assert [(out.strip(), process.returncode) for (out, _), process in zip(done, started, strict=True)] == [("50", 0)] * 4, done


async def test_bots_of_one_database_start_together(engine_url: str) -> None:
    """Each has an id of its own, and the tables are everybody's: they are made once all the same."""
    async with AsyncExitStack() as stack:
        opening = (stack.enter_async_context(open_database(engine_url, agent_id=f"bot {n}")) for n in range(4))
        bots = await asyncio.gather(*opening)
        versions = [await bot.all("SELECT owner FROM schema_versions") for bot in bots]

    assert versions == [[{"owner": "bot"}]] * 4


async def test_a_newer_database_is_refused(tmp_path: Path, engine_url: str) -> None:
    """One sentence says which database, whose tables and what to do; nothing in it was changed."""
    old = folder(tmp_path, _0001_a=TABLE.format(name="a"), _0002_b=TABLE.format(name="b"))
    async with open_database(engine_url, migrations=[old]):
        pass
    (old.directory / "0002_b.sql").unlink()
    with pytest.raises(SchemaTooNew) as caught:
        async with open_database(engine_url, migrations=[old, folder_of(tmp_path / "other", "other")]):
            pass

    said = str(caught.value)
    assert "made by a newer version of the bot (own is at 2, and this version knows 1)" in said
    assert "update the bot, or set BOT_DATABASE_URL" in said
    assert "\n" not in said
    async with open_database(engine_url, core=False) as db:
        assert "other" not in await tables(db)


def folder_of(directory: Path, owner: str) -> Migrations:
    """One more owner, with a table of its name."""
    directory.mkdir()
    (directory / "0001_first.sql").write_text(TABLE.format(name=owner), encoding="utf-8")
    return Migrations(owner, directory)


async def test_one_that_fails_leaves_nothing(tmp_path: Path, engine_url: str) -> None:
    """All that run together happen together; the error names the file, and mended it runs."""
    own = folder(tmp_path, _0001_a=TABLE.format(name="a"), _0002_b="CREATE TABL b;\n")
    with pytest.raises(StorageError, match=r"the migration '0002_b.sql' of 'own' cannot run, and nothing was changed"):
        async with open_database(engine_url, migrations=[own]):
            pass
    async with open_database(engine_url, core=False) as db:
        left = set(await tables(db))
    folder(tmp_path, _0002_b=TABLE.format(name="b"))
    async with open_database(engine_url, migrations=[own]) as db:
        mended = set(await tables(db))

    assert left == {"schema_versions"}
    assert {"a", "b", "inbox"} <= mended


async def test_an_owner_that_is_gone_does_not_matter(tmp_path: Path, engine_url: str) -> None:
    """A plugin that was removed leaves its tables and its version; the bot starts all the same."""
    own = folder(tmp_path, _0001_a=TABLE.format(name="a"))
    async with open_database(engine_url, migrations=[own]):
        pass

    async with open_database(engine_url) as db:
        assert "a" in await tables(db)


@pytest.mark.parametrize("names", [["1_a"], ["0001_a", "0001_b"], ["first"], []])
def test_files_that_cannot_be_ordered(tmp_path: Path, names: list[str]) -> None:
    """A number that is missing, or there twice, or a folder with nothing in it, is a mistake of who wrote them."""
    own = folder(tmp_path, **{f"_{name}": "" for name in names})

    with pytest.raises(ConfigurationError, match="'own'"):
        versions_of(own)


def test_statements_end_at_the_end_of_a_line() -> None:
    """A `;` inside a line does not end one, a comment is none, and the last needs no line after it."""
    text = "-- first;\nCREATE TABLE a (x TEXT DEFAULT ';');\n\n  -- second\nINSERT INTO a\nVALUES ('1; 2');  \nSELECT 1;"

    assert statements(text) == ["CREATE TABLE a (x TEXT DEFAULT ';')", "INSERT INTO a\nVALUES ('1; 2')", "SELECT 1"]


async def test_the_process_has_its_tables(tmp_path: Path) -> None:
    """Every table of the process bears the bot's id first, in its primary key too: several bots can share one database."""
    async with open_database(f"sqlite:///{tmp_path / 'bot.db'}") as db:
        for name in set(await tables(db)) - {"schema_versions"}:
            columns = await db.all(f"SELECT name, pk FROM pragma_table_info('{name}') ORDER BY cid")

            assert columns[0] == {"name": "agent_id", "pk": 1}, name


async def test_migrating_again_changes_nothing() -> None:
    """A start with nothing to do writes no row."""
    async with open_database("sqlite:///:memory:") as db:
        async with db.transaction() as tx:
            before = await tx.one("SELECT total_changes() AS n")
        await migrate(db, [CORE], name="x")
        async with db.transaction() as tx:
            after = await tx.one("SELECT total_changes() AS n")

    assert before == after
