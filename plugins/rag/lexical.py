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
from functools import lru_cache
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np

from plugins.rag.postings import Segment, build, joined, ranges
from plugins.rag.stopwords import STOP_WORDS

K1 = 0.8
B = 0.6
GRAM_WEIGHT = 0.6  # beside 1 for a word and its prefix, in the order of the chunks
STEM_SHARE, GRAM_SHARE = 1.6, 0.3  # of a word's first four letters and of its other pieces, beside 1, in the share that a chunk holds
PREFIX = 5
GRAM = 4
BUILT_AT_ONCE = 2_048  # chunks whose postings are made in one go: no more than a moment
LONGEST_FORM = 64
MOST_ASKED = 400  # words of a question: of a longer text, its beginning and its end ask
MANY = 20_000  # slots
MOST_FORMS = 300_000  # then they are forgotten and met anew
MOST_REMEMBERED, REMEMBERED_BYTES = 256, 16 << 20  # scores of the latest questions
BACKGROUND = 200  # the share is told as though so many other chunks stood by: in a small library every word counts about the same
SEGMENT_SLOTS = 16_384  # a joined segment is never longer: joining takes no more than a moment

_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[^\W_]_[^\W_]")
Array = np.ndarray[Any, Any]


@lru_cache(maxsize=1 << 15)
def fold(text: str) -> str:
    """Case and accents aside: "Año" and "ano" are one."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def words(text: str) -> list[str]:
    """The words of a text as they stand, in order."""
    return _WORD.findall(unicodedata.normalize("NFC", text).replace("_", " "))


def telling(form: str) -> list[str]:
    """The folded words of a stretch without blanks that say something: no stop words, but for those in a name such as `forget_me`."""
    named = _NAME.search(form) is not None
    return [word for word in map(fold, words(form)) if word and (named or word not in STOP_WORDS)]


def names(word: str) -> list[str]:
    """What a folded word is found by, as `features` has it, without the weights: for what is read, not asked."""
    framed = f"_{word}_"
    return [
        word,
        word[:PREFIX] + "*",
        *["#" + gram for gram in dict.fromkeys([framed[i : i + GRAM] for i in range(len(framed) - GRAM + 1)])],
    ]


def features(word: str) -> list[tuple[str, float, float]]:
    """What a folded word is found by, each with its weight in the order of the chunks and in the share that a chunk holds.

    The two differ: rare endings tell chunks apart, but whether a chunk is about the word at all is told by its beginning.
    """
    whole, prefix, *grams = names(word)
    stem = "#" + word[:GRAM]
    return [(whole, 1.0, 1.0), (prefix, 1.0, 1.0), *((gram, GRAM_WEIGHT, STEM_SHARE if gram == stem else GRAM_SHARE) for gram in grams)]


@lru_cache(maxsize=1 << 14)
def _found_by(word: str) -> tuple[tuple[str, float, float], ...]:
    return tuple(features(word))


class Vocabulary(dict[str, int]):
    """Numbers features, and knows those of each *form*: a stretch of text without a blank, as it stands, of any number of words.

    Looking up a form that is new adds it. Forms are kept so that a text need not be taken apart in Python: most of a text are forms that
    were seen before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.feature_ids: dict[str, int] = {}
        self._forget_forms()

    def _forget_forms(self) -> None:
        self.clear()
        self._flat = array("i")  # the features of form i stand at starts[i] : starts[i + 1]
        self._starts = array("q", [0])
        self._words = array("i")  # how many words form i has, stop words aside

    def __missing__(self, form: str) -> int:
        known, found = self.feature_ids, telling(form)
        for word in found:
            self._flat.extend([known.setdefault(name, len(known)) for name in names(word)])
        self._starts.append(len(self._flat))
        self._words.append(len(found))
        number = len(self._words) - 1
        if len(form) <= LONGEST_FORM:
            self[form] = number
        return number

    def read(self, texts: Sequence[str]) -> tuple[Array, Array, Array]:
        """The features of the texts, one text after another, how many each text has, and how many words."""
        if len(self._words) > MOST_FORMS:
            self._forget_forms()
        read = [np.fromiter(map(self.__getitem__, text.split()), dtype=np.int32) for text in texts]
        forms, begins = np.concatenate(read), np.cumsum([0, *map(len, read)])
        starts, count = np.array(self._starts, dtype=np.int32), np.array(self._words)
        found, sizes = starts[forms], (starts[1:] - starts[:-1])[forms]
        return np.array(self._flat)[ranges(found, sizes)], _sums(sizes, begins), _sums(count[forms], begins)


