"""One database port, and the engines behind it: `async with open_database(url) as db`."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bot.database.migrate import CORE, migrate
from bot.errors import ConfigurationError
from bot.log import Redaction
from bot.ports import Database
from bot.registry import Migrations

SQLITE = "sqlite:///"


@asynccontextmanager
async def open_database(
    url: str, *, agent_id: str = "default", migrations: Sequence[Migrations] = (), core: bool = True
) -> AsyncIterator[Database]:
    """The database at `url`, its tables brought up to date; closed at the end.

    `sqlite:///relative/path`, `sqlite:////absolute/path` or `sqlite:///:memory:`. `core` adds the process's own tables. Raises
    ConfigurationError for a URL that cannot work, StorageError where the file cannot be opened or written, and SchemaTooNew for a
    database that a newer version made.
    """
    if url.startswith(("postgresql://", "postgres://")):
        raise ConfigurationError("BOT_DATABASE_URL: this version has no PostgreSQL engine; use sqlite:///data/bot.db")
    path = url.removeprefix(SQLITE)
    if not url.startswith(SQLITE) or not path:
        raise ConfigurationError(
            f"BOT_DATABASE_URL={Redaction().clean(repr(url))} is no database: use sqlite:///path or sqlite:///:memory:"
        )
    from bot.database.sqlite import open_sqlite

    async with open_sqlite(None if path == ":memory:" else Path(path), agent_id=agent_id) as database:
        await migrate(database, [*([CORE] if core else []), *migrations], name=path)
        yield database
