"""What was exported can be taken back, without loss, and with the same rules as every other way in."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from bot import ConfigurationError, MemoryOptions, MemoryState, Recall
from bot.testing import MockAIProvider, TestBot, create_test_bot

pytestmark = pytest.mark.usefixtures("each_engine")

ANA = "test:ana"


async def filled(bot: TestBot) -> dict[str, Any]:
    """A person with something of every kind; their export."""
    recall = bot.parts.find(Recall)
    await recall.remember(ANA, ["Vive en Bogotá", "?!"], ttl="90d")
    await recall.remember(ANA, "Tiene un perro", source="auto")
    await recall.remember_keyed(ANA, "city", "Bogotá")
    await recall.remember_keyed(ANA, "city", "Medellín")
    await recall.pin(ANA, (await recall.facts(ANA))[0].id, True)
    await bot.say("/language en", user=ANA)
    await bot.say("Hello there", user=ANA)
    await recall.choose(ANA, quiet=True)
    return await bot.export(ANA)


def lasting(exported: dict[str, Any]) -> dict[str, Any]:
    """What is to come back: all but the time of the export, and what only waits in the process's queues."""
    return {name: held for name, held in json.loads(json.dumps(exported)).items() if name not in ("exported_at", "queued")}


async def test_nothing_is_lost_on_the_way() -> None:
    """Exported, erased, taken back through JSON: the export is the same, and so is what can be undone."""
    async with create_test_bot(provider=MockAIProvider(reply="Hi."), memory=True) as bot:
        before = await filled(bot)
        await bot.delete_subject(ANA)
        counts = await bot.restore(json.loads(json.dumps(before)))
        recall = bot.parts.find(Recall)

        assert lasting(await bot.export(ANA)) == lasting(before)
        assert (counts["facts"], counts["messages"], counts["profile"]) == (4, 2, 1)
        assert await recall.state(ANA) == MemoryState(quiet=True)
        assert await recall.undo(ANA) == (["city: Medellín"], ["city: Bogotá"])


async def test_taken_back_twice_it_is_there_once() -> None:
    """What is held already stays as it is."""
    async with create_test_bot(provider=MockAIProvider(reply="Hi."), memory=True) as bot:
        before = await filled(bot)
        counts = await bot.restore(before)

        assert sum(counts.values()) == 0
        assert lasting(await bot.export(ANA)) == lasting(before)


async def test_another_bot_takes_it_back(tmp_path: Path) -> None:
    """An export is no prisoner of the database that it came from."""
    async with create_test_bot(provider=MockAIProvider(reply="Hi."), memory=True) as one:
        before = await filled(one)
    async with create_test_bot(provider=MockAIProvider(reply="Hi."), memory=True, database_url=f"sqlite:///{tmp_path / 'b.db'}") as other:
        await other.restore(before)

        assert set(await other.ai.memory(ANA)) == {"?!", "Tiene un perro", "Vive en Bogotá", "city: Medellín"}


