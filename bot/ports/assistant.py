"""Memory and the turn as handlers see them: what `ctx.recall` and `ctx.ai` are."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from bot.ports.storage import Marks, Transaction
from bot.values import Fact, Learned, MemoryOptions, MemoryState, Replaced, Reply


class Recall(Protocol):
    """Long-term memory as the turn and the handlers use it. The names and promises are those of CONTRACT's table."""

    @property
    def options(self) -> MemoryOptions | None:
        """None where memory is off: then nothing is injected or extracted by itself, and the methods work all the same."""
        ...

    async def facts(self, subject: str) -> list[Fact]:
        """Live facts, oldest first."""
        ...

    async def relevant(self, subjects: Sequence[str], question: str) -> list[Fact]:
        """The facts for a prompt, subject by subject: all where they fit into `options.prompt_tokens`, else the pinned and the most
        relevant to the question. None of a person whose memory is paused."""
        ...

    async def remember(
        self,
        subject: str,
        facts: str | Sequence[str],
        *,
        ttl: str | int | None = None,
        source: str = "manual",
    ) -> list[str]:
        """The facts that were new. One that is too long or a secret is left out; `why_not` tells."""
        ...

    async def learn(self, subject: str, facts: str | Sequence[str], *, ttl: str | int | None = None, source: str = "manual") -> Learned:
        """The same as `remember`, with all that became of the facts."""
        ...

    def why_not(self, fact: str) -> str | None:
        """The code for which `remember` would leave this text out (`EMPTY`, `TOO_LONG`, `SECRET_…`), or None."""
        ...

    async def remember_keyed(self, subject: str, key: str, value: str, *, source: str = "manual", marks: Marks | None = None) -> bool:
        """Set the value of a key; False where it is refused. Raises SubjectErased where one of `marks` has changed."""
        ...

    def why_not_keyed(self, key: str, value: str) -> str | None:
        """The code for which `remember_keyed` would refuse, or None."""
        ...

    async def recall_keyed(self, subject: str, key: str | None = None) -> list[Fact]: ...

    async def forget_keyed(self, subject: str, key: str, *, marks: Marks | None = None) -> bool: ...

    async def forget(self, subject: str, fact: str | None = None) -> int:
        """How many facts left. `fact` names one by its text."""
        ...

    async def edit(self, subject: str, fact_id: str, text: str) -> bool:
        """Change the text of a fact, whose source is the person from then on; False where there is none with this id."""
        ...

    async def pin(self, subject: str, fact_id: str, pinned: bool) -> bool:
        """Let a fact go into every prompt, or no more; False where there is none with this id."""
        ...

    async def replaced(self, subject: str) -> list[Replaced]:
        """The facts that were replaced and can still be brought back, the latest last."""
        ...

    async def undo(self, subject: str) -> tuple[list[str], list[str]]:
        """Take back the last change that memory made by itself: `(facts that left, facts that are back)`."""
        ...

    async def state(self, subject: str) -> MemoryState:
        """What the person chose."""
        ...

    async def choose(self, subject: str, *, paused: bool | None = None, quiet: bool | None = None) -> None:
        """Change what the person chose; None leaves it. A pause also drops what waits to be looked at."""
        ...

    async def extract(self, subject: str, user_text: str, assistant_text: str) -> list[str]:
        """One extraction by hand; the facts added. Raises ModelError."""
        ...

    async def stage_extraction(
        self, tx: Transaction | None, subject: str, user_text: str, assistant_text: str, *, chat_key: str = ""
    ) -> None:
        """Queue an extraction inside the turn's own transaction (None: in one of its own); does nothing where extraction is off.

        `chat_key` is the person's private chat, where they may be told what was learnt; empty for nowhere.
        """
        ...

    async def idle(self) -> None:
        """Flush what waits and return when background extraction has finished."""
        ...


class ReplyStream(Protocol):
    """An answer as it comes: an async iterator of text fragments."""

    @property
    def reply(self) -> Reply | None:
        """The whole, when the stream has ended."""
        ...

    async def stop(self) -> None:
        """End the model's stream and keep what there is as the answer."""
        ...

    def __aiter__(self) -> AsyncIterator[str]: ...

    async def __anext__(self) -> str: ...


Deliver = Callable[[Transaction, Reply], Awaitable[None]]
"""Called inside the transaction that stores a turn, so that the reply is in the outbox when the turn is in the window."""


class Assistant(Protocol):
    """What `ctx.ai` is: the turn, memory and documents. The names and promises are those of CONTRACT 1 and 3."""

    async def ask(self, prompt: str, *, system: str | None = None) -> str: ...

    async def reply_in_chat(
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
    ) -> str: ...

    async def reply_in_chat_detailed(
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
    ) -> Reply: ...

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
    ) -> ReplyStream:
        """`context` is what tools are called with; one that is Marked tells the epochs of the sender and the chat, too."""
        ...

    async def warmup(self) -> None:
        """Let the retrievers build what they need. Raises what they raise."""
        ...

    async def reset(self, chat_key: str) -> int:
        """Empty this chat's window and its stored messages; how many left. Facts stay."""
        ...

    async def memory(self, user_id: str) -> list[str]: ...

    async def memory_facts(self, user_id: str) -> list[Fact]: ...

    async def remember(
        self,
        user_id: str,
        facts: str | Sequence[str],
        *,
        ttl: str | int | None = None,
        source: str = "manual",
    ) -> list[str]: ...

    async def forget(self, user_id: str, fact: str | None = None) -> int | bool: ...

    async def extract_memory(self, user_id: str, user_text: str, assistant_text: str) -> list[str]: ...

    async def idle(self) -> None: ...

    async def delete_subject(self, user_id: str) -> Mapping[str, int]: ...
