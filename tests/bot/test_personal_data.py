"""Whoever keeps a person's data says how to export and erase it: all of it is walked, and nobody can forget to say so."""

import asyncio
import logging
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot import Database, ErasureUnfinished, Reader, Registry, StorageError, Transaction, open_database
from bot.app import configure, open_bot
from bot.fence import SubjectFence
from bot.inbox import Queue, now_ms
from bot.personal_data import Everyone, Profile, own_data
from bot.registry import PersonalData, load
from bot.testing import create_test_bot
from tests.bot.world import opened
from tests.tables import columns, tables

OF_A_PERSON = {"user_id", "subject", "line", "chat_key", "owner", "sender", "person"}
NOBODYS = {"schema_versions"}


async def unregistered(database: Database, registered: Mapping[str, PersonalData]) -> list[str]:
    """The tables with a person's id in a column, which nobody has said how to erase."""
    named = {table for data in registered.values() for table in data.tables}
    bearing = [name for name in await tables(database) if name not in NOBODYS and OF_A_PERSON.intersection(await columns(database, name))]
    assert {"users", "inbox", "subjects"} <= set(bearing)  # else this test looks at nothing
    return sorted(set(bearing) - named)


async def test_no_table_is_forgotten(tmp_path: Path, engine_url: str) -> None:
    """Every table of the bot and of its plugins that bears a person's id is registered with `registry.personal_data`."""
    registry = load(installed=False)
    environment = {"BOT_DATABASE_URL": engine_url, "BOT_DOCUMENTS": "", "BOT_PROVIDER": "extractive"}
    async with open_bot(configure(environment, registry=registry, toml=tmp_path / "none"), warm=False) as bot:
        registered = {data.name: data for data in [*own_data([]), *registry.personal.values()]}

        assert await unregistered(bot.database, registered) == []


async def test_a_forgotten_table_is_found() -> None:
    """A plugin's table with a person's id, which it said nothing about, fails the test above."""
    async with open_database("sqlite:///:memory:") as db:
        await db.write("CREATE TABLE diaries (agent_id TEXT NOT NULL, owner TEXT NOT NULL)")

        assert await unregistered(db, {data.name: data for data in own_data([])}) == ["diaries"]


def kind(name: str, counts: list[str], *, erased: int = 1, clean: Exception | int | None = None) -> PersonalData:
    """A kind of data that only notes that it was asked."""

    async def export(reader: Reader, user_id: str) -> str:
        return f"{name} of {user_id}"

    async def erase(tx: Transaction, user_id: str) -> int:
        counts.append(name)
        return erased

    async def cleaned(user_id: str) -> int:
        if isinstance(clean, Exception):
            raise clean
        counts.append(f"{name} cleaned")
        return int(clean or 0)

    return PersonalData(name, (), export, erase, None if clean is None else cleaned)


def everyone(db: Database, *kinds: PersonalData) -> Everyone:
    """Export and erasure over these kinds."""
    return Everyone(db, SubjectFence(db), {one.name: one for one in kinds}, clock=now_ms)


async def test_every_kind_is_walked() -> None:
    """Export has a key for each; erasure counts rows and what is no table together."""
    asked: list[str] = []
    async with open_database("sqlite:///:memory:") as db:
        people = everyone(db, kind("a", asked), kind("b", asked, erased=2, clean=3))
        held = await people.export("ana")
        counts = await people.erase("ana")

    assert (held["a"], held["b"]) == ("a of ana", "b of ana")
    assert counts == {"a": 1, "b": 5}
    assert asked == ["a", "b", "b cleaned"]


async def test_a_kind_that_does_not_count() -> None:
    """A plugin whose functions return nothing costs nobody their erasure."""

    async def nothing(*given: Any) -> Any:
        return None

    async with open_database("sqlite:///:memory:") as db:
        counts = await everyone(db, PersonalData("n", (), nothing, nothing, nothing)).erase("ana")
        left = await db.all("SELECT name FROM cleanings WHERE agent_id = :agent_id")

    assert counts == {"n": 0}
    assert left == []


async def test_an_erasure_that_fails_is_none(tmp_path: Path) -> None:
    """Where one kind cannot be erased nothing is, and the error comes out."""

    async def breaks(tx: Transaction, user_id: str) -> int:
        raise StorageError("no")

    async with open_database(f"sqlite:///{tmp_path}/bot.db") as db:
        profile = own_data([])[0]
        broken = PersonalData("z", (), profile.export, breaks)
        await Profile(db, SubjectFence(db), "ana", clock=now_ms).set("plugin", "kept", 1)
        with pytest.raises(StorageError):
            await everyone(db, profile, broken).erase("ana")

        assert await Profile(db, SubjectFence(db), "ana", clock=now_ms).get("plugin", "kept") == 1


