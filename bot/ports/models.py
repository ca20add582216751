"""The model and the documents as other parts see them: providers, retrievers, embedders, the library."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from bot.values import Completion, Passage, Prompt, ToolCall

if TYPE_CHECKING:
    import numpy as np

Said = Callable[[str], Awaitable[None]]
"""Tells the progress of long work: one short line at a time."""


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


class Transcriber(Protocol):
    """Writes down what is said in a recording. Raises ModelError and its kinds."""

    async def transcribe(self, data: bytes, name: str, *, lang: str) -> str:
        """The words; `name` ends in the kind of file, `lang` is the language that is likely."""
        ...


class Sight(Protocol):
    """Looks at pictures. Raises CannotSee where the model does not, and ModelError and its kinds."""

    async def look(self, pictures: Sequence[tuple[str, bytes]], *, question: str, lang: str) -> str:
        """What is on the pictures, each `(media type, bytes)`, with regard to the question, which may be empty; in the language `lang`."""
        ...


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
