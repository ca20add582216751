"""Keeps the store and the index one: what is stored is searchable, what was taken away answers no more, whatever fails in between."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from bot import Embedder, Passage, RagError
from plugins.rag.embedders import LexicalOnly, embed_all, query_vector
from plugins.rag.index import Chunk, Index, Staged
from plugins.rag.ingest import searched
from plugins.rag.storage import Damaged, Storage, Store, StoredChunk, StoredDocument, checksum, packed, sealed, unpacked

log = logging.getLogger(__name__)
Array = np.ndarray[Any, Any]
OnError = Callable[[Exception], None]
GROUP_CHUNKS = 2_048  # what is taken over from the store in one go
IN_A_THREAD = 3_000_000  # chunks × characters asked: more take long enough to be worth a thread
QUESTION_SECONDS = 4.0  # an embedder that is slower leaves the question to the lexical leg


class Collection:
    """Documents, searchable. Its writing methods are called by one task at a time."""

    def __init__(self, storage: Storage, embedder: Embedder, *, batch_size: int, on_error: OnError, must_embed: bool) -> None:
        self.storage = storage
        self.documents: dict[str, StoredDocument] = {}
        self._embedder = embedder
        self._batch_size = batch_size
        self._on_error = on_error
        self._must_embed = must_embed
        self._index = Index()
        self._generation = -1
        self._incomplete = False
        self._refused: set[str] = set()

    @property
    def incomplete(self) -> bool:
        """Whether the embedder was down when something should have been embedded: `embed_missing` makes up for it."""
        return self._incomplete

    @property
    def dense(self) -> bool:
        """Whether there is an embedder beside the lexical leg."""
        return not isinstance(self._embedder, LexicalOnly)

    @property
    def generation(self) -> int:
        """How far it has taken over what is stored."""
        return self._generation

    def emptied(self) -> "Collection":
        """One like it that holds nothing yet."""
        return Collection(self.storage, self._embedder, batch_size=self._batch_size, on_error=self._on_error, must_embed=self._must_embed)

    def __len__(self) -> int:
        return len(self._index)

    def connected(self) -> AbstractAsyncContextManager[None]:
        """Keep the embedder's connection open meanwhile."""
        held = getattr(self._embedder, "held", None)
        return held() if held else nullcontext()

    # ------------------------------------------------------------------------------------ loading

    async def load(self, store: Store) -> None:
        """Take over what is stored and not in the index yet, and drop what is in the index and not stored any more.

        Raises Damaged where a document is not what was stored, in a file of our own; in the bot's tables it is dropped and told of.
        """
        generation = await store.generation()
        if generation == self._generation:
            return
        stored = {document.id: document for document in await store.documents()}
        fresh = [d for d in stored.values() if (mine := self.documents.get(d.id)) is None or mine.generation != d.generation]
        slots: dict[str, range] = {}
        damaged: list[str] = []
        for some in _groups(fresh):
            chunks: dict[str, list[StoredChunk]] = {document.id: [] for document in some}
            async for page in store.chunks(some):
                for chunk in page:
                    chunks[chunk.document_id].append(chunk)
            bad = await asyncio.to_thread(_damaged, some, chunks)
            sound = [(document, chunks[document.id]) for document in some if document.id not in bad]
            slots |= (await self._stage(sound, await self._known(store, chunks))).slots
            damaged += bad
        if damaged:
            await self._give_up(store, damaged, stored)
        await self._show(Staged(slots), drop=[name for name in self.documents if name not in stored])
        self.documents = stored
        self._generation = generation

    async def _give_up(self, store: Store, damaged: Sequence[str], stored: dict[str, StoredDocument]) -> None:
        if (name := self.storage.set_aside()) is not None:
            raise Damaged(f"the saved index is damaged in {len(damaged)} documents: it is set aside as {name!r}")
        await store.write([], remove=damaged)
        for name in damaged:
            del stored[name]
        self._on_error(Damaged(f"{len(damaged)} documents in the database are not what was stored: they are dropped, ingest them again"))

    async def _known(self, store: Store, chunks: Mapping[str, Sequence[StoredChunk]]) -> dict[str, Array]:
        if not self.dense:
            return {}
        digests = list({chunk.digest for pieces in chunks.values() for chunk in pieces})
        kept = await store.vectors(self._embedder.id, digests) if digests else {}
        return await asyncio.to_thread(_unpacked, kept)

    async def _stage(self, documents: Sequence[tuple[StoredDocument, Sequence[StoredChunk]]], vectors: Mapping[str, Array]) -> Staged:
        return await asyncio.to_thread(_staged, self._index, documents, vectors)

    async def _show(self, staged: Staged, *, drop: Sequence[str] = ()) -> None:
        self._index.show(staged, drop=drop)
        if self._index.worn:
            self._index = await asyncio.to_thread(self._index.rebuilt)

    # ------------------------------------------------------------------------------------ changing

    async def put(
        self, store: Store, documents: Sequence[tuple[StoredDocument, Sequence[StoredChunk]]], *, remove: Sequence[str] = ()
    ) -> bool:
        """Embed what is new in them, store them, let them answer. False where the embedder is down and words alone must do.

        Until it returns, and where it raises, what they replace goes on answering. Raises RagError EMBEDDING_FAILED where the embedder is
        down and its vectors are a must.
        """
        pieces = {document.id: list(chunks) for document, chunks in documents}
        vectors = await self._known(store, pieces)
        embedded = True
        if self.dense:
            wanted = {chunk.digest: searched(chunk.section, chunk.text) for chunks in pieces.values() for chunk in chunks}
            embedded = await self._embed(store, {digest: text for digest, text in wanted.items() if digest not in vectors}, vectors)
        finished = await asyncio.to_thread(lambda: [(sealed(document, chunks), chunks) for document, chunks in documents])
        generation = await store.write(finished, remove=remove)
        await self._show(await self._stage(finished, vectors), drop=remove)
        for name in remove:
            self.documents.pop(name, None)
        self.documents.update(await asyncio.to_thread(lambda: {document.id: _at(document, generation) for document, _ in finished}))
        if generation == self._generation + 1 or self._generation < 0:
            self._generation = generation  # else somebody else wrote too: the next load takes it over
        return embedded

    async def embed_missing(self, store: Store) -> bool:
        """Embed what has no vector yet: after a change of embedder, or a failure of it. False where the embedder is down."""
        missing = self._index.without_vectors() if self.dense else {}
        missing = {digest: text for digest, text in missing.items() if digest not in self._refused}
        self._incomplete = False
        vectors: dict[str, Array] = {}
        done = await self._embed(store, missing, vectors)
        if vectors:
            await asyncio.to_thread(self._index.give_vectors, vectors)
        return done

    async def embed_anew(self, store: Store) -> None:
        """Forget every vector and embed everything: the embedder gives another dimension than it did."""
        await store.drop_vectors(self._embedder.id)
        self._index.forget_vectors()
        await self.embed_missing(store)

    async def _embed(self, store: Store, texts: Mapping[str, str], vectors: dict[str, Array]) -> bool:
        """Vectors for texts by digest, added to `vectors` and kept batch by batch, so that a crash loses one batch."""
        if not self.dense or not texts:
            return True
        digests = {text: digest for digest, text in texts.items()}

        async def done(batch: Mapping[str, Array]) -> None:
            found = {digests[text]: vector for text, vector in batch.items()}
            vectors.update(found)
            await store.keep_vectors(self._embedder.id, {digest: packed(vector) for digest, vector in found.items()})

        try:
            lost = await embed_all(self._embedder, list(digests), size=self._batch_size, done=done)
        except RagError as error:
            if self._must_embed:
                raise
            self._incomplete = True
            self._on_error(error)
            return False
        if lost:
            self._refused |= {digests[text] for text in lost}
            self._on_error(RagError("EMBEDDING_FAILED", f"the embedder refuses {len(lost)} chunks: they are found by their words alone"))
        return True

    # ------------------------------------------------------------------------------------ searching

    async def vector(self, question: str) -> Array | None:
        """The question's vector, or None for the lexical leg alone. Raises RagError EMBEDDING_FAILED."""
        if not self.dense or not self._index.dimension:
            return None
        try:
            async with asyncio.timeout(QUESTION_SECONDS):
                return await query_vector(self._embedder, question)
        except TimeoutError as error:
            raise RagError("EMBEDDING_FAILED", f"the embedder {self._embedder.id!r} took more than {QUESTION_SECONDS:g} s") from error

    def fits(self, vector: Array) -> bool:
        """Whether a question's vector is of the dimension that the chunks' are."""
        return len(vector) == self._index.dimension

    async def search(
        self,
        question: str,
        vector: Array | None,
        *,
        top_k: int,
        min_score: float | None,
        where: Mapping[str, Any] | None,
        previous: Sequence[str],
    ) -> list[Passage]:
        """The passages that answer, best first."""
        options: dict[str, Any] = {"top_k": top_k, "min_score": min_score, "where": where, "previous": previous}
        options["bar"] = getattr(self._embedder, "relevant", None)
        if len(self._index) * sum(map(len, (question, *previous))) > IN_A_THREAD:
            return await asyncio.to_thread(self._index.search, question, vector, **options)
        return self._index.search(question, vector, **options)


