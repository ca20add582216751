"""Rows of the three queues are worked on in the order of their lines, side by side, through errors, stops and restarts."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bot import BadRequest, BotError, Context, Job, Parts, Registry, Reply, ReplyStream, StorageError, SubjectErased, dispatch
from bot.dispatch import AT_ONCE
from bot.errors import TransportError
from bot.handling import Handling
from bot.inbox import LEASE_MS, MOST_ATTEMPTS, Entry, Queue, now_ms
from bot.testing import RecordingTransport, TestBot
from tests.bot.world import Echo, opened, running, texts, until, update
from tests.conftest import Clock


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database that outlives a bot."""
    return f"sqlite:///{tmp_path}/bot.db"


def echo(bot: TestBot) -> Echo:
    """The assistant of a bot of the smallest parts."""
    assert isinstance(bot.ai, Echo)
    return bot.ai


async def states(bot: TestBot, table: str) -> dict[str, str]:
    """The rows of a queue: their ids, and what has become of them."""
    return {row["id"]: row["state"] for row in await bot.database.all(f"SELECT id, state FROM {table}")}


# ---------------------------------------------------------------------------------------------- order


async def test_a_message_is_answered() -> None:
    """What is accepted is answered and done; the rows keep no word of it."""
    async with opened() as bot:
        said = await bot.say("hola")

        kept = await bot.database.all("SELECT payload FROM inbox UNION ALL SELECT payload FROM outbox")
        assert said == ["echo: hola"]
        assert [row["payload"] for row in kept] == ["", ""]


async def test_quick_messages_of_one_chat_keep_their_order() -> None:
    """Three at once are answered one after the other, in order, while another chat goes on."""
    async with opened() as bot:
        echo(bot).gates["slow"] = asyncio.Event()
        for n in range(3):
            await bot.accept(update(f"m{n}", id=f"s{n}", chat="slow"))
        other = await bot.say("quick", chat="other")
        asked = list(echo(bot).asked)
        echo(bot).gates["slow"].set()
        await bot.settled("slow")

        assert other == ["echo: quick"]
        assert asked == ["m0", "quick"]
        assert [sent.text for sent in bot.transport.sent if sent.chat_key == "slow"] == ["echo: m0", "echo: m1", "echo: m2"]


async def test_a_redelivery_is_answered_once() -> None:
    """The same update again is known, before and after it was answered."""
    async with opened() as bot:
        first = await bot.accept(update("hola"))
        second = await bot.accept(update("hola"))
        await bot.settled("test:ana")
        third = await bot.accept(update("hola"))
        await bot.settled("test:ana")

        assert (first, second, third) == (True, False, False)
        assert texts(bot.transport.sent) == ["echo: hola"]


async def test_a_waiting_message_costs_nothing_meanwhile() -> None:
    """While one message of a chat is answered, the next is not looked for again and again."""
    looked = 0

    def counted() -> int:
        nonlocal looked
        looked += 1  # a look at a queue looks at the time
        return now_ms()

    async with opened(clock=counted) as bot:
        echo(bot).gates["slow"] = asyncio.Event()
        await bot.accept(update("1", id="s1", chat="slow"))
        await bot.accept(update("2", id="s2", chat="slow"))
        await until(lambda: echo(bot).asked)
        await asyncio.sleep(0.05)
        before = looked
        await asyncio.sleep(0.3)
        during = looked - before
        echo(bot).gates["slow"].set()
        await bot.settled("slow")

        assert during <= 12


async def test_more_chats_than_hands() -> None:
    """As many as there are slots are answered side by side, the others after them; a stop needs no slot."""
    async with opened() as bot:
        gate = asyncio.Event()
        for n in range(AT_ONCE + 3):
            echo(bot).gates[f"c{n}"] = gate
            await bot.accept(update("x", id=f"u{n}", chat=f"c{n}"))
        await until(lambda: len(echo(bot).asked) == AT_ONCE)
        await bot.accept(update("", id="stop", chat="c0", kind="stop"))
        await until(lambda: any(sent.chat_key == "c0" for sent in bot.transport.sent))
        stopped = texts(bot.transport.sent)
        gate.set()
        async with asyncio.timeout(10):
            for n in range(AT_ONCE + 3):
                await bot.settled(f"c{n}")

        assert stopped == ["echo: "]
        assert len(bot.transport.sent) == AT_ONCE + 3