def _sums(values: Array, begins: Array) -> Array:
    """The sums of `values[begins[i] : begins[i + 1]]`."""
    total = np.concatenate(([0], np.cumsum(values)))
    return np.asarray(total[begins[1:]] - total[begins[:-1]])


class Scores:
    """How well each slot answers a question: `bm25` to order by, `share` of the question's `weight` that the slot holds, 0 to 1."""

    __slots__ = ("_held", "_share", "_standing", "_telling", "bm25", "weight")

    def __init__(self, bm25: Array, weight: float, standing: "_Standing", held: Sequence[tuple[Array, Array]], telling: Array) -> None:
        self.bm25 = bm25
        self.weight = weight
        self._standing = standing
        self._held = held
        self._telling = telling
        self._share: Array | None = None

    @property
    def share(self) -> Array:
        """Of every slot. Worked out when it is first asked for: to order by, nobody needs it."""
        if self._share is None:
            found = zip(self._standing.segments, self._held, strict=True)
            parts = [segment.all.sums(at, self._telling[terms], segment.size) for segment, (terms, at) in found]
            self._share = np.concatenate([np.zeros(0), *parts]) * self._standing.alive / (self.weight or 1.0)
        return self._share

    def share_at(self, slots: Array | None) -> Array:
        """Of some slots; None means every one. Where there are many, those few are worked out alone."""
        if slots is None or self._share is not None or len(self.bm25) <= MANY:
            return self.share if slots is None else self.share[slots]
        return np.array([self._share_of(slot) for slot in slots.tolist()]) * self._standing.alive[slots] / (self.weight or 1.0)

    def _share_of(self, slot: int) -> float:
        for segment, (terms, at) in zip(self._standing.segments, self._held, strict=True):
            if slot < segment.size:
                sizes = segment.all.sizes(at)
                places = np.flatnonzero(segment.all.pick(segment.all.slots, at, sizes) == slot)
                return float(self._telling[terms[np.searchsorted(np.cumsum(sizes), places, side="right")]].sum())
            slot -= segment.size
        return 0.0


