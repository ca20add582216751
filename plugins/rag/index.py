"""The searchable index, in memory: every chunk in a slot, the lexical leg over all of them, and their vectors where there are any."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bot import Passage, is_follow_up
from plugins.rag.cosine import cosines
from plugins.rag.fusion import best, carried, fitting, fuse, joined
from plugins.rag.ingest import searched
from plugins.rag.lexical import Lexicon, fold, words
from plugins.rag.stopwords import language_of

Array = np.ndarray[Any, Any]
MOST_DEAD = 1024  # more removed chunks than this and than half of the slots, and the index is built anew


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document as it is searched. `label` is the document's name for people, `section` the headings above the piece."""

    document: str
    index: int
    text: str
    label: str
    section: str = ""
    digest: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def searched(self) -> str:
        """What is embedded: the headings belong to the piece."""
        return searched(self.section, self.text)

    @property
    def indexed(self) -> str:
        """What the lexical leg reads: a document's name says what it is about, too."""
        name = self.label.rsplit("/", 1)[-1]
        return f"{name.rsplit('.', 1)[0]}\n{self.searched}"

    def passage(self, score: float) -> Passage:
        """As it is handed out."""
        return Passage(
            text=self.text,
            source=self.label,
            citation=f"{self.label} › {self.section}" if self.section else self.label,
            score=score,
            section=self.section or None,
            id=f"{self.document}#{self.index}",
            doc_id=self.document,
            index=self.index,
            metadata=dict(self.metadata),
        )

    def matches(self, where: Mapping[str, Any]) -> bool:
        """Whether every named value is the chunk's: `source`, `section`, `doc_id`, or a key of its metadata; a list means any of."""
        known = {**self.metadata, "source": self.label, "section": self.section, "doc_id": self.document}
        return all(_is(known.get(name), wanted) for name, wanted in where.items())


def _is(value: object, wanted: object) -> bool:
    return value in wanted if isinstance(wanted, list | tuple | set | frozenset) else value == wanted


