"""For the tests of whoever builds on the bot: a scripted model, a transport that records, and the real bot over an in-memory database."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.app import Bot, configure, open_bot
from bot.errors import BadRequest
from bot.ports import Provider, Retriever
from bot.registry import BUILT_IN, Registry, load
from bot.values import Attachment, Completion, MemoryOptions, Prompt, RagOptions, ToolCall, Update

__all__ = ["MockAIProvider", "RecordingTransport", "Sent", "TestBot", "create_test_bot"]

Scripted = str | Callable[[Prompt], str] | Exception | ToolCall | Sequence[ToolCall]


class MockAIProvider:
    """A model that says what it is told to. `calls[n]` is the n-th Prompt: it has `system`, `messages`, `tools`.

    `reply` is a text, a function of the call, an exception to raise, or a list of these (one a call, the last repeats). `tool_calls` are
    asked for in the first call: `ToolCall(...)` values, or `(name, arguments)` pairs. `delay` is in seconds, before each answer.
    """

    name = "mock"
    model = "mock"

    def __init__(
        self,
        reply: Scripted | Sequence[Scripted] = "",
        *,
        delay: float = 0.0,
        tool_calls: Iterable[ToolCall | tuple[str, Mapping[str, Any]]] = (),
        fragment: int = 0,
    ) -> None:
        self.calls: list[Prompt] = []
        self.delay = delay
        self._replies: list[Scripted] = list(reply) if isinstance(reply, list | tuple) else [reply]  # type: ignore[list-item]
        self._tool_calls = [one if isinstance(one, ToolCall) else _call(*one) for one in tool_calls]
        self._fragment = fragment

    async def complete(self, prompt: Prompt) -> Completion:
        """The next of the scripted answers."""
        said, calls = await self._next(prompt)
        return Completion(said, tuple(calls))

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | ToolCall]:
        """The same, word by word (or in pieces of `fragment` characters)."""
        said, calls = await self._next(prompt)
        pieces = [said[i : i + self._fragment] for i in range(0, len(said), self._fragment)] if self._fragment else _words(said)
        for piece in pieces:
            yield piece
        for call in calls:
            yield call

    async def _next(self, prompt: Prompt) -> tuple[str, list[ToolCall]]:
        self.calls.append(prompt)
        if self.delay:
            await asyncio.sleep(self.delay)
        if self._tool_calls and len(self.calls) == 1:
            return "", self._tool_calls
        turn = len(self.calls) - (2 if self._tool_calls else 1)
        scripted = self._replies[min(turn, len(self._replies) - 1)] if self._replies else ""
        if isinstance(scripted, Exception):
            raise scripted
        if isinstance(scripted, ToolCall):
            return "", [scripted]
        if callable(scripted):
            return scripted(prompt), []
        return ("", list(scripted)) if not isinstance(scripted, str) else (scripted, [])


def _call(name: str, arguments: Mapping[str, Any]) -> ToolCall:
    return ToolCall(uuid.uuid4().hex, name, json.dumps(arguments))


def _words(text: str) -> list[str]:
    return [word for word in text.replace(" ", " \0").split("\0") if word]


@dataclass(frozen=True, slots=True)
class Sent:
    """Something that a person was sent: a text, or a file with its name and bytes."""

    chat_key: str
    text: str
    file: tuple[str, bytes] | None = None


@dataclass(slots=True)
class RecordingTransport:
    """A platform that keeps what it was told to send. `files` maps a file's id to the bytes that `fetch` gives."""

    name: str = "test"
    sent: list[Sent] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    progressed: list[str] = field(default_factory=list)

    async def send(self, chat_key: str, text: str, *, reply_to: str | None = None) -> None:
        """Keep a text."""
        self.sent.append(Sent(chat_key, text))

    async def progress(self, chat_key: str, key: str, text: str) -> None:
        """Keep a line of progress."""
        self.progressed.append(text)

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        """The bytes of a file; raises BadRequest where it is larger than allowed."""
        data = self.files[attachment.file_id]
        if len(data) > max_bytes:
            raise BadRequest(f"{attachment.name} is larger than {max_bytes} bytes")
        return data

    async def send_file(self, chat_key: str, name: str, data: bytes) -> None:
        """Keep a file."""
        self.sent.append(Sent(chat_key, name, (name, data)))


