"""The seams: what one part may ask of another. Each is small; its docstring says what is promised and what is raised."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from bot.values import (
    Attachment,
    Completion,
    Document,
    Fact,
    Learned,
    Letter,
    MemoryOptions,
    MemoryState,
    Message,
    Passage,
    Prompt,
    Replaced,
    Reply,
    ToolCall,
    Update,
)

if TYPE_CHECKING:
    import numpy as np

Row = Mapping[str, Any]
Params = Mapping[str, Any]
Said = Callable[[str], Awaitable[None]]
"""Tells the progress of long work: one short line at a time."""


# ---------------------------------------------------------------------------------------------- storage


class Reader(Protocol):
    """Reads. SQL is in the subset that SQLite and PostgreSQL share, with named parameters (`:user_id`).

    `:agent_id` is always filled in (several bots can share one database). Every failure is a StorageError.
    """

    @property
    def agent_id(self) -> str: ...

    async def all(self, sql: str, params: Params = ...) -> list[Row]: ...

    async def one(self, sql: str, params: Params = ...) -> Row | None: ...


class Transaction(Reader, Protocol):
    """Reads and writes that happen together or not at all."""

    async def run(self, sql: str, params: Params = ...) -> int:
        """Execute one statement; returns how many rows it changed."""
        ...

    async def many(self, sql: str, rows: Sequence[Params]) -> None:
        """Execute one statement for each row of parameters."""
        ...


class Database(Reader, Protocol):
    """A database. NUL and lone surrogates never reach it."""

    async def tuples(self, sql: str, params: Params = ...) -> Sequence[Sequence[Any]]:
        """The rows of one SELECT, each the values of its columns in their order: for what is read in every turn."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """One writer at a time. An exception rolls back, and so does cancellation.

        After a statement that failed nothing of it is written. A transaction or a `write` inside one of the same task is a RuntimeError: it
        would wait for itself.
        """
        ...

    async def write(self, sql: str, params: Params = ...) -> list[Row]:
        """One statement that is a transaction of its own, and the rows that it returns: cheaper than `transaction` for one statement."""
        ...

    async def scrub(self) -> bool:
        """Overwrite what was deleted wherever the engine still holds it; False where that has to be tried again later."""
        ...


Marks = Mapping[str, int]
"""Subjects (a person, a chat) with the epoch that each had when it was noted."""


class Fence(Protocol):
    """Keeps what is written after a wait from coming back after an erasure."""

    async def mark(self, *subjects: str) -> Marks:
        """Note the epochs, at the start of a piece of work."""
        ...

    def transaction(self, marks: Marks) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that raises SubjectErased, with nothing written, where one of the epochs has changed."""
        ...

    async def bump(self, tx: Transaction, *subjects: str) -> None:
        """Change the epochs, so that whatever was noted before writes nothing any more."""
        ...


class Jobs(Protocol):
    """Background work that outlives the process."""

    async def put(self, tx: Transaction, kind: str, subject: str, payload: Mapping[str, Any], *, wait_ms: int = 0) -> None:
        """Queue a job inside a transaction. `subject` is the person it is about: erasing them takes it along."""
        ...

    async def idle(self, kind: str | None = None) -> None:
        """Run what waits, its delay ended, and return when no job (of this kind) is left to run."""
        ...


class MessageStore(Protocol):
    """Where the window is backed. `get_history` returns the newest `limit` messages, oldest first."""

    async def append_message(self, chat_key: str, message: Message) -> None: ...

    async def get_history(self, chat_key: str, limit: int) -> list[Message]: ...


class FactStore(Protocol):
    """Where facts are kept. `save_fact` returns True where the fact is new; `get_facts` returns live ones, oldest first."""

    async def save_fact(self, fact: Fact) -> bool: ...

    async def get_facts(self, subject: str) -> list[Fact]: ...


# ---------------------------------------------------------------------------------------------- model and documents


