"""An index in tables: those of the bot's database, or of a SQLite file of its own."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from bot import Database, Fence, RagError, StorageError, Transaction
from plugins.rag.storage import Damaged, Store, StoredChunk, StoredDocument, renamed

T = TypeVar("T")

MIGRATIONS = Path(__file__).parent / "migrations"
OWNER = "rag"


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
        from bot import Migrations, open_database

        try:
            async with open_database(f"sqlite:///{self.path}", migrations=[Migrations(OWNER, MIGRATIONS)], core=False) as database:
                await self._look(database)
                yield TableStore(database, database.transaction)
        except UnicodeDecodeError as error:  # the name of a column, or what the engine says about one
            raise Damaged(f"the saved index {str(self.path)!r} is damaged: it cannot be read") from error
        except StorageError as error:
            if any(sign in str(error) for sign in _DAMAGE):  # what the engine says may quote content: it is not repeated
                raise Damaged(f"the saved index {str(self.path)!r} is damaged: it cannot be read") from error
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
        return renamed([self.path, Path(f"{self.path}-wal"), Path(f"{self.path}-shm")])


_DAMAGE = (
    "Could not decode",
    "malformed",
    "not a database",
    "no such table",
    "no such column",
    "already exists",
    "disk I/O error",
    "encrypted",
)
_PAGE = 500  # chunks read at a time: their rows become Python's while nothing else can run
_AT_ONCE, _FEW = 200, 20  # vectors read at a time
_VECTORS = "SELECT digest, vector FROM chunk_vectors WHERE agent_id = :agent_id AND embedder = :embedder AND digest IN ({})"
_FIELDS = StoredDocument.__dataclass_fields__
_COLUMNS = tuple(_FIELDS)
_KINDS = {name: type(field.default) if field.default is not MISSING else str for name, field in _FIELDS.items()}
_SLICE = 200  # rows that are made of what is written in one go
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
        return row["generation"] if row and isinstance(row["generation"], int) else 0

    async def documents(self) -> list[StoredDocument]:
        """All of them, removed ones included."""
        rows = await self._database.tuples(f"SELECT {', '.join(_COLUMNS)} FROM documents WHERE agent_id = :agent_id ORDER BY id")
        return [_document(row) for row in rows]

    async def chunks(self, documents: Sequence[StoredDocument]) -> AsyncIterator[list[StoredChunk]]:
        """Those of the documents, a page at a time, so that reading many does not hold up the event loop."""
        sql = (
            f"SELECT {', '.join(_CHUNK_COLUMNS)} FROM chunks WHERE agent_id = :agent_id"
            " AND document_id = :id AND position >= :start AND position < :end ORDER BY position"
        )
        small = (
            f"SELECT {', '.join(_CHUNK_COLUMNS)} FROM chunks WHERE agent_id = :agent_id"
            " AND document_id >= :first AND document_id <= :last ORDER BY document_id, position"
        )
        for page in _pages(documents):
            if len(page) > 1:
                rows = await self._database.tuples(small, {"first": page[0].id, "last": page[-1].id})
                wanted = {document.id for document in page}
                yield [chunk for row in rows if (chunk := StoredChunk(*row)).document_id in wanted]
                continue
            for start in range(0, max(page[0].pieces, 1), _PAGE):
                rows = await self._database.tuples(sql, {"id": page[0].id, "start": start, "end": start + _PAGE})
                yield [StoredChunk(*row) for row in rows]

    async def vectors(self, embedder: str, digests: Sequence[str]) -> dict[str, bytes]:
        """Those there are, by the digest of their text."""
        found: dict[str, bytes] = {}
        wanted = list(dict.fromkeys(digests))
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            names = [f"d{n}" for n in range(_AT_ONCE if len(some) > _FEW else _FEW)]
            values = dict(zip(names, some + some[-1:] * (len(names) - len(some)), strict=True))  # one statement, however many there are
            rows = await self._database.tuples(_VECTORS.format(", ".join(f":{name}" for name in names)), {"embedder": embedder, **values})
            found.update((digest, _bytes(vector)) for digest, vector in rows)
        return found

    async def write(self, documents: Sequence[tuple[StoredDocument, Sequence[StoredChunk]]], *, remove: Sequence[str] = ()) -> int:
        """Replace documents and take others away, in one transaction."""
        async with self._transaction() as tx:
            generation = await rise(tx)
            gone = [{"id": name} for name in (*remove, *(document.id for document, _ in documents))]
            await tx.many("DELETE FROM chunks WHERE agent_id = :agent_id AND document_id = :id", gone)
            await tx.many("DELETE FROM documents WHERE agent_id = :agent_id AND id = :id", [{"id": name} for name in remove])
            for some in _slices([document for document, _ in documents]):
                await tx.many(_PUT_DOCUMENT, [{**_row(document), "generation": generation} for document in some])
            for pieces in _slices([chunk for _, chunks in documents for chunk in chunks]):
                await tx.many(_PUT_CHUNK, [_row(chunk) for chunk in pieces])
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


def _slices(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """So many that turning them into rows holds nobody up."""
    return (values[start : start + _SLICE] for start in range(0, len(values), _SLICE))


def _row(value: StoredDocument | StoredChunk) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _document(row: Sequence[Any]) -> StoredDocument:
    """The document of a row. A value of another type than was stored is damage: then no checksum fits."""
    values = dict(zip(_COLUMNS, row, strict=True))
    sound: dict[str, Any] = {name: value for name, value in values.items() if isinstance(value, _KINDS[name])}
    if len(sound) < len(_COLUMNS):
        sound = {"id": str(values["id"]), "label": "", "origin": "", **sound, "checksum": ""}
    return StoredDocument(**sound)


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""


def _pages(documents: Sequence[StoredDocument]) -> list[list[StoredDocument]]:
    """Neighbours by id together, as long as their pieces make no more than a page."""
    pages: list[list[StoredDocument]] = []
    room = 0
    for document in sorted(documents, key=lambda one: one.id):
        if not pages or document.pieces > room:
            pages.append([])
            room = _PAGE
        pages[-1].append(document)
        room -= document.pieces
    return pages


async def rise(tx: Transaction) -> int:
    """Say that the documents changed; the new generation."""
    row = await tx.one(_RISE)
    assert row is not None
    return int(row["generation"])


async def drop_unused_vectors(tx: Transaction) -> None:
    """Take away the vectors of texts that are in no chunk any more."""
    await tx.run(_DROP_UNUSED)
