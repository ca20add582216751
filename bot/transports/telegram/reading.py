"""What Telegram sends, read by hand: only what is needed is looked at, so that nothing new or odd in the rest can hurt."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Raw = Mapping[str, Any]


class Undecodable(Exception):
    """An update that cannot be read: it is set aside, and the others go on. The text names the field, never its content."""


def mapping(raw: Raw, name: str) -> Raw:
    """A field that must be an object."""
    value = raw.get(name)
    if not isinstance(value, Mapping):
        raise Undecodable(f"{name} is no object")
    return value


def optional(raw: Raw, name: str) -> Raw:
    """A field that may be absent: an empty object then."""
    value = raw.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Undecodable(f"{name} is no object")
    return value


def number(raw: Raw, name: str) -> int:
    """A field that must be a whole number."""
    value = raw.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Undecodable(f"{name} is no whole number")
    return value


def words(raw: Raw, name: str) -> str:
    """A text that may be absent: empty then. What no database could keep is replaced."""
    value = raw.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Undecodable(f"{name} is no text")
    return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "")


def objects(raw: Raw, name: str) -> Sequence[Raw]:
    """A list of objects; whatever else is in it is left out."""
    value = raw.get(name)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def rich_words(raw: Raw) -> str:
    """The words of a rich message, a line for each block and for each row of a table."""
    return "\n".join(line for block in objects(raw, "blocks") for line in _lines(block) if line.strip())


def _lines(block: Raw) -> Iterator[str]:
    for name in ("summary", "text", "expression"):
        yield _inline(block.get(name))
    for name in ("blocks", "items"):
        for part in objects(block, name):
            yield from _lines(part)
    rows = block.get("cells")
    for row in rows if isinstance(rows, list) else ():
        yield " | ".join(map(_inline, row)) if isinstance(row, list) else ""
    for name in ("caption", "credit"):
        yield _inline(block.get(name))


def _inline(value: Any) -> str:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    if isinstance(value, list):
        return "".join(map(_inline, value))
    found = (
        next((name for name in ("text", "expression", "alternative_text") if name in value), None) if isinstance(value, Mapping) else None
    )
    return _inline(value[found]) if found else ""


def update_id(raw: Any) -> int | None:
    """The number of an update, however broken the rest of it is."""
    value = raw.get("update_id") if isinstance(raw, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def covered(text: str, entity: Raw) -> str:
    """The words under an entity, whose offset and length are in UTF-16 units."""
    start, length = entity.get("offset"), entity.get("length")
    if not isinstance(start, int) or not isinstance(length, int) or start < 0 or length < 0:
        return ""
    return text.encode("utf-16-le", "surrogatepass")[start * 2 : (start + length) * 2].decode("utf-16-le", "replace")
