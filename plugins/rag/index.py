"""The searchable index, in memory: every chunk in a slot, the lexical leg over all of them, and their vectors where there are any."""

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from threading import Lock
from types import MappingProxyType
from typing import Any

import numpy as np

from bot import Passage, is_follow_up
from plugins.rag.cosine import cosines
from plugins.rag.fusion import ELSEWHERE, best, carried, fitting, fuse, joined
from plugins.rag.ingest import searched
from plugins.rag.lexical import Lexicon, Scores, fold, words
from plugins.rag.stopwords import language_of

Array = np.ndarray[Any, Any]
MOST_DEAD = 1024  # more removed chunks than this and than half of the slots, and the index is built anew
AT_ONCE = 2_048  # chunks
MOST_LANGUAGES = 200


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document as it is searched. `label` is the document's name for people, `section` the headings above the piece.

    `metadata` is JSON.
    """

    document: str
    index: int
    text: str
    label: str
    section: str = ""
    digest: str = ""
    metadata: str = "{}"

    @property
    def searched(self) -> str:
        """What is embedded: the headings belong to the piece."""
        return searched(self.section, self.text)

    @property
    def indexed(self) -> str:
        """What the lexical leg reads: a document's name says what it is about, too."""
        name = self.label.rsplit("/", 1)[-1]
        return f"{name.rsplit('.', 1)[0]}\n{self.searched}"

    @property
    def known(self) -> Mapping[str, Any]:
        """The metadata."""
        return _known(self.metadata)

    @property
    def language(self) -> str | None:
        """As far as it is known."""
        language = self.known.get("language")
        return language if isinstance(language, str) else None

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
            metadata=dict(self.known),
        )

    def matches(self, where: Mapping[str, Any]) -> bool:
        """Whether every named value is the chunk's: `source`, `section`, `doc_id`, or a key of its metadata; a list means any of."""
        known = {**self.known, "source": self.label, "section": self.section, "doc_id": self.document}
        return all(_is(known.get(name), wanted) for name, wanted in where.items())


def _is(value: object, wanted: object) -> bool:
    return value in wanted if isinstance(wanted, list | tuple | set | frozenset) else value == wanted


@lru_cache(maxsize=1024)
def _known(metadata: str) -> Mapping[str, Any]:
    return MappingProxyType(json.loads(metadata))


_row = attrgetter(*Chunk.__dataclass_fields__)
_SECTION, _DIGEST, _METADATA = (list(Chunk.__dataclass_fields__).index(name) for name in ("section", "digest", "metadata"))
Row = tuple[Any, ...]


