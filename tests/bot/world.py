"""A bot of the smallest parts: the real process core over a real database, and an assistant that says back what it hears."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot import Assistant, Context, Deliver, Library, Parts, Registry, Reply
from bot.app import configure, open_bot
from bot.inbox import now_ms
from bot.testing import RecordingTransport, Sent, TestBot
from bot.values import Update


@dataclass(slots=True)
class EchoStream:
    """The answer `echo: …` in two fragments, stored behind the fence as a turn is. `gate` holds it up before the second."""

    parts: Parts
    text: str
    subjects: list[str]
    deliver: Deliver | None
    gate: asyncio.Event | None
    reply: Reply | None = None
    stopped: bool = False
    _at: int = 0
    _marks: Mapping[str, int] = field(default_factory=dict)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def stop(self) -> None:
        """Keep what there is."""
        self.stopped = True
        self._stop.set()

    def __aiter__(self) -> "EchoStream":
        return self

    async def __anext__(self) -> str:
        self._at += 1
        if self._at == 1:
            self._marks = await self.parts.fence.mark(*self.subjects)
            return "echo: "
        if self._at == 2:
            await self._wait()
            if not self.stopped:
                return self.text
        if self.reply is None:
            said = "echo: " + ("" if self.stopped else self.text)
            self.reply = Reply(said, said)
            async with self.parts.fence.transaction(self._marks) as tx:
                if self.deliver:
                    await self.deliver(tx, self.reply)
        raise StopAsyncIteration

    async def _wait(self) -> None:
        if self.gate is not None:
            gates = [asyncio.ensure_future(event.wait()) for event in (self.gate, self._stop)]
            await asyncio.wait(gates, return_when=asyncio.FIRST_COMPLETED)
            for one in gates:
                one.cancel()


@dataclass(slots=True)
class Echo:
    """An Assistant of one method. `gates` hold up the answers of a chat; `asked` is what it was asked, `streams` its answers."""

    parts: Parts
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    streams: list[EchoStream] = field(default_factory=list)

    def reply_in_chat_stream(self, chat_key: str, text: str, *, user_id: str | None = None, deliver: Any = None, **rest: Any) -> EchoStream:
        """An answer as it comes."""
        self.asked.append(text)
        subjects = [subject for subject in (user_id, chat_key) if subject]
        self.streams.append(EchoStream(self.parts, text, subjects, deliver, self.gates.get(chat_key)))
        return self.streams[-1]


def parts(registry: Registry) -> None:
    """Fill the ports that a bot needs, and answer anything by an echo."""
    registry.part(Assistant, Echo)  # type: ignore[type-abstract]
    registry.part(Library, lambda _parts: object())  # type: ignore[type-abstract, arg-type, return-value]

    @registry.chat
    async def chat(ctx: Context) -> None:
        await ctx.answer(ctx.ai.reply_in_chat_stream(ctx.chat, ctx.text, user_id=ctx.sender or None, deliver=ctx.outgoing.deliver))


Plugin = Callable[[Registry], None]


@asynccontextmanager
async def opened(
    *plugins: Plugin,
    url: str = "sqlite:///:memory:",
    clock: Callable[[], int] = now_ms,
    transport: Any = None,
    run: bool = True,
    **settings: str,
) -> AsyncIterator[TestBot]:
    """A bot with the smallest parts and these plugins; `run` lets it answer."""
    registry = Registry()
    for register in (parts, *plugins):
        register(registry)
    environment = {"BOT_DATABASE_URL": url, "BOT_DEFAULT_LANGUAGE": "en", **settings}
    async with open_bot(configure(environment, registry=registry, toml=Path("no such file")), clock=clock, warm=False) as plain:
        bot = plain.core.bot = TestBot(plain.core)
        bot.transport = transport or RecordingTransport()
        bot.attach(bot.transport)
        if not run:
            yield bot
            return
        async with running(bot):
            yield bot


@asynccontextmanager
async def running(bot: TestBot) -> AsyncIterator[None]:
    """Let a bot answer; what stops it by itself fails the test."""
    task = asyncio.create_task(bot.run())
    try:
        yield
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.wait([task])


def update(text: str = "hi", *, id: str = "u1", sender: str | None = "test:ana", chat: str = "test:ana", **rest: Any) -> Update:
    """Something that a person wrote."""
    return Update(id=id, transport="test", chat_key=chat, sender=sender, text=text, **rest)


async def until(holds: Callable[[], object]) -> None:
    """Wait, a moment at a time, for what other tasks bring about."""
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - what it waits for sets no event
            await asyncio.sleep(0.002)


def texts(sent: list[Sent]) -> list[str]:
    """What was said, without where."""
    return [one.text for one in sent]
