"""What an administrator sees: counts, never contents."""

from collections.abc import AsyncIterator

import pytest

from bot import Reader, Registry
from bot.testing import MockAIProvider, TestBot, create_test_bot

ADMIN = "test:admin"


def many(registry: Registry) -> None:
    """A plugin with a large number."""

    async def count(reader: Reader) -> int:
        return 1_234_567

    registry.statistic("parcels", count)


@pytest.fixture
async def bot(each_engine: None) -> AsyncIterator[TestBot]:
    async with create_test_bot(provider=MockAIProvider(reply="Sí."), memory=True, plugins=[many], settings={"BOT_ADMINS": ADMIN}) as opened:
        yield opened


async def test_it_counts(bot: TestBot) -> None:
    """What plugins registered is counted and written by the reader's custom."""
    (english,) = await bot.say("/stats", user=ADMIN, lang="en")
    (spanish,) = await bot.say("/stats", user=ADMIN, lang="es")

    assert "- parcels: 1,234,567" in english.splitlines()
    assert "- parcels: 1.234.567" in spanish.splitlines()


async def test_counters_of_the_process_come_after(bot: TestBot) -> None:
    """They go by the codes that the log has too, so that whoever runs the bot can look them up."""
    (before,) = await bot.say("/stats", user=ADMIN, lang="en")
    bot.parts.counters.add("something_failed", 2_000)
    (after,) = await bot.say("/stats", user=ADMIN, lang="en")

    assert "something_failed" not in before
    assert after.split("Since I started:")[1].splitlines()[-1] == "- `something_failed`: 2,000"
    assert "- parcels: 1,234,567" in after.split("Since I started:")[0]


async def test_it_shows_no_contents(bot: TestBot) -> None:
    """Neither a fact nor a message nor who wrote it."""
    await bot.ai.remember("test:ana", "Vive en Zacatecas")
    await bot.say("Cuéntame de los axolotes", user="test:ana")
    (said,) = await bot.say("/stats", user=ADMIN)

    assert not any(word in said for word in ("Zacatecas", "axolotes", "test:ana"))
    assert any(character.isdigit() for character in said)


async def test_it_is_for_administrators(bot: TestBot) -> None:
    """Anyone else is refused in words."""
    assert await bot.say("/stats", lang="en") == ["Only an administrator of this bot may use that command."]
