"""Streaming: what is shown meanwhile holds nothing up, and leaves nothing half-said."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from bot.errors import ModelError
from bot.transports.telegram.pacing import Pace, Pacer
from bot.transports.telegram.sending import Sending
from bot.transports.telegram.store import Part, Store
from bot.transports.telegram.streaming import DRAFT_EVERY, DRAFT_LASTS, Streaming
from bot.values import Letter
from tests.bot.transports.telegram.conftest import unmoved, wired
from tests.standins.telegram_server import Telegram

PRIVATE = Letter("telegram:1:5:answer", "telegram:7", question="5", user_id="telegram:7", markdown=True)
GROUP = Letter("telegram:1:6:answer", "telegram:-5", question="6", user_id="telegram:7", quotes=True, markdown=True)


class Words:
    """An answer that comes word by word; it breaks off with an error where one is given."""

    reply = None

    def __init__(self, *words: str, every: float = 0.3, error: Exception | None = None) -> None:
        self._words = list(words)
        self._every = every
        self._error = error

    async def stop(self) -> None:
        """Nothing here stops it."""

    def __aiter__(self) -> "Words":
        return self

    async def __anext__(self) -> str:
        if not self._words:
            if self._error:
                raise self._error
            raise StopAsyncIteration
        await asyncio.sleep(self._every)
        return self._words.pop(0)


@dataclass
class Stage:
    """What a test shows on, and what is seen of it."""

    server: Telegram
    streaming: Streaming
    store: Store
    with_drafts_that_last: Callable[[float], Streaming]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """A stand-in and a database in memory."""
    async with wired() as (server, api, database):
        store, pacer = Store(database, lambda: 1), Pacer(Pace())
        sending = Sending(api, store, pacer, key=b"k" * 32, clock=lambda: 1, moved=unmoved)

        def lasting(seconds: float) -> Streaming:
            return Streaming(api, sending, store, pacer, draft_lasts=seconds)

        yield Stage(server, Streaming(api, sending, store, pacer), store, lasting)


async def test_a_quick_answer_needs_no_sign(stage: Stage) -> None:
    """So that nothing stands in the way of its final text."""
    await stage.streaming.show(PRIVATE, Words("hola", every=0.01))

    assert stage.server.calls == []


async def test_what_may_stand_in_a_group_is_looked_for(stage: Stage) -> None:
    """Where the process died while an answer grew there, it answers anew, and sooner: the final text takes the place of what stands."""
    await stage.store.save(GROUP, [Part(9, final=False)])
    for letter in (GROUP, PRIVATE):
        await stage.streaming.show(letter, Words("hola", every=0.01))

    assert stage.streaming.untouched == {PRIVATE.id}


async def test_thinking_comes_first_then_the_words(stage: Stage) -> None:
    """A draft without text where nothing has come yet; the newest state after it, as far as the pace allows."""
    await stage.streaming.show(PRIVATE, Words("uno ", "dos ", "**tres** ", "cuatro ", every=0.8))
    drafts = stage.server.sent(7, method="sendMessageDraft")

    assert drafts[0].get("text") is None
    assert drafts[-1]["text"].startswith("uno dos")
    assert stage.server.busiest(seconds=1.0, chat=7) == 1


async def test_where_there_are_no_drafts_an_answer_grows_by_edits(stage: Stage) -> None:
    """An older server knows none: it is asked once, and typing and edits show the same."""
    stage.server.faults["sendMessageDraft"].append("404 Not Found: method not found")
    await stage.streaming.show(PRIVATE, Words("uno ", "dos ", every=2.2))
    await stage.streaming.show(replace(PRIVATE, id="telegram:1:6:answer"), Words("tres ", "cuatro ", every=1.6))

    assert [text[0] for text in stage.server.texts(7)] == ["u", "t"]
    assert "sendMessageDraft" not in {call.method for call in stage.server.calls}


async def test_a_draft_whose_formats_are_refused_is_shown_plain(stage: Stage) -> None:
    """One odd moment of a text ends nothing."""
    stage.server.faults["sendMessageDraft"].append("400 Bad Request: can't parse entities")
    await stage.streaming.show(PRIVATE, Words("**uno** ", "dos ", "tres ", every=0.5))
    first, *_ = stage.server.sent(7, method="sendMessageDraft")

    assert (first["text"], first.get("entities")) == ("uno", None)
    assert {call.method for call in stage.server.calls} == {"sendMessageDraft"}


async def test_a_draft_that_would_go_is_sent_again(stage: Stage) -> None:
    """Telegram lets one go after 30 s, also where the model is silent for longer; what has not changed is sent no sooner."""
    again = stage.with_drafts_that_last(1.0)
    await again.show(PRIVATE, Words("uno ", "dos", every=2.5))
    drafts = [call for call in stage.server.calls if call.method == "sendMessageDraft"]
    waits = [after.at - before.at for before, after in pairwise(drafts) if after.args.get("text") == before.args.get("text")]

    assert len(waits) >= 2
    assert all(1.0 <= wait < 4.0 for wait in waits)
    assert DRAFT_LASTS + DRAFT_EVERY < 30


@pytest.mark.parametrize("fault", ["html", "drop_before", "429 Too Many Requests: retry after 9", "401 Unauthorized"])
async def test_a_platform_that_is_away_holds_nothing_up(stage: Stage, fault: str) -> None:
    """All fragments are taken, and no error comes of it."""
    stage.server.faults["sendMessageDraft"].append(fault)
    await asyncio.wait_for(stage.streaming.show(PRIVATE, Words("uno ", "dos", every=0.5)), 3)


async def test_an_answer_that_breaks_off_leaves_nothing_in_the_group(stage: Stage) -> None:
    """What stood there is taken away; the words about the error come by themselves."""
    with pytest.raises(ModelError):
        await stage.streaming.show(GROUP, Words("uno ", "dos ", "tres ", "cuatro ", every=0.6, error=ModelError("gone")))

    assert [call.method for call in stage.server.calls if call.method != "sendChatAction"] == ["sendMessage", "deleteMessage"]
    assert stage.server.texts(-5) == []
    assert await stage.store.parts(GROUP.id) == []