async def test_a_stop_ends_the_answer_that_is_running() -> None:
    """It passes the queue of its chat: what there was of the answer is kept, and the next message is taken."""
    async with opened() as bot:
        echo(bot).gates["test:ana"] = asyncio.Event()
        await bot.accept(update("long", id="u1"))
        await bot.accept(update("next", id="u2"))
        await until(lambda: echo(bot).asked)
        await bot.accept(update("", id="u3", kind="stop"))
        await until(lambda: bot.transport.sent)
        echo(bot).gates["test:ana"].set()
        await bot.settled("test:ana")

        assert texts(bot.transport.sent) == ["echo: ", "echo: next"]


async def test_a_stop_with_nothing_to_stop() -> None:
    """It says nothing and breaks nothing."""
    async with opened() as bot:
        await bot.accept(update("", kind="stop"))
        await bot.settled("test:ana")

        assert await states(bot, "inbox") == {"u1": "done"}
        assert bot.transport.sent == []


async def test_what_is_not_said_to_the_bot() -> None:
    """A group's talk is neither answered nor stored."""
    async with opened() as bot:
        await bot.accept(update("among us", chat="room", is_group=True, addressed=False))
        await bot.settled("room")

        assert await states(bot, "inbox") == {}
        assert echo(bot).asked == []


# ---------------------------------------------------------------------------------------------- errors


def failing(error: BaseException, *, times: int = 99, after: str = "") -> "type[Failing]":
    """A plugin whose command /fail raises, a number of times."""
    return type("Failing1", (Failing,), {"error": error, "times": times, "after": after, "tries": 0})


class Failing:
    """See `failing`. `tries` counts."""

    error: BaseException
    times: int
    after: str
    tries = 0

    def __new__(cls, registry: Registry) -> None:  # type: ignore[misc]
        """Register."""

        @registry.command("fail")
        async def fail(ctx: Context) -> None:
            cls.tries += 1
            if cls.after:
                await ctx.reply(cls.after)
            if cls.tries <= cls.times:
                raise cls.error
            await ctx.reply("worked")


async def test_a_foreseen_error_is_said_in_its_words() -> None:
    """Once, in the reader's language."""
    plugin = failing(BotError("internal"))
    async with opened(plugin) as bot:
        english = await bot.say("/fail", lang="en")
        spanish = await bot.say("/fail", lang="es")

    assert english == [BotError.message]
    assert spanish not in ([], english)
    assert plugin.tries == 2


async def test_an_unforeseen_error_has_a_number(caplog: pytest.LogCaptureFixture) -> None:
    """The person reads a short id that the log has too, and none of the error."""
    async with opened(failing(RuntimeError("secret detail"), after="first")) as bot:
        first, said = await bot.say("/fail", lang="en")

    number = said.split("error ")[1].split(")")[0]
    assert first == "first"
    assert "secret detail" not in said
    assert any(number in record.getMessage() and record.exc_info for record in caplog.records)


async def test_what_a_person_wrote_is_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """The sentence of a BadRequest may quote them: the log has its code alone."""
    caplog.set_level(logging.DEBUG, logger="bot")
    async with opened(failing(BadRequest("I do not know 'my diary'"))) as bot:
        said = await bot.say("/fail my diary")

    assert said == ["I do not know 'my diary'"]
    assert "BAD_REQUEST" in caplog.text
    assert "diary" not in caplog.text


async def test_an_erasure_under_way_is_silent() -> None:
    """Who was erased gets no words about it, and the update is done."""
    async with opened(failing(SubjectErased("gone"))) as bot:
        assert await bot.say("/fail") == []
        assert set((await states(bot, "inbox")).values()) == {"done"}


async def test_a_chat_is_settled_when_the_words_about_an_erasure_are_sent() -> None:
    """The row under way is nobody's any more once its person is erased; what it has still to say is waited for all the same."""

    erased = asyncio.Event()

    def register(registry: Registry) -> None:
        @registry.command("gone")
        async def gone(ctx: Context) -> None:
            await ctx.people.erase(ctx.sender)
            erased.set()
            await asyncio.sleep(0.05)
            await ctx.reply("gone")

    async with opened(register) as bot:
        await bot.accept(update("/gone"))
        await erased.wait()
        await bot.settled("test:ana")

        assert texts(bot.transport.sent) == ["gone"]


