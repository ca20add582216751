"""The shared SQL as PostgreSQL reads it: parameters, and the types of columns."""

import re
from functools import lru_cache

# What may hold a `:` that is no parameter: strings, names in quotes, comments, bodies in dollars, casts.
_TOKEN = re.compile(
    r"""[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$ | ::"""
    r""" | :(?P<name>[A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL,
)
_TABLE = re.compile(r"\s*(?:CREATE|ALTER)\s+TABLE\b", re.IGNORECASE)
_TYPE = re.compile(  # the word after the name of a column; a column or a table may be called `text` itself
    r"""'(?:[^']|'')*' | (?P<column>\b(?!(?:AS|ADD|COLUMN|TABLE|EXISTS|DROP|RENAME|TO)\b)\w+\s+ | "(?:[^"]|"")*"\s+)"""
    r"""(?P<type>TEXT|BLOB)\b(?!\s+COLLATE)""",
    re.VERBOSE | re.IGNORECASE,
)
_TYPES = {"TEXT": 'TEXT COLLATE "C"', "BLOB": "BYTEA"}


@lru_cache(maxsize=1024)
def numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """A statement with `$1`, `$2` … for its named parameters, and their names in that order; one name is one parameter."""
    names: dict[str, int] = {}

    def number(token: re.Match[str]) -> str:
        name = token["name"]
        return token[0] if name is None else f"${names.setdefault(name, len(names) + 1)}"

    return _TOKEN.sub(number, sql), tuple(names)


def table(sql: str) -> str:
    """A statement that makes or changes a table, with the types of PostgreSQL; any other is as it was.

    Text is ordered and compared by its characters, as in SQLite and in Python: the order of a server's language is another one, pages that
    are read from one id to the next would lose rows in it, and it changes with the system's libraries, under the indexes.
    """
    if _TABLE.match(sql) is None:
        return sql
    return _TYPE.sub(lambda token: token["column"] + _TYPES[token["type"].upper()] if token["type"] else token[0], sql)
