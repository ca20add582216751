"""What is in a database, whichever engine holds it: its tables, their columns, and every row."""

from collections.abc import Mapping
from typing import Any

from bot import Database, StorageError

Rows = list[Mapping[str, Any]]


async def tables(database: Database) -> list[str]:
    """The names of all tables of the bot."""
    try:
        rows = await database.all("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
    except StorageError:
        sql = "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY 1"
        rows = await database.all(sql)
    assert rows
    return [str(row["name"]) for row in rows]


async def columns(database: Database, table: str) -> list[str]:
    """The names of the columns of a table, in their order."""
    try:
        rows = await database.all(f"SELECT name FROM pragma_table_info('{table}') ORDER BY cid")
    except StorageError:
        sql = (
            "SELECT column_name AS name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = :name"
            " ORDER BY ordinal_position"
        )
        rows = await database.all(sql, {"name": table})
    return [str(row["name"]) for row in rows]


async def everything(database: Database) -> dict[str, Rows]:
    """Every row of every table."""
    return {name: await database.all(f"SELECT * FROM {name}") for name in await tables(database)}