async def test_a_cancellation_from_within_is_an_error() -> None:
    """A CancelledError that nobody sent to the bot does not stop it, nor run the update for ever."""
    plugin = failing(asyncio.CancelledError())
    async with opened(plugin) as bot:
        (said,) = await bot.say("/fail", lang="en")

        assert "Something went wrong" in said
        assert plugin.tries == 1
        assert await bot.say("still there?") == ["echo: still there?"]


async def test_storage_that_recovers(clock: Clock) -> None:
    """The update is tried again later, behind it the chat waits, and nobody reads about it."""
    plugin = failing(StorageError("full"), times=1)
    async with opened(plugin, clock=clock) as bot:
        await bot.accept(update("/fail"))
        await bot.accept(update("after", id="u2"))
        await until(lambda: plugin.tries == 1)
        clock.advance(seconds=3)
        await bot.settled("test:ana")

        assert texts(bot.transport.sent) == ["worked", "echo: after"]


async def test_storage_that_does_not_recover(clock: Clock) -> None:
    """After a few attempts it is said in words, the update is done, and the chat goes on."""
    plugin = failing(StorageError("full"))
    async with opened(plugin, clock=clock) as bot:
        await bot.accept(update("/fail"))
        for n in range(1, MOST_ATTEMPTS):
            await until(lambda n=n: plugin.tries == n)
            clock.advance(seconds=60)
            await asyncio.sleep(0.01)
            bot.core.inbox.notify()
        await bot.settled("test:ana")

        assert texts(bot.transport.sent) == [StorageError.message]
        assert plugin.tries == MOST_ATTEMPTS
        assert await bot.say("after", user="test:ana") == ["echo: after"]


def away(monkeypatch: pytest.MonkeyPatch, queue: Queue, name: str, *, times: int) -> list[str]:
    """Let the database be away when a row of a queue ends; the rows that it was asked for meanwhile."""
    asked: list[str] = []
    works = getattr(queue, name)

    async def fails_first(entry: Entry | str, **more: str) -> object:
        asked.append(entry if isinstance(entry, str) else entry.id)
        if len(asked) <= times:
            raise StorageError("away")
        return await works(entry, **more)

    monkeypatch.setattr(queue, name, fails_first)
    return asked


async def test_storage_that_is_away_when_a_reply_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is noted as sent when the database is back, though its lease is renewed meanwhile; it is not said twice."""
    async with opened() as bot:
        asked = away(monkeypatch, bot.core.outbox, "done", times=2)
        await bot.accept(update())
        async with asyncio.timeout(10):
            await bot.settled("test:ana")

        assert texts(bot.transport.sent) == ["echo: hi"]
        assert len(asked) == 3
        assert set((await states(bot, "outbox")).values()) == {"done"}


async def test_storage_that_is_away_when_an_update_failed(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row that could not be put back is, when the database is back: it is tried again in this process, not after the next start."""
    plugin = failing(StorageError("away"), times=1)
    async with opened(plugin, clock=clock) as bot:
        asked = away(monkeypatch, bot.core.inbox, "retry", times=1)
        await bot.accept(update("/fail"))
        await until(lambda: len(asked) == 2)
        clock.advance(seconds=60)
        async with asyncio.timeout(10):
            await bot.settled("test:ana")

        assert texts(bot.transport.sent) == ["worked"]


async def test_an_update_that_kills_the_process(url: str, clock: Clock) -> None:
    """Claimed again and again by starts that died, it is given up with a word, and not run once more."""
    plugin = failing(RuntimeError())
    async with opened(plugin, url=url, clock=clock, run=False) as bot:
        await bot.accept(update("/fail"))
        for _ in range(MOST_ATTEMPTS):
            await Queue(bot.database, "inbox", clock=clock).claim()
            clock.advance(seconds=LEASE_MS / 1000 + 1)
        async with running(bot):
            await bot.settled("test:ana")

        assert texts(bot.transport.sent) == [BotError.message]
        assert plugin.tries == 0


