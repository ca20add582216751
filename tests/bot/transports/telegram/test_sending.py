"""Sending: each part once, whatever was sent before; what Telegram refuses is sent another way."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from bot.errors import TransportUnavailable, Undeliverable
from bot.transports.telegram.api import Refused
from bot.transports.telegram.pacing import PER_CHAT, Pace, Pacer
from bot.transports.telegram.sending import Sending
from bot.transports.telegram.store import Part, Store
from bot.values import Choice, Letter
from tests.bot.transports.telegram.conftest import unmoved, wired
from tests.standins.telegram_server import Telegram

LETTER = Letter("telegram:1:5:answer", "telegram:7", "**Hola**", "telegram:7", "5", markdown=True)


@dataclass
class Desk:
    """What a test sends with, and where it arrives."""

    server: Telegram
    sending: Sending
    store: Store
    moves: list[tuple[int, int]]


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    """A stand-in, a database in memory, and no limits to wait for."""
    moves: list[tuple[int, int]] = []

    async def moved(old: int, new: int) -> None:
        moves.append((old, new))

    async with wired() as (server, api, database):
        store = Store(database, lambda: 1_790_000_000_000)
        await store.open()
        pacer = Pacer(Pace(1000), clock=iter(range(0, 10**9, 5)).__next__)
        sending = Sending(api, store, pacer, key=b"k" * 32, clock=lambda: 1_790_000_000_000, moved=moved, rich=True)
        yield Desk(server, sending, store, moves)


async def test_a_letter_that_comes_again_is_not_sent_again(desk: Desk) -> None:
    """The process died between sending and noting that all is done."""
    await desk.sending.deliver(LETTER)
    await desk.sending.deliver(LETTER)

    assert desk.server.texts(7) == ["Hola"]


async def test_only_the_parts_that_are_missing_are_sent(desk: Desk) -> None:
    """The first of three was sent before."""
    text = "\n\n".join(f"{n} " + "x" * 3000 for n in range(3))
    await desk.store.save(LETTER, [Part(99)])
    await desk.sending.deliver(Letter(LETTER.id, "telegram:7", text))

    assert [part[0] for part in desk.server.texts(7)] == ["1", "2"]


async def test_what_was_shown_becomes_the_final_text(desk: Desk) -> None:
    """By an edit; "not modified" is success; a message that somebody deleted is sent anew."""
    desk.server.messages[7][99] = {"text": "Ho …"}
    await desk.store.save(LETTER, [Part(99, final=False)])
    await desk.sending.deliver(LETTER)
    await desk.store.save(LETTER, [Part(99, final=False)])
    await desk.sending.deliver(LETTER)
    gone = Letter("telegram:1:6:answer", "telegram:7", "otra", "telegram:7", "6")
    await desk.store.save(gone, [Part(98, final=False)])
    await desk.sending.deliver(gone)

    assert desk.server.texts(7) == ["Hola", "otra"]


async def test_an_answer_that_grew_shorter_leaves_nothing_behind(desk: Desk) -> None:
    """A revised answer takes the place of all parts of the old one."""
    await desk.sending.deliver(Letter("a", "telegram:7", "\n\n".join("x" * 3000 for _ in range(3)), "telegram:7", "5", asked="1"))
    await desk.sending.deliver(Letter("b", "telegram:7", "corta", "telegram:7", "5", revises=True, asked="2"))

    assert desk.server.texts(7) == ["corta"]


async def test_a_table_goes_as_a_rich_message_or_else_plain(desk: Desk) -> None:
    """Where Telegram does not take it, nothing is lost."""
    table = "Mira:\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    await desk.sending.deliver(Letter("a", "telegram:7", table, markdown=True))
    desk.server.faults["sendRichMessage"].append("400 Bad Request: rich messages are not supported")
    await desk.sending.deliver(Letter("b", "telegram:7", table, markdown=True))

    assert [call.method for call in desk.server.calls] == ["sendRichMessage", "sendMessage"]
    assert "1 | 2" in desk.server.texts(7)[1]


async def test_buttons_come_under_the_last_part(desk: Desk) -> None:
    """Two short ones side by side."""
    choices = (Choice("Sí", "yes"), Choice("No", "no"))
    await desk.sending.deliver(Letter("a", "telegram:7", "x" * 5000, "telegram:7", choices=choices))
    first, last = desk.server.messages[7].values()

    assert "reply_markup" not in first
    assert [[button["text"] for button in row] for row in last["reply_markup"]["inline_keyboard"]] == [["Sí", "No"]]


async def test_a_message_without_a_number_is_not_replied_to(desk: Desk) -> None:
    """Telegram gives 0 for one that is scheduled or seen by one person alone."""
    await desk.sending.deliver(Letter("a", "telegram:-5", "hola", question="0", quotes=True))

    assert "reply_parameters" not in desk.server.sent(-5)[0]


async def test_a_topic_that_is_gone_is_not_the_group(desk: Desk) -> None:
    """Nothing more is sent there, but the rest of the group is written to."""
    with pytest.raises(Undeliverable):
        await desk.sending.deliver(Letter("a", "telegram:-1009:404", "hola"))
    await desk.sending.deliver(Letter("b", "telegram:-1009", "hola"))

    assert desk.server.texts(-1009) == ["hola"]


async def test_a_chat_that_blocked_the_bot_is_asked_once(desk: Desk) -> None:
    """It is marked, and nothing goes out for it any more."""
    desk.server.blocked.add(7)
    for _ in range(2):
        with pytest.raises(Undeliverable):
            await desk.sending.deliver(LETTER)
        desk.server.blocked.discard(7)

    assert desk.server.texts(7) == []
    assert "telegram:7" in desk.store.absent


async def test_a_group_that_moved_is_told_of(desk: Desk) -> None:
    """And the letter goes to its new address."""
    desk.server.migrated[-5] = -1005
    await desk.sending.deliver(Letter("a", "telegram:-5", "hola", question="5", quotes=True))

    assert desk.moves == [(-5, -1005)]
    assert desk.server.texts(-1005) == ["hola"]
    assert "reply_parameters" not in desk.server.sent(-1005)[0]


@pytest.mark.parametrize(
    "why", ["can't parse entities: byte 3", "wrong HTTP URL specified", "unsupported URL protocol", "WHATEVER_INVALID"]
)
async def test_what_is_refused_with_formats_is_sent_plain(desk: Desk, why: str) -> None:
    """Whatever words a server has for it; and nothing is tried a third time."""
    desk.server.faults["sendMessage"].append(f"400 Bad Request: {why}")
    await desk.sending.deliver(LETTER)
    desk.server.faults["sendMessage"].extend([f"400 Bad Request: {why}"] * 2)
    with pytest.raises(Refused):
        await desk.sending.deliver(Letter("b", "telegram:7", "**No**", markdown=True))

    assert [(sent["text"], sent.get("entities")) for sent in desk.server.sent(7)] == [("Hola", None)]


async def test_a_message_after_a_failed_edit_waits_its_turn() -> None:
    """The edit may have counted: a second lies between the two."""
    async with wired() as (server, api, database):
        store, pacer = Store(database, lambda: 1), Pacer(Pace(1000))
        sending = Sending(api, store, pacer, key=b"k" * 32, clock=lambda: 1, moved=unmoved)
        await store.save(LETTER, [Part(98, final=False)])
        server.faults["editMessageText"].append("400 Bad Request: message can't be edited")
        began = time.monotonic()
        await sending.deliver(LETTER)

    assert server.texts(7) == ["Hola"]
    assert time.monotonic() - began >= PER_CHAT


async def test_failures_wait_longer_each_time(desk: Desk) -> None:
    """1, 2, 4 seconds; a success begins anew."""
    waits = []
    for _ in range(3):
        desk.server.faults["sendMessage"].append("html")
        with pytest.raises(TransportUnavailable) as raised:
            await desk.sending.deliver(LETTER)
        waits.append(raised.value.seconds)
    await desk.sending.deliver(LETTER)

    assert waits == [1, 2, 4]
