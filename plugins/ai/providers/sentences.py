"""The sentences of some passages that answer a question best: pure, without a model, for prose in Spanish and English."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bot import Passage, detect
from plugins.ai.providers.reading import Unit, units
from plugins.ai.providers.stopwords import STOP

MOST = 3  # sentences in an answer
RELEVANT = 0.5  # share of the question's words that a passage has to hold
CLOSE = 0.6  # a further sentence has to be this close to the best one
OTHER_LANGUAGE = 0.5
LONG = 60  # words; a longer sentence answers less well

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence with where it comes from and how well it answers."""

    unit: Unit
    number: int
    position: int
    score: float
    holds: frozenset[str]


def plain(text: str) -> str:
    """Case, accents and punctuation aside."""
    return " ".join(_words(text))


def answer(question: str, passages: Sequence[Passage], language: str) -> str:
    """The best one to three sentences, each followed by the number of its passage; empty where no passage is relevant.

    Passages in `language` are preferred to those in another.
    """
    terms = _terms(question)
    candidates = [c for n, passage in enumerate(passages, 1) for c in _candidates(n, passage, terms, language)]
    chosen = _choose(candidates)
    return _written(sorted(chosen, key=lambda c: (c.number, c.position)))


def _terms(question: str) -> list[str]:
    words = list(dict.fromkeys(_words(question)))
    return [word for word in words if word not in STOP and (len(word) > 1 or word.isdigit())]


def _words(text: str) -> list[str]:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return _WORD.findall("".join(c for c in decomposed if not unicodedata.combining(c)))


def _candidates(n: int, passage: Passage, terms: Sequence[str], language: str) -> Iterator[_Candidate]:
    """The sentences of a passage, none where it is not about what is asked."""
    named = f"{passage.section or ''} {passage.citation or ''}"
    if not terms or len(_held(terms, f"{named} {passage.text}")) / len(terms) < RELEVANT:
        return
    fitting = 1.0 if detect(passage.text) in (language, None) else OTHER_LANGUAGE
    for position, unit in enumerate(units(passage.text)):
        own, headed = _held(terms, unit.text), _held(terms, f"{named} {unit.heading}")
        if unit.text.endswith("?") or not (own or headed):
            continue
        score = len(own) / len(terms) + 0.6 * len(headed - own) / len(terms) + 0.1 / n + 0.1 / (position + 1)
        score *= fitting * (0.7 if len(unit.text.split()) > LONG or len(unit.text.split()) < 3 else 1.0)
        yield _Candidate(unit, n, position, score, own | headed)


def _held(terms: Sequence[str], text: str) -> frozenset[str]:
    there = set(_words(text))
    return frozenset(term for term in terms if term in there or any(_kin(term, word) for word in there))


def _kin(term: str, word: str) -> bool:
    """Whether two words are forms of one: `borro` and `borrar`, `envío` and `envíos`."""
    shorter = min(len(term), len(word))
    same = next((i for i in range(shorter) if term[i] != word[i]), shorter)
    return same >= 4 and same >= 0.7 * shorter and max(len(term), len(word)) - same <= 5


def _choose(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    ranked = sorted(candidates, key=lambda c: -c.score)
    chosen: list[_Candidate] = []
    seen: set[str] = set()
    for candidate in ranked:
        if len(chosen) == MOST or candidate.score < CLOSE * ranked[0].score:
            break
        if (said := plain(candidate.unit.text)) not in seen:
            seen.add(said)
            chosen.append(candidate)
        if candidate.unit.below:
            break  # a list or an example is an answer by itself
    return chosen


def _written(chosen: Sequence[_Candidate]) -> str:
    """Sentences as one paragraph; a list or an example stands below the sentence that announces it."""
    text = ""
    for candidate in chosen:
        sentence = cite(replace(candidate.unit, text=candidate.unit.text.strip()), candidate.number)
        text += f"{' ' if text and not text.endswith(chr(10)) else ''}{sentence}"
    return text.strip()


def cite(unit: Unit, n: int) -> str:
    """`It takes 3 days [1].`: the number ahead of the stop at the end."""
    bare = unit.text.rstrip(".:;!… ")
    end = unit.text[len(bare) :].strip() or "."
    return f"{bare} [{n}]{end}\n{unit.below}\n\n" if unit.below else f"{bare} [{n}]{end}"
