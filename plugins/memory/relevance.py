"""Which facts go into the prompt where not all of them fit: the pinned, then the most relevant to the question. Pure."""

import math
from collections import Counter
from collections.abc import Sequence

from bot import Fact, said

BYTES_PER_TOKEN = 3  # on the safe side, as for the rest of the prompt
PER_FACT = 4  # tokens that the form of a line takes


def tokens(fact: Fact) -> int:
    """About how many tokens a fact takes in the prompt; rather too many than too few."""
    return len(fact.text.encode("utf-8", "replace")) // BYTES_PER_TOKEN + 1 + PER_FACT


def fits(facts: Sequence[Fact], budget: int) -> bool:
    """Whether all facts fit into so many tokens."""
    return sum(map(tokens, facts)) <= budget


def choose(facts: Sequence[Fact], scores: Sequence[float], budget: int) -> list[Fact]:
    """Those that fit, in the order in which they were given: the pinned first, then by score, then the youngest. Never over `budget`."""
    ranked = sorted(range(len(facts)), key=lambda i: (facts[i].pinned, scores[i], facts[i].updated_at), reverse=True)
    kept: set[int] = set()
    for i in ranked:
        if (size := tokens(facts[i])) <= budget:
            kept.add(i)
            budget -= size
    return [fact for i, fact in enumerate(facts) if i in kept]


def by_words(facts: Sequence[Fact], question: str) -> list[float]:
    """How much each fact has to do with a question, by the words (or forms of them) that they share; a rare word weighs more."""
    held = [_stems(fact.text) for fact in facts]
    common = Counter(stem for stems in held for stem in stems)
    asked = _stems(question)
    return [sum(math.log(1 + len(facts) / common[stem]) for stem in stems & asked) / math.sqrt(len(stems) or 1) for stems in held]


def _stems(text: str) -> frozenset[str]:
    """The beginnings of the words of a text: "vive" and "vives" are one."""
    return frozenset(word[: max(4, len(word) - 2)] for word in said(text).split() if len(word) > 2 or word.isdigit())