class TestBot(Bot):
    """The real bot, with a way to talk to it. `provider` is the model that it was made with, `transport` what it was sent."""

    __test__ = False  # no test class, whatever its name looks like to pytest
    provider: Any
    transport: RecordingTransport
    running: "asyncio.Task[None] | None" = None

    async def settled(self, chat_key: str) -> None:
        """Return when everything in a chat has been answered; raises what stopped the bot, if something did."""
        settling = asyncio.ensure_future(super().settled(chat_key))
        try:
            await asyncio.wait({settling, self.running or settling}, return_when=asyncio.FIRST_COMPLETED)
            if self.running is not None and self.running.done() and not settling.done():
                self.running.result()
                raise RuntimeError("the bot has stopped: nothing can be said to it any more")
            await settling
        finally:
            settling.cancel()

    async def say(
        self,
        text: str,
        *,
        user: str = "user-1",
        chat: str | None = None,
        group: bool = False,
        lang: str | None = None,
        attachments: Mapping[str, bytes] | None = None,
        **update: Any,
    ) -> list[str]:
        """Write something as a person and return what they were sent for it, in this chat. `chat` defaults to the person's own.

        `attachments` maps names to bytes; other fields of Update go by their names (`quoted=…`, `may_moderate=True`).
        """
        chat_key = chat if chat is not None else user
        before = len(self.transport.sent)
        files = []
        for name, data in (attachments or {}).items():
            file_id = uuid.uuid4().hex
            self.transport.files[file_id] = data
            files.append(Attachment(file_id, name, size=len(data)))
        await self.accept(
            Update(
                id=f"test:{uuid.uuid4().hex}",
                transport=self.transport.name,
                chat_key=chat_key,
                sender=user,
                text=text,
                is_group=group,
                lang=lang,
                attachments=tuple(files),
                **update,
            )
        )
        await self.settled(chat_key)
        return [sent.text for sent in self.transport.sent[before:] if sent.chat_key == chat_key]


@asynccontextmanager
async def create_test_bot(
    *,
    provider: Any = None,
    memory: MemoryOptions | bool | None = None,
    rag: "RagOptions | Retriever | None" = None,
    language: str = "es",
    plugins: Sequence[Callable[[Registry], None] | str] = (),
    settings: Mapping[str, str] | None = None,
    database_url: str = "sqlite:///:memory:",
) -> AsyncIterator[TestBot]:
    """The real dispatcher over an in-memory database, with no documents but those given.

    `memory` and `rag` are those of `registry.ai`; `plugins` are functions `register(registry)` or names of modules; `settings` are
    variables by their names in the environment. Memory is off unless it is given, here or by a plugin, or set by BOT_MEMORY.
    """
    registry = load([*BUILT_IN, *(name for name in plugins if isinstance(name, str))], installed=False)
    for register in plugins:
        if not isinstance(register, str):
            register(registry)
    chosen = dict(settings or {})
    if registry.memory_options is None and "BOT_MEMORY" not in chosen:
        registry.ai(memory=False)
    registry.ai(memory=memory, rag=rag)
    environment = {
        "BOT_DATABASE_URL": database_url,
        "BOT_DOCUMENTS": "",
        "BOT_DEFAULT_LANGUAGE": language,
        "BOT_PROVIDER": "extractive",
        "BOT_RAG_REWRITE": "never",  # a scripted model gives its replies to turns alone
        **chosen,
    }
    configuration = configure(environment, registry=registry, toml=Path("no such file"))
    async with open_bot(configuration, provider=provider) as opened:
        bot = TestBot(opened.core)
        opened.core.bot = bot
        bot.provider = provider or opened.parts.find(Provider)
        bot.transport = RecordingTransport()
        bot.attach(bot.transport)
        bot.running = asyncio.create_task(bot.run())
        try:
            yield bot
        finally:
            bot.running.cancel()
            await asyncio.wait([bot.running])
