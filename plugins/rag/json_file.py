"""An index in one JSON file, written anew after every change and put in place atomically."""

import asyncio
import hashlib
import json
import os
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

from bot import RagError
from plugins.rag.storage import Damaged, Shelf, Store, StoredChunk, StoredDocument, renamed, shelved

_FORMAT = 2
_TAIL = b"\n]}\n"
_FIELDS = tuple(StoredChunk.__dataclass_fields__)
_SECONDS_BETWEEN_BATCHES = 2.0


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
        return renamed([self.path])


class _JsonShelf(Shelf):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._saved_at = 0.0

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
        if time.monotonic() - self._saved_at > _SECONDS_BETWEEN_BATCHES:  # the whole file is written each time
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
        await asyncio.to_thread(lambda: _write(self._path, _dumped(self)))
        self._saved_at = time.monotonic()


def _dumped(shelf: Shelf) -> list[bytes]:
    """The file, line by line. One JSON text as a whole, of which each line is a value: writing or reading one holds nobody up."""
    lines = [b",\n" + _json(value) for value in _values(shelf)]
    lines[0] = lines[0].removeprefix(b",\n")
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line)
    return [_head(digest.hexdigest()), *lines, _TAIL]


def _values(shelf: Shelf) -> Iterator[Mapping[str, Any]]:
    yield {"state": shelf.state}
    for document, rows in shelf.held.values():
        yield {"document": asdict(document), "chunks": [dict(zip(_FIELDS, row, strict=True)) for row in rows]}
    for embedder, kept in shelf.by_embedder.items():
        for digest, vector in kept.items():
            yield {"embedder": embedder, "digest": digest, "vector": b64encode(vector).decode()}


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _head(digest: str) -> bytes:
    return b'{"format":%d,"sha256":"%s","index":[\n' % (_FORMAT, digest.encode())


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RagError("INVALID_INDEX", f"persist_path={str(path)!r} cannot be read: {error.strerror}") from error


def _fill(shelf: Shelf, data: bytes, path: Path) -> None:
    start, end = len(_head("0" * 64)), len(data) - len(_TAIL)
    body = memoryview(data)[start:end]
    if data[:start] != _head(hashlib.sha256(body).hexdigest()) or data[end:] != _TAIL:
        raise Damaged(f"the saved index {str(path)!r} is damaged: its checksum does not match")
    for line in BytesIO(body):
        value = json.loads(line.removesuffix(b",\n"))
        if "document" in value:
            document = StoredDocument(**value["document"])
            shelf.held[document.id] = shelved(document, [StoredChunk(**chunk) for chunk in value["chunks"]])
        elif "vector" in value:
            shelf.by_embedder.setdefault(value["embedder"], {})[value["digest"]] = b64decode(value["vector"])
        else:
            shelf.state = value["state"]


def _write(path: Path, lines: Sequence[bytes]) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RagError("INVALID_INDEX", f"persist_path={str(path)!r} cannot be written: {error.strerror}") from error
