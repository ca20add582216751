"""Where documents, their chunks and vectors are kept: in tables, in one JSON file, or for the life of the process."""

import asyncio
import hashlib
import time
import zlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bot import RagError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it is kept. `origin` is folder, given, path, text or upload; `metadata` is JSON; times are UTC milliseconds."""

    id: str
    label: str
    origin: str
    path: str = ""
    state: str = "live"
    digest: str = ""
    recipe: str = ""
    body: str = ""
    metadata: str = "{}"
    checksum: str = ""
    characters: int = 0
    pieces: int = 0
    owner: str = ""
    owner_is_admin: int = 1
    generation: int = 0
    updated_at: int = 0


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A piece as it is kept; `digest` is of what is searched and embedded."""

    document_id: str
    position: int
    section: str
    text: str
    metadata: str
    digest: str


def sealed(document: StoredDocument, chunks: Sequence[StoredChunk]) -> StoredDocument:
    """The document with the checksum of all that it holds."""
    return replace(document, checksum=checksum(document, chunks), pieces=len(chunks))


def packed(vector: Array) -> bytes:
    """A vector as it is kept, with a checksum ahead of it."""
    data = vector.astype("<f4").tobytes()
    return zlib.crc32(data).to_bytes(4, "big") + data


def unpacked(data: bytes) -> Array | None:
    """The vector, or None where the bytes are not what was kept."""
    body = data[4:]
    return np.frombuffer(body, dtype="<f4") if body and len(body) % 4 == 0 and zlib.crc32(body).to_bytes(4, "big") == data[:4] else None


def checksum(document: StoredDocument, chunks: Sequence[StoredChunk]) -> str:
    """A digest of a document and its chunks: a bit that flips on the disk is found by it."""
    digest = hashlib.sha256()
    for part in (document.id, document.label, document.state, document.digest, document.recipe, document.body, document.metadata):
        digest.update(str(part).encode() + b"\0")
    for chunk in chunks:
        parts = (chunk.position, chunk.section, chunk.text, chunk.metadata, chunk.digest)
        digest.update("\0".join(map(str, parts)).encode() + b"\0")
    return digest.hexdigest()


class Damaged(RagError):
    """A saved index that is not what was saved: it is set aside and built anew."""

    def __init__(self, text: str) -> None:
        super().__init__("INVALID_INDEX", text)


def renamed(paths: Iterable[Path]) -> str | None:
    name = None
    mark = f"damaged-{time.time_ns()}"
    for path in paths:
        if path.exists():
            new = path.with_name(f"{path.name}.{mark}")
            path.replace(new)
            name = name or str(new)
    return name


class Store(Protocol):
    """An open store. A write is whole or not at all; every failure is a RagError or a StorageError."""

    async def generation(self) -> int: ...

    async def documents(self) -> list[StoredDocument]: ...

    def chunks(self, documents: Sequence[StoredDocument]) -> AsyncIterator[list[StoredChunk]]:
        """Those of the documents, some at a time, each document's in order."""
        ...

    async def vectors(self, embedder: str, digests: Sequence[str]) -> dict[str, bytes]:
        """Those there are, by the digest of their text."""
        ...

    async def write(self, documents: Sequence[tuple[StoredDocument, Sequence[StoredChunk]]], *, remove: Sequence[str] = ()) -> int:
        """Replace documents and take others away, in one transaction; the new generation."""
        ...

    async def keep_vectors(self, embedder: str, vectors: Mapping[str, bytes]) -> None: ...

    async def drop_vectors(self, embedder: str) -> None: ...

    async def tidy(self) -> None:
        """Take away the vectors of texts that are in no chunk any more."""
        ...


class Storage(Protocol):
    """Opens a store for a piece of work."""

    @property
    def shared(self) -> bool:
        """Whether others write there too."""
        ...

    def open(self, owner: str = "") -> AbstractAsyncContextManager[Store]:
        """`owner` is the person whose document is written: nothing is written once they are erased (SubjectErased)."""
        ...

    def set_aside(self) -> str | None:
        """Put a damaged file out of the way; its new name, or None where there is no file to move."""
        ...


# ---------------------------------------------------------------------------------------------- for the life of the process


_row = attrgetter(*StoredChunk.__dataclass_fields__)
_DIGEST = list(StoredChunk.__dataclass_fields__).index("digest")


class Shelf:
    """A Store in dictionaries. Chunks are held as tuples, which the garbage collector leaves alone."""

    def __init__(self) -> None:
        self.state = 0
        self.held: dict[str, tuple[StoredDocument, tuple[tuple[Any, ...], ...]]] = {}
        self.by_embedder: dict[str, dict[str, bytes]] = {}

    async def generation(self) -> int:
        """How often it changed."""
        return self.state

    async def documents(self) -> list[StoredDocument]:
        """All of them, removed ones included."""
        return [document for document, _ in self.held.values()]

    async def chunks(self, documents: Sequence[StoredDocument]) -> AsyncIterator[list[StoredChunk]]:
        """Those of the documents, each document's in order."""
        for document in documents:
            yield [StoredChunk(*row) for row in self.held[document.id][1]]

    async def vectors(self, embedder: str, digests: Sequence[str]) -> dict[str, bytes]:
        """Those there are, by the digest of their text."""
        kept = self.by_embedder.get(embedder, {})
        return {digest: kept[digest] for digest in digests if digest in kept}

    async def write(self, documents: Sequence[tuple[StoredDocument, Sequence[StoredChunk]]], *, remove: Sequence[str] = ()) -> int:
        """Replace documents and take others away."""
        self.state += 1
        for name in remove:
            self.held.pop(name, None)
        at = self.state
        self.held.update(await asyncio.to_thread(lambda: {d.id: shelved(replace(d, generation=at), chunks) for d, chunks in documents}))
        return self.state

    async def keep_vectors(self, embedder: str, vectors: Mapping[str, bytes]) -> None:
        """Keep the vectors of texts."""
        self.by_embedder.setdefault(embedder, {}).update(vectors)

    async def drop_vectors(self, embedder: str) -> None:
        """Forget every vector of an embedder."""
        self.by_embedder.pop(embedder, None)

    async def tidy(self) -> None:
        """Take away the vectors of texts that are in no chunk any more."""
        used = {row[_DIGEST] for _, rows in self.held.values() for row in rows}
        self.by_embedder = {name: {d: v for d, v in kept.items() if d in used} for name, kept in self.by_embedder.items()}


def shelved(document: StoredDocument, chunks: Iterable[StoredChunk]) -> tuple[StoredDocument, tuple[tuple[Any, ...], ...]]:
    """As a Shelf holds them."""
    return document, tuple(map(_row, chunks))


class InMemory:
    """Kept for the life of the process."""

    shared = False

    def __init__(self) -> None:
        self._shelf = Shelf()

    @asynccontextmanager
    async def open(self, owner: str = "") -> AsyncIterator[Store]:
        """The one store."""
        yield self._shelf

    def set_aside(self) -> str | None:
        """There is no file."""
        return None
