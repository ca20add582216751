"""One suite over every engine: a test that asks for `open_engine` or `db` runs once on each."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from bot import Database, open_database
from bot.inbox import Queue
from bot.registry import Migrations

ENGINES = ("sqlite file", "sqlite memory", "postgres")

NOTES = """
CREATE TABLE notes (
    agent_id TEXT NOT NULL,
    id TEXT NOT NULL,
    body TEXT,
    size BIGINT,
    weight DOUBLE PRECISION,
    PRIMARY KEY (agent_id, id)
);
"""
PUT = "INSERT INTO notes (agent_id, id, body) VALUES (:agent_id, :id, :body)"
IDS = "SELECT id FROM notes WHERE agent_id = :agent_id ORDER BY id"

Opener = Callable[..., AbstractAsyncContextManager[Database]]


@pytest.fixture(params=ENGINES)
def open_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the database of this test, again and again where the engine keeps it. Its own table is `notes`."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_notes.sql").write_text(NOTES, encoding="utf-8")
    if request.param == "postgres":
        url = str(request.getfixturevalue("postgres_url"))
    else:
        url = "sqlite:///:memory:" if request.param == "sqlite memory" else f"sqlite:///{tmp_path / 'bot.db'}"

    def open_it(agent_id: str = "default") -> AbstractAsyncContextManager[Database]:
        return open_database(url, agent_id=agent_id, migrations=[Migrations("notes", folder)])

    return open_it


@pytest.fixture
async def db(open_engine: Opener) -> AsyncIterator[Database]:
    """An open database with the process's tables and `notes`."""
    async with open_engine() as database:
        yield database


async def ids(db: Database) -> list[str]:
    """What is in `notes`."""
    return [row["id"] for row in await db.all(IDS)]


async def raced(queues: Sequence[Queue], rows: int, *, seconds: float) -> list[str]:
    """The ids of so many rows in the order in which these workers claimed them, never two of one line at a time."""
    held: set[str] = set()
    order: list[str] = []

    async def work(queue: Queue) -> None:
        while len(order) < rows:
            if entry := await queue.claim():
                assert entry.line not in held
                held.add(entry.line)
                order.append(entry.id)
                await asyncio.sleep(0)
                held.discard(entry.line)
                await queue.done(entry.id)
            await asyncio.sleep(0)

    async with asyncio.timeout(seconds):
        await asyncio.gather(*map(work, queues))
    return order
