"""Whether a question leans on what was said before it, in Spanish and English: "¿y en Canarias?", "how long does it take?". Pure."""

import re

LONGEST_LEANING = 12  # words: a longer question says itself what it is about
LONGEST_BARE = 3  # words: "¿cuánto cuesta?", "why not?" ask about what is at hand

_WORD = re.compile(r"[^\W_]+")
_OPENING = frozenset({"y", "e", "pero", "entonces", "también", "además", "and", "but", "so", "then", "also"})
_OPENINGS = (("what", "about"), ("how", "about"), ("qué", "hay", "de"), ("qué", "tal"), ("or",), ("o",))
_ASKING = frozenset(
    """
    qué que cuánto cuanto cuánta cuanta cuántos cuantos cuántas cuantas cuándo cuando cómo como dónde donde cuál cual cuáles cuales quién
    quien quiénes quienes por para why how when where which who whose what
    """.split()  # noqa: SIM905
)
_POINTING = frozenset(
    """
    eso esto aquello ese esa esos esas este esta estos estas aquel aquella ello ella ellos ellas él allí alli ahí ahi su sus mismo misma
    it its this that these those they them their theirs he him his she her hers one ones same
    """.split()  # noqa: SIM905
)
_CLITIC = re.compile(r"\w{3,}[aeiáéí]rl[oae]s?")  # devolverlo, pagarla
_NO_CLITIC = frozenset({"charla", "charlas"})


def is_follow_up(text: str) -> bool:
    """Whether the text can hardly be understood alone: it opens with "and", points at something, or asks bare of any subject."""
    words = _WORD.findall(text.casefold())
    if not words or len(words) > LONGEST_LEANING:
        return False
    if words[0] in _OPENING or any(tuple(words[: len(opening)]) == opening for opening in _OPENINGS):
        return len(words) > 1
    if len(words) <= LONGEST_BARE and words[0] in _ASKING:
        return True
    return any(word in _POINTING for word in words) or _asks_for_it(words)


def _asks_for_it(words: list[str]) -> bool:
    """`lo` or `la` that stands for a thing: before a verb at the end, or tied to an infinitive."""
    return (len(words) > 1 and words[-2] == "lo") or any(_CLITIC.fullmatch(word) and word not in _NO_CLITIC for word in words)
