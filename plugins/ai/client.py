"""The assistant: a turn in a chat, short-term and long-term memory, and documents behind one object."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from bot import (
    Catalogs,
    Counters,
    Database,
    Deliver,
    Fact,
    Fence,
    MemoryOptions,
    MessageStore,
    ModelError,
    Prompt,
    Provider,
    RagOptions,
    Recall,
    Reply,
    Retriever,
    Tool,
    create_memory,
    rag_options,
    tool_of,
)
from plugins.ai.answering import Model
from plugins.ai.history import InMemory, InStore, InTable, Windows
from plugins.ai.prompt import MAX_TOKENS
from plugins.ai.retrieval import MEMORY_SECONDS
from plugins.ai.stream import AnswerStream
from plugins.ai.turn import Question, Turns
from plugins.ai.window import MAX_MESSAGES

Translate = Callable[[str, str], str]
Erase = Callable[[str], Awaitable[Mapping[str, int]]]
LanguageOf = Callable[[str], Awaitable[str | None]]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@lru_cache(maxsize=1)
def _catalogs() -> Catalogs:
    return Catalogs.load()


def _translate(lang: str, message: str) -> str:
    """By the bot's own catalogs, which are read when the first word is needed."""
    return _catalogs().gettext(lang)(message)


class AIClient:
    """The bot's Assistant. By hand, `AIClient(provider)` is enough: the window is in RAM, and memory in a database of its own.

    `window` is how many messages of a chat go to the model, or a MessageStore that holds them; `memory` is MemoryOptions, `True`, or a
    Recall; `rag` a retriever or RagOptions; `tools` are functions `async def name(ctx, …)`. `answer_seconds` bounds a whole answer, its
    calls of tools included, and `memory_seconds` the wait for facts. With `database` and `fence`, turns are kept in the table `messages`;
    the rest is what the bot hands on.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        window: int | MessageStore | None = None,
        memory: MemoryOptions | Recall | bool | None = None,
        rag: RagOptions | Retriever | None = None,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        persona: str | None = None,
        language: str = "es",
        max_context_tokens: int = MAX_TOKENS,
        answer_seconds: float | None = None,
        memory_seconds: float = MEMORY_SECONDS,
        database: Database | None = None,
        fence: Fence | None = None,
        windows: Windows | None = None,
        counters: Counters | None = None,
        clock: Callable[[], int] = _now_ms,
        translate: Translate | None = None,
        language_of: LanguageOf | None = None,
        erase: Erase | None = None,
    ) -> None:
        self._provider = provider
        self._language = language
        self._language_of = language_of
        self._erase = erase
        self._recall = _recall(memory, provider)
        offered = [tool if isinstance(tool, Tool) else tool_of(tool) for tool in tools]
        self._turns = Turns(
            model=Model(provider, {tool.spec.name: tool for tool in offered}, answer_seconds),
            history=_history(window, database, fence, windows),
            recall=self._recall,
            rag=rag_options(rag),
            counters=counters or Counters(),
            clock=clock,
            translate=translate or _translate,
            persona=persona,
            budget=max_context_tokens,
            memory_seconds=memory_seconds,
            language_for=self._language_for,
        )

    # ------------------------------------------------------------------------------------ the turn

    async def ask(self, prompt: str, *, system: str | None = None) -> str:
        """One call of the model with no chat, memory or documents. Raises ModelError."""
        asked = Prompt(system or "", [{"role": "user", "content": prompt}], question=prompt, language=self._language)
        answer = (await self._provider.complete(asked)).text.strip()
        if not answer:
            raise ModelError(f"{self._provider.name}: the answer is empty")
        return answer

    async def reply_in_chat(self, chat_key: str, text: str, **options: Any) -> str:
        """The text of the reply; the options are those of `reply_in_chat_stream`."""
        return (await self.reply_in_chat_detailed(chat_key, text, **options)).text

    async def reply_in_chat_detailed(self, chat_key: str, text: str, **options: Any) -> Reply:
        """The whole reply; the options are those of `reply_in_chat_stream`. Raises ModelError, StorageError and SubjectErased."""
        stream = self.reply_in_chat_stream(chat_key, text, **options)
        async for _ in stream:
            pass
        assert stream.reply is not None, "a stream that ended without an error has a reply"
        return stream.reply

    def reply_in_chat_stream(
        self,
        chat_key: str,
        text: str,
        *,
        user_id: str | None = None,
        is_group: bool = False,
        lang: str | None = None,
        quoted: str | None = None,
        evidence: str | None = None,
        turn_id: str | None = None,
        deliver: Deliver | None = None,
        context: object | None = None,
        message: str | None = None,
        revises: bool = False,
    ) -> AnswerStream:
        """One question, one turn: the fragments of the reply, and in the end `.reply`. Nothing happens until the first is asked for.

        `lang` is the reader's language (else the person's, else the default); `quoted` is text that is not the person's own; `evidence` is
        what counts as their own words for memory (default `text`, `""` for none); a `turn_id` that was answered before gives the stored
        reply. `deliver` is called in the transaction that keeps the turn; `context` is what tools are called with, and where it has `marks`
        the turn is kept behind those. Without `user_id` the turn has no memory. `message` is the platform's id of the question; `revises`:
        it was edited, so this turn takes the place of the one that it had. Iterating raises ModelError, StorageError, and SubjectErased
        where the person or the chat was erased meanwhile.
        """

        question = Question(
            chat_key, text, user_id or None, is_group, lang or "", quoted, evidence, turn_id, deliver, context, message, revises
        )
        return AnswerStream(lambda stop, outcome: self._turns.run(self, question, stop, outcome))

    async def _language_for(self, user_id: str | None) -> str:
        chosen = await self._language_of(user_id) if self._language_of and user_id else None
        return chosen or self._language

    async def reset(self, chat_key: str) -> int:
        """Empty this chat's window and its stored messages; how many left. Facts stay."""
        async with self._turns.order.of(chat_key):
            return await self._turns.history.reset(chat_key)

    async def warmup(self) -> None:
        """Build the index now, where the retriever can. Raises what the retriever raises."""
        if warmup := getattr(self._turns.rag.retriever if self._turns.rag else None, "warmup", None):
            await warmup()

    # ------------------------------------------------------------------------------------ long-term memory

    async def memory(self, user_id: str) -> list[str]:
        """The live facts of a person, oldest first."""
        return [fact.text for fact in await self.memory_facts(user_id)]

    async def memory_facts(self, user_id: str) -> list[Fact]:
        """The same, with their times and sources."""
        return await self._recall.facts(user_id)

    async def remember(
        self, user_id: str, facts: str | Sequence[str], *, ttl: str | int | None = None, source: str = "manual"
    ) -> list[str]:
        """Keep one fact or several; those that were new. One too long or secret is left out. Raises ValueError for a bad `ttl`."""
        return await self._recall.remember(user_id, facts, ttl=ttl, source=source)

    async def forget(self, user_id: str, fact: str | None = None) -> int | bool:
        """Forget one fact (`True` if it existed), or all of them (how many there were)."""
        gone = await self._recall.forget(user_id, fact)
        return gone if fact is None else bool(gone)

    async def extract_memory(self, user_id: str, user_text: str, assistant_text: str) -> list[str]:
        """One extraction by hand; the facts added. Raises ModelError."""
        return await self._recall.extract(user_id, user_text, assistant_text)

    async def idle(self) -> None:
        """Flush what waits and return when background extraction has finished."""
        await self._recall.idle()

    async def delete_subject(self, user_id: str) -> Mapping[str, int]:
        """Right to erasure: everything held about a person; how many of each kind left. In the bot this is `bot.delete_subject`."""
        if self._erase is not None:
            return await self._erase(user_id)
        return {"facts": await self._recall.forget(user_id), "messages": await self._turns.history.erase(user_id)}

    async def aclose(self) -> None:
        """Close what this client opened by itself: the database of a memory that was built by hand."""
        if close := getattr(self._recall, "aclose", None):
            await close()


def _recall(memory: MemoryOptions | Recall | bool | None, provider: Provider) -> Recall:
    if memory is None or isinstance(memory, MemoryOptions | bool):
        return cast(Recall, create_memory(memory, provider=provider))
    return memory


def _history(
    window: int | MessageStore | None, database: Database | None, fence: Fence | None, windows: Windows | None
) -> InMemory | InStore | InTable:
    if window is not None and not isinstance(window, int):
        return InStore(window, MAX_MESSAGES)
    size = MAX_MESSAGES if window is None else window
    if database is not None and fence is not None:
        return InTable(database, fence, max_size=size, windows=windows)
    return InMemory(size)
