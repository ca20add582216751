"""The composition root: everything that can be wrong is found before anything is opened, and whatever was opened is closed."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bot import Assistant, ConfigurationError, Library, Parts, Provider, RagError, Reader, Recall, Registry, StorageError
from bot.app import configure, open_bot
from bot.testing import MockAIProvider
from tests.bot.world import Echo, opened, parts, until

NOWHERE = Path("no such file")


def registry_of(*plugins: Any) -> Registry:
    """A registry with these."""
    registry = Registry()
    for register in plugins:
        register(registry)
    return registry


def test_a_configuration_is_checked_before_anything_is_opened(tmp_path: Path) -> None:
    """A setting that cannot work leaves no file behind."""
    with pytest.raises(ConfigurationError, match="BOT_TOP_K"):
        configure({"BOT_DATABASE_URL": f"sqlite:///{tmp_path}/bot.db", "BOT_TOP_K": "0"}, registry=Registry(), toml=NOWHERE)

    assert list(tmp_path.iterdir()) == []


async def test_a_part_that_nobody_provides() -> None:
    """It is named, and the database is closed again."""
    configuration = configure({"BOT_DATABASE_URL": "sqlite:///:memory:"}, registry=Registry(), toml=NOWHERE)
    before = threading.active_count()
    with pytest.raises(ConfigurationError, match="no plugin provides Assistant"):
        async with open_bot(configuration):
            pass

    await until(lambda: threading.active_count() <= before)


async def test_parts_that_need_each_other() -> None:
    """Two that want each other while they are made are told so, and do not recurse."""

    def circle(registry: Registry) -> None:
        registry.part(Assistant, lambda made: made.find(Recall))  # type: ignore[type-abstract]
        registry.part(Recall, lambda made: made.find(Assistant))  # type: ignore[type-abstract]

    configuration = configure({"BOT_DATABASE_URL": "sqlite:///:memory:"}, registry=registry_of(parts, circle), toml=NOWHERE)
    with pytest.raises(ConfigurationError, match="needs itself"):
        async with open_bot(configuration):
            pass


async def test_a_part_is_made_once_and_can_be_replaced() -> None:
    """Whoever asks for a port gets the same object, of the plugin that came last."""
    made: list[Parts] = []

    def mine(registry: Registry) -> None:
        def build(given: Parts) -> Echo:
            made.append(given)
            return Echo(given)

        registry.part(Assistant, build)  # type: ignore[type-abstract, arg-type]

    async with opened(mine) as bot:
        assert bot.parts.find(Assistant) is bot.ai
        assert len(made) == 1


async def test_a_provider_takes_the_place_of_the_configured() -> None:
    """Whoever asks for the model gets the one that the bot was opened with."""
    mock = MockAIProvider()
    configuration = configure({"BOT_DATABASE_URL": "sqlite:///:memory:"}, registry=registry_of(parts), toml=NOWHERE)
    async with open_bot(configuration, provider=mock) as bot:
        assert bot.parts.find(Provider) is mock


async def test_lifespans_are_left_in_reverse_order() -> None:
    """Also where the bot is cancelled; the database is open in all of them."""
    seen: list[str] = []

    def lifespan(name: str) -> Any:
        @asynccontextmanager
        async def span(given: Parts) -> AsyncIterator[None]:
            seen.append(f"{name} in")
            try:
                yield
            finally:
                await given.database.one("SELECT 1 AS one")
                seen.append(f"{name} out")

        return lambda registry: registry.lifespan(span)

    async def run() -> None:
        async with opened(lifespan("a"), lifespan("b"), run=False):
            await asyncio.Event().wait()

    running = asyncio.create_task(run())
    async with asyncio.timeout(5):
        while len(seen) < 2:  # noqa: ASYNC110 - a lifespan sets no event
            await asyncio.sleep(0.002)
    running.cancel()
    await asyncio.wait([running])

    assert seen == ["a in", "b in", "b out", "a out"]


async def test_a_lifespan_that_fails_closes_what_was_open() -> None:
    """The error comes out, and no thread of the database stays."""

    def failing(registry: Registry) -> None:
        @asynccontextmanager
        async def span(given: Parts) -> AsyncIterator[None]:
            raise StorageError("no")
            yield

        registry.lifespan(span)

    before = threading.active_count()
    with pytest.raises(StorageError):
        async with opened(failing):
            pass

    await until(lambda: threading.active_count() <= before)


async def test_a_warm_up_that_fails_is_not_fatal(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged and counted, and the bot is there."""

    async def warmup() -> None:
        raise RagError("LOAD_FAILED", "no documents")

    def library(registry: Registry) -> None:
        registry.part(Library, lambda _parts: SimpleNamespace(warmup=warmup))  # type: ignore[type-abstract, arg-type, return-value]

    configuration = configure({"BOT_DATABASE_URL": "sqlite:///:memory:"}, registry=registry_of(parts, library), toml=NOWHERE)
    with caplog.at_level(logging.ERROR):
        async with open_bot(configuration) as bot:
            counted = await bot.statistics()

    assert counted["warmup_failed"] == 1
    assert "warm-up of the documents failed" in caplog.text


async def test_statistics_are_counts() -> None:
    """What plugins count, then what this process counted."""

    def plugin(registry: Registry) -> None:
        async def people(reader: Reader) -> int:
            row = await reader.one("SELECT count(*) AS n FROM users WHERE agent_id = :agent_id")
            return int(row["n"]) if row else 0

        registry.statistic("people", people)

    async with opened(plugin) as bot:
        await bot.user("test:ana").set("plugin", "kept", 1)
        bot.core.counters.add("turns", 2)

        assert await bot.statistics() == {"people": 1, "turns": 2}


async def test_two_bots_share_a_database(tmp_path: Path) -> None:
    """Each has its own people, and erasing one's leaves the other's."""
    url = f"sqlite:///{tmp_path}/bot.db"
    async with opened(url=url, BOT_AGENT_ID="one", run=False) as one, opened(url=url, BOT_AGENT_ID="two", run=False) as two:
        for bot in (one, two):
            await bot.user("test:ana").set("plugin", "kept", bot.settings.agent_id)
        await one.delete_subject("test:ana")

        assert await one.user("test:ana").get("plugin", "kept") is None
        assert await two.user("test:ana").get("plugin", "kept") == "two"
