"""Which chunks answer, in what order: the lexical and the dense scores of every chunk made one. Pure."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

DENSE_WEIGHT = 0.6
RELEVANT_SHARE = 0.44
"""A question of which no chunk holds so much finds nothing. Calibrated on questions whose article was taken away; see
docs/decisions/relevance.md."""
COMPANION = 0.5
"""What stands behind the best chunk holds at least so much of the bar."""


def fuse(lexical: Array, dense: Array, live: Array) -> Array:
    """One score for each chunk to order by: both legs stretched to 0…1 over the live chunks, then weighed.

    Scores are fused, not ranks: a leg that is sure moves the order more than one that hardly tells the chunks apart.
    """
    return DENSE_WEIGHT * _stretched(dense, live) + (1 - DENSE_WEIGHT) * _stretched(lexical, live)


def _stretched(scores: Array, live: Array) -> Array:
    if not live.any():
        return np.zeros_like(scores)
    low, high = scores[live].min(), scores[live].max()
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


def best(order: Array, allowed: Array, count: int) -> Array:
    """The `count` allowed slots of the highest order, best first; of equals, the older first."""
    slots = np.flatnonzero(allowed)
    if len(slots) > 4 * count:
        cut = np.partition(order[slots], len(slots) - count)[len(slots) - count]
        slots = slots[order[slots] >= cut]
    return np.asarray(slots[np.argsort(-order[slots], kind="stable")][:count])


def fitting(slots: Array, share: Array, cosine: Array | None, bar: float | None) -> Array:
    """Of the best slots, those that fit the question; none where nothing does.

    Without vectors (`cosine` None) a chunk fits by the share of the question's weight that it holds. With them it fits by either leg:
    `bar` is the cosine above which texts of this embedder have to do with each other, or None where that is not known.
    """
    if not len(slots) or (cosine is not None and bar is None):
        return slots
    by_words = share[slots].max() >= RELEVANT_SHARE
    companions = share[slots] >= RELEVANT_SHARE * COMPANION
    fits = companions & by_words
    if cosine is not None and bar is not None:
        fits |= cosine[slots] >= bar
    return np.asarray(slots[fits])
