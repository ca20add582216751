"""How near facts are to a question in meaning, by the embedder that the documents use; by their words where there is none."""

import asyncio
import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bot import BotError, Embedder, Fact

from .relevance import by_words

if TYPE_CHECKING:
    import numpy as np

log = logging.getLogger(__name__)

SECONDS = 1.0  # the turn waits two for memory
MOST_VECTORS = 20_000
AT_ONCE = 8  # facts that are embedded together: those that came in time stay for the next turn


class Meaning:
    """Scores facts by the cosine to the question, plus what their words say: names are often all that a fact and a question share.

    Vectors are kept in RAM by a hash of what was embedded, without the words: a fact that was forgotten leaves nothing to read.
    """

    def __init__(self, embedder: Callable[[], Embedder]) -> None:
        self._embedder = embedder
        self._vectors: OrderedDict[int, np.ndarray[Any, Any]] = OrderedDict()

    def clear(self) -> None:
        """Keep no vector any more: somebody was erased, and whose they are is not known."""
        self._vectors.clear()

    async def __call__(self, facts: Sequence[Fact], question: str) -> list[float]:
        """A score for each fact. An embedder that fails or takes too long costs the meaning, not the turn."""
        words = by_words(facts, question)
        task = asyncio.ensure_future(self._cosines(facts, question))
        await asyncio.wait({task}, timeout=SECONDS)
        if not task.done():
            task.cancel()
            log.warning("the embedder gave no vectors for facts in time: they are chosen by their words")
            return words
        if error := task.exception():  # whatever it is: an embedder can be anybody's, and without it there are still the words
            log.warning("the embedder failed for facts: %s", error.code if isinstance(error, BotError) else type(error).__name__)
            return words
        most = max(words, default=0.0) or 1.0
        return [cosine + 0.3 * word / most for cosine, word in zip(task.result(), words, strict=True)]

    async def _cosines(self, facts: Sequence[Fact], question: str) -> list[float]:
        embedder, texts = self._embedder(), [fact.text for fact in facts]
        missing = list(dict.fromkeys(text for text in texts if hash(text) not in self._vectors))
        for start in range(0, len(missing), AT_ONCE):
            batch = missing[start : start + AT_ONCE]
            for text, vector in zip(batch, await embedder.embed(batch), strict=True):
                self._vectors[hash(text)] = vector
        asked = await getattr(embedder, "embed_query", lambda text: embedder.embed([text]))(question)
        cosines = [_number(self._vectors[hash(text)] @ asked[0]) if hash(text) in self._vectors else 0.0 for text in texts]
        while len(self._vectors) > MOST_VECTORS:
            self._vectors.popitem(last=False)
        return cosines


def _number(cosine: float) -> float:
    """A vector that is no number says nothing."""
    return float(cosine) if math.isfinite(cosine) else 0.0
