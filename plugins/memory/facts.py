"""What a fact is: how its text is cleaned, when two say the same, and why one is left out. Pure."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from bot import Fact

from .secrets import secret_in

MAX_KEY_LENGTH = 64

_KEEPS_MEANING = frozenset("#%&@")  # punctuation to Unicode, but "C#" is not "C" and "50%" is not "50"
# letters and marks that show nothing: a fact made of them would look empty, or like another
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u3164\uffa0")
_BLANK = frozenset("\u2800")
_HIDDEN = _INVISIBLE | _BLANK
_SEQUENCES = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]")  # colours, and what moves a cursor


def one_line(text: str) -> str:
    """`text` on one line, in NFC, without repeated or surrounding space.

    Nor does it keep what a terminal obeys, or control, zero-width, bidirectional and unassigned characters.
    """
    if text.isprintable() and _HIDDEN.isdisjoint(text):  # nearly always: nothing in it is a control, a format or an odd space
        return unicodedata.normalize("NFC", " ".join(unicodedata.normalize("NFC", text).split()))
    shown = "".join(_shown(char) for char in unicodedata.normalize("NFC", _SEQUENCES.sub("", text)))
    return unicodedata.normalize("NFC", " ".join(shown.split()))


def _shown(char: str) -> str:
    if char.isspace() or char in _BLANK:
        return " "
    category = unicodedata.category(char)
    if category == "Cc":
        return " "
    return "" if category.startswith("C") or char in _INVISIBLE else char


def normalise(text: str) -> str:
    """The form in which two facts that say the same are equal: case, punctuation, surrounding and repeated space ignored; accents count."""
    folded = unicodedata.normalize("NFC", one_line(text).casefold())
    return " ".join("".join(" " if _is_punctuation(char) else char for char in folded).split())


@lru_cache(4096)
def _is_punctuation(char: str) -> bool:
    return char not in _KEEPS_MEANING and unicodedata.category(char).startswith("P")


def identity(text: str) -> str:
    """The key of a free-text fact: its normal form, or the text itself where nothing of that is left ("?!")."""
    return normalise(text) or one_line(text)


def why_not(text: str, *, max_length: int) -> str | None:
    """The code for which a text is no fact to keep: EMPTY, TOO_LONG (`max_length` in characters) or SECRET_…; None where it is one."""
    line = one_line(text)
    if not line:
        return "EMPTY"
    if kind := secret_in(text) or (secret_in(line) if line != text else None):  # what is taken out may have parted a word
        return f"SECRET_{kind}"
    return "TOO_LONG" if len(line) > max_length else None


def why_not_keyed(key: str, value: str, *, max_length: int) -> str | None:
    """The same for a keyed fact, whose text is `key: value`; EMPTY where either is."""
    if not normalise(key) or not one_line(value):
        return "EMPTY"
    if len(normalise(key)) > MAX_KEY_LENGTH:
        return "TOO_LONG"
    return why_not(f"{normalise(key)}: {one_line(value)}", max_length=max_length)


def same(facts: Sequence[Fact], text: str) -> list[Fact]:
    """Those of `facts` that say the same as `text`; a keyed one also by its `key: value`."""
    wanted = identity(text)
    return [fact for fact in facts if identity(fact.text) == wanted]