async def test_a_secret_in_a_file_is_refused() -> None:
    """The rules hold here too, and what kind was refused is told; the rest of the file is taken."""
    async with create_test_bot(provider=MockAIProvider(reply="Hi."), memory=True) as bot:
        exported = await filled(bot)
        await bot.delete_subject(ANA)
        exported["facts"][0]["value"] = "Su contraseña es hunter2"
        exported["replaced_facts"][-1]["value"] = "4111 1111 1111 1111"
        counts = await bot.restore(exported)

        assert {name: n for name, n in counts.items() if "refused" in name} == {"refused: SECRET_PASSWORD": 1, "refused: SECRET_CARD": 1}
        assert counts["facts"] == 3
        assert not {"hunter2", "4111"} & set(json.dumps(await bot.export(ANA)).replace('"', " ").split())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("format", "other"),
        ("version", 2),
        ("user_id", ""),
        ("user_id", 7),
        ("facts", "x"),
        ("facts", [{}]),
        ("facts", [{"kind": "text"}]),
        ("facts.0.kind", "image"),
        ("facts.0.source", "rumour"),
        ("facts.0.id", "'; DROP TABLE facts; --"),
        ("facts.0.created_at", "yesterday"),
        ("facts.0.created_at", float("inf")),
        ("facts.0.created_at", 1.5),
        ("facts.0.created_at", -1),
        ("facts.0.updated_at", 1 << 70),
        ("facts.0.expires_at", True),
        ("facts.0.pinned", 2),
        ("facts.0.value", None),
        ("facts.0.namespace", 7),
        ("messages.0.at", float("inf")),
        ("messages.0.at", 10**30),
        ("messages.0.at", "1"),
        ("messages.0.at", True),
        ("messages.0.chat", None),
        ("messages.0.role", "system"),
        ("messages", [1]),
        ("replaced_facts.0.kind", "image"),
        ("replaced_facts.0.batch", 1),
        ("memory", []),
        ("profile", "x"),
        ("profile", [1]),
        ("profile.language", 5),
        ("profile.bot", "x"),
        ("user_id", "test:\ud800"),
        ("user_id", "test:\0"),
    ],
)
async def test_another_form_is_refused_whole(path: str, value: object) -> None:
    """One clear error, and nothing of the file is written."""
    async with create_test_bot(provider=MockAIProvider(reply="Hi."), memory=MemoryOptions()) as bot:
        exported = copy.deepcopy(await filled(bot))
        await bot.delete_subject(ANA)
        at: Any = exported
        *way, last = path.split(".")
        for step in way:
            at = at[int(step)] if step.isdigit() else at[step]
        at[last] = value

        with pytest.raises(ConfigurationError):
            await bot.restore(exported)
        assert await bot.ai.memory(ANA) == []
        assert (await bot.export(ANA))["messages"] == []


async def test_the_cap_holds_here_too() -> None:
    """What is held stays; of the others the pinned, the given and the youngest come, and the rest is told."""
    async with create_test_bot(memory=MemoryOptions(max_facts=50)) as large:
        await large.ai.remember(ANA, [f"Dato encontrado número {n}" for n in range(20)], source="auto")
        await large.ai.remember(ANA, [f"Dato dado número {n}" for n in range(20)])
        exported = await large.export(ANA)
        await large.delete_subject(ANA)
    async with create_test_bot(memory=MemoryOptions(max_facts=10)) as small:
        await small.ai.remember(ANA, ["Vive en Bogotá", "dato dado número 19"])
        counts = await small.restore(exported)

        assert (counts["facts"], counts["refused: FULL"]) == (8, 31)
        held = {f"Dato dado número {n}" for n in range(11, 19)} | {"Vive en Bogotá", "dato dado número 19"}
        assert set(await small.ai.memory(ANA)) == held


async def test_a_text_that_hides_something_is_cleaned() -> None:
    """A file can hold what no message could: it comes on one line, without what does not show, and by the rules for its length."""
    async with create_test_bot(memory=True) as bot:
        await bot.ai.remember(ANA, ["Vive en Bogotá", "Tiene un perro"])
        exported = await bot.export(ANA)
        await bot.delete_subject(ANA)
        exported["facts"][0]["value"] = "Vive\nen\u202e Bogotá\u0000\ud800"
        exported["facts"][1]["value"] = "x" * 301
        counts = await bot.restore(exported)

        assert await bot.ai.memory(ANA) == ["Vive en Bogotá"]
        assert counts["refused: TOO_LONG"] == 1


@pytest.mark.parametrize("data", [None, [], "x", 7, {}])
async def test_what_is_no_export_is_refused(data: object) -> None:
    """Whatever the JSON is."""
    async with create_test_bot(memory=True) as bot:
        with pytest.raises(ConfigurationError, match="no export"):
            await bot.restore(data)
