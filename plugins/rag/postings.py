"""Postings: which chunks hold a feature, how often, and the BM25 that follows. Made by sorting, joined by copying."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LONG = 300  # postings of a feature: fewer are picked one by one, more are copied whole
AT_ONCE = 1 << 21  # postings that are added up in one go: nothing else can run meanwhile
LEVELS = 2
MOST_COUNTED = 255


@dataclass(frozen=True, slots=True)
class Postings:
    """The slots of feature i at `offsets[i] : offsets[i + 1]` of `slots`."""

    offsets: Array
    slots: Array

    def sizes(self, at: Array) -> Array:
        """How many slots each of the features `at` has."""
        return np.asarray(self.offsets[at + 1] - self.offsets[at])

    def pick(self, values: Array, at: Array, sizes: Array) -> Array:
        """Of `values`, which has one for each of the slots, those of the features `at`, one feature after another."""
        begin = self.offsets[at]
        if int(sizes.sum()) <= LONG * len(sizes):
            return np.asarray(values[ranges(begin, sizes)])
        ends = (begin + sizes).tolist()
        return np.concatenate([values[start:end] for start, end in zip(begin.tolist(), ends, strict=True)])

    def sums(self, at: Array, weights: Array, size: int) -> Array:
        """For each slot, the weights of those of the features `at` that it holds."""
        sizes = self.sizes(at)
        if len(at) > 1 and int(sizes.sum()) > AT_ONCE:
            half = len(at) // 2
            return np.asarray(self.sums(at[:half], weights[:half], size) + self.sums(at[half:], weights[half:], size))
        return np.bincount(self.pick(self.slots, at, sizes), np.repeat(weights, sizes), size)


@dataclass(frozen=True, slots=True)
class Segment:
    """The postings of a run of slots, for `features` in order of their numbers; `lengths` are the words of each slot.

    All are in `levels[0]`; those of a feature that a slot holds twice or more in `levels[1]`, too, and so on; still more often in `more`,
    with how often in `counts`. Most are there once or twice, and what adds up without a look at each count adds up fast.
    """

    features: Array
    levels: Sequence[Postings]
    more: Postings
    counts: Array
    lengths: Array

    @property
    def all(self) -> Postings:
        """Of every feature every slot."""
        return self.levels[0]

    @property
    def size(self) -> int:
        """How many slots it covers."""
        return len(self.lengths)

    def find(self, ids: Array) -> tuple[Array, Array]:
        """Which of the features it has, by their position in `ids`, and where it has each."""
        if not len(self.features) or not len(ids):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        found = np.minimum(np.searchsorted(self.features, ids), len(self.features) - 1)
        places = np.flatnonzero(self.features[found] == ids)
        return places, found[places]

    def bm25(self, at: Array, weights: Array, norm: Array) -> Array:
        """The BM25 of every slot, for the features `at`; `norm` is what each slot's length makes of the count of a feature.

        A feature that is there c times adds c / (c + norm): what once adds, what twice adds to that, and so on.
        """
        scores, before = np.zeros(self.size), np.zeros(self.size)
        for count, level in enumerate(self.levels, start=1):
            gained = count / (count + norm)
            scores += level.sums(at, weights, self.size) * (gained - before)
            before = gained
        sizes = self.more.sizes(at)
        slots, counts = self.more.pick(self.more.slots, at, sizes), self.more.pick(self.counts, at, sizes)
        if not len(slots):
            return np.asarray(scores)
        gain = counts / (counts + norm[slots]) - before[slots]
        return np.asarray(scores + np.bincount(slots, np.repeat(weights, sizes) * gain, self.size))


def build(found: Array, sizes: Array, lengths: Array) -> Segment:
    """The segment of chunks whose features, one chunk after another, are `found`; chunk i has `sizes[i]` of them and `lengths[i]` words."""
    n = max(len(lengths), 1)
    narrow = int(found.max(initial=0)) * n + n < 1 << 32  # half the memory, and sorted in half the time
    keys = found.astype(np.uint32 if narrow else np.int64)
    np.multiply(keys, keys.dtype.type(n), out=keys)
    np.add(keys, np.repeat(np.arange(len(lengths), dtype=keys.dtype), sizes), out=keys)
    keys.sort()
    first = _changes(keys)
    counts = _counts(first, len(keys))
    feature, slot = np.divmod(keys[first], keys.dtype.type(n))
    starts = _changes(feature)
    offsets = np.append(starts, len(feature))
    slots = slot.astype(np.uint16)

    def of_at_least(count: int) -> Postings:
        some = np.flatnonzero(counts >= count)
        return Postings(np.searchsorted(some, offsets).astype(np.int32), slots[some])

    return Segment(
        features=feature[starts].astype(np.int32),
        levels=[Postings(offsets.astype(np.int32), slots), *(of_at_least(count) for count in range(2, LEVELS + 1))],
        more=of_at_least(LEVELS + 1),
        counts=counts[counts > LEVELS],
        lengths=lengths.astype(np.int32),
    )


def _counts(first: Array, end: int) -> Array:
    """How long each run is that begins at `first`."""
    counts = np.empty(len(first), dtype=np.uint8)
    if len(first):
        np.minimum(first[1:] - first[:-1], MOST_COUNTED, out=counts[:-1], casting="unsafe")
        counts[-1] = min(end - int(first[-1]), MOST_COUNTED)
    return counts


def _changes(ordered: Array) -> Array:
    """Where a run of equal values begins."""
    starts = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    return np.flatnonzero(starts)


def ranges(begin: Array, count: Array) -> Array:
    """The indices `begin[i] … begin[i] + count[i] - 1` of every i, one after another."""
    ends = np.cumsum(count, dtype=begin.dtype)
    found = np.repeat(begin - (ends - count), count)
    found += np.arange(len(found), dtype=found.dtype)
    return np.asarray(found)


def joined(left: Segment, right: Segment) -> Segment:
    """One segment with the slots of the left one and then those of the right one."""
    features = np.sort(np.concatenate((left.features, right.features)), kind="stable")
    features = features[_changes(features)]
    where = np.searchsorted(features, left.features), np.searchsorted(features, right.features)

    def both(ours: Postings, theirs: Postings, *others: tuple[Array, Array]) -> tuple[Postings, list[Array]]:
        offsets, ways = _ways(len(features), where, (ours.offsets, theirs.offsets))
        moved = theirs.slots + np.uint16(left.size)
        return Postings(offsets, _put(ways, ours.slots, moved)), [_put(ways, *other) for other in others]

    levels = [both(ours, theirs)[0] for ours, theirs in zip(left.levels, right.levels, strict=True)]
    more, (counts,) = both(left.more, right.more, (left.counts, right.counts))
    return Segment(features, levels, more, counts, np.concatenate((left.lengths, right.lengths)))


def _ways(features: int, where: Sequence[Array], offsets: Sequence[Array]) -> tuple[Array, list[Array]]:
    """The offsets of two segments' postings together, and where those of each go. `where`: which of the features theirs are."""
    sizes = [np.zeros(features, dtype=np.int32) for _ in where]
    for size, at, old in zip(sizes, where, offsets, strict=True):
        size[at] = old[1:] - old[:-1]
    new = np.zeros(features + 1, dtype=np.int32)
    np.cumsum(sizes[0] + sizes[1], out=new[1:])
    begins = new[:-1], new[:-1] + sizes[0]
    return new, [ranges(begin[at], size[at]) for begin, size, at in zip(begins, sizes, where, strict=True)]


def _put(ways: Sequence[Array], left: Array, right: Array) -> Array:
    both = np.empty(len(left) + len(right), dtype=left.dtype)
    both[ways[0]], both[ways[1]] = left, right
    return both
