"""Memory by hand: its database comes when it is needed, and goes whoever forgets to close it."""

import asyncio
import threading
from typing import Any

import pytest

from bot import StorageError
from plugins.memory import create_memory
from plugins.memory.alone import OwnDatabase


def test_what_nobody_closed_is_closed_with_the_event_loop() -> None:
    """Nothing is reported as lost then, and no thread stays behind."""
    reported: list[dict[str, Any]] = []
    before = set(threading.enumerate())

    async def use() -> list[str]:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        memories = [create_memory(True) for _ in range(3)]
        return [fact for memory in memories for fact in await memory.remember("ana", "Vive en Quito")]

    told = asyncio.run(use())

    assert told == ["Vive en Quito"] * 3
    assert reported == []
    left = [thread for thread in set(threading.enumerate()) - before if "asyncio" not in thread.name]
    for thread in left:
        thread.join(5)  # it was told to end, and may be at it
    assert not [thread for thread in left if thread.is_alive()]


async def test_a_wait_that_is_cancelled_opens_it_all_the_same() -> None:
    """A turn that did not wait for memory leaves it working for the next."""
    async with create_memory(True) as memory:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await memory.facts("ana")

        assert await memory.remember("ana", "Vive en Quito") == ["Vive en Quito"]


async def test_one_that_cannot_be_opened_says_so_each_time() -> None:
    """Whoever asks is told, and asking again tries again."""
    database = OwnDatabase("sqlite:////proc/nowhere/memory.db")
    for _ in range(2):
        with pytest.raises(StorageError):
            await database.one("SELECT 1 AS one")

    await database.aclose()
