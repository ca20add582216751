"""Takes documents in: reads what changed, cuts it, hands it to the collection in groups, and says what became of each."""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bot import Document, RagError, Said
from plugins.rag import files
from plugins.rag.collection import Collection
from plugins.rag.files import CannotRead, Found
from plugins.rag.ingest import Ingested, body_of, cut, digest_of, recipe, sections_of
from plugins.rag.loaders import Loaded, PdfParser, Section, load
from plugins.rag.storage import Store, StoredChunk, StoredDocument, checksum
from plugins.rag.text import clean

log = logging.getLogger(__name__)
GROUP_CHUNKS = 2_048  # what is embedded and stored in one go
GROUP_ITEMS = 256  # what is looked at, and cut, in one go
SMALL = 64 << 10  # bytes: a file that was read to see whether it changed, and is so small, is not read a second time
ANSWERS = frozenset({"live", "partly"})


@dataclass(frozen=True, slots=True)
class Cutting:
    """How documents are read and cut. Sizes in characters, `max_file_bytes` in bytes."""

    size: int
    overlap: int
    max_file_bytes: int
    pdf: PdfParser | None = None

    @property
    def recipe(self) -> str:
        """What the stored pieces were cut by."""
        return recipe(self.size, self.overlap)


@dataclass(frozen=True, slots=True)
class Item:
    """Something to take in: a file by its `path`, or text, or bytes at hand, or what is stored of it."""

    document: StoredDocument
    path: Path | None = None
    data: bytes | None = None
    sections: Sequence[Section] | None = None
    problem: str = ""
    named: bool = False


@dataclass(frozen=True, slots=True)
class _Read:
    place: int
    item: Item
    loaded: Loaded

    @property
    def characters(self) -> int:
        return sum(len(section.text) for section in self.loaded.sections)


@dataclass(frozen=True, slots=True)
class _Cut:
    place: int
    document: StoredDocument
    chunks: list[StoredChunk]
    outcome: Ingested


def now_ms() -> int:
    """UTC milliseconds."""
    return time.time_ns() // 1_000_000


def of_file(found: Found, origin: str) -> Item:
    """A file that was found."""
    return Item(
        StoredDocument(found.id, found.label, origin, path=str(found.path)), path=found.path, problem=found.problem, named=found.named
    )


def of_document(given: Document, origin: str, *, owner: str = "") -> Item:
    """A text that was given."""
    text = clean(given.text)
    sections = [Section(text)] if text.strip() else []
    label = clean(given.source or given.id)
    metadata = json.dumps(dict(given.metadata), ensure_ascii=False, sort_keys=True, default=str)
    document = StoredDocument(given.id, label, origin, digest=digest_of(text + metadata + label), metadata=metadata, owner=owner)
    return Item(replace(document, body=body_of(sections)), sections=sections)


def of_upload(name: str, data: bytes, *, owner: str, owner_is_admin: bool) -> Item:
    """A file that somebody sent."""
    label = " ".join(clean(name).replace("\\", "/").rsplit("/", 1)[-1].split()) or "file"
    whose = "" if owner_is_admin else f"{digest_of(owner)[:8]}:"  # what admins send is the bot's: nobody else may replace it
    document = StoredDocument(f"upload:{whose}{label}", label, "upload", owner=owner, owner_is_admin=int(owner_is_admin))
    return Item(document, data=data)


def of_stored(document: StoredDocument) -> Item:
    """What was stored without a file of its own, to be cut again."""
    return Item(document, sections=sections_of(document.body))


