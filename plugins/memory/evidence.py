"""Whether a person's own words bear out what the model wants to write or to forget. Pure.

A document or a quoted message can talk a model into calling a tool; it cannot put words into the person's mouth.
"""

import re
from collections.abc import Iterable

from bot import said

_FUNCTION_WORDS = (
    "de la el los las un una unos unas y o e a al del en con por para que se su sus mi mis tu tus es son no si lo le les me te"
    " the a an and or of to in on at for with by that is are was be it its my your his her their i you he she they we not yes as"
)
_SMALL = frozenset(_FUNCTION_WORDS.split())  # what stands in any sentence bears out nothing
_YES_OR_NO = frozenset({"si", "no", "yes", "true", "false", "verdadero", "falso"})
_FORGETTING_WORDS = (
    "olvida olvidalo olvidala olvidalos olvidalas olvidate olvides olvide olviden olvidar olvidarlo olvidarla"
    " borra borralo borrala borralos borralas borres borre borrar borrarlo borrarla elimina eliminalo eliminala elimines elimine eliminar"
    " quita quitalo quitala quites quitar suprime suprimelo suprimela suprimir forget delete remove erase"
)
_DENYING_WORDS = (
    "no ya nunca jamas tampoco not never wrong false falso falsa mentira error mistake equivocado equivocada dejo deje cambio cambie mude"
    " changed moved stopped anymore don doesn didn isn wasn"
)
_FORGETTING, _DENYING = frozenset(_FORGETTING_WORDS.split()), frozenset(_DENYING_WORDS.split())
_FORGETTING_PHRASES = (
    *("ya no", "no longer", "not anymore", "nunca mas", "never again", "not true", "no es verdad", "no es cierto"),
    *("don t remember", "no recuerdes", "no lo recuerdes", "no la recuerdes"),
)
_FORGOT = re.compile(r"\b(?:me|nos) olvide?\w*")  # "me olvidé el paraguas" asks for nothing
ENOUGH = 0.5  # of the words of a value
ECHO = 0.75


def bears_out(words: str, key: str, value: str) -> bool:
    """Whether a person who said `words` said this: the value (or the key of a yes or no) is in them, accents and endings aside."""
    claim = key if said(value) in _YES_OR_NO else value
    return share(claim, words) >= ENOUGH


def asks_to_forget(words: str, key: str, value: str) -> bool:
    """Whether `words` ask to forget something, or deny the key or the value that it has; to speak of it is not enough."""
    folded = f" {_FORGOT.sub(' ', said(words))} "
    tokens = set(folded.split())
    if tokens & _FORGETTING or any(f" {phrase} " in folded for phrase in _FORGETTING_PHRASES):
        return True
    return bool(tokens & _DENYING) and (share(key, words) > 0 or (bool(value) and share(value, words) > 0))


def is_echo(fact: str, words: str, held: Iterable[str]) -> bool:
    """Whether a fact that a model "found" is one that it was shown and not what the person said."""
    return share(fact, words) < ENOUGH and any(_says_no_more(fact, other, words) for other in held)


def _says_no_more(fact: str, other: str, words: str) -> bool:
    """Whether a fact is another one in all but words that the person did not say: "El usuario vive en Bogotá", of "Vive en Bogotá"."""
    if share(fact, other) >= ECHO:
        return True
    known, own = set(said(other).split()), set(said(words).split())
    more = [token for token in said(fact).split() if token not in _SMALL and not any(_akin(token, one) for one in known)]
    return share(other, fact) >= ECHO and not any(_akin(token, one) for token in more for one in own)


def share(claim: str, words: str) -> float:
    """How much of a claim is in the words: 1 for all of it (or where it stands there as it is), 0 for nothing."""
    folded, whole = said(claim), said(words)
    if not folded:  # a symbol, as "♥"
        return float(bool(claim.strip()) and claim.strip() in words)
    if f" {folded} " in f" {whole} ":
        return 1.0
    tokens = [token for token in folded.split() if token not in _SMALL] or folded.split()
    there = set(whole.split())
    return sum(any(_akin(token, other) for other in there) for token in tokens) / len(tokens)


def _akin(one: str, other: str) -> bool:
    """The same word, or forms of one: four letters in common at the start, and most of the shorter of them. Unspaced scripts: inside it."""
    if one == other:
        return True
    if not one.isascii() and len(one) > 1 and one in other:
        return True
    least = max(4, -(-min(len(one), len(other)) * 2 // 3))
    return one[:least] == other[:least] and min(len(one), len(other)) >= least and not one.isdigit()
