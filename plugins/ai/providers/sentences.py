"""The sentences of some passages that answer a question best: pure, without a model, for prose in Spanish and English."""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from bot import Passage, detect
from plugins.ai.providers.matching import Terms, words_of_document
from plugins.ai.providers.reading import Unit, units
from plugins.ai.providers.stopwords import STOP

MOST = 3  # sentences in an answer
RELEVANT = 0.5  # more than this share of the question's weight has to be in a sentence, with what it stands under,
WHOLE, PART = 0.6, 0.3  # or so much in the whole passage and so much of it in the sentence
ABOUT = 0.5  # share of it that a heading has to hold for the whole section to be about the question
CLOSE = 0.75  # how close to the best one a sentence from elsewhere has to be
ALIKE = 0.5  # share of words in common at which two sentences say the same
OTHER_LANGUAGE = 0.4
LONG, SHORT = 60, 4  # words: outside of these a sentence answers less well
RARE, COMMON = 1.0, 0.3  # what a word of the question weighs at most and at least
LIGHT, LIGHT_LENGTH = 0.6, 4  # a short word is most often a verb that everyone says another way: it weighs less

TO_YOU = 0.2

_FIRST_PERSON = frozenset(("my", "mine", "me", "mi", "mis", "mio", "mia", "mios", "mias"))
_SECOND_PERSON = frozenset(("you", "your", "yours", "tu", "tus", "te", "ti", "usted"))
_ABOUT_THE_PAGE = re.compile(r"(?:en )?est[ae] (?:pagina|guia|seccion|documento)|(?:in )?this (?:page|guide|section|document)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A unit with where it stands: the number of its passage, its place there, and how many of its section come before it."""

    unit: Unit
    number: int
    place: int
    into_section: int
    heading: str
    page: str
    fitting: float


class Held(NamedTuple):
    """The words of the question that a sentence holds itself, that its heading holds, and that its page holds."""

    own: frozenset[str]
    headed: frozenset[str]
    paged: frozenset[str]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A sentence with how well it answers, and how much its heading alone says that its section does."""

    sentence: Sentence
    score: float
    section: float


def answer(question: str, passages: Sequence[Passage], language: str) -> str:
    """The best one to three sentences, each followed by the number of its passage; empty where no passage is relevant.

    Passages in `language` are preferred to those in another.
    """
    terms = Terms(question)
    sentences = [
        sentence
        for n, passage in enumerate(passages, 1)
        for sentence in _sentences(n, passage.text, passage.section or passage.citation or passage.source or "", language)
    ]
    if not terms.all or not sentences:
        return ""
    ranked = _rank(sentences, terms, personal=not _FIRST_PERSON.isdisjoint(terms.asked))
    return _written(_choose(ranked)) if ranked else ""


# ---------------------------------------------------------------------------------------------- what there is


@lru_cache(maxsize=512)
def _sentences(n: int, text: str, above: str, language: str) -> tuple[Sentence, ...]:
    """The sentences of a passage; the last part of its section is its heading, what is before that its page."""
    *pages, section = [part.strip() for part in above.split("›")]
    read, written_in = _read(text)
    fitting = 1.0 if written_in in (language, None) else OTHER_LANGUAGE
    found: list[Sentence] = []
    for place, unit in enumerate(read):
        heading = unit.heading or section
        into = found[-1].into_section + 1 if found and found[-1].heading == heading else 0
        found.append(Sentence(unit, n, place, into, heading, " ".join(pages), fitting))
    return tuple(found)


@lru_cache(maxsize=512)
def _read(text: str) -> tuple[tuple[Unit, ...], str | None]:
    """What a passage says, and in which language: read once for all the questions that find it."""
    return tuple(units(text)), detect(text)


def _weights(terms: Terms, held: Sequence[Held]) -> dict[str, float]:
    """What each word of the question weighs: the fewer sentences hold it, the more; one that none holds weighs most."""
    holding = Counter(term for words in held for term in words.own | words.headed)
    whole = math.log(1 + len(held))
    rarity = {t: max(COMMON, min(RARE, math.log(1 + len(held) / n) / whole)) if (n := holding[t]) else RARE for t in terms.all}
    return {term: weight * (LIGHT if len(term) <= LIGHT_LENGTH else 1.0) for term, weight in rarity.items()}


# ---------------------------------------------------------------------------------------------- how well it answers


def _rank(sentences: Sequence[Sentence], terms: Terms, *, personal: bool) -> list[Ranked]:
    """The relevant sentences, the best first; `personal`: the question is about who asks, so what is said to "you" answers it better."""
    held = [Held(terms.held(s.unit.text), terms.held(s.heading), terms.held(s.page)) for s in sentences]
    weights = _weights(terms, held)
    whole = sum(weights.values())

    @cache
    def share(some: frozenset[str]) -> float:
        return sum(weights[term] for term in some) / whole

    by_passage: dict[int, frozenset[str]] = {}
    for s, of_question in zip(sentences, held, strict=True):
        by_passage[s.number] = by_passage.get(s.number, frozenset()).union(*of_question)
    ranked = [
        r
        for s, of_question in zip(sentences, held, strict=True)
        if not s.unit.text.endswith("?") and (r := _ranked(s, of_question, share, share(by_passage[s.number]))) is not None
    ]
    return sorted(ranked, key=lambda r: -r.score - (TO_YOU if personal and _to_you(r.sentence) else 0.0))


def _to_you(sentence: Sentence) -> bool:
    return not _SECOND_PERSON.isdisjoint(words_of_document(sentence.unit.text))


@lru_cache(maxsize=512)
def _named(heading: str) -> int:
    """How many words of a heading say something; at least one."""
    return len([word for word in words_of_document(heading) if word not in STOP]) or 1


@lru_cache(maxsize=2048)
def _losses(text: str) -> tuple[float, ...]:
    """What the score of a sentence is multiplied with, one after another, for the form that it has."""
    length = len(text.split())
    losses = [0.7] if length > LONG or length < SHORT else []
    if text[-1].isalnum():  # a caption, the text of a link, an entry of a list
        losses.append(0.8)
    if _ABOUT_THE_PAGE.match(" ".join(words_of_document(text))):
        losses.append(0.3)
    return tuple(losses)


def _ranked(sentence: Sentence, words: Held, share: Callable[[frozenset[str]], float], passage: float) -> Ranked | None:
    own, headed, paged = words
    enough = PART if passage > WHOLE else RELEVANT
    if share(own | headed | paged) <= enough or not own | headed:
        return None
    section = share(headed) * math.sqrt(min(1.0, len(headed) / _named(sentence.heading)))
    score = share(own) + 0.8 * section + 0.4 * section / (1 + sentence.into_section) + 0.1 / sentence.number + 0.1 * share(paged)
    return Ranked(sentence, math.prod(_losses(sentence.unit.text), start=score) * sentence.fitting, section)


# ---------------------------------------------------------------------------------------------- the answer


def _choose(ranked: Sequence[Ranked]) -> list[Sentence]:
    """The best sentence, what follows it where its section is about the question, and others that are as good and say something else."""
    best, chosen = ranked[0], [ranked[0].sentence]
    if best.sentence.unit.below:
        return chosen
    following = {(r.sentence.number, r.sentence.place): r for r in ranked}
    while len(chosen) < MOST and not chosen[-1].unit.below:
        after = following.get((chosen[-1].number, chosen[-1].place + 1))
        if after is None or after.sentence.heading != best.sentence.heading or max(best.section, after.score / best.score) < ABOUT:
            break
        chosen.append(after.sentence)
    for other in ranked[1:]:
        if len(chosen) == MOST or other.score < CLOSE * best.score:
            break
        if not other.sentence.unit.below and not any(_alike(other.sentence, one) for one in chosen):
            chosen.append(other.sentence)
    return chosen


def _alike(one: Sentence, other: Sentence) -> bool:
    a, b = (set(words_of_document(sentence.unit.text)) - STOP for sentence in (one, other))
    return one == other or len(a & b) >= ALIKE * min(len(a), len(b))


def _written(chosen: Sequence[Sentence]) -> str:
    """Sentences as one paragraph; a list or an example stands below the sentence that announces it."""
    first = chosen[0].number
    text = ""
    for sentence in sorted(chosen, key=lambda s: (s.number != first, s.number, s.place)):
        text += f"{' ' if text and not text.endswith(chr(10)) else ''}{cite(sentence.unit, sentence.number)}"
    return text.strip()


def cite(unit: Unit, n: int) -> str:
    """`It takes 3 days [1].`: the number ahead of the stop at the end."""
    bare = unit.text.rstrip(".:;!… ")
    end = unit.text[len(bare) :].strip() or "."
    return f"{bare} [{n}]{end}\n\n{unit.below}\n\n" if unit.below else f"{bare} [{n}]{end}"
