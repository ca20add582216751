"""The retriever that comes with the bot: `create_rag(...)` for whoever writes Python, and the bot's own library."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from bot import Document, Embedder, EmbeddingOptions, Passage, RagError, Said
from plugins.rag import options as check
from plugins.rag.collection import Collection
from plugins.rag.embedders import choose
from plugins.rag.ingest import Ingested
from plugins.rag.intake import ANSWERS, Intake, Item, all_found, of_document, of_stored, of_upload
from plugins.rag.loaders import PdfParser
from plugins.rag.options import Options
from plugins.rag.storage import Damaged, InMemory, Storage, Store, StoredDocument

log = logging.getLogger(__name__)
T = TypeVar("T")
MEBIBYTE = 1 << 20
REMEMBERED = 2  # questions before this one that count


def create_rag(
    *,
    documents: Sequence[str | Path | Document] = (),
    embeddings: str | EmbeddingOptions | Embedder = "local",
    chunk_size: int = 1000,
    chunk_overlap: int | None = None,
    top_k: int = 3,
    min_score: float | None = None,
    persist_path: str | Path | None = None,
    cwd: str | Path | None = None,
    max_file_bytes: int = 20 * MEBIBYTE,
    retry_delay_ms: int = 30_000,
    pdf: PdfParser | None = None,
    on_error: Callable[[Exception], None] | None = None,
) -> "Rag":
    """A retriever over files, folders and texts. Reads nothing until `warmup()` or first use.

    `chunk_size` and `chunk_overlap` (default 150, at most a quarter of the size) are characters. `min_score` of None leaves it to what is
    calibrated for the embedder whether anything fits; a number, 0 too, stands alone. `persist_path` is a `.json` or `.db` file; `cwd` is
    the base of relative paths. Raises RagError INVALID_OPTIONS that names the option, its value and what is allowed.
    """
    options = check.checked(
        documents=documents,
        chunk_size=chunk_size,
        chunk_overlap=chunk_overlap,
        top_k=top_k,
        min_score=min_score,
        cwd=cwd,
        max_file_bytes=max_file_bytes,
        retry_delay_ms=retry_delay_ms,
        pdf=pdf,
        on_error=on_error,
    )
    embedder, embedding = choose(embeddings)
    return Rag(options, storage_for(persist_path, options.cwd), embedder, embedding, strict=True)


class Rag:
    """Finds passages; every failure is a RagError.

    `strict`: a file that was named and cannot be read, or an embedder that is down while documents are taken in, is an error. The bot's
    library is not: it reports such a file as an outcome, and answers by words alone until the embedder is back.
    """

    def __init__(self, options: Options, storage: Storage, embedder: Embedder, embedding: EmbeddingOptions, *, strict: bool) -> None:
        self._options = options
        self._storage = storage
        self._strict = strict
        self._collection = Collection(storage, embedder, batch_size=embedding.batch_size, on_error=self._tell, must_embed=strict)
        self._writing = asyncio.Lock()
        self._building: asyncio.Task[None] | None = None
        self._embedding: asyncio.Task[None] | None = None
        self._built = False
        self._failure: RagError | None = None
        self._failed_at = 0.0
        self._embedder_failed_at: float | None = None

    # ------------------------------------------------------------------------------------ asking

    async def retrieve(
        self,
        query: str,
        *,
        top_k: int | None = None,
        min_score: float | None = None,
        where: Mapping[str, Any] | None = None,
        previous: Sequence[str] = (),
    ) -> list[Passage]:
        """The passages that answer a question, best first; none where nothing fits.

        `previous` are the questions that were asked before it, the latest first: a follow-up ("¿y en Canarias?") is understood by the last
        two of them.

        `min_score` (0 to 1) decides alone what is left out, so that 0 gives the best whatever they are; where it is not set, here or for
        the retriever, what fits is told by the bar that is calibrated for the embedder. `where` filters by `source`, `section`, `doc_id`,
        `language` or a key of a document's metadata; a list means any of. Builds the index where it is not built. After a failed
        ingestion the same error is raised at once for `retry_delay_ms`.
        """
        count, floor = self._options.top_k if top_k is None else top_k, self._options.min_score if min_score is None else min_score
        if not isinstance(query, str):
            raise check.wrong("query", query, "a text")
        if where is not None and not isinstance(where, Mapping):
            raise check.wrong("where", where, "a mapping of names to values")
        if isinstance(previous, str) or not all(isinstance(text, str) for text in previous):
            raise check.wrong("previous", previous, "a list of texts")
        check.whole("top_k", count, least=1)
        if floor is not None:
            check.share("min_score", floor)
        if self._failure is not None and time.monotonic() - self._failed_at < self._options.retry_delay:
            raise self._failure
        await self._ready()
        vector = await self._question(query)
        return await self._collection.search(query, vector, top_k=count, min_score=floor, where=where, previous=previous[:REMEMBERED])

    async def _question(self, query: str) -> Any:
        """The question's vector, or None where there is no embedder, or it is down: then words alone answer, and it rests for a while."""
        resting = self._embedder_failed_at
        if not self._collection.dense or (resting is not None and time.monotonic() - resting < self._options.retry_delay):
            return None
        self._catch_up_on_vectors()
        try:
            vector = await self._collection.vector(query)
            if vector is not None and not self._collection.fits(vector):
                async with self._writing, self._storage.open() as store:
                    await self._collection.embed_anew(store)
        except RagError as error:
            self._embedder_failed_at = time.monotonic()
            self._tell(error)
            return None
        self._embedder_failed_at = None
        return vector

    def _catch_up_on_vectors(self) -> None:
        """Embed, in the background, what could not be embedded while the embedder was down."""
        if self._collection.incomplete and (self._embedding is None or self._embedding.done()):
            self._embedding = asyncio.create_task(self._embed_missing())
            self._embedding.add_done_callback(_seen)

    async def _embed_missing(self) -> None:
        async with self._writing, self._storage.open() as store, self._collection.connected():
            if not await self._collection.embed_missing(store):
                self._embedder_failed_at = time.monotonic()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Keep the embedder's connection open meanwhile; what goes on in the background ends with it, before the storage is closed."""
        async with self._collection.connected():
            try:
                yield
            finally:
                if going_on := [task for task in (self._building, self._embedding) if task is not None and not task.done()]:
                    for task in going_on:
                        task.cancel()
                    await asyncio.wait(going_on)

    # ------------------------------------------------------------------------------------ building

    async def warmup(self) -> None:
        """Load what is stored, take in what changed. Raises RagError where that fails; the next question waits before it tries again."""
        await self._build_once()

    async def _ready(self) -> None:
        if not self._built:
            await self._build_once()
        elif self._storage.shared:
            async with self._storage.open() as store:
                if await store.generation() != self._collection.generation:
                    async with self._writing:
                        await self._collection.load(store)  # another process, or an erasure, changed what is stored

    async def _build_once(self) -> None:
        """One build at a time, whoever asks; it goes on where whoever asked is cancelled."""
        if self._building is None or self._building.done():
            self._building = asyncio.create_task(self._build())
            self._building.add_done_callback(_seen)
        await asyncio.shield(self._building)

    async def _build(self) -> None:
        try:
            async with self._writing:
                try:
                    outcomes = await self._sync()
                except Damaged as error:
                    self._tell(error)
                    self._storage.set_aside()
                    self._renew()
                    outcomes = await self._sync()
            self._built = True
            for outcome in outcomes:
                if outcome.failed and (outcome.status == "vanished" or not (self._strict and outcome.named)):
                    # a stray file in a folder is no news; a path that was asked for, or hides what is under it, is
                    self._tell(_failure_of(outcome), quietly=not outcome.named and outcome.status != "unreadable")
            if self._strict:
                _raise_first(outcomes)
            self._failure = None
        except RagError as error:
            self._failure, self._failed_at = error, time.monotonic()
            raise

    async def _sync(self, *, again: bool = False, progress: Said | None = None) -> list[Ingested]:
        """Everything that this retriever was told to answer from, as it is now."""
        async with AsyncExitStack() as stack:
            store = await stack.enter_async_context(self._storage.open())
            await self._collection.load(store)
            known = self._collection.documents
            items, gone = await asyncio.to_thread(self._plan, dict(known), again)
            if not items and not gone and not self._collection.dense:
                return []
            await stack.enter_async_context(self._collection.connected())
            if gone:
                await self._collection.put(store, [], remove=gone)
            outcomes = await self._intake(store, progress).take(items, again=again)
            await self._collection.embed_missing(store)
            if gone or any(outcome.status == "changed" for outcome in outcomes):
                await store.tidy()
            return outcomes

    def _plan(self, known: Mapping[str, StoredDocument], again: bool) -> tuple[list[Item], list[str]]:
        """What to look at, and which documents are gone. Reads folders.

        A file that is missing from a folder that is there was deleted. A folder that is missing altogether may be a volume that is not
        mounted: what was read from it goes on answering, and its absence is said.
        """
        by_path = {document.path: document.id for document in known.values() if document.path}
        items = all_found(self._options.paths, self._options.cwd, by_path.get, "folder")
        items += [of_document(given, "given") for given in self._options.given]
        seen = {item.document.id for item in items if item.problem != "not_found"}
        absent = [item.path for item in items if item.path is not None and item.problem in ("unreadable", "not_found")]
        unseen = {n: d for n, d in known.items() if d.origin in ("folder", "given") and n not in seen}
        gone = [name for name, document in unseen.items() if not any(_may_be_under(Path(document.path), path) for path in absent)]
        kept = {path for path in absent if any(_may_be_under(Path(document.path), path) for document in unseen.values())}
        items = [replace(item, problem="vanished") if item.problem == "not_found" and item.path in kept else item for item in items]
        for name, document in known.items():
            if name in seen or name in gone or document.state not in ANSWERS:
                continue
            if document.origin == "path":
                path = Path(document.path)
                if path.exists():
                    items.append(Item(replace(document, generation=0), path=path))
                elif path.parent.exists():
                    gone.append(name)
            elif again or document.recipe != self._options.cutting.recipe:
                items.append(of_stored(document))
        return items, gone

    # ------------------------------------------------------------------------------------ adding and removing

    async def add_text(
        self, text: str, source: str, *, id: str | None = None, metadata: Mapping[str, Any] | None = None, owner: str | None = None
    ) -> Ingested:
        """Answer from a text too. Its id defaults to the source, and replaces what has that id."""
        for name, value in (("text", text), ("source", source)):
            if not isinstance(value, str) or not value.strip():
                raise check.wrong(name, value, "words")
        item = of_document(Document(id or source, text, source, metadata or {}), "text", owner=owner or "")
        return (await self._add([item], owner=owner))[0]

    async def add_files(self, paths: Sequence[str | Path], *, owner: str | None = None, progress: Said | None = None) -> list[Ingested]:
        """Answer from files too, and from those of folders. `progress` is told of each file.

        Returns what became of each. Where it was created by `create_rag`, a file that was named itself and cannot be read is then raised
        as a RagError; the others are taken in all the same.
        """
        if isinstance(paths, str | bytes | Path):
            raise check.wrong("paths", paths, "a list of paths")
        await self._ready()
        by_path = {document.path: document.id for document in self._collection.documents.values() if document.path}
        items = await asyncio.to_thread(all_found, paths, self._options.cwd, by_path.get, "path")
        outcomes = await self._add([self._as_owned(item, owner) for item in items], owner=owner, progress=progress)
        if self._strict:
            _raise_first(outcomes)
        return outcomes

    def _as_owned(self, item: Item, owner: str | None) -> Item:
        known = self._collection.documents.get(item.document.id)
        origin = known.origin if known is not None else item.document.origin
        return replace(item, document=replace(item.document, owner=owner or "", origin=origin))

    async def add_bytes(self, name: str, data: bytes, *, owner: str | None = None, owner_is_admin: bool = True) -> Ingested:
        """Answer from a file that somebody sent. One of the same name takes the place of the one before."""
        item = of_upload(name, data, owner=owner or "", owner_is_admin=owner_is_admin)
        return (await self._add([item], owner=owner))[0]

    async def _add(self, items: Sequence[Item], *, owner: str | None, progress: Said | None = None) -> list[Ingested]:
        async def add(store: Store) -> list[Ingested]:
            async with self._collection.connected():
                outcomes = await self._intake(store, progress).take(items, explicit=True)
            if any(outcome.status == "changed" for outcome in outcomes):
                await store.tidy()
            return outcomes

        return await self._change(add, owner)

    async def remove_document(self, document_id: str) -> bool:
        """Stop answering from a document; False where there is none of that id.

        A file stays where it is: it comes back when it changes, or is added by name.
        """

        async def remove(store: Store) -> bool:
            document = self._collection.documents.get(document_id)
            if document is None or document.state not in ANSWERS:
                return False
            stays = document.origin in ("folder", "given")
            left = replace(document, state="removed", body="", metadata="{}", characters=0)
            await self._collection.put(store, [(left, [])] if stays else [], remove=[] if stays else [document_id])
            await store.tidy()
            return True

        return await self._change(remove)

    async def reindex(self, *, progress: Said | None = None) -> list[Ingested]:
        """Read and cut everything anew; vectors of texts that did not change are kept."""
        await self._ready()
        async with self._writing:
            return await self._sync(again=True, progress=progress)

    async def save(self) -> None:
        """Everything is saved as it changes: this builds the index where it is not built, and waits for a change under way."""
        await self._ready()
        async with self._writing:
            return

    async def listing(self) -> list[Mapping[str, Any]]:
        """Each document that it answers from, as `{"id", "source", "chunks", "characters", "updated_at"}`; times are UTC milliseconds."""
        await self._ready()
        documents = sorted(self._collection.documents.values(), key=lambda document: document.label)
        return [
            {
                "id": document.id,
                "source": document.label,
                "chunks": document.pieces,
                "characters": document.characters,
                "updated_at": document.updated_at,
            }
            for document in documents
            if document.state in ANSWERS
        ]

    def format_context(self, hits: Sequence[Passage]) -> str:
        """Passages as a model reads them; the function `format_context` as a method."""
        return format_context(hits)

    # ------------------------------------------------------------------------------------ inside

    async def _change(self, change: Callable[[Store], Awaitable[T]], owner: str | None = None) -> T:
        await self._ready()
        async with self._writing, self._storage.open(owner or "") as store:
            await self._collection.load(store)
            return await change(store)

    def _intake(self, store: Store, progress: Said | None) -> Intake:
        return Intake(self._collection, store, self._options.cutting, strict=self._strict, progress=progress)

    def _renew(self) -> None:
        self._collection = self._collection.emptied()

    def _tell(self, error: Exception, *, quietly: bool = False) -> None:
        log.log(logging.INFO if quietly else logging.WARNING, "rag: %s", error)
        try:
            if self._options.on_error is not None:
                self._options.on_error(error)
        except Exception:
            log.exception("on_error failed")