class Stubborn:
    """A kind whose file cannot be removed the first few times."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.removed = 0

    async def __call__(self, user_id: str) -> int:
        if self.failures:
            raise self.failures.pop(0)
        self.removed += 1
        return 1

    def kind(self, name: str) -> PersonalData:
        return replace(kind(name, []), clean=self)


@pytest.mark.parametrize("failure", [OSError("locked: CANARY"), RuntimeError("no adapter foresaw this: CANARY"), StorageError("full")])
async def test_files_that_cannot_be_removed(tmp_path: Path, failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """The rows are gone and overwritten all the same, the other kinds are cleaned, it is reported without a word of theirs, and it is
    tried until it is done; then nothing names the person any more."""
    asked: list[str] = []
    stubborn = Stubborn(failure, failure)
    async with open_database(f"sqlite:///{tmp_path}/bot.db") as db:
        people = everyone(db, stubborn.kind("files"), kind("windows", asked, clean=0))
        with pytest.raises(ErasureUnfinished, match="files") as raised:
            await people.erase("ana")
        waiting = await db.all("SELECT user_id, name FROM cleanings")
        await people.finish()
        await everyone(db, stubborn.kind("files")).finish()  # as the next start does

        assert asked == ["windows", "windows cleaned"]
        assert waiting == [{"user_id": "ana", "name": "files"}]
        assert (stubborn.failures, stubborn.removed) == ([], 1)
        assert await db.all("SELECT name AS id FROM cleanings UNION SELECT id FROM scrubs") == []
        assert "CANARY" not in caplog.text + str(raised.value)
        assert "tried again: files" in caplog.text


async def test_the_person_is_told_and_the_next_start_finishes(tmp_path: Path) -> None:
    """What is left after /forget_me is said in words, and is gone after a restart."""
    stubborn = Stubborn(PermissionError("no"))
    diary = kind("diary", [])

    def register(registry: Registry) -> None:
        registry.personal_data("diary", tables=(), export=diary.export, erase=diary.erase, clean=stubborn)

    url = f"sqlite:///{tmp_path / 'bot.db'}"
    async with create_test_bot(plugins=[register], database_url=url, language="en") as bot:
        await bot.say("/forget_me", user="ana")
        said = await bot.say("yes", user="ana")
        left = stubborn.removed
    async with create_test_bot(plugins=[register], database_url=url) as bot:
        after = await bot.database.all("SELECT name FROM cleanings")

    assert [ErasureUnfinished.message] == said
    assert (left, stubborn.removed, after) == (0, 1, [])


def canaries(folder: Path) -> int:
    """How often the canary is in the files of the database."""
    return sum(path.read_bytes().count(b"CANARY") for path in folder.glob("bot.db*"))


async def test_an_erasure_ends_on_disk_at_the_next_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Held up by a reader, or cut short by a crash, overwriting is noted in the database and finished by the next start."""
    url = f"sqlite:///{tmp_path}/bot.db"
    async with opened(url=url) as bot:
        await bot.user("ana").set("plugin", "kept", "CANARY")
        reader = sqlite3.connect(tmp_path / "bot.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM users").fetchall()
        with caplog.at_level(logging.WARNING):
            await bot.delete_subject("ana")
        waiting = await bot.database.all("SELECT id FROM scrubs")
        there = (tmp_path / "bot.db-wal").read_bytes().count(b"CANARY")
        reader.close()
    async with opened(url=url, run=False) as bot:
        after = await bot.database.all("SELECT id FROM scrubs")
        left = canaries(tmp_path)

    assert len(waiting) == 1
    assert there > 0
    assert "not overwritten on disk yet" in caplog.text
    assert (after, left) == ([], 0)


# ---------------------------------------------------------------------------------------------- the profile


async def test_a_profile_keeps_small_values() -> None:
    """By namespace and key, whatever JSON; None takes one away, and an empty namespace goes with it."""
    async with open_database("sqlite:///:memory:") as db:
        ana = Profile(db, SubjectFence(db), "ana", clock=now_ms)
        await ana.set("a", "n", {"deep": [1, None, "año"]})
        await ana.set("b", "n", 0)
        await ana.set("b", "m", False)
        await ana.set("a", "n", None)

        assert await ana.everything() == {"b": {"n": 0, "m": False}}
        assert await ana.get("a", "n", "default") == "default"
        assert await Profile(db, SubjectFence(db), "bob", clock=now_ms).everything() == {}


async def test_two_writers_of_one_profile() -> None:
    """Keys set at the same time are both kept."""
    async with open_database("sqlite:///:memory:") as db:
        ana = Profile(db, SubjectFence(db), "ana", clock=now_ms)
        await asyncio.gather(*(ana.set("a", str(n), n) for n in range(20)), ana.choose_language("es"))

        assert await ana.load() == ("es", {"a": {str(n): n for n in range(20)}})


async def test_what_waits_in_the_queues_is_exported() -> None:
    """A message that was not answered yet is data of its person too."""
    async with open_database("sqlite:///:memory:") as db:
        inbox = Queue(db, "inbox")
        await inbox.put(None, "u1", kind="message", line="room", user_id="ana", payload={"text": "hi"})
        people = everyone(db, *own_data([inbox]))

        assert (await people.export("ana"))["queued"] == [{"text": "hi"}]
        assert (await people.erase("ana"))["queued"] == 1
        assert (await people.export("ana"))["queued"] == []