class Intake:
    """One run over a number of items."""

    def __init__(self, collection: Collection, store: Store, cutting: Cutting, *, strict: bool, progress: Said | None = None) -> None:
        self._collection = collection
        self._store = store
        self._cutting = cutting
        self._strict = strict
        self._progress = progress
        self._read: list[_Read] = []
        self._waiting: list[_Cut] = []
        self._pieces = 0
        self._outcomes: dict[int, Ingested] = {}

    async def take(self, items: Sequence[Item], *, again: bool = False, explicit: bool = False) -> list[Ingested]:
        """Take items in, and say what became of each, in order.

        What is stored with the same content costs one digest. `again` reads and cuts it anew all the same; `explicit` brings back what was
        removed. Raises RagError EMBEDDING_FAILED where the embedder is down and must not be.
        """
        for start in range(0, len(items), GROUP_ITEMS):
            group = items[start : start + GROUP_ITEMS]
            looked = await asyncio.to_thread(self._survey, group, again, explicit)
            room = GROUP_CHUNKS * self._cutting.size
            for place, (item, found) in enumerate(zip(group, looked, strict=True), start=start):
                if isinstance(found, Ingested):
                    self._outcomes[place] = found
                else:
                    self._read.append(read := _Read(place, found, await self._load(found)))
                    room -= read.characters
                    if room <= 0:
                        await self._cut_read(again)
                        room = GROUP_CHUNKS * self._cutting.size
                if self._progress:
                    await self._progress(f"{place + 1}/{len(items)} {item.document.label}")
            await self._cut_read(again)
        await self._flush()
        outcomes = (self._outcomes[place] for place in range(len(items)))
        return [replace(outcome, named=True) if item.named else outcome for outcome, item in zip(outcomes, items, strict=True)]

    # ------------------------------------------------------------------------------------ what changed

    def _survey(self, items: Sequence[Item], again: bool, explicit: bool) -> list[Item | Ingested]:
        """For each item: what is to be read, with its digest, or the outcome that needs no reading."""
        return [self._look(item, again, explicit) for item in items]

    def _look(self, item: Item, again: bool, explicit: bool) -> Item | Ingested:
        label, name = item.document.label, item.document.id
        if item.problem:
            return Ingested(label, item.problem, id=name)
        if item.sections is not None:
            fresh = item
        else:
            try:
                data = files.read(item.path, most=self._cutting.max_file_bytes) if item.path else item.data or b""
            except CannotRead as error:
                return Ingested(label, str(error), id=name)
            if len(data) > self._cutting.max_file_bytes:
                return Ingested(label, "too_big", id=name)
            held = data if len(data) <= SMALL else item.data
            fresh = replace(item, data=held, document=replace(item.document, digest=digest_of(data)))
        known = self._collection.documents.get(name)
        if known is None or known.digest != fresh.document.digest:
            return fresh
        if known.state == "removed":
            return fresh if explicit else Ingested(label, "removed", id=name)
        if again or known.recipe != self._cutting.recipe or known.label != fresh.document.label:
            return fresh
        if known.state not in ANSWERS:
            return Ingested(label, known.state, id=name)
        return Ingested(label, "unchanged", known.pieces, id=name)

    # ------------------------------------------------------------------------------------ one document

    async def _cut_read(self, again: bool) -> None:
        """Cut what was read, all of it in one thread: going there and back for each document takes longer than cutting it."""
        read, self._read = self._read, []
        if not read:
            return
        for done in await asyncio.to_thread(lambda: [self._cut(one) for one in read]):
            self._outcomes[done.place] = done.outcome
            known = self._collection.documents.get(done.document.id)
            if done.outcome.failed and known is not None and known.state in ANSWERS:
                continue  # the old version goes on answering
            if again and known is not None and known.state in ANSWERS and known.checksum == checksum(done.document, done.chunks):
                self._outcomes[done.place] = Ingested(known.label, "unchanged", known.pieces, id=known.id)
                continue
            self._waiting.append(done)
            self._pieces += len(done.chunks)
            if self._pieces >= GROUP_CHUNKS:
                await self._flush()

    def _cut(self, read: _Read) -> _Cut:
        item, loaded, cutting = read.item, read.loaded, self._cutting
        document = item.document
        chunks: list[StoredChunk] = []
        if loaded.sections:
            metadata = json.loads(document.metadata)
            chunks = cut(document.id, loaded.sections, size=cutting.size, overlap=cutting.overlap, metadata=metadata)
        state = "partly" if loaded.status == "partly" else "live" if chunks else loaded.status if loaded.status != "ok" else "empty"
        kept = replace(
            document,
            state=state,
            recipe=cutting.recipe,
            body="" if item.path is not None else document.body if item.sections is not None else body_of(loaded.sections),
            characters=read.characters,
            updated_at=now_ms(),
        )
        return _Cut(read.place, kept, chunks, self._outcome(kept, chunks, loaded))

    async def _load(self, item: Item) -> Loaded:
        if item.sections is not None:
            return Loaded(tuple(item.sections), "ok" if item.sections else "empty")
        try:
            data = item.data
            if data is None and item.path is not None:
                data = await asyncio.to_thread(files.read, item.path, most=self._cutting.max_file_bytes)
            return await load(item.path.name if item.path else item.document.label, data or b"", pdf=self._cutting.pdf)
        except CannotRead as error:  # it was there a moment ago
            return Loaded(status=str(error))
        except RagError as error:
            if self._strict or error.code != "MISSING_DEPENDENCY":
                raise
            return Loaded(status="missing")

    def _outcome(self, document: StoredDocument, chunks: Sequence[StoredChunk], loaded: Loaded) -> Ingested:
        known = self._collection.documents.get(document.id)
        if not chunks or document.state == "partly":
            return Ingested(document.label, document.state, len(chunks), id=document.id, detail=loaded.detail)
        status = "changed" if known is not None and known.state in ANSWERS else "added"
        return Ingested(document.label, status, len(chunks), id=document.id)

    async def _flush(self) -> None:
        waiting, self._waiting, self._pieces = self._waiting, [], 0
        if not waiting:
            return
        embedded = await self._collection.put(self._store, [(one.document, one.chunks) for one in waiting])
        if not embedded:
            for one in waiting:
                if one.chunks and not (outcome := self._outcomes[one.place]).failed:
                    self._outcomes[one.place] = replace(outcome, note="waiting")


def all_found(paths: Sequence[str | Path], cwd: Path, known: Callable[[str], str | None], origin: str) -> list[Item]:
    """Every file that the paths mean, once each. A file that is stored already keeps its id, whatever way it is named now."""
    items: dict[str, Item] = {}
    for given in paths:
        for found in files.find(given, cwd):
            name = known(str(found.path)) or found.id
            items.setdefault(str(found.path), of_file(replace(found, id=name), origin))
    return list(items.values())
