"""Brings the tables up to date: each owner's numbered SQL files, once, in order, in one transaction with all others."""

import re
from collections.abc import Sequence
from pathlib import Path

from bot.errors import ConfigurationError, SchemaTooNew, StorageError
from bot.ports import Database, Transaction
from bot.registry import Migrations

CORE = Migrations("bot", Path(__file__).parent / "migrations")

_FILE = re.compile(r"(\d{4})_\w+\.sql")
_VERSIONS = """
CREATE TABLE IF NOT EXISTS schema_versions (
    owner TEXT NOT NULL,
    version BIGINT NOT NULL,
    PRIMARY KEY (owner)
)
"""


async def migrate(database: Database, sets: Sequence[Migrations], *, name: str) -> None:
    """Run what has not run yet. Two processes that start together wait for each other here, and the second finds nothing to do.

    Raises SchemaTooNew, with nothing changed, where the database is ahead of the files; `name` is how the error calls the database.
    """
    known = {one.owner: versions_of(one) for one in sets}
    async with database.transaction() as tx:
        await tx.run(_VERSIONS)
        applied = {row["owner"]: row["version"] for row in await tx.all("SELECT owner, version FROM schema_versions")}
        for owner, files in known.items():
            at = applied.get(owner, 0)
            newest = max(files, default=0)
            if at > newest:
                raise SchemaTooNew(
                    f"the database {name!r} was made by a newer version of the bot ({owner} is at {at}, and this version knows {newest}):"
                    " update the bot, or set BOT_DATABASE_URL to another database"
                )
            for version in sorted(v for v in files if v > at):
                await _apply(tx, owner, files[version])
            if at < newest:
                await tx.run(
                    "INSERT INTO schema_versions (owner, version) VALUES (:owner, :version)"
                    " ON CONFLICT (owner) DO UPDATE SET version = excluded.version",
                    {"owner": owner, "version": newest},
                )


async def _apply(tx: Transaction, owner: str, path: Path) -> None:
    try:
        for statement in _read(path):
            await tx.run(statement)
    except (StorageError, OSError, UnicodeDecodeError) as error:
        raise StorageError(f"the migration {path.name!r} of {owner!r} cannot run, and nothing was changed: {error}") from error


def _read(path: Path) -> list[str]:
    return statements(path.read_text(encoding="utf-8"))


def versions_of(one: Migrations) -> dict[int, Path]:
    """The files of one owner by number. Raises ConfigurationError for a number that is there twice or a folder without files."""
    files: dict[int, Path] = {}
    for path in sorted(one.directory.glob("*.sql")):
        match = _FILE.fullmatch(path.name)
        if match is None or int(match[1]) in files:
            raise ConfigurationError(f"the migration {path.name!r} of {one.owner!r} needs a number of its own, as in 0002_what_it_does.sql")
        files[int(match[1])] = path
    if not files:
        raise ConfigurationError(f"{one.owner!r} registered migrations, but {str(one.directory)!r} has none")
    return files


def statements(text: str) -> list[str]:
    """The statements of a file: each ends with `;` at the end of a line; a line that starts with `--` is a comment."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    parts = re.split(r";[ \t]*$", "\n".join(lines), flags=re.MULTILINE)
    return [part.strip() for part in parts if part.strip()]