class Index:
    """Add and drop documents, search. One writer at a time, in any thread; a search sees a document whole or not at all.

    Chunks are held as tuples of text and numbers, document by document: the garbage collector leaves such tuples alone, where it would
    stop everything to look at 100,000 objects.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []  # the first slot of each block
        self._blocks: list[tuple[Row, ...]] = []
        self._slots: dict[str, range] = {}
        self._alive = np.zeros(0, dtype=bool)
        self._living = 0
        self._lexicon = Lexicon()
        self._staging = Lock()
        self._vectors = np.zeros((0, 0), dtype=np.float32)
        self._embedded = np.zeros(0, dtype=bool)
        self._languages = np.zeros(0, dtype=np.uint8)
        self._numbers: dict[str | None, int] = {None: 0}

    def __len__(self) -> int:
        return self._living

    @property
    def dimension(self) -> int:
        """Of the vectors, 0 where there are none."""
        return self._vectors.shape[1]

    @property
    def worn(self) -> bool:
        """Whether so much was removed that building anew pays."""
        dead = self._size - len(self)
        return dead > MOST_DEAD and dead > len(self)

    @property
    def _size(self) -> int:
        return self._starts[-1] + len(self._blocks[-1]) if self._blocks else 0

    def _chunk(self, slot: int) -> Chunk:
        block = bisect_right(self._starts, slot) - 1
        return Chunk(*self._blocks[block][slot - self._starts[block]])

    def stage(self, documents: Mapping[str, Sequence[Chunk]], vectors: Mapping[str, Array]) -> "Staged":
        """Prepare documents, out of sight; the heavy part, for a thread. `vectors` are by `Chunk.digest`.

        A thread goes on when whoever waits for it is cancelled, so that another may come before it has ended: that one waits.
        """
        with self._staging:
            return self._staged(documents, vectors)

    def _staged(self, documents: Mapping[str, Sequence[Chunk]], vectors: Mapping[str, Array]) -> "Staged":
        start = size = max(self._size, self._lexicon.size)  # they differ where an addition failed half-way: then what it left is no one's
        self._lexicon.add([""] * (size - self._lexicon.size))
        slots: dict[str, range] = {}
        for name, chunks in documents.items():
            slots[name] = range(size, size + len(chunks))
            size += len(chunks)
        added = [chunk for chunks in documents.values() for chunk in chunks]
        self._make_room(size, next((len(vector) for vector in vectors.values()), self.dimension))
        found = {slot: vector for slot, chunk in enumerate(added, start) if (vector := vectors.get(chunk.digest)) is not None}
        self._put_vectors(found)
        self._languages[start:size] = [self._number(chunk.language) for chunk in added]
        for name, chunks in documents.items():
            if chunks:
                self._starts.append(slots[name].start)
                self._blocks.append(tuple(map(_row, chunks)))
        for first in range(0, len(added), AT_ONCE):
            self._lexicon.add([chunk.indexed for chunk in added[first : first + AT_ONCE]])
        return Staged(slots)

    def _number(self, language: str | None) -> int:
        """What stands for a language, 0 where it is not known, or is one of too many."""
        return (
            self._numbers.setdefault(language, len(self._numbers))
            if len(self._numbers) <= MOST_LANGUAGES
            else self._numbers.get(language, 0)
        )

    def _make_room(self, size: int, dimension: int) -> None:
        if dimension != self.dimension:
            self._vectors, self._embedded = np.zeros((len(self._vectors), dimension), np.float32), np.zeros_like(self._embedded)
        self._alive, self._languages = _grown(self._alive, size), _grown(self._languages, size)
        self._embedded, self._vectors = _grown(self._embedded, size), _grown(self._vectors, size)

    def _put_vectors(self, found: Mapping[int, Array]) -> None:
        if found and self.dimension:
            slots = list(found)
            self._vectors[slots] = list(found.values())
            self._embedded[slots] = True

    def show(self, staged: "Staged", *, drop: Sequence[str] = ()) -> None:
        """Let what was staged answer, in place of what it replaces and of `drop`: in one step, on the event loop."""
        alive = self._alive.copy()
        for name in (*drop, *staged.slots):
            if (old := self._slots.pop(name, None)) is not None:
                alive[old.start : old.stop] = False
        for name, new in staged.slots.items():
            alive[new.start : new.stop] = True
            self._slots[name] = new
        self._alive, self._living = alive, int(alive.sum())

    def give_vectors(self, vectors: Mapping[str, Array]) -> None:
        """Vectors for chunks that are there already, by `Chunk.digest`. Another dimension replaces all there were."""
        dimension = next((len(vector) for vector in vectors.values()), self.dimension)
        if dimension != self.dimension:
            self._embedded = np.zeros(len(self._alive), dtype=bool)
            self._vectors = np.zeros((len(self._alive), dimension), dtype=np.float32)
        for start, block in zip(self._starts, self._blocks, strict=False):
            wanted = ((slot, vectors.get(row[_DIGEST])) for slot, row in enumerate(block, start))
            self._put_vectors({slot: vector for slot, vector in wanted if vector is not None})

    def forget_vectors(self) -> None:
        """As though nothing had been embedded."""
        self._vectors, self._embedded = np.zeros((len(self._alive), 0), np.float32), np.zeros(len(self._alive), dtype=bool)

    def rebuilt(self) -> "Index":
        """The same documents in an index without gaps."""
        fresh = Index()
        fresh._make_room(len(self), self.dimension)
        slots: dict[str, range] = {}
        for some in self._in_groups():
            chunks = {name: [self._chunk(slot) for slot in self._slots[name]] for name in some}
            held = [(slot, chunk.digest) for name in some for slot, chunk in zip(self._slots[name], chunks[name], strict=True)]
            vectors = {digest: self._vectors[slot] for slot, digest in held if self._embedded[slot]}
            slots |= fresh.stage(chunks, vectors).slots
        fresh.show(Staged(slots))
        return fresh

    def _in_groups(self) -> Iterator[list[str]]:
        """The documents that answer, in groups of so many chunks that little more than the index itself is held."""
        group: list[str] = []
        room = AT_ONCE
        for name, slots in self._slots.items():
            group.append(name)
            room -= len(slots)
            if room <= 0:
                yield group
                group, room = [], AT_ONCE
        yield group

    def without_vectors(self) -> dict[str, str]:
        """What live chunks say that have no vector, by their digest."""
        return {chunk.digest: chunk.searched for chunk in map(self._chunk, np.flatnonzero(self._alive & ~self._embedded).tolist())}

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
        alive = self._alive
        told = self._words(question, previous, alive)
        size = len(told.order)
        allowed = self._matching(where, alive[:size]) if where else alive[:size]
        language = language_of([fold(word) for word in words(question)])
        home = self._at_home(language, size)
        order, cosine, score = told.order * home, None, None
        if vector is not None:
            cosine = cosines(self._vectors[:size], vector) * self._embedded[:size]
            score = np.clip(cosine, 0.0, 1.0)
            order = fuse(order, cosine, alive[:size], told.share() * home)
        fits = allowed & (order > 0 if score is None else (order > 0) | (score > 0))
        if min_score:
            fits = fits & ((told.share() if score is None else score) >= min_score)
        slots = best(order, fits, top_k)
        chunks = [self._chunk(slot) for slot in slots.tolist()]
        share = told.share(slots)
        scores = share if score is None else score[slots]
        kept = np.arange(len(slots))
        if min_score is None:
            if cosine is None:
                kept = fitting(kept, share, None, None)
            else:
                abroad = np.array([None not in (language, chunk.language) and chunk.language != language for chunk in chunks], dtype=bool)
                kept = fitting(kept, share, cosine[slots], bar, abroad=abroad)
            if told.leans and not len(kept):
                kept = fitting(np.arange(len(slots)), share, None, None)
        return [chunks[place].passage(round(min(float(scores[place]), 1.0), 6)) for place in kept.tolist()]

    def _matching(self, where: Mapping[str, Any], allowed: Array) -> Array:
        """Those of the allowed slots whose chunk matches. Chunks of a document with one section and metadata match together."""
        matching = np.zeros_like(allowed)
        for start, block in zip(self._starts, self._blocks, strict=False):
            told: dict[tuple[str, str], bool] = {}
            for slot in (start + np.flatnonzero(allowed[start : start + len(block)])).tolist():
                row = block[slot - start]
                kind = row[_SECTION], row[_METADATA]
                if kind not in told:
                    told[kind] = Chunk(*row).matches(where)
                matching[slot] = told[kind]
        return matching

    def _at_home(self, language: str | None, size: int) -> Array | float:
        """What the order of each chunk is weighed with: of two pages that say the same in two languages, the reader's own comes first."""
        if language is None or len(self._numbers) <= 2:
            return 1.0
        there = self._languages[:size]
        return np.where((there == 0) | (there == self._numbers.get(language, 0)), 1.0, ELSEWHERE)

    def _words(self, question: str, previous: Sequence[str], alive: Array) -> "_Words":
        """What the lexical leg says. What came before moves the order; it counts in the share where the question leans on it."""
        asked = [self._lexicon.score(text, alive) for text in (question, *previous)]
        size = min(len(alive), *(len(scores.bm25) for scores in asked))  # another thread may be adding
        own, *before = (scores.bm25[:size] for scores in asked)
        return _Words(carried(own, before), asked, bool(previous) and is_follow_up(question))


@dataclass(frozen=True, slots=True)
class _Words:
    order: Array
    asked: Sequence[Scores]
    leans: bool

    def share(self, slots: Array | None = None) -> Array:
        """What the slots hold of the question, and where it leans on those before, of all of them together. None means every slot."""
        own, *_ = shares = [scores.share_at(slots)[: len(self.order)] for scores in (self.asked if self.leans else self.asked[:1])]
        return np.maximum(own, joined(shares, [scores.weight for scores in self.asked])) if self.leans else own


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
