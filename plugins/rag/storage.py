"""Where documents, their chunks and vectors are kept: in tables, in one JSON file, or for the life of the process."""

import asyncio
import hashlib
import json
import os
import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bot import Database, Fence, RagError, StorageError, Transaction

Array = np.ndarray[Any, Any]
MIGRATIONS = Path(__file__).parent / "migrations"
OWNER = "rag"
_FORMAT = 1


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
        digest.update(part.encode() + b"\0")
    for chunk in chunks:
        digest.update("\0".join((str(chunk.position), chunk.section, chunk.text, chunk.metadata, chunk.digest)).encode() + b"\0")
    return digest.hexdigest()


class Store(Protocol):
    """An open store. A write is whole or not at all; every failure is a RagError or a StorageError."""

    async def generation(self) -> int: ...

    async def documents(self) -> list[StoredDocument]: ...

    async def chunks(self, ids: Sequence[str] | None = None) -> list[StoredChunk]:
        """Of these documents, or of all, in order."""
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


class Shelf:
    """A Store in dictionaries."""

    def __init__(self) -> None:
        self.state = 0
        self.held: dict[str, tuple[StoredDocument, list[StoredChunk]]] = {}
        self.by_embedder: dict[str, dict[str, bytes]] = {}

    async def generation(self) -> int:
        """How often it changed."""
        return self.state

    async def documents(self) -> list[StoredDocument]:
        """All of them, removed ones included."""
        return [document for document, _ in self.held.values()]

    async def chunks(self, ids: Sequence[str] | None = None) -> list[StoredChunk]:
        """Of these documents, or of all, in order."""
        return [chunk for name in (self.held if ids is None else ids) for chunk in self.held[name][1]]

    async def vectors(self, embedder: str, digests: Sequence[str]) -> dict[str, bytes]:
        """Those there are, by the digest of their text."""
        kept = self.by_embedder.get(embedder, {})
        return {digest: kept[digest] for digest in digests if digest in kept}

    async def write(self, documents: Sequence[tuple[StoredDocument, Sequence[StoredChunk]]], *, remove: Sequence[str] = ()) -> int:
        """Replace documents and take others away."""
        self.state += 1
        for name in remove:
            self.held.pop(name, None)
        for document, chunks in documents:
            self.held[document.id] = (replace(document, generation=self.state), list(chunks))
        return self.state

    async def keep_vectors(self, embedder: str, vectors: Mapping[str, bytes]) -> None:
        """Keep the vectors of texts."""
        self.by_embedder.setdefault(embedder, {}).update(vectors)

    async def drop_vectors(self, embedder: str) -> None:
        """Forget every vector of an embedder."""
        self.by_embedder.pop(embedder, None)

    async def tidy(self) -> None:
        """Take away the vectors of texts that are in no chunk any more."""
        used = {chunk.digest for _, chunks in self.held.values() for chunk in chunks}
        self.by_embedder = {name: {d: v for d, v in kept.items() if d in used} for name, kept in self.by_embedder.items()}


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


# ---------------------------------------------------------------------------------------------- one JSON file


class JsonFile:
    """One file, written anew after every change and put in place atomically; its checksum tells whether it is whole."""

    shared = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self._shelf: _JsonShelf | None = None

    @asynccontextmanager
    async def open(self, owner: str = "") -> AsyncIterator[Store]:
        """The file's content. Raises RagError INVALID_INDEX where it is damaged or cannot be read or written."""
        if self._shelf is None:
            shelf = _JsonShelf(self.path)
            if (data := await asyncio.to_thread(_read, self.path)) is not None:
                await asyncio.to_thread(_fill, shelf, data, self.path)
            self._shelf = shelf
        yield self._shelf

    def set_aside(self) -> str | None:
        """Rename the file."""
        self._shelf = None
        return _renamed([self.path])


class _JsonShelf(Shelf):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    async def write(self, documents: Sequence[tuple[StoredDocument, Sequence[StoredChunk]]], *, remove: Sequence[str] = ()) -> int:
        before = dict(self.held), self.state
        generation = await super().write(documents, remove=remove)
        try:
            await self._save()
        except RagError:
            self.held, self.state = before
            raise
        return generation

    async def keep_vectors(self, embedder: str, vectors: Mapping[str, bytes]) -> None:
        await super().keep_vectors(embedder, vectors)
        await self._save()

    async def drop_vectors(self, embedder: str) -> None:
        await super().drop_vectors(embedder)
        await self._save()

    async def tidy(self) -> None:
        before = sum(map(len, self.by_embedder.values()))
        await super().tidy()
        if sum(map(len, self.by_embedder.values())) != before:
            await self._save()

    async def _save(self) -> None:
        await asyncio.to_thread(_write, self._path, _dumped(self))


def _dumped(shelf: Shelf) -> bytes:
    body = {
        "state": shelf.state,
        "documents": [{**asdict(document), "chunks": [asdict(c) for c in chunks]} for document, chunks in shelf.held.values()],
        "vectors": {name: {d: b64encode(v).decode() for d, v in kept.items()} for name, kept in shelf.by_embedder.items()},
    }
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return _head(hashlib.sha256(text).hexdigest()) + text + b"}\n"