async def test_a_row_of_another_form_is_set_aside(clock: Clock) -> None:
    """An update that this version cannot read is given up, and the next of its chat is answered."""
    async with opened(clock=clock) as bot:
        await bot.core.inbox.put(None, "odd", kind="message", line="test:ana", payload={"of": "another version"})
        await bot.accept(update("after"))
        for _ in range(MOST_ATTEMPTS):
            await asyncio.sleep(0.05)
            clock.advance(seconds=60)
            bot.core.inbox.notify()
        await bot.settled("test:ana")

        assert texts(bot.transport.sent) == ["echo: after"]
        assert (await states(bot, "inbox"))["odd"] == "failed"


# ---------------------------------------------------------------------------------------------- sending


@dataclass
class Flaky(RecordingTransport):
    """A platform that takes a text only after a number of failures."""

    failures: int = 0
    tries: int = 0

    async def send(self, chat_key: str, text: str, *, reply_to: str | None = None) -> None:
        """Fail, or keep a text."""
        self.tries += 1
        if self.tries <= self.failures:
            raise TransportError("down")
        await super().send(chat_key, text, reply_to=reply_to)


@dataclass
class Streaming(RecordingTransport):
    """A platform that shows answers as they come, and may break down at one of the fragments."""

    shown: list[str] = field(default_factory=list)
    breaks_at: int = 99

    async def stream(self, chat_key: str, fragments: ReplyStream) -> None:
        """Keep each fragment."""
        async for fragment in fragments:
            self.shown.append(fragment)
            if len(self.shown) >= self.breaks_at:
                raise TransportError("broke")


async def test_a_send_that_fails_is_tried_again(clock: Clock) -> None:
    """The answer is a row before it is sent: it waits for the platform, and what comes after it in its chat waits behind it."""
    flaky = Flaky(failures=2)
    async with opened(clock=clock, transport=flaky) as bot:
        await bot.accept(update("1", id="u1"))
        await bot.accept(update("2", id="u2"))
        for tries in (1, 2):
            await until(lambda tries=tries: flaky.tries == tries)
            await until_new(bot, "u1:answer")
            clock.advance(seconds=20)
            bot.core.outbox.notify()
        await bot.settled("test:ana")

        assert texts(flaky.sent) == ["echo: 1", "echo: 2"]


async def until_new(bot: TestBot, entry_id: str) -> None:
    """Wait until a row of the outbox is back among those that wait."""
    async with asyncio.timeout(5):
        while await bot.core.outbox.state(entry_id) != "new":  # noqa: ASYNC110 - what it waits for sets no event
            await asyncio.sleep(0.002)


async def test_a_streamed_answer_is_shown_once() -> None:
    """What was shown while it was written is not sent again."""
    streaming = Streaming()
    async with opened(transport=streaming) as bot:
        await bot.say("hola")

        assert streaming.shown == ["echo: ", "hola"]
        assert streaming.sent == []
        assert set((await states(bot, "outbox")).values()) == {"done"}


@pytest.mark.parametrize("breaks_at", [1, 2])
async def test_a_stream_that_breaks_is_sent_whole(breaks_at: int) -> None:
    """The turn goes on to its end though nobody can be shown it, and its answer is sent as a message."""
    streaming = Streaming(breaks_at=breaks_at)
    async with opened(transport=streaming) as bot:
        assert await bot.say("hola") == ["echo: hola"]


async def test_a_reply_for_a_platform_that_does_not_run(url: str, clock: Clock) -> None:
    """It is left for a process that has it, which need not wait."""
    async with opened(url=url, clock=clock) as bot:
        await bot.core.outbox.put(None, "r1", kind="reply", line="c", via="elsewhere", payload={"text": "hi"})
        await bot.say("hello")
    there = RecordingTransport(name="elsewhere")
    async with opened(url=url, clock=clock, transport=there) as bot:
        await bot.settled("c")

    assert texts(there.sent) == ["hi"]


