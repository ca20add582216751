"""Telegram's limits: kept whatever comes, and what must arrive goes first."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import TransportUnavailable
from bot.transports.telegram.pacing import Pace, Pacer


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@given(st.lists(st.tuples(st.sampled_from([-3, -2, -1, 1, 2, 3, 4, 5]), st.floats(0, 0.2), st.floats(0, 1), st.booleans()), max_size=300))
def test_no_window_at_the_server_ever_holds_too_many(asked: list[tuple[int, float, float, bool]]) -> None:
    """30 in any second, 1 a second to a chat, 20 a minute to a group: whenever between start and answer the server counts them."""
    pace, now, gone = Pace(), 0.0, []
    for chat, took, when, spare in asked:
        wait = pace.wait(chat, now, spare=spare)
        if wait < 3:
            now += wait
            assert pace.wait(chat, now) < 0.001
            pace.begin(chat)
            gone.append((now + took * when, chat))
            now += took
            pace.end(chat, now)

    for at, chat in gone:
        assert sum(at - 1 < t <= at for t, _ in gone) <= 30
        assert sum(at - 1 < t <= at for t, c in gone if c == chat) <= 1
        assert chat > 0 or sum(at - 60 < t <= at for t, c in gone if c == chat) <= 20


def test_what_is_under_way_counts() -> None:
    """Thirty that were sent and not answered yet fill the second."""
    pace = Pace()
    for chat in range(1, 31):
        assert pace.wait(chat, 0.0) == 0
        pace.begin(chat)

    assert pace.wait(31, 0.0) > 0
    assert pace.wait(1, 0.0) > 0


def test_what_need_not_arrive_leaves_room() -> None:
    """Edits stop at a part of a group's minute; the final text still finds a place."""
    pace, now = Pace(), 0.0
    for _ in range(12):
        now += 2
        pace.begin(-1)
        pace.end(-1, now)

    assert pace.wait(-1, now + 2, spare=True) > 10
    assert pace.wait(-1, now + 2) == 0


def test_a_pause_is_for_one_chat() -> None:
    """`retry_after` of one holds up no other."""
    pace = Pace()
    pace.pause(1, 30.0)

    assert pace.wait(1, 10.0) == 20.0
    assert pace.wait(2, 10.0) == 0


async def test_what_waits_too_long_goes_back() -> None:
    """The outbox has it again, with the time that it takes; no slot is held meanwhile."""
    pacer = Pacer(clock=Clock())
    pacer.pause(1, 30.0)

    with pytest.raises(TransportUnavailable) as raised:
        async with pacer.turn(1):
            raise AssertionError("it was not its turn")
    assert raised.value.seconds == pytest.approx(30.0)


async def test_one_message_at_a_time_to_a_chat() -> None:
    """An edit that is under way ends before the next begins; what need not arrive is left out meanwhile."""
    pacer, order = Pacer(Pace()), []

    async def send(n: int) -> None:
        async with pacer.turn(1):
            order.append(n)
            await asyncio.sleep(0.01)
            order.append(n)

    first = asyncio.create_task(send(1))
    await asyncio.sleep(0)
    with pacer.spare(1) as may:
        assert not may
    await asyncio.gather(first, send(2))

    assert order == [1, 1, 2, 2]