def _groups(documents: Iterable[StoredDocument]) -> Iterator[list[StoredDocument]]:
    """In order of their ids, so many together that neither they nor their chunks take long."""
    group: list[StoredDocument] = []
    room = GROUP_CHUNKS
    for document in sorted(documents, key=lambda one: one.id):
        group.append(document)
        room -= document.pieces + 1
        if room <= 0:
            yield group
            group, room = [], GROUP_CHUNKS
    if group:
        yield group


def _damaged(documents: Iterable[StoredDocument], chunks: Mapping[str, Sequence[StoredChunk]]) -> list[str]:
    return [document.id for document in documents if checksum(document, chunks.get(document.id, ())) != document.checksum]


def _unpacked(kept: Mapping[str, bytes]) -> dict[str, Array]:
    """Vectors that are whole, and of the dimension that most have."""
    found = {digest: vector for digest, data in kept.items() if (vector := unpacked(data)) is not None}
    usual = Counter(map(len, found.values())).most_common(1)
    return {digest: vector for digest, vector in found.items() if len(vector) == usual[0][0]}


def _staged(index: Index, documents: Sequence[tuple[StoredDocument, Sequence[StoredChunk]]], vectors: Mapping[str, Array]) -> Staged:
    return index.stage({document.id: [_searchable(document, chunk) for chunk in chunks] for document, chunks in documents}, vectors)


def _searchable(document: StoredDocument, chunk: StoredChunk) -> Chunk:
    return Chunk(document.id, chunk.position, chunk.text, document.label, chunk.section, chunk.digest, chunk.metadata)


def _at(document: StoredDocument, generation: int) -> StoredDocument:
    return replace(document, generation=generation)