@pytest.fixture
def no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is not woken waits longer than a test may."""
    monkeypatch.setattr(dispatch, "POLL_SECONDS", 600.0)


@pytest.mark.usefixtures("no_polling")
async def test_what_was_waiting_at_the_start_is_worked_on_one_after_the_other(url: str) -> None:
    """Nobody here put it, and nobody has to look for it again and again: the end of each wakes who takes the next."""
    async with opened(url=url, run=False) as bot:
        for n in range(AT_ONCE + 3):
            await bot.accept(update(f"a{n}", id=f"a{n}", chat="a"))
            await bot.accept(update(f"c{n}", id=f"c{n}", chat=f"c{n}"))
    async with opened(url=url) as bot:
        await until(lambda: len(bot.transport.sent) == 2 * (AT_ONCE + 3))

        assert [one.text for one in bot.transport.sent if one.chat_key == "a"] == [f"echo: a{n}" for n in range(AT_ONCE + 3)]


@pytest.mark.usefixtures("no_polling")
async def test_slots_that_are_free_again_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """More chats wait than there are slots, and no end of a row tells of another in its line."""
    monkeypatch.setattr(dispatch, "AT_ONCE", 2)
    async with opened() as bot:
        for n in range(7):
            await bot.accept(update(str(n), id=f"u{n}", chat=f"c{n}"))
        await until(lambda: len(bot.transport.sent) == 7)

        assert sorted(texts(bot.transport.sent)) == [f"echo: {n}" for n in range(7)]


@pytest.mark.usefixtures("no_polling")
async def test_a_row_that_comes_due_after_the_start(url: str) -> None:
    """Somebody else put it; when its time comes it is taken, with nobody to wake who takes it."""
    async with opened(url=url, run=False) as bot:
        row = update("hola")
        await bot.core.inbox.put(
            None, "u1", kind="message", line=row.chat_key, user_id="test:ana", via="test", payload=row.to_json(), wait_ms=300
        )
    async with opened(url=url) as bot:
        await until(lambda: bot.transport.sent)

        assert texts(bot.transport.sent) == ["echo: hola"]


async def test_two_answers_to_one_update_are_one() -> None:
    """The second is not even begun: a handler that asks twice does not say twice."""

    def twice(registry: Registry) -> None:
        @registry.command("twice")
        async def both(ctx: Context) -> None:
            for text in ("first", "second"):
                await ctx.answer(ctx.ai.reply_in_chat_stream(ctx.chat, text, user_id=ctx.sender, deliver=ctx.outgoing.deliver))

    async with opened(twice) as bot:
        said = await bot.say("/twice")

        assert said == ["echo: first"]
        assert [stream.reply for stream in echo(bot).streams][1:] == [None]


@pytest.mark.usefixtures("no_polling")
async def test_several_replies_to_one_update_keep_their_order() -> None:
    """The first goes to the platform when it is stored; the others wait behind it in the outbox, and are taken from there."""

    def talks(registry: Registry) -> None:
        @registry.command("talk")
        async def talk(ctx: Context) -> None:
            for n in range(4):
                await ctx.reply(str(n))

    async with opened(talks) as bot:
        said = await bot.say("/talk")

    assert said == ["0", "1", "2", "3"]


@dataclass
class Held(RecordingTransport):
    """A platform that takes its time: each send waits for the gate."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    asked: int = 0

    async def send(self, chat_key: str, text: str, *, reply_to: str | None = None) -> None:
        """Wait, and keep a text."""
        self.asked += 1
        await self.gate.wait()
        await super().send(chat_key, text, reply_to=reply_to)


async def test_a_reply_is_not_looked_for_by_who_stored_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is claimed as it is put, and sent when it is stored."""
    held = Held()
    async with opened(transport=held) as bot:
        found: list[Entry] = []
        claims = bot.core.outbox.claims

        async def looked(*args: Any, **rest: Any) -> list[Entry]:
            entries = await claims(*args, **rest)
            found.extend(entries)
            return entries

        monkeypatch.setattr(bot.core.outbox, "claims", looked)
        await bot.accept(update())
        await until(lambda: held.asked)
        meanwhile = await states(bot, "outbox")
        held.gate.set()
        await bot.settled("test:ana")

        assert meanwhile == {"u1:answer": "claimed"}
        assert texts(held.sent) == ["echo: hi"]
        assert found == []


async def test_more_replies_than_hands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the platform has no hands for wait in the outbox, unclaimed."""
    monkeypatch.setattr(dispatch, "AT_ONCE", 2)
    held = Held()
    async with opened(transport=held) as bot:
        for n in range(4):
            await bot.accept(update(str(n), id=f"u{n}", chat=f"c{n}"))
        async with asyncio.timeout(5):
            while await bot.core.inbox.waiting():  # noqa: ASYNC110 - what it waits for sets no event
                await asyncio.sleep(0.002)
        meanwhile = sorted((await states(bot, "outbox")).values())
        held.gate.set()
        for n in range(4):
            await bot.settled(f"c{n}")

        assert meanwhile == ["claimed", "claimed", "new", "new"]
        assert sorted(texts(held.sent)) == [f"echo: {n}" for n in range(4)]


