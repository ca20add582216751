"""What more than one part's tests stand on: a clock that is set by hand, and the databases of every engine."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

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
def engine_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database of each engine: who asks for it runs once on each."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'bot.db'}"
