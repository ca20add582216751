"""Numbers that are written as words, in Spanish and English: what a text says with `tres`, `treinta y uno` or `two hundred`."""

import re
from collections.abc import Sequence

_WORDS = """
0 cero zero, 1 un uno una one, 2 dos two, 3 tres three, 4 cuatro four, 5 cinco five, 6 seis six, 7 siete seven, 8 ocho eight,
9 nueve nine, 10 diez ten, 11 once eleven, 12 doce twelve docena dozen, 13 trece thirteen, 14 catorce fourteen, 15 quince fifteen,
16 dieciséis sixteen, 17 diecisiete seventeen, 18 dieciocho eighteen, 19 diecinueve nineteen, 20 veinte twenty,
21 veintiuno veintiún veintiuna, 22 veintidós, 23 veintitrés, 24 veinticuatro, 25 veinticinco, 26 veintiséis, 27 veintisiete,
28 veintiocho, 29 veintinueve, 30 treinta thirty, 40 cuarenta forty, 50 cincuenta fifty, 60 sesenta sixty, 70 setenta seventy,
80 ochenta eighty, 90 noventa ninety, 100 cien ciento, 200 doscientos doscientas, 300 trescientos trescientas,
400 cuatrocientos cuatrocientas, 500 quinientos quinientas, 600 seiscientos seiscientas, 700 setecientos setecientas,
800 ochocientos ochocientas, 900 novecientos novecientas,
1 primer primero primera first, 2 segundo segunda second, 3 tercer tercero tercera third
"""
_ADDED = {word: int(value) for entry in _WORDS.split(",") for value, *words in [entry.split()] for word in words}
_MULTIPLIED = {"hundred": 100, "mil": 1000, "thousand": 1000, "millón": 10**6, "millones": 10**6, "million": 10**6}
_WORD = re.compile(r"[^\W\d_]+")


def spelled_out(text: str) -> set[int]:
    """The numbers that words of a text are: each word's, and that of words that follow each other."""
    found: set[int] = set()
    run: list[str] = []
    end = 0
    for match in _WORD.finditer(text):
        word = match[0].casefold()
        together = not text[end : match.start()].strip(" -\n")
        if word in _ADDED or word in _MULTIPLIED:
            if not together:
                found |= _value(run)
                run = []
            run.append(word)
        elif not (run and together and word in ("y", "and")):
            found |= _value(run)
            run = []
        end = match.end()
    return found | _value(run)


def _value(words: Sequence[str]) -> set[int]:
    total = current = 0
    for word in words:
        if word in _ADDED:
            current += _ADDED[word]
        elif word == "hundred":
            current = max(current, 1) * 100
        else:
            total += max(current, 1) * _MULTIPLIED[word]
            current = 0
    return {total + current, *(_ADDED[word] for word in words if word in _ADDED)} if words else set()
