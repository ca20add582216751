"""JSON and JSON Lines to sections: one for each element of an array, its fields written out as `name: value`."""

import json
from collections.abc import Iterator
from typing import Any

from plugins.rag.loaders import Loaded, Section
from plugins.rag.text import clean

_TITLES = ("title", "titulo", "título", "question", "pregunta", "name", "nombre", "heading", "asunto", "subject")
_TEXTS = ("text", "texto", "content", "contenido", "body", "answer", "respuesta")
_LONGEST_TITLE = 120


def load(text: str, *, lines: bool = False) -> Loaded:
    """The sections of a JSON text, or of JSON Lines. A line that is no JSON is named; a text that is none is `broken`."""
    return _load_lines(text) if lines else _load_whole(text)


def _load_whole(text: str) -> Loaded:
    try:
        value = _parse(text)
    except (ValueError, RecursionError) as error:
        return Loaded(status="broken", detail=_where(error))
    return _outcome(value if isinstance(value, list) else [value], numbered=isinstance(value, list))


def _load_lines(text: str) -> Loaded:
    values: list[Any] = []
    bad: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                values.append(_parse(line))
            except (ValueError, RecursionError):
                bad.append(str(number))
    if bad and not values:
        return Loaded(status="broken", detail=f"l. {bad[0]}")
    loaded = _outcome(values, numbered=True)
    return Loaded(loaded.sections, "partly", f"l. {', '.join(bad[:20])}") if bad and loaded.sections else loaded


def _parse(text: str) -> Any:
    """Numbers stay as they are written: no digit is lost, and none is too long."""
    return json.loads(text, parse_int=str, parse_float=str, parse_constant=str)


def _where(error: Exception) -> str:
    """In no language, as any detail: "l." is a line in both."""
    return f"l. {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""


def _outcome(values: list[Any], *, numbered: bool) -> Loaded:
    sections = [s for n, value in enumerate(values, start=1) if (s := _section(value, f"#{n}" if numbered else "")) is not None]
    return Loaded(tuple(sections)) if sections else Loaded(status="empty")


def _section(value: Any, number: str) -> Section | None:
    if not isinstance(value, dict):
        text = "\n".join(_written(value))
        return Section(text, (number,) if number else ()) if text.strip() else None
    fields = {clean(str(name)): item for name, item in value.items()}
    title = next((name for key in _TITLES for name in fields if name.casefold() == key and isinstance(fields[name], str)), None)
    shown = " ".join(clean(fields[title]).split())[:_LONGEST_TITLE] if title else ""
    path = (shown or number,) if shown or number else ()
    text = "\n".join(_written(fields))
    if not text.strip():
        return None
    plain = {name: item for name, item in fields.items() if isinstance(item, str) and len(item) <= 200 and name.casefold() not in _TEXTS}
    return Section(text, path, plain)


def _written(value: Any) -> Iterator[str]:
    """The leaves in order, each with the names that lead to it. Walked with a stack, so that no depth is too deep."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        name, item = stack.pop()
        if isinstance(item, dict):
            stack.extend((f"{name}.{clean(str(key))}" if name else clean(str(key)), inner) for key, inner in reversed(item.items()))
        elif isinstance(item, list):
            stack.extend((name, inner) for inner in reversed(item))
        elif item is not None and (text := _leaf(item)):
            yield text if not name or name.casefold() in _TEXTS else f"{name}: {text}"


def _leaf(item: Any) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    return clean(str(item)).strip()
