"""What more than one part's tests stand on: a clock that is set by hand, and the databases of every engine."""

import inspect
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.testing import create_test_bot
from tests.standins.postgres_server import PostgresServer, running

ENGINES = ("sqlite", "postgres")


@dataclass(slots=True)
class Clock:
    """UTC milliseconds that pass only when they are told to."""

    at: int = 1_800_000_000_000

    def __call__(self) -> int:
        """The time."""
        return self.at

    def advance(self, *, seconds: float) -> None:
        """Let time pass."""
        self.at += int(seconds * 1000)


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for all tests of this process that ask for one."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def schemas(postgres: PostgresServer) -> Iterator[str]:
    """Empty schemas on that server: each test has one of its own."""
    return (postgres.url(options=f"?search_path={name}") for name in postgres.schemas(f"t{n}" for n in itertools.count()))


@pytest.fixture
def postgres_url(schemas: Iterator[str]) -> str:
    """The address of an empty database on a real PostgreSQL."""
    return next(schemas)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of an engine: who asks for it, or for what follows, runs once on each."""
    return str(request.param)


@pytest.fixture
def engine_url(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database of each engine."""
    return str(request.getfixturevalue("postgres_url")) if engine == "postgres" else f"sqlite:///{tmp_path / 'bot.db'}"


@pytest.fixture
def each_engine(engine: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test bot that is given no database has an empty one of each engine; in memory, where that is SQLite."""
    if engine == "postgres":
        defaults = inspect.unwrap(create_test_bot).__kwdefaults__
        assert "database_url" in defaults
        monkeypatch.setitem(defaults, "database_url", request.getfixturevalue("postgres_url"))
