"""The lexical leg: an inverted index of words, their stems-by-prefix and their four-letter pieces, scored by BM25.

It needs no language: a word is found by itself, by its first five letters and by the 4-grams of `_word_`, case and accents folded, so that
an inflected or mistyped word still meets its kin. Stop words of Spanish and English are left out.

Chunks live in *slots*, numbered as they come. A `Segment` holds the postings of a run of slots; an addition makes a small segment and
small neighbours are joined, so that adding one text never rebuilds the whole index.
"""

import re
import unicodedata
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from plugins.rag.stopwords import STOP_WORDS

K1 = 0.8
B = 0.6
GRAM_WEIGHT = 0.6  # beside 1 for a word and its prefix, in the order of the chunks
STEM_SHARE, GRAM_SHARE = 1.6, 0.3  # of a word's first four letters and of its other pieces, beside 1, in the share that a chunk holds
PREFIX = 5
GRAM = 4
BACKGROUND = 200  # the share is told as though so many other chunks stood by: in a small library every word counts about the same
SEGMENT_SLOTS = 8_192  # a joined segment is never longer: building one takes no more than a moment and 200 MB
STOP = -1

_WORD = re.compile(r"\w+")
Array = np.ndarray[Any, Any]


@lru_cache(maxsize=1 << 15)
def fold(text: str) -> str:
    """Case and accents aside: "Año" and "ano" are one."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def words(text: str) -> list[str]:
    """The words of a text as they stand, in order."""
    return _WORD.findall(unicodedata.normalize("NFC", text).replace("_", " "))


def features(word: str) -> list[tuple[str, float, float]]:
    """What a folded word is found by, each with its weight in the order of the chunks and in the share that a chunk holds.

    The two differ: rare endings tell chunks apart, but whether a chunk is about the word at all is told by its beginning.
    """
    framed = f"_{word}_"
    grams = dict.fromkeys(framed[i : i + GRAM] for i in range(len(framed) - GRAM + 1))
    pieces = [(f"#{gram}", GRAM_WEIGHT, STEM_SHARE if gram == word[:GRAM] else GRAM_SHARE) for gram in grams]
    return [(word, 1.0, 1.0), (word[:PREFIX] + "*", 1.0, 1.0), *pieces]


class Vocabulary(dict[str, int]):
    """Numbers each word form and knows its features. Looking up a form that is new adds it; a stop word is `STOP`."""

    def __init__(self) -> None:
        super().__init__()
        self.feature_ids: dict[str, int] = {}
        self._flat = array("i")
        self._starts = array("q", [0])
        self._folded: dict[str, int] = {}

    def __missing__(self, form: str) -> int:
        word = fold(form)
        if word in STOP_WORDS or not word:
            number = STOP
        elif (number := self._folded.get(word, STOP)) == STOP:
            number = self._folded[word] = len(self._starts) - 1
            known = self.feature_ids
            self._flat.extend([known.setdefault(name, len(known)) for name, *_ in features(word)])
            self._starts.append(len(self._flat))
        self[form] = number
        return number

    def numbers(self, text: str) -> Array:
        """The text as the numbers of its words, stop words left out."""
        found = np.fromiter(map(self.__getitem__, words(text)), dtype=np.int32)
        return np.asarray(found[found != STOP])

    def expand(self, numbers: Array) -> tuple[Array, Array]:
        """The features of each word in turn, and how many each word has."""
        starts = np.array(self._starts)
        begin, count = starts[numbers], (starts[1:] - starts[:-1])[numbers]
        return np.array(self._flat)[_ranges(begin, count)], count


def _ranges(begin: Array, count: Array) -> Array:
    """The indices `begin[i] … begin[i] + count[i] - 1` of every i, one after another."""
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    found = np.repeat(begin - (ends - count), count)
    found += np.arange(total)
    return np.asarray(found)


@dataclass(frozen=True, slots=True)
class Segment:
    """The postings of a run of slots: for the feature `features[i]`, slots and counts at `offsets[i] : offsets[i + 1]`."""

    features: Array
    offsets: Array
    slots: Array
    counts: Array
    tokens: Array
    lengths: Array

    @property
    def size(self) -> int:
        """How many slots it covers."""
        return len(self.lengths)


def build(vocabulary: Vocabulary, tokens: Array, lengths: Array) -> Segment:
    """The segment of chunks whose words, one chunk after another, are `tokens`; chunk i has `lengths[i]` of them."""
    n = max(len(lengths), 1)
    narrow = len(vocabulary.feature_ids) * n < 1 << 32  # half the memory, and sorted in half the time
    found, count = vocabulary.expand(tokens)
    keys = found.astype(np.uint32 if narrow else np.int64)
    np.multiply(keys, keys.dtype.type(n), out=keys)
    np.add(keys, np.repeat(np.repeat(np.arange(len(lengths), dtype=keys.dtype), lengths), count), out=keys)
    del found, count
    keys.sort()
    first = _changes(keys)
    feature, slot = np.divmod(keys[first], keys.dtype.type(n))
    starts = _changes(feature)
    return Segment(
        features=feature[starts].astype(np.int64),
        offsets=np.append(starts, len(feature)),
        slots=slot.astype(np.uint16),
        counts=_counts(first, len(keys)),
        tokens=tokens,
        lengths=lengths,
    )


def _counts(first: Array, end: int) -> Array:
    """How long each run is that begins at `first`, at most 255."""
    counts = np.empty(len(first), dtype=np.uint8)
    if len(first):
        np.minimum(first[1:] - first[:-1], 255, out=counts[:-1], casting="unsafe")
        counts[-1] = min(end - int(first[-1]), 255)
    return counts


def _changes(ordered: Array) -> Array:
    """Where a run of equal values begins."""
    starts = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    return np.flatnonzero(starts)


@dataclass(frozen=True, slots=True)
class Scores:
    """How well each slot answers a question: `bm25` to order by, `share` of the question's `weight` that the slot holds, 0 to 1."""

    bm25: Array
    share: Array
    weight: float