def _head(digest: str) -> bytes:
    return b'{"format":%d,"sha256":"%s","index":' % (_FORMAT, digest.encode())


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RagError("INVALID_INDEX", f"persist_path={str(path)!r} cannot be read: {error.strerror}") from error


def _fill(shelf: Shelf, data: bytes, path: Path) -> None:
    start = len(_head("0" * 64))
    text = data[start:-2]
    if data[:start] != _head(hashlib.sha256(text).hexdigest()) or data[-2:] != b"}\n":
        raise Damaged(f"the saved index {str(path)!r} is damaged: its checksum does not match")
    body = json.loads(text)
    shelf.state = body["state"]
    for entry in body["documents"]:
        chunks = [StoredChunk(**chunk) for chunk in entry.pop("chunks")]
        shelf.held[entry["id"]] = (StoredDocument(**entry), chunks)
    shelf.by_embedder = {name: {d: b64decode(v) for d, v in kept.items()} for name, kept in body["vectors"].items()}


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RagError("INVALID_INDEX", f"persist_path={str(path)!r} cannot be written: {error.strerror}") from error


class Damaged(RagError):
    """A saved index that is not what was saved: it is set aside and built anew."""

    def __init__(self, text: str) -> None:
        super().__init__("INVALID_INDEX", text)


def _renamed(paths: Iterable[Path]) -> str | None:
    name = None
    mark = f"damaged-{time.time_ns()}"
    for path in paths:
        if path.exists():
            new = path.with_name(f"{path.name}.{mark}")
            path.replace(new)
            name = name or str(new)
    return name


# ---------------------------------------------------------------------------------------------- tables


class Tables:
    """The tables of the bot's database, which somebody else opened and closes."""

    shared = True

    def __init__(self, database: Database, fence: Fence) -> None:
        self._database = database
        self._fence = fence

    @asynccontextmanager
    async def open(self, owner: str = "") -> AsyncIterator[Store]:
        """The store over the database; what is written for `owner` goes behind the fence."""
        if not owner:
            yield TableStore(self._database, self._database.transaction)
            return
        marks = await self._fence.mark(owner)
        yield TableStore(self._database, lambda: self._fence.transaction(marks))

    def set_aside(self) -> str | None:
        """It is the bot's own database: nothing is moved."""
        return None


class DatabaseFile:
    """A SQLite file of its own, open only while something is read or written, so that nobody has to close it."""

    shared = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sound = False

    @asynccontextmanager
    async def open(self, owner: str = "") -> AsyncIterator[Store]:
        """The store over the file. Raises Damaged where the file is no database or holds other than what was written."""
        from bot import open_database
        from bot.registry import Migrations

        try:
            async with open_database(f"sqlite:///{self.path}", migrations=[Migrations(OWNER, MIGRATIONS)], core=False) as database:
                await self._look(database)
                yield TableStore(database, database.transaction)
        except StorageError as error:
            if isinstance(error.__cause__, Exception) and any(sign in str(error) for sign in _DAMAGE):
                raise Damaged(f"the saved index {str(self.path)!r} is damaged: {error.__cause__}") from error
            raise RagError("INVALID_INDEX", f"persist_path={str(self.path)!r} cannot be used: {error}") from error

    async def _look(self, database: Database) -> None:
        """Once: is the file whole?"""
        if not self._sound:
            row = await database.one("PRAGMA integrity_check")
            if row is None or row["integrity_check"] != "ok":
                raise Damaged(f"the saved index {str(self.path)!r} is damaged: SQLite finds it so")
            self._sound = True

    def set_aside(self) -> str | None:
        """Rename the file and what SQLite keeps beside it."""
        return _renamed([self.path, Path(f"{self.path}-wal"), Path(f"{self.path}-shm")])


_DAMAGE = ("malformed", "not a database", "no such table", "no such column", "disk I/O error", "encrypted")
_ALL_AT_ONCE = 200  # more vectors than so many are read in one go
_COLUMNS = tuple(StoredDocument.__dataclass_fields__)
_CHUNK_COLUMNS = tuple(StoredChunk.__dataclass_fields__)
_PUT_DOCUMENT = (
    f"INSERT INTO documents (agent_id, {', '.join(_COLUMNS)}) VALUES (:agent_id, {', '.join(':' + c for c in _COLUMNS)})"
    f" ON CONFLICT (agent_id, id) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in _COLUMNS if c != 'id')}"
)
_PUT_CHUNK = f"INSERT INTO chunks (agent_id, {', '.join(_CHUNK_COLUMNS)}) VALUES (:agent_id, {', '.join(':' + c for c in _CHUNK_COLUMNS)})"
_RISE = (
    "INSERT INTO library_state (agent_id, generation) VALUES (:agent_id, 1)"
    " ON CONFLICT (agent_id) DO UPDATE SET generation = library_state.generation + 1 RETURNING generation"
)
_DROP_UNUSED = (
    "DELETE FROM chunk_vectors WHERE agent_id = :agent_id AND digest NOT IN (SELECT digest FROM chunks WHERE agent_id = :agent_id)"
)


