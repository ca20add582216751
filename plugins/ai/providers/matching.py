"""Which words of a question a text holds, in whatever form: folded, inflected, or by another word for the same."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache

from plugins.ai.providers.stopwords import STOP

# What people say in one word and documents in another; beginnings, so that every form of the word counts.
_SAME = (("borr", "elimin", "suprim"), ("eras", "delet", "remov"), ("cambi", "modific"), ("chang", "modif"))
_WORD = re.compile(r"[^\W_]+(?:_[^\W_]+)*")


def plain(text: str) -> str:
    """Case, accents and punctuation aside."""
    return " ".join(words(text))


class Terms:
    """The words of a question, and which of them a text of a document holds, in whatever form; each word and text is looked at once.

    `asked` are all of its words, `all` those that say something.
    """

    def __init__(self, question: str) -> None:
        self.asked = dict.fromkeys(words(question))
        self.all = [word for word in self.asked if word not in STOP and (len(word) > 1 or word.isdigit())]
        meanings = {meaning for word in self.all if (meaning := _meaning(word)) is not None}
        self._beginnings: set[str | int] = {word[:2] for word in self.all} | meanings
        self._by_word: dict[str, frozenset[str]] = {}
        self._by_text: dict[str, frozenset[str]] = {}

    def held(self, text: str) -> frozenset[str]:
        """Those of the words that a text holds."""
        found = self._by_text.get(text)
        if found is None:
            there = _by_beginning(text)
            near = (word for beginning in there.keys() & self._beginnings for word in there[beginning])
            found = self._by_text[text] = frozenset[str]().union(*map(self._of_word, near))
        return found

    def _of_word(self, word: str) -> frozenset[str]:
        found = self._by_word.get(word)
        if found is None:
            found = self._by_word[word] = frozenset(term for term in self.all if term == word or _kin(term, word))
        return found


@lru_cache(maxsize=2048)
def _by_beginning(text: str) -> Mapping[str | int, Sequence[str]]:
    """The words of a document's text by their first two letters, and by what they mean: no other can be kin to a word of a question."""
    found: dict[str | int, list[str]] = defaultdict(list)
    for word in dict.fromkeys(words_of_document(text)):
        found[word[:2]].append(word)
        if (meaning := _meaning(word)) is not None:
            found[meaning].append(word)
    return dict(found)


def _kin(term: str, word: str) -> bool:
    """Whether two words are forms of one (`borro` and `borrar`, `devuelvo` and `devolver`), or say the same (`erase` and `delete`)."""
    if (same_as := _meaning(term)) is not None and same_as == _meaning(word):
        return True
    if term[:2] != word[:2]:
        return False
    term, word = (each.replace("ue", "o").replace("ie", "e") for each in (term, word))
    shorter = min(len(term), len(word))
    same = next((i for i in range(shorter) if term[i] != word[i]), shorter)
    return same >= 4 and same >= 0.7 * shorter and max(len(term), len(word)) - same <= 5


@lru_cache(maxsize=4096)
def _meaning(word: str) -> int | None:
    """The group of beginnings that a word belongs to, if any."""
    return next((n for n, beginnings in enumerate(_SAME) if word.startswith(beginnings)), None)


def words(text: str) -> list[str]:
    """The words of a text, case and accents aside."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return _WORD.findall("".join(c for c in decomposed if not unicodedata.combining(c)))


@lru_cache(maxsize=2048)
def words_of_document(text: str) -> tuple[str, ...]:
    """The words of a sentence or heading of a document. They are kept: not for what a person says, which may have to be forgotten."""
    return tuple(words(text))