class Index:
    """Add and drop documents, search. One writer at a time, in any thread; a search sees a document whole or not at all."""

    def __init__(self) -> None:
        self._chunks: list[Chunk] = []
        self._slots: dict[str, range] = {}
        self._alive = np.zeros(0, dtype=bool)
        self._lexicon = Lexicon()
        self._vectors = np.zeros((0, 0), dtype=np.float32)
        self._embedded = np.zeros(0, dtype=bool)

    def __len__(self) -> int:
        return int(self._alive.sum())

    @property
    def dimension(self) -> int:
        """Of the vectors, 0 where there are none."""
        return self._vectors.shape[1]

    @property
    def worn(self) -> bool:
        """Whether so much was removed that building anew pays."""
        dead = len(self._chunks) - len(self)
        return dead > MOST_DEAD and dead > len(self)

    def chunks(self) -> Iterator[Chunk]:
        """The live chunks."""
        return (chunk for slots in self._slots.values() for chunk in self._chunks[slots.start : slots.stop])

    def stage(self, documents: Mapping[str, Sequence[Chunk]], vectors: Mapping[str, Array]) -> "Staged":
        """Prepare documents, out of sight; the heavy part, for a thread. `vectors` are by `Chunk.digest`."""
        start = len(self._chunks)
        slots: dict[str, range] = {}
        added: list[Chunk] = []
        for name, chunks in documents.items():
            slots[name] = range(start + len(added), start + len(added) + len(chunks))
            added.extend(chunks)
        texts = [chunk.indexed for chunk in added]
        size = start + len(added)
        dimension = next((len(vector) for vector in vectors.values()), self.dimension)
        if dimension != self.dimension:
            self._vectors, self._embedded = np.zeros((len(self._vectors), dimension), np.float32), np.zeros_like(self._embedded)
        self._alive = _grown(self._alive, size)
        self._embedded = _grown(self._embedded, size)
        self._vectors = _grown(self._vectors, size)
        self._chunks.extend(added)
        for slot, chunk in enumerate(added, start=start):
            if (vector := vectors.get(chunk.digest)) is not None and dimension:
                self._vectors[slot], self._embedded[slot] = vector, True
        if added:
            self._lexicon.add(texts)
        return Staged(slots)

    def show(self, staged: "Staged", *, drop: Sequence[str] = ()) -> None:
        """Let what was staged answer, in place of what it replaces and of `drop`: in one step, on the event loop."""
        alive = self._alive.copy()
        for name in (*drop, *staged.slots):
            if (old := self._slots.pop(name, None)) is not None:
                alive[old.start : old.stop] = False
        for name, new in staged.slots.items():
            alive[new.start : new.stop] = True
            self._slots[name] = new
        self._alive = alive

    def give_vectors(self, vectors: Mapping[str, Array]) -> None:
        """Vectors for chunks that are there already, by `Chunk.digest`. Another dimension replaces all there were."""
        dimension = next((len(vector) for vector in vectors.values()), self.dimension)
        if dimension != self.dimension:
            self._embedded = np.zeros(len(self._alive), dtype=bool)
            self._vectors = np.zeros((len(self._alive), dimension), dtype=np.float32)
        for slot, chunk in enumerate(self._chunks):
            if (vector := vectors.get(chunk.digest)) is not None:
                self._vectors[slot], self._embedded[slot] = vector, True

    def forget_vectors(self) -> None:
        """As though nothing had been embedded."""
        self._vectors, self._embedded = np.zeros((len(self._alive), 0), np.float32), np.zeros(len(self._alive), dtype=bool)

    def rebuilt(self) -> "Index":
        """The same documents in an index without gaps."""
        fresh = Index()
        documents = {name: self._chunks[slots.start : slots.stop] for name, slots in self._slots.items()}
        vectors = {self._chunks[slot].digest: self._vectors[slot] for slot in np.flatnonzero(self._alive & self._embedded)}
        fresh.show(fresh.stage(documents, vectors))
        return fresh

    def without_vectors(self) -> dict[str, str]:
        """What live chunks say that have no vector, by their digest."""
        return {self._chunks[slot].digest: self._chunks[slot].searched for slot in np.flatnonzero(self._alive & ~self._embedded)}

    def search(
        self,
        question: str,
        vector: Array | None,
        *,
        top_k: int,
        min_score: float | None,
        where: Mapping[str, Any] | None = None,
        bar: float | None = None,
        previous: Sequence[str] = (),
    ) -> list[Passage]:
        """The passages that answer, best first; `previous` are the questions before, the latest first.

        `min_score` alone decides what is left out; where it is None, `fusion.fitting` does, with `bar`, and nothing may fit.
        """
        alive, chunks = self._alive, self._chunks
        told = self._words(question, previous, alive)
        size = len(told.order)
        allowed = alive[:size].copy()
        if where:
            for slot in np.flatnonzero(allowed):
                allowed[slot] = chunks[slot].matches(where)
        if vector is None:
            score, order, cosine = told.share, told.order, None
        else:
            cosine = cosines(self._vectors[:size], vector) * self._embedded[:size]
            score = np.clip(cosine, 0.0, 1.0)
            order = fuse(told.order, cosine, alive[:size], told.share.max(initial=0.0))
        slots = best(order, allowed & (score >= (min_score or 0.0)) & ((score > 0) | (order > 0)), top_k)
        if min_score is None:
            fit = fitting(slots, told.share, cosine, bar, abroad=_abroad(question, [chunks[slot] for slot in slots]))
            slots = fit if len(fit) or not told.leans else fitting(slots, told.share, None, None)
        return [chunks[slot].passage(round(min(float(score[slot]), 1.0), 6)) for slot in slots]

    def _words(self, question: str, previous: Sequence[str], alive: Array) -> "_Words":
        """What the lexical leg says. What came before moves the order; it counts in the share where the question leans on it."""
        asked = [self._lexicon.score(text, alive) for text in (question, *previous)]
        size = min(len(scores.share) for scores in asked)
        own, *before = (scores.bm25[:size] for scores in asked)
        shares = [scores.share[:size] for scores in asked]
        leans = bool(previous) and is_follow_up(question)
        share = np.maximum(shares[0], joined(shares, [scores.weight for scores in asked])) if leans else shares[0]
        return _Words(carried(own, before) if before else own, share, leans)


def _abroad(question: str, chunks: Sequence[Chunk]) -> Array:
    """For each chunk, whether it is in another language than the question; what is not known is taken for the same."""
    language = language_of([fold(word) for word in words(question)])
    return np.array([None not in (language, there := chunk.metadata.get("language")) and there != language for chunk in chunks], dtype=bool)


@dataclass(frozen=True, slots=True)
class _Words:
    order: Array
    share: Array
    leans: bool


@dataclass(frozen=True, slots=True)
class Staged:
    """Documents that are in the index and not in sight, by the slots of each."""

    slots: Mapping[str, range]


def _grown(rows: Array, size: int) -> Array:
    """Room for `size` rows, with some to spare, so that growing by ones does not copy everything each time."""
    if len(rows) >= size:
        return rows
    grown = np.zeros((size + size // 2, *rows.shape[1:]), dtype=rows.dtype)
    grown[: len(rows)] = rows
    return grown