def _seen(task: asyncio.Task[None]) -> None:
    """Whoever waited was told of the error; where nobody waits any more, it is no error of the event loop."""
    if not task.cancelled():
        task.exception()


def _may_be_under(path: Path, absent: Path) -> bool:
    """Whether a document may still be at `path`, though `absent` is not there or cannot be read."""
    return path.is_relative_to(absent) and (path != absent or not absent.parent.exists())


_CODES = {"unsupported": "UNSUPPORTED_FORMAT", "missing": "MISSING_DEPENDENCY"}


def _raise_first(outcomes: Sequence[Ingested]) -> None:
    """Raise the first failure of a file that was named itself; those within a folder are only reported, and what goes on answering too."""
    for outcome in outcomes:
        if outcome.failed and outcome.named and outcome.status != "vanished":
            raise _failure_of(outcome)


def _failure_of(outcome: Ingested) -> RagError:
    detail = f" ({outcome.detail})" if outcome.detail else ""
    code: Any = _CODES.get(outcome.status, "LOAD_FAILED")
    return RagError(code, f"{outcome.source!r} cannot be read: {outcome.reason}{detail}", source=outcome.source)


def storage_for(path: str | Path | None, cwd: Path) -> Storage:
    """What `persist_path` asks for. Raises RagError INVALID_OPTIONS for a name that is neither `.json` nor `.db`."""
    if path is None:
        return InMemory()
    whole = cwd / path if isinstance(path, str | Path) else cwd
    kind = whole.suffix.casefold()
    if whole == cwd or kind not in (".json", ".db"):
        raise RagError("INVALID_OPTIONS", f"persist_path={str(path)!r} is not allowed: name a .json or a .db file")
    if kind == ".json":
        from plugins.rag.json_file import JsonFile

        return JsonFile(whole)
    from plugins.rag.tables import DatabaseFile

    return DatabaseFile(whole)


def format_context(hits: Sequence[Passage]) -> str:
    """Passages as a model reads them: `[1] (label) text`. Lines after the first are indented, so that no text can begin a passage."""
    blocks = []
    for number, hit in enumerate(hits, start=1):
        label = " ".join((hit.citation or hit.source or "").split())
        lines = hit.text.strip().split("\n")
        blocks.append(f"[{number}] " + (f"({label}) " if label else "") + "\n    ".join(lines))
    return "\n\n".join(blocks)