class Lexicon:
    """The whole lexical index: add chunks, score a question. Scoring sees a consistent state while another thread adds."""

    def __init__(self) -> None:
        self._vocabulary = Vocabulary()
        self._segments: tuple[Segment, ...] = ()

    @property
    def size(self) -> int:
        """How many slots there are, live or not."""
        return sum(segment.size for segment in self._segments)

    def add(self, texts: Sequence[str]) -> None:
        """Give each text the next slot."""
        for start in range(0, len(texts), SEGMENT_SLOTS):
            numbers = [self._vocabulary.numbers(text) for text in texts[start : start + SEGMENT_SLOTS]]
            lengths = np.array([len(row) for row in numbers], dtype=np.int64)
            segments = [*self._segments, build(self._vocabulary, np.concatenate(numbers), lengths)]
            while len(segments) > 1 and _joinable(segments[-2], segments[-1]):
                right, left = segments.pop(), segments.pop()
                tokens = np.concatenate((left.tokens, right.tokens))
                segments.append(build(self._vocabulary, tokens, np.concatenate((left.lengths, right.lengths))))
            self._segments = tuple(segments)

    def score(self, question: str, alive: Array) -> Scores:
        """Scores of every slot. `alive[slot]` is False for a chunk that was removed: it counts for nothing."""
        segments = self._segments
        size = sum(segment.size for segment in segments)
        alive = alive[:size]
        ids, weights, telling, unknown = self._question(question)
        held = [_postings(segment, ids) for segment in segments]
        starts = np.cumsum([0, *(segment.size for segment in segments)])
        live = max(int(alive.sum()), 1)
        frequency = np.zeros(len(ids))
        for segment, start, found in zip(segments, starts, held, strict=False):
            frequency[found.terms] += found.live(segment, alive[start : start + segment.size])
        telling = telling * _idf(frequency, live + BACKGROUND)
        total = float(telling.sum()) + unknown * _idf(0.0, live + BACKGROUND)
        weights = weights * _idf(frequency, live)
        lengths = np.concatenate([segment.lengths for segment in segments]) if segments else np.empty(0)
        average = max(float(lengths @ alive) / live, 1.0)
        bm25, share = np.zeros(size), np.zeros(size)
        for segment, start, found in zip(segments, starts, held, strict=False):
            slots, n = segment.slots[found.at], segment.size
            counts = segment.counts[found.at].astype(np.float32)
            norm = (K1 * (1 - B + B * segment.lengths / average)).astype(np.float32)
            saturated = np.repeat(weights[found.terms], found.sizes) * (counts / (counts + norm[slots]))
            bm25[start : start + n] = np.bincount(slots, weights=saturated, minlength=n)
            share[start : start + n] = np.bincount(slots, weights=np.repeat(telling[found.terms], found.sizes), minlength=n)
        return Scores(bm25 * alive, share * alive / total if total else share, total)

    def _question(self, question: str) -> tuple[Array, Array, Array, float]:
        """The features of a question that some chunk may hold, both their weights, and the weight in the share of those that none holds."""
        found: dict[str, tuple[float, float]] = {}
        for word in dict.fromkeys(map(fold, words(question))):
            if word and word not in STOP_WORDS:
                for name, weight, telling in features(word):
                    before = found.get(name, (0.0, 0.0))
                    found[name] = (max(weight, before[0]), max(telling, before[1]))
        ids = self._vocabulary.feature_ids
        known = [(ids[name], *both) for name, both in found.items() if name in ids]
        unknown = sum(telling for name, (_, telling) in found.items() if name not in ids)
        rows = np.array(known, dtype=np.float64).reshape(-1, 3)
        return rows[:, 0].astype(np.int64), rows[:, 1], rows[:, 2], unknown


def _joinable(left: Segment, right: Segment) -> bool:
    return left.size <= 2 * right.size and left.size + right.size <= SEGMENT_SLOTS


@dataclass(frozen=True, slots=True)
class _Held:
    """What a segment holds of a question: the features by their position in it, how many postings each has, and where these are."""

    terms: Array
    sizes: Array
    at: Array

    def live(self, segment: Segment, alive: Array) -> Array:
        """How many live chunks hold each of the terms."""
        if alive.all():
            return self.sizes
        here = np.repeat(np.arange(len(self.terms)), self.sizes)
        return np.bincount(here, weights=alive[segment.slots[self.at]], minlength=len(self.terms))


def _postings(segment: Segment, ids: Array) -> _Held:
    if not len(segment.features) or not len(ids):
        nothing = np.empty(0, np.int64)
        return _Held(nothing, nothing, nothing)
    found = np.minimum(np.searchsorted(segment.features, ids), len(segment.features) - 1)
    terms = np.flatnonzero(segment.features[found] == ids)
    begin = segment.offsets[found[terms]]
    sizes = segment.offsets[found[terms] + 1] - begin
    return _Held(terms, sizes, _ranges(begin, sizes))


def _idf(frequency: Any, live: int) -> Any:
    return np.log1p((live - frequency + 0.5) / (frequency + 0.5))