def breaking(text: str, *, stored: bool) -> Callable[[Registry], None]:
    """Adds /break, which puts a reply and fails: once it is `stored`, or in the transaction that is to store it."""

    def breaks(registry: Registry) -> None:
        @registry.command("break")
        async def fail(ctx: Context) -> None:
            async with ctx.bot.database.transaction() as tx:
                await ctx.outgoing.deliver(tx, Reply(text, text))
                if not stored:
                    raise BotError("internal")
            raise BotError("internal")

    return breaks


@pytest.mark.usefixtures("no_polling")
async def test_a_reply_whose_transaction_failed_is_not_sent() -> None:
    """The words about the failure are, and the chat goes on."""
    async with opened(breaking("never said", stored=False)) as bot:
        said = await bot.say("/break", lang="en")
        after = await bot.say("hola")

    assert said == [BotError.message]
    assert after == ["echo: hola"]


@pytest.mark.usefixtures("no_polling")
async def test_a_reply_that_is_stored_is_sent_though_its_handler_fails() -> None:
    """Nobody shows it, so it is given back to the outbox, and sent from there."""
    async with opened(breaking("stored", stored=True)) as bot:
        said = await bot.say("/break", lang="en")

    assert sorted(said) == sorted(["stored", BotError.message])


# ---------------------------------------------------------------------------------------------- stops and starts


async def test_a_stop_puts_back_what_was_under_way(url: str, clock: Clock) -> None:
    """A message that was being answered when the process stopped is answered by the next start, at once and once."""
    async with opened(url=url, clock=clock) as bot:
        echo(bot).gates["test:ana"] = asyncio.Event()
        await bot.accept(update("1", id="u1"))
        await bot.accept(update("2", id="u2"))
        await until(lambda: echo(bot).asked)
        first = bot.transport
    async with opened(url=url, clock=clock, run=False) as bot:
        attempts = await bot.database.all("SELECT state, attempts FROM inbox")
        async with running(bot):
            await bot.settled("test:ana")

        assert first.sent == []
        assert [dict(row) for row in attempts] == [{"state": "new", "attempts": 0}] * 2
        assert texts(bot.transport.sent) == ["echo: 1", "echo: 2"]


async def test_a_stop_waits_for_what_is_being_sent(url: str) -> None:
    """It is sent to its end and noted as sent: the next start does not send it again."""
    held = Held()
    async with opened(url=url, transport=held, run=False) as bot:
        task = asyncio.create_task(bot.run())
        await bot.accept(update("hola"))
        await until(lambda: held.asked)
        task.cancel()
        await asyncio.sleep(0.02)
        under_way = not task.done()
        held.gate.set()
        await asyncio.wait([task])

        assert under_way
        assert texts(held.sent) == ["echo: hola"]
        assert await states(bot, "outbox") == {"u1:answer": "done"}


async def test_a_crash_between_the_turn_and_the_send(url: str, clock: Clock) -> None:
    """The reply that was stored is sent by the next start, once, and the model is not asked again."""
    async with opened(url=url, clock=clock, run=False) as bot:
        await bot.accept(update("hola"))
        await bot.core.inbox.claim()  # as a start that dies below has it
        stream = echo(bot).reply_in_chat_stream("test:ana", "hola", user_id="test:ana", deliver=Handling(bot.core, update(), {}).deliver)
        assert [fragment async for fragment in stream] == ["echo: ", "hola"]
    clock.advance(seconds=LEASE_MS / 1000 + 1)
    async with opened(url=url, clock=clock) as bot:
        await bot.settled("test:ana")

        assert texts(bot.transport.sent) == ["echo: hola"]
        assert [stream.reply for stream in echo(bot).streams] == [None]  # made, and never read


