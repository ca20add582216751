"""One database port, and the engines behind it: `async with open_database(url) as db`."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, unquote

from bot.database.migrate import CORE, migrate
from bot.errors import ConfigurationError
from bot.log import Redaction
from bot.ports import Database
from bot.registry import Migrations

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")


@asynccontextmanager
async def open_database(
    url: str, *, agent_id: str = "default", migrations: Sequence[Migrations] = (), core: bool = True
) -> AsyncIterator[Database]:
    """The database at `url`, its tables brought up to date; closed at the end.

    `sqlite:///relative/path`, `sqlite:////absolute/path` or `sqlite:///:memory:`, or `postgresql://user:password@host:port/database`.
    `core` adds the process's own tables. Raises ConfigurationError for a URL that cannot work, StorageError where the file or the server
    cannot be opened or written, and SchemaTooNew for a database that a newer version made.
    """
    sets = [*([CORE] if core else []), *migrations]
    if url.startswith(POSTGRES):
        from bot.database.postgres import open_postgres

        async with open_postgres(url, where=shown(url), agent_id=agent_id) as postgres:
            await migrate(postgres.for_migrations(), sets, name=shown(url))
            await postgres.keep_no_samples()
            yield postgres
        return
    path = url.removeprefix(SQLITE)
    if not url.startswith(SQLITE) or not path:
        raise ConfigurationError(
            f"BOT_DATABASE_URL={Redaction().clean(repr(url))} is no database: use sqlite:///path, sqlite:///:memory: or"
            " postgresql://user:password@host:port/database"
        )
    from bot.database.sqlite import open_sqlite

    async with open_sqlite(None if path == ":memory:" else Path(path), agent_id=agent_id) as database:
        await migrate(database, sets, name=path)
        yield database


def shown(url: str) -> str:
    """A URL as a person may read it: without user, password and options."""
    scheme, _, rest = url.partition("://")
    if not url.startswith(POSTGRES):
        return url
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"


def password(url: str) -> str:
    """The password in a URL, for the log to hide; empty where there is none."""
    if not url.startswith(POSTGRES):
        return ""
    user, _, _ = url.partition("://")[2].rpartition("@")
    options = parse_qs(url.partition("?")[2])
    return unquote(user.partition(":")[2]) or next(iter(options.get("password", [])), "")
