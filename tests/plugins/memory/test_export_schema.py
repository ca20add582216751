"""What is exported is what docs/export.schema.json and docs/export.md say, and they know every key that there is."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot import ExtractOptions, MemoryOptions, Prompt, Recall
from bot.testing import MockAIProvider, create_test_bot

ANA = "test:ana"
DOCS = Path(__file__).resolve().parents[3] / "docs"
SCHEMA: dict[str, Any] = json.loads((DOCS / "export.schema.json").read_text(encoding="utf-8"))
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {
    "$schema",
    "$defs",
    "title",
    "description",
    "$ref",
    "const",
    "enum",
    "anyOf",
    "type",
    "minimum",
    "minLength",
    "pattern",
    "items",
} | {
    "properties",
    "required",
    "additionalProperties",
}


def problems(value: Any, schema: dict[str, Any], where: str = "$") -> Iterator[str]:
    """Where a value is not as a schema says: as much of JSON Schema as this one uses."""
    assert set(schema) <= KNOWN, f"{where}: this test does not know {set(schema) - KNOWN}"
    if "$ref" in schema:
        yield from problems(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")], where)
    if "anyOf" in schema and all(list(problems(value, one, where)) for one in schema["anyOf"]):
        yield f"{where}: none of anyOf"
    allowed = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
    if allowed is not None and not any(type(value) is type(one) and value == one for one in allowed):
        yield f"{where}: {value!r} is not allowed"
    names = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    if names and not any(_is(value, name) for name in names):
        yield f"{where}: no {' or '.join(names)}"
        return
    if isinstance(value, str) and (len(value) < schema.get("minLength", 0) or not re.search(schema.get("pattern", ""), value)):
        yield f"{where}: {value!r} has another form"
    if isinstance(value, int) and value < schema.get("minimum", value):
        yield f"{where}: too small"
    if isinstance(value, list):
        for n, item in enumerate(value):
            yield from problems(item, schema.get("items", {}), f"{where}[{n}]")
    if isinstance(value, dict):
        yield from (f"{where}: no {name}" for name in schema.get("required", []) if name not in value)
        for name, held in value.items():
            other = schema.get("additionalProperties", True)
            described = schema.get("properties", {}).get(name, {} if other is True else other)
            yield from [f"{where}: {name} is not described"] if described is False else problems(held, described, f"{where}.{name}")


def _is(value: Any, name: str) -> bool:
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


@pytest.fixture
async def exported() -> dict[str, Any]:
    """A person of whom there is something of every kind, also what waits and what is under way."""

    def answer(prompt: Prompt) -> str:
        return json.dumps({"facts": ["Vive en Bogotá"]}) if prompt.schema else "Hola."

    options = MemoryOptions(auto_extract=ExtractOptions(debounce_ms=600_000), resolve=True)
    async with create_test_bot(provider=MockAIProvider(reply=answer), memory=options) as bot:
        recall = bot.parts.find(Recall)
        await recall.remember(ANA, "Tiene un perro", ttl="90d")
        await recall.remember_keyed(ANA, "city", "Bogotá")
        await recall.remember_keyed(ANA, "city", "Medellín")
        await recall.extract(ANA, "Vivo en Bogotá", "")
        await bot.say("/language es", user=ANA)
        await bot.say("Vivo en Bogotá", user=ANA)
        await bot.library.add_bytes("receta.txt", "Lleva azafrán.".encode(), owner=ANA, owner_is_admin=False)
        return json.loads(json.dumps(await bot.export(ANA)))  # type: ignore[no-any-return]


async def test_an_export_is_as_the_schema_says(exported: dict[str, Any]) -> None:
    """Nothing is missing, of another form, or not described."""
    filled = {name for name, held in exported.items() if held}

    assert list(problems(exported, SCHEMA)) == []
    assert filled >= {"profile", "facts", "replaced_facts", "memory", "messages", "documents", "queued"}
    assert exported["memory"]["waiting"]
    assert exported["documents"][0]["text"] == "Lleva azafrán."


async def test_every_key_is_described(exported: dict[str, Any]) -> None:
    """In the schema and, at its top, in the page."""
    page = (DOCS / "export.md").read_text(encoding="utf-8")

    assert set(exported) == set(SCHEMA["properties"])
    assert [name for name in exported if f"`{name}`" not in page] == []
    assert [name for kind in ("fact", "change") for name in SCHEMA["$defs"][kind]["properties"] if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", 2),
        ("version", True),
        ("exported_at", "now"),
        ("facts.0.kind", "image"),
        ("facts.0.pinned", True),
        ("facts.0.id", "x"),
        ("facts.0.colour", "red"),
        ("facts.0.expires_at", -1),
        ("replaced_facts.0.batch", None),
        ("messages.0.role", "system"),
        ("memory.paused", 0),
        ("profile.bot", "x"),
        ("facts", {}),
    ],
)
async def test_another_form_is_noticed(exported: dict[str, Any], path: str, value: object) -> None:
    """What the schema does not allow is found: the tests above can fail."""
    broken = copy.deepcopy(exported)
    *way, last = path.split(".")
    at: Any = broken
    for step in way:
        at = at[int(step)] if step.isdigit() else at[step]
    at[last] = value

    assert list(problems(broken, SCHEMA)) != []


async def test_what_is_taken_back_is_exported_the_same(exported: dict[str, Any]) -> None:
    """Byte for byte in another bot: facts, what can be undone, profile, messages and choices."""
    exported["memory"] |= {"paused": False, "quiet": True}
    async with create_test_bot(memory=True) as other:
        await other.restore(exported)
        again = await other.export(ANA)

    for name in ("facts", "replaced_facts", "profile", "messages"):
        assert json.dumps(again[name], ensure_ascii=False) == json.dumps(exported[name], ensure_ascii=False)
    assert again["memory"] == {"paused": False, "quiet": True, "waiting": []}