class Provider(Protocol):
    """A language model. Raises only ModelError and its kinds. Both methods honour one overall deadline and can be cancelled."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    async def complete(self, prompt: Prompt) -> Completion: ...

    def stream(self, prompt: Prompt) -> AsyncIterator[str | ToolCall]:
        """Fragments of text as they come, and calls of tools once each is whole. Closing the iterator ends the request."""
        ...


@runtime_checkable
class Retriever(Protocol):
    """Finds passages. May raise anything: the turn goes on without context. Cancellation is the abort signal."""

    async def retrieve(self, query: str, *, top_k: int | None = None, min_score: float | None = None) -> Sequence[Passage]: ...


class Embedder(Protocol):
    """Turns texts into vectors: `(n, d) float32`, rows of length 1. `id` changes whenever the vectors would."""

    @property
    def id(self) -> str: ...

    async def embed(self, texts: Sequence[str]) -> "np.ndarray[Any, Any]": ...


class IngestOutcome(Protocol):
    """What became of one document: `status` says which kind, and `failed` whether it cannot be answered from."""

    @property
    def failed(self) -> bool: ...

    @property
    def source(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def reason(self) -> str:
        """Why it is not simply added: a message of the catalogs, or nothing."""
        ...

    @property
    def detail(self) -> str:
        """What goes with the reason and needs no translation: page numbers, a line."""
        ...

    @property
    def chunks(self) -> int: ...


class Library(Retriever, Protocol):
    """The documents that the bot answers from. Every failure is a RagError; a bad file is an outcome, never an exception."""

    async def warmup(self) -> None:
        """Build or load the index."""
        ...

    async def add_files(
        self, paths: Sequence[str | Path], *, owner: str | None = None, progress: Said | None = None
    ) -> Sequence[IngestOutcome]: ...

    async def add_bytes(self, name: str, data: bytes, *, owner: str | None = None, owner_is_admin: bool = True) -> IngestOutcome: ...

    async def add_text(self, text: str, source: str, *, owner: str | None = None) -> IngestOutcome: ...

    async def remove_document(self, document_id: str) -> bool: ...

    async def reindex(self, *, progress: Said | None = None) -> Sequence[IngestOutcome]: ...

    async def listing(self) -> Sequence[Mapping[str, Any]]:
        """Each document as `{"id", "source", "chunks", "characters", "updated_at"}`."""
        ...


# ---------------------------------------------------------------------------------------------- memory and the assistant


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
    ) -> ReplyStream: ...

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


# ---------------------------------------------------------------------------------------------- platforms


class Sends(Protocol):
    """A platform. `send` returns when the platform took the text; raises TransportError where it did not."""

    @property
    def name(self) -> str: ...

    async def send(self, chat_key: str, text: str, *, reply_to: str | None = None) -> None: ...


@runtime_checkable
class Streams(Protocol):
    """A platform that shows an answer while it is written. The final text is shown whatever came before; returns it."""

    async def stream(self, chat_key: str, fragments: ReplyStream) -> None: ...


@runtime_checkable
class Delivers(Protocol):
    """A platform that takes whole letters, each once for its id, and shows an answer while it is written without ending it itself.

    What was shown is completed by `deliver`, which the outbox calls in the order of the chat, maybe before `show` has returned. Raises
    TransportUnavailable to be called again later, and Undeliverable where that is of no use.
    """

    async def deliver(self, letter: Letter) -> None: ...

    async def show(self, letter: Letter, fragments: ReplyStream) -> None:
        """Take all fragments and show them as they come; `letter` has no text yet. Raises only what the fragments raise."""
        ...


@runtime_checkable
class Moderated(Protocol):
    """A platform whose groups have administrators."""

    async def may_moderate(self, update: Update) -> bool:
        """Whether the sender administers the group; False where that cannot be found out."""
        ...


@runtime_checkable
class Revises(Protocol):
    """A platform where what was said can be changed afterwards."""

    async def may_revise(self, update: Update) -> bool:
        """Whether an edited message is the last that this person was answered in this chat."""
        ...


@runtime_checkable
class Edits(Protocol):
    """A platform that can change one line in place, for progress. The first call sends it."""

    async def progress(self, chat_key: str, key: str, text: str) -> None: ...


@runtime_checkable
class Files(Protocol):
    """A platform that carries files. `fetch` raises BadRequest for one over `max_bytes`."""

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes: ...

    async def send_file(self, chat_key: str, name: str, data: bytes) -> None: ...


__all__ = [
    "Assistant",
    "Database",
    "Deliver",
    "Delivers",
    "Document",
    "Edits",
    "Embedder",
    "FactStore",
    "Fence",
    "Files",
    "IngestOutcome",
    "Jobs",
    "Library",
    "Marks",
    "MessageStore",
    "Moderated",
    "Params",
    "Provider",
    "Reader",
    "Recall",
    "ReplyStream",
    "Retriever",
    "Revises",
    "Row",
    "Said",
    "Sends",
    "Streams",
    "Transaction",
]