async def test_a_stop_in_the_middle_of_everything(url: str) -> None:
    """Wherever a stop comes, each of the messages is answered by this start or the next, and none twice."""
    sent: list[str] = []
    for pause in (0.0, 0.002, 0.005, 0.01, 0.02):
        names = [f"{pause}:{n}" for n in range(4)]
        async with opened(url=url) as bot:
            for name in names:
                await bot.accept(update(name, id=name, chat=name[-1]))
            await asyncio.sleep(pause)
        sent += texts(bot.transport.sent)
    async with opened(url=url) as bot:
        async with asyncio.timeout(10):
            for chat in "0123":
                await bot.settled(chat)
        sent += texts(bot.transport.sent)

    assert sorted(sent) == sorted(f"echo: {pause}:{n}" for pause in (0.0, 0.002, 0.005, 0.01, 0.02) for n in range(4))


# ---------------------------------------------------------------------------------------------- jobs


@dataclass
class Working:
    """A plugin with jobs: what ran, and how often it fails before."""

    fails: int = 0
    ran: list[Job] = field(default_factory=list)

    def __call__(self, registry: Registry) -> None:
        """Register."""

        async def run(parts: Parts, job: Job) -> None:
            self.ran.append(job)
            if len(self.ran) <= self.fails:
                raise RuntimeError("not yet")
            async with parts.fence.transaction(job.marks) as tx:
                await tx.run(
                    "INSERT INTO users (agent_id, user_id, profile, created_at, updated_at) VALUES (:agent_id, :id, '{}', 0, 0)",
                    {"id": f"{job.subject}{job.payload['n']}"},
                )

        registry.job("work", run)


async def queue_jobs(bot: TestBot, *numbers: int, wait_ms: int = 0) -> None:
    """Jobs about Ana."""
    async with bot.database.transaction() as tx:
        for n in numbers:
            await bot.core.jobs.put(tx, "work", "ana", {"n": n}, wait_ms=wait_ms)


async def written(bot: TestBot) -> list[str]:
    """What the jobs wrote."""
    return [row["user_id"] for row in await bot.database.all("SELECT user_id FROM users ORDER BY user_id")]


async def test_jobs_of_one_person_run_in_order() -> None:
    """One after the other, their delay ended when somebody waits for them."""
    working = Working()
    async with opened(working) as bot:
        await queue_jobs(bot, 1, 2, 3, wait_ms=60_000)
        async with asyncio.timeout(5):
            await bot.core.jobs.idle("work")

        assert [job.payload["n"] for job in working.ran] == [1, 2, 3]
        assert await written(bot) == ["ana1", "ana2", "ana3"]


async def test_a_job_that_fails_is_tried_again() -> None:
    """A few times; the worker goes on, and who waits for it is not left waiting."""
    working = Working(fails=2)
    async with opened(working) as bot:
        await queue_jobs(bot, 1)
        async with asyncio.timeout(5):
            await bot.core.jobs.idle()

        assert [job.attempts for job in working.ran] == [1, 2, 3]
        assert await written(bot) == ["ana1"]


async def test_a_job_that_always_fails_is_given_up() -> None:
    """And so does not hold up those behind it."""
    working = Working(fails=MOST_ATTEMPTS)
    async with opened(working) as bot:
        await queue_jobs(bot, 1, 2)
        async with asyncio.timeout(5):
            await bot.core.jobs.idle()

        assert await written(bot) == ["ana2"]
        assert sorted((await states(bot, "jobs")).values()) == ["done", "failed"]


async def test_a_job_of_somebody_who_was_erased() -> None:
    """What was queued before the erasure is gone, and what runs then writes nothing, with no noise."""
    started, erased = asyncio.Event(), asyncio.Event()
    working = Working()

    def slow(registry: Registry) -> None:
        working(registry)
        inner = registry.jobs["work"]

        async def run(parts: Parts, job: Job) -> None:
            started.set()
            await erased.wait()
            await inner(parts, job)

        registry.jobs["work"] = run

    async with opened(slow) as bot:
        await queue_jobs(bot, 1, 2)
        await started.wait()
        await bot.delete_subject("ana")
        erased.set()
        async with asyncio.timeout(5):
            await bot.core.jobs.idle()
        await asyncio.sleep(0.02)

        assert await written(bot) == []
        assert len(working.ran) == 1
        assert set((await states(bot, "jobs")).values()) == {"done"}
