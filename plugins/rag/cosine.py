"""Cosines of every row with a question: as fast as memory gives the rows, on as many cores as there are."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SHARED = 4 << 20  # bytes of rows above which the half that another core does takes longer than waking it
CACHED = 32 << 20  # bytes
MOST_CORES = 4  # more get no more out of the memory


@lru_cache(maxsize=1)
def cores() -> int:
    """How many to use: those that this process may run on, fewer where OMP_NUM_THREADS says so, as for every library of arithmetic."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(mine, MOST_CORES, int(asked) if asked.isdecimal() else mine))


def cosines(rows: Array, question: Array, *, parts: int | None = None) -> Array:
    """Of rows of length 1 with a question, `(n,)`, or with several, `(n, m)`. `parts` is how many cores to use, by default `cores()`.

    One question is bounded by how fast the rows are read: `vecdot` reads memory faster than a product of matrices, and two cores faster
    than one. The product wins where the rows are few, or the questions several.
    """
    parts = cores() if parts is None else parts
    if question.ndim > 1 or rows.nbytes <= (SHARED if parts > 1 else CACHED):
        return np.asarray(rows @ question.T)
    found = np.empty(len(rows), dtype=np.result_type(rows, question))
    step = -(-len(rows) // parts)
    others = [_pool().submit(_fill, found, rows, question, start, start + step) for start in range(step, len(rows), step)]
    _fill(found, rows, question, 0, step)
    for other in others:
        other.result()
    return found


def _fill(found: Array, rows: Array, question: Array, start: int, end: int) -> None:
    """One part, without the interpreter's lock."""
    np.vecdot(rows[start:end], question, out=found[start:end])


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Threads that stay: one started for each question would take as long as its part."""
    return ThreadPoolExecutor(MOST_CORES - 1, thread_name_prefix="cosines")
