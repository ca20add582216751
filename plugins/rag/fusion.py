"""Which chunks answer, in what order: the lexical and the dense scores of every chunk made one. Pure."""

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

WORDS_WEIGHT = 0.15, 0.34  # of the lexical leg beside the dense one, from where words say little to where they say much
WORDS_SAY = 0.25, 0.6  # the share of a question that the best chunk holds there: across languages it is low
WHOLE = 0.3  # of the lexical leg beside the dense one: the part that the share has in it
FADING = 0.5  # of each question before: half as much as the one that came after it
FEW = 8  # looking for the highest so often is faster than sorting
RELEVANT_SHARE = 0.44  # a question of which no chunk holds so much finds nothing
SHARE_LIFT = 0.1  # what a chunk that holds the whole question gains on the cosine that it must reach
ABROAD = 0.08  # what a cosine falls short by where question and chunk are in two languages
ELSEWHERE = 0.85  # of the lexical order of a chunk in another language than the question: it comes first only where it says more
COMPANION = 0.5, 0.03  # what stands behind a chunk that fits holds this part of the share, or is this far below the cosine
# All calibrated on questions whose article was taken away; docs/decisions/relevance.md has the figures.


def fuse(lexical: Array, dense: Array, live: Array, share: Array) -> Array:
    """One score for each chunk to order by: both legs stretched to 0…1 over the live chunks, then weighed.

    Scores are fused, not ranks: a leg that is sure moves the order more than one that hardly tells the chunks apart. `share` is what each
    chunk holds of the question's weight. It has a part in the lexical leg, since beside meaning it counts that all of a question is met and
    not how rare one word of it is; and where even the highest is low, as for a question in another language than the chunks', words weigh
    less.
    """
    (least, most), (low, high) = WORDS_WEIGHT, WORDS_SAY
    held = share[live].max() if live.any() else 0.0
    weight = least + (most - least) * min(1.0, max(0.0, (held - low) / (high - low)))
    spoken = (1 - WHOLE) * _stretched(lexical, live) + WHOLE * _stretched(share, live)
    return (1 - weight) * _stretched(dense, live) + weight * spoken


def _stretched(scores: Array, live: Array) -> Array:
    if not live.any():
        return np.zeros_like(scores)
    low, high = scores[live].min(), scores[live].max()
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


def carried(own: Array, before: Sequence[Array]) -> Array:
    """A question's scores with half of those of the question before it, a quarter of those of the one before that, and so on.

    `before` has the latest first. All of it together weighs at most as much as the question itself: its best score is brought down to the
    question's own best, so that a change of topic does not drown in what was asked before. A question without a word of its own has only
    what came before.
    """
    if not len(own) or not before:
        return own
    history = sum(scores * FADING**age for age, scores in enumerate(before, start=1))
    most, least = own.max(), np.max(history)
    return np.asarray(own + history * (min(1.0, most / least) if most and least else 1.0))


def joined(shares: Sequence[Array], weights: Sequence[float]) -> Array:
    """The share that each chunk holds of a question together with those before it (the latest first), which fade likewise."""
    faded = [weight * FADING**age for age, weight in enumerate(weights)]
    total = sum(faded)
    return (
        sum((share * weight / total for share, weight in zip(shares, faded, strict=True)), start=np.zeros_like(shares[0]))
        if total
        else shares[0]
    )


def best(order: Array, allowed: Array, count: int) -> Array:
    """The `count` allowed slots of the highest order, best first; of equals, the older first."""
    values = np.where(allowed, order, -np.inf)
    if count > FEW:
        least = np.partition(values, len(values) - count)[len(values) - count] if len(values) > count else -np.inf
        slots = np.flatnonzero(values >= max(least, np.finfo(values.dtype).min))
        return np.asarray(slots[np.argsort(-values[slots], kind="stable")][:count])
    found: list[int] = []
    while len(found) < count and len(values) and values[slot := int(values.argmax())] > -np.inf:
        found.append(slot)
        values[slot] = -np.inf
    return np.array(found, dtype=np.intp)


def fitting(slots: Array, share: Array, cosine: Array | None, bar: float | None, *, abroad: Array | None = None) -> Array:
    """Of the best slots, those that fit the question; none where nothing does.

    Without vectors (`cosine` None) a chunk fits by the share of the question's weight that it holds; with them by its cosine, lifted by
    that share, and where `abroad` says of a slot that it is in another language than the question. `bar` is what texts of this embedder
    reach that have to do with each other; where it is None, all pass.
    """
    part, below = COMPANION
    if not len(slots) or (cosine is not None and bar is None):
        return slots
    if cosine is None or bar is None:
        reached, least, needed = share[slots], RELEVANT_SHARE * part, RELEVANT_SHARE
    else:
        reached, least, needed = cosine[slots] + SHARE_LIFT * share[slots], bar - below, bar
        if abroad is not None:
            reached = reached + ABROAD * abroad
    return np.asarray(slots[reached >= least]) if reached.max() >= needed else slots[:0]