class TableStore:
    """A Store over tables of the bot's database, in the SQL that all engines share."""

    def __init__(self, database: Database, transaction: Callable[[], AbstractAsyncContextManager[Transaction]]) -> None:
        self._database = database
        self._transaction = transaction

    async def generation(self) -> int:
        """How often the tables changed, whichever process did it."""
        row = await self._database.one("SELECT generation FROM library_state WHERE agent_id = :agent_id")
        return int(row["generation"]) if row else 0

    async def documents(self) -> list[StoredDocument]:
        """All of them, removed ones included."""
        rows = await self._database.all(f"SELECT {', '.join(_COLUMNS)} FROM documents WHERE agent_id = :agent_id ORDER BY id")
        return [StoredDocument(**row) for row in rows]

    async def chunks(self, ids: Sequence[str] | None = None) -> list[StoredChunk]:
        """Of these documents, or of all, in order."""
        select = f"SELECT {', '.join(_CHUNK_COLUMNS)} FROM chunks WHERE agent_id = :agent_id"
        if ids is None:
            rows = await self._database.all(f"{select} ORDER BY document_id, position")
            return [StoredChunk(**row) for row in rows]
        found: list[StoredChunk] = []
        for name in ids:
            rows = await self._database.all(f"{select} AND document_id = :id ORDER BY position", {"id": name})
            found += [StoredChunk(**row) for row in rows]
        return found

    async def vectors(self, embedder: str, digests: Sequence[str]) -> dict[str, bytes]:
        """Those there are, by the digest of their text."""
        sql = "SELECT digest, vector FROM chunk_vectors WHERE agent_id = :agent_id AND embedder = :embedder"
        if len(digests) > _ALL_AT_ONCE:
            rows = await self._database.all(sql, {"embedder": embedder})
            wanted = set(digests)
            return {row["digest"]: bytes(row["vector"]) for row in rows if row["digest"] in wanted}
        found = [
            await self._database.one(f"{sql} AND digest = :digest", {"embedder": embedder, "digest": d}) for d in dict.fromkeys(digests)
        ]
        return {row["digest"]: bytes(row["vector"]) for row in found if row}

    async def write(self, documents: Sequence[tuple[StoredDocument, Sequence[StoredChunk]]], *, remove: Sequence[str] = ()) -> int:
        """Replace documents and take others away, in one transaction."""
        async with self._transaction() as tx:
            generation = await rise(tx)
            gone = [{"id": name} for name in (*remove, *(document.id for document, _ in documents))]
            await tx.many("DELETE FROM chunks WHERE agent_id = :agent_id AND document_id = :id", gone)
            await tx.many("DELETE FROM documents WHERE agent_id = :agent_id AND id = :id", [{"id": name} for name in remove])
            await tx.many(_PUT_DOCUMENT, [{**asdict(document), "generation": generation} for document, _ in documents])
            await tx.many(_PUT_CHUNK, [asdict(chunk) for _, chunks in documents for chunk in chunks])
        return generation

    async def keep_vectors(self, embedder: str, vectors: Mapping[str, bytes]) -> None:
        """Keep the vectors of texts."""
        sql = (
            "INSERT INTO chunk_vectors (agent_id, embedder, digest, vector) VALUES (:agent_id, :embedder, :digest, :vector)"
            " ON CONFLICT (agent_id, embedder, digest) DO UPDATE SET vector = excluded.vector"
        )
        async with self._transaction() as tx:
            await tx.many(sql, [{"embedder": embedder, "digest": digest, "vector": vector} for digest, vector in vectors.items()])

    async def drop_vectors(self, embedder: str) -> None:
        """Forget every vector of an embedder."""
        async with self._transaction() as tx:
            await tx.run("DELETE FROM chunk_vectors WHERE agent_id = :agent_id AND embedder = :embedder", {"embedder": embedder})

    async def tidy(self) -> None:
        """Take away the vectors of texts that are in no chunk any more."""
        async with self._transaction() as tx:
            await drop_unused_vectors(tx)


async def rise(tx: Transaction) -> int:
    """Say that the documents changed; the new generation."""
    row = await tx.one(_RISE)
    assert row is not None
    return int(row["generation"])


async def drop_unused_vectors(tx: Transaction) -> None:
    """Take away the vectors of texts that are in no chunk any more."""
    await tx.run(_DROP_UNUSED)


def storage_for(path: str | Path | None, cwd: Path) -> Storage:
    """What `persist_path` asks for. Raises RagError INVALID_OPTIONS for a name that is neither `.json` nor `.db`."""
    if path is None:
        return InMemory()
    whole = cwd / path
    kind = whole.suffix.casefold()
    if kind not in (".json", ".db"):
        raise RagError("INVALID_OPTIONS", f"persist_path={str(path)!r} is not allowed: name a .json or a .db file")
    return JsonFile(whole) if kind == ".json" else DatabaseFile(whole)