class Lexicon:
    """The whole lexical index: add chunks, score a question. Scoring sees a consistent state while another thread adds."""

    def __init__(self) -> None:
        self._vocabulary = Vocabulary()
        self._segments: tuple[Segment, ...] = ()
        self._standing = _Standing((), np.zeros(0, dtype=bool))

    @property
    def size(self) -> int:
        """How many slots there are, live or not."""
        return sum(segment.size for segment in self._segments)

    def add(self, texts: Sequence[str]) -> None:
        """Give each text the next slot."""
        for start in range(0, len(texts), BUILT_AT_ONCE):
            segments = [*self._segments, build(*self._vocabulary.read(texts[start : start + BUILT_AT_ONCE]))]
            while len(segments) > 1 and _joinable(segments[-2], segments[-1]):
                segments[-2:] = [joined(segments[-2], segments[-1])]
            self._segments = tuple(segments)

    def score(self, question: str, alive: Array) -> Scores:
        """Scores of every slot. `alive[slot]` is False for a chunk that was removed: it counts for nothing.

        Whoever passes the same array again is answered from what was worked out before, so it is replaced, never changed.
        """
        standing = self._standing
        if standing.segments is not self._segments or standing.given is not alive:
            standing = self._standing = _Standing(self._segments, alive)
        return standing.remembered(question) or standing.remember(question, self._score(question, standing))

    def _score(self, question: str, standing: "_Standing") -> Scores:
        ids, weights, telling, unknown = self._question(question)
        held = [segment.find(ids) for segment in standing.segments]
        frequency = np.zeros(len(ids))
        for segment, live, (terms, at) in zip(standing.segments, standing.parts, held, strict=True):
            frequency[terms] += segment.all.sizes(at) if live is None else _living(segment, at, live)
        telling = telling * _idf(frequency, standing.live + BACKGROUND)
        weights = weights * _idf(frequency, standing.live)
        found = zip(standing.segments, held, standing.norms, strict=True)
        parts = [segment.bm25(at, weights[terms], norm) for segment, (terms, at), norm in found]
        bm25 = np.concatenate([np.zeros(0), *parts]) * standing.alive
        return Scores(bm25, float(telling.sum()) + unknown * _idf(0.0, standing.live + BACKGROUND), standing, held, telling)

    def _question(self, question: str) -> tuple[Array, Array, Array, float]:
        """The features of a question that some chunk may hold, both their weights, and the weight in the share of those that none holds."""
        found: dict[str, tuple[float, float]] = {}
        asked = list(dict.fromkeys(word for form in question.split() for word in telling(form)))
        for word in asked if len(asked) <= MOST_ASKED else asked[: MOST_ASKED // 2] + asked[-MOST_ASKED // 2 :]:
            for name, weight, share in _found_by(word):
                before = found.get(name)
                found[name] = (weight, share) if before is None else (max(weight, before[0]), max(share, before[1]))
        ids = self._vocabulary.feature_ids
        known = [(ids[name], *both) for name, both in found.items() if name in ids]
        unknown = sum(share for name, (_, share) in found.items() if name not in ids)
        rows = np.array(known, dtype=np.float64).reshape(-1, 3)
        return rows[:, 0].astype(np.int32), rows[:, 1], rows[:, 2], unknown


def _joinable(left: Segment, right: Segment) -> bool:
    return left.size <= 2 * right.size and left.size + right.size <= SEGMENT_SLOTS


class _Standing:
    """What every question meets: the segments, which of their slots live, and what follows from that alone."""

    def __init__(self, segments: tuple[Segment, ...], given: Array) -> None:
        self.segments = segments
        self.given = given
        ends = np.cumsum([0, *(segment.size for segment in segments)])
        self.alive = np.zeros(ends[-1], dtype=bool)  # what another thread has just added is in no `given` yet
        self.alive[: len(given)] = given[: ends[-1]]
        self.live = max(int(self.alive.sum()), 1)
        cut = [self.alive[begin:end] for begin, end in pairwise(ends.tolist())]
        self.parts = [None if part.all() else part for part in cut]
        words = sum(float(segment.lengths @ part) for segment, part in zip(segments, cut, strict=True))
        average = max(words / self.live, 1.0)
        self.norms = [K1 * (1 - B + B * segment.lengths / average) for segment in segments]
        self._most = min(MOST_REMEMBERED, REMEMBERED_BYTES // (16 * max(len(self.alive), 1)))
        self._scores: dict[int, Scores] = {}
        self._lock = Lock()

    def remembered(self, question: str) -> Scores | None:
        """The scores that were worked out for it: what was asked before is asked again with every question that follows it."""
        return self._scores.get(hash(question))

    def remember(self, question: str, scores: Scores) -> Scores:
        """Keep them, and the latest few, by a number that tells nothing of the question."""
        with self._lock:
            while self._scores and len(self._scores) >= self._most:
                del self._scores[next(iter(self._scores))]
            if self._most:
                self._scores[hash(question)] = scores
        return scores


def _living(segment: Segment, at: Array, alive: Array) -> Array:
    """How many live chunks hold each of the features."""
    sizes = segment.all.sizes(at)
    counted = np.cumsum(alive[segment.all.pick(segment.all.slots, at, sizes)], dtype=np.int32)
    return np.diff(counted[np.cumsum(sizes) - 1], prepend=0)


def _idf(frequency: Any, live: int) -> Any:
    return np.log1p((live - frequency + 0.5) / (frequency + 0.5))
