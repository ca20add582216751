"""Every statement that the product has by a name is one that PostgreSQL takes: its tables, its columns, the types of its parameters."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import asyncpg

import bot
import handlers
import plugins
from bot import open_database
from bot.database.dialect import numbered
from bot.inbox import _sql
from bot.registry import load

STATEMENT = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE)\s")
OF_AN_ENGINE = {"bot.database.postgres", "bot.database.sqlite"}


def statements() -> Iterator[tuple[str, str]]:
    """The named statements of all modules, and those of the queues."""
    for package in (bot, handlers, plugins):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.rpartition(".")[2] == "__main__" or found.name in OF_AN_ENGINE:
                continue
            module: Any = importlib.import_module(found.name)
            for name, value in vars(module).items():
                if isinstance(value, str) and STATEMENT.match(value) and "{" not in value and not value.endswith(" "):  # else a part of one
                    yield f"{found.name}.{name}", value
    for table in ("inbox", "outbox", "jobs"):
        yield from ((f"{table} {name}", sql) for name, sql in _sql(table).items())  # type: ignore[arg-type]


async def test_each_is_taken(postgres_url: str) -> None:
    """What it says of each that it does not take: nothing."""
    refused = {}
    named = dict(statements())
    async with open_database(postgres_url, migrations=load(installed=False).migration_sets):
        connection = await asyncpg.connect(postgres_url)
        for name, sql in named.items():
            try:
                await connection.prepare(numbered(sql)[0])
            except asyncpg.PostgresError as error:
                refused[name] = str(error)
        await connection.close()

    assert refused == {}
    assert len(named) > 120
