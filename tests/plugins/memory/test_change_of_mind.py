"""A fact that what was said contradicts leaves, and can be brought back; what a person chose holds."""

import json

import pytest

from bot import Database, ExtractOptions, MemoryOptions, MemoryState, Recall
from bot.testing import create_test_bot
from plugins.memory import OwnMemory, create_memory
from plugins.memory.extraction import Found, Malformed, parse_replacing
from tests.plugins.memory.conftest import Clock, Script
from tests.plugins.memory.test_service import ANA, LEO, rows, texts


def answer(*facts: str, replacing: dict[str, str] | None = None) -> str:
    pairs = [{"id": id, "fact": fact} for id, fact in (replacing or {}).items()]
    return json.dumps({"facts": list(facts), "replacements": pairs})


def resolving(database: Database, clock: Clock, script: Script) -> OwnMemory:
    options = MemoryOptions(auto_extract=ExtractOptions(debounce_ms=60_000), resolve=True)
    return create_memory(options, provider=script, database=database, clock=clock)


# ------------------------------------------------------------------------------------------ the second strict form


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (answer("a"), Found(("a",))),
        (answer("a", replacing={"m1": "b"}), Found(("a",), (("m1", "b"),))),
        (answer(replacing={"m2": "b", "m1": "c"}), Found((), (("m1", "c"),))),  # m2 was not shown
        ('{"facts": ["a"]}', Found(("a",))),
    ],
)
def test_both_strict_forms_are_taken(said: str, found: Found) -> None:
    """With replacements or the plain form; an id that was not shown is ignored."""
    assert parse_replacing(said, {"m1"}) == found


@pytest.mark.parametrize(
    "said",
    [
        '{"facts": ["a"], "replacements": {}}',
        '{"facts": ["a"], "replacements": ["m1"]}',
        '{"facts": ["a"], "replacements": [{"id": "m1"}]}',
        '{"facts": ["a"], "replacements": [{"id": "m1", "fact": "b", "why": "c"}]}',
        '{"facts": ["a"], "replacements": [{"id": 1, "fact": "b"}]}',
        '{"facts": ["a"], "replacements": [{"id": "m1", "fact": null}]}',
        '{"facts": [1], "replacements": []}',
        '{"replacements": []}',
        '{"facts": [], "replacements": [], "delete": ["m1"]}',
    ],
)
def test_any_other_form_is_dropped_whole(said: str) -> None:
    """Whatever else it says about ids, nothing of it is taken."""
    assert isinstance(parse_replacing(said, {"m1"}), Malformed)


# ------------------------------------------------------------------------------------------ replacing


async def test_the_contradicted_fact_leaves(database: Database, clock: Clock) -> None:
    """After "me mudé a Medellín", Bogotá is gone and what can still be true stays."""
    script = Script(answer(replacing={"m1": "Vive en Medellín"}))
    memory = resolving(database, clock, script)
    await memory.remember(ANA, ["Vive en Bogotá", "Tiene un perro"])
    added = await memory.extract(ANA, "Me mudé a Medellín", "")

    assert added == ["Vive en Medellín"]
    assert await texts(memory) == ["Tiene un perro", "Vive en Medellín"]
    assert '"id": "m1", "fact": "Vive en Bogotá"' in script.calls[0].messages[0]["content"]
    assert [one.text for one in await memory.replaced(ANA)] == ["Vive en Bogotá"]


async def test_look_alikes_both_stay(database: Database, clock: Clock) -> None:
    """A new fact that replaces nothing is beside the one that looks like it."""
    memory = resolving(database, clock, Script(answer("Tiene dos gatos")))
    await memory.remember(ANA, "Tiene un perro")
    await memory.extract(ANA, "Tengo dos gatos", "")

    assert await texts(memory) == ["Tiene un perro", "Tiene dos gatos"]


async def test_nobody_elses_fact_can_be_named(database: Database, clock: Clock) -> None:
    """An id is a number in one call for one person: a real id of another person's fact does nothing."""
    memory = resolving(database, clock, Script())
    await memory.remember(LEO, "Vive en Lima")
    [leos] = await memory.facts(LEO)
    other = resolving(database, clock, Script(answer("x", replacing={leos.id: "Vive en Quito"})))
    await other.extract(ANA, "x", "")

    assert await texts(memory, LEO) == ["Vive en Lima"]
    assert await texts(memory) == ["x"]


async def test_a_replacement_that_is_refused_replaces_nothing(database: Database, clock: Clock) -> None:
    """A secret, or a text too long, does not take anything's place."""
    memory = resolving(database, clock, Script(answer(replacing={"m1": "Su PIN es 1234", "m2": "x" * 400})))
    await memory.remember(ANA, ["Vive en Bogotá", "Tiene un perro"])
    await memory.extract(ANA, "Mi PIN es 1234", "")

    assert await texts(memory) == ["Vive en Bogotá", "Tiene un perro"]


async def test_the_same_fact_said_anew_replaces_nothing(database: Database, clock: Clock) -> None:
    """A "replacement" that says what is held already changes nothing."""
    memory = resolving(database, clock, Script(answer(replacing={"m1": "vive en bogotá."})))
    await memory.remember(ANA, "Vive en Bogotá")
    await memory.extract(ANA, "Vivo en Bogotá", "")

    assert await texts(memory) == ["Vive en Bogotá"]
    assert await memory.replaced(ANA) == []


async def test_a_replacement_that_is_held_already_merges(database: Database, clock: Clock) -> None:
    """Where the new fact is there, the old one leaves all the same; undone, both are there: the new one was not what changed."""
    memory = resolving(database, clock, Script(answer(replacing={"m1": "Vive en Medellín"})))
    await memory.remember(ANA, ["Vive en Bogotá", "Vive en Medellín"])
    await memory.extract(ANA, "Ya solo vivo en Medellín", "")

    assert await texts(memory) == ["Vive en Medellín"]
    assert await memory.undo(ANA) == ([], ["Vive en Bogotá"])
    assert sorted(await texts(memory)) == ["Vive en Bogotá", "Vive en Medellín"]


async def test_a_fact_shown_to_the_model_does_not_come_back_as_new(database: Database, clock: Clock) -> None:
    """A hundred turns in which the model repeats what it was shown, in other words, add nothing."""
    memory = resolving(database, clock, Script(answer("Vive actualmente en Bogotá", "Vive en la ciudad de Bogotá")))
    await memory.remember(ANA, "Vive en la ciudad de Bogotá actualmente")
    for turn in range(100):
        await memory.extract(ANA, f"¿Qué hora es? {turn}", "Vives en Bogotá, son las tres")

    assert await texts(memory) == ["Vive en la ciudad de Bogotá actualmente"]


# ------------------------------------------------------------------------------------------ undo


async def test_a_replaced_fact_can_be_brought_back(database: Database, clock: Clock) -> None:
    """With what it was: its source, its pin and its life."""
    memory = resolving(database, clock, Script(answer(replacing={"m1": "Vive en Medellín"})))
    await memory.remember(ANA, "Vive en Bogotá", ttl="90d")
    [before] = await memory.facts(ANA)
    await memory.pin(ANA, before.id, True)
    await memory.extract(ANA, "Me mudé a Medellín", "")
    undone = await memory.undo(ANA)

    [after] = await memory.facts(ANA)
    assert undone == (["Vive en Medellín"], ["Vive en Bogotá"])
    assert (after.text, after.source, after.pinned, after.expires_at) == ("Vive en Bogotá", "manual", True, before.expires_at)
    assert await memory.replaced(ANA) == []


async def test_what_was_learnt_can_be_taken_back(database: Database, clock: Clock) -> None:
    """Undo goes back change by change, and then there is nothing left to undo."""
    memory = resolving(database, clock, Script(answer("uno", "dos"), answer("tres")))
    await memory.extract(ANA, "uno y dos", "")
    clock.forward(ms=1)
    await memory.extract(ANA, "tres", "")

    assert await memory.undo(ANA) == (["tres"], [])
    assert await memory.undo(ANA) == (["uno", "dos"], [])
    assert await memory.undo(ANA) == ([], [])


async def test_a_keyed_value_can_be_brought_back(memory: OwnMemory) -> None:
    """A key that got another value gets its old one back."""
    await memory.remember_keyed(ANA, "city", "Bogotá")
    await memory.remember_keyed(ANA, "city", "Medellín")

    assert [one.text for one in await memory.replaced(ANA)] == ["city: Bogotá"]
    assert await memory.undo(ANA) == (["city: Medellín"], ["city: Bogotá"])
    assert await texts(memory) == ["city: Bogotá"]


async def test_what_the_person_changed_since_is_not_undone(database: Database, clock: Clock) -> None:
    """An edit, or the same said by hand, makes a fact the person's own: undo brings back what it replaced, and leaves it."""
    memory = resolving(database, clock, Script(answer(replacing={"m1": "Vive en Medellín"})))
    await memory.remember(ANA, "Vive en Bogotá")
    await memory.extract(ANA, "Me mudé a Medellín", "")
    await memory.edit(ANA, (await memory.facts(ANA))[0].id, "Vive en Medellín, en El Poblado")
    undone = await memory.undo(ANA)
    await memory.remember_keyed(LEO, "city", "Lima")
    await memory.remember_keyed(LEO, "city", "Cusco", source="auto")
    await memory.edit(LEO, (await memory.facts(LEO))[0].id, "Arequipa")

    assert undone == ([], ["Vive en Bogotá"])
    assert sorted(await texts(memory)) == ["Vive en Bogotá", "Vive en Medellín, en El Poblado"]
    assert await memory.undo(LEO) == ([], [])
    assert [fact.text for fact in await memory.facts(LEO)] == ["city: Arequipa"]


async def test_what_leaves_for_a_fact_that_comes_back_is_told(database: Database, clock: Clock) -> None:
    """At the cap nothing leaves silently, on this way neither; and a life that is over meanwhile is not brought back."""
    script = Script(answer(replacing={"m1": "Vive en Medellín"}))
    options = MemoryOptions(auto_extract=True, resolve=True, max_facts=2)
    memory = create_memory(options, provider=script, database=database, clock=clock)
    for who, ttl in ((ANA, None), (LEO, "1d")):
        await memory.remember(who, "Vive en Bogotá", ttl=ttl)
        await memory.pin(who, (await memory.facts(who))[0].id, True)
        await memory.extract(who, "Me mudé a Medellín", "")
        await memory.forget(who, "Vive en Medellín")
        await memory.remember(who, ["Tiene un perro", "Toca el piano"])
    clock.forward(days=2)

    assert await memory.undo(ANA) == (["Tiene un perro"], ["Vive en Bogotá"])
    assert await memory.undo(LEO) == ([], [])
    assert [fact.text for fact in await memory.facts(LEO)] == ["Tiene un perro", "Toca el piano"]


async def test_a_forgotten_key_forgets_what_it_was_before(memory: OwnMemory) -> None:
    """By the model's tool, or by the fact: no earlier value of the key can be brought back, and other changes can."""
    for subject in (ANA, LEO):
        await memory.remember_keyed(subject, "pet", "un gato")
        await memory.remember_keyed(subject, "pet", "un perro")
        await memory.remember_keyed(subject, "city", "Bogotá")
        await memory.remember_keyed(subject, "city", "Medellín")
    await memory.forget_keyed(ANA, "City")
    await memory.forget(LEO, "city: Medellín")

    for subject in (ANA, LEO):
        assert [one.text for one in await memory.replaced(subject)] == ["pet: un gato"]
        assert await memory.undo(subject) == (["pet: un perro"], ["pet: un gato"])


async def test_a_room_that_has_another_id() -> None:
    """What changed there goes along with its facts."""
    async with create_test_bot(memory=True) as bot:
        recall = bot.parts.find(Recall)
        await recall.remember_keyed("test:old", "day", "lunes")
        await recall.remember_keyed("test:old", "day", "jueves")
        await bot.move_chat("test:old", "test:new")

        assert await recall.replaced("test:old") == []
        assert await recall.undo("test:new") == (["day: jueves"], ["day: lunes"])


async def test_thirty_days_and_no_longer(memory: OwnMemory, clock: Clock, database: Database) -> None:
    """After that the old value is neither shown nor kept."""
    await memory.remember_keyed(ANA, "city", "Bogotá")
    await memory.remember_keyed(ANA, "city", "Medellín")
    clock.forward(days=30, ms=1)

    assert await memory.replaced(ANA) == []
    assert await memory.undo(ANA) == ([], [])
    await memory.tidy()
    assert await rows(database, "memory_changes") == 0


async def test_what_was_forgotten_does_not_come_back(memory: OwnMemory) -> None:
    """Forgetting a fact, or all, also drops what was replaced and says the same."""
    for subject in (ANA, LEO):
        await memory.remember_keyed(subject, "city", "Bogotá")
        await memory.remember_keyed(subject, "city", "Medellín")
    await memory.forget(ANA, "city: Bogotá")
    await memory.forget(LEO)

    assert await memory.replaced(ANA) == []
    assert await memory.replaced(LEO) == []
    assert await memory.undo(LEO) == ([], [])


# ------------------------------------------------------------------------------------------ the person's say


async def test_a_fact_can_be_edited(memory: OwnMemory) -> None:
    """It keeps its id, its source is the person, and what the new text says already is one fact and not two."""
    await memory.remember(ANA, ["Vive en Bogota", "Tiene un perro"], source="auto")
    city, dog = await memory.facts(ANA)

    assert await memory.edit(ANA, city.id, "Vive en Bogotá, Colombia")
    assert await memory.edit(ANA, dog.id, "vive en bogotá colombia")
    assert not await memory.edit(ANA, dog.id, "nadie")
    assert not await memory.edit(ANA, city.id, "Su PIN es 1234")
    [fact] = await memory.facts(ANA)
    assert (fact.id, fact.text, fact.source) == (city.id, "Vive en Bogotá, Colombia", "manual")


async def test_an_edit_cannot_make_a_secret_of_a_key(memory: OwnMemory) -> None:
    """What is harmless by itself may be none under its key: both are looked at together."""
    await memory.remember_keyed(ANA, "pin", "azul")
    [held] = await memory.facts(ANA)

    assert not await memory.edit(ANA, held.id, "4432")
    assert not await memory.edit(ANA, held.id, "pin: 4432")
    assert await texts(memory) == ["pin: azul"]


async def test_a_keyed_fact_keeps_its_key(memory: OwnMemory) -> None:
    """The new text may name the key or leave it out."""
    await memory.remember_keyed(ANA, "city", "Bogotá")
    [city] = await memory.facts(ANA)
    await memory.edit(ANA, city.id, "City: Medellín")
    assert await texts(memory) == ["city: Medellín"]
    await memory.edit(ANA, city.id, "Cali")

    assert await texts(memory) == ["city: Cali"]


async def test_nobody_edits_anothers_fact(memory: OwnMemory) -> None:
    """An id alone is no right."""
    await memory.remember(ANA, "Vive en Bogotá")
    [fact] = await memory.facts(ANA)

    assert not await memory.edit(LEO, fact.id, "Vive en Lima")
    assert not await memory.pin(LEO, fact.id, True)
    assert await texts(memory) == ["Vive en Bogotá"]


async def test_paused_nothing_is_read_or_written(database: Database, clock: Clock) -> None:
    """Until resumed: no fact in a prompt or for a tool, nothing kept by any way in, and what waited is dropped."""
    script = Script(answer("Vive en Bogotá"))
    memory = resolving(database, clock, script)
    await memory.remember(ANA, "Tiene un perro")
    await memory.stage_extraction(None, ANA, "Vivo en Bogotá", "")
    await memory.choose(ANA, paused=True)
    await memory.idle()

    assert await memory.relevant([ANA], "¿perro?") == []
    assert await memory.recall_keyed(ANA) == []
    assert await memory.remember(ANA, "Tiene un gato") == []
    assert (await memory.learn(ANA, "Tiene un gato")).paused
    assert not await memory.remember_keyed(ANA, "city", "Bogotá")
    assert await memory.extract(ANA, "Vivo en Bogotá", "") == []
    await memory.stage_extraction(None, ANA, "Vivo en Bogotá", "")
    await memory.idle()
    assert script.calls == []
    assert await rows(database, "memory_queue") == 0
    await memory.choose(ANA, paused=False)
    assert [fact.text for fact in await memory.relevant([ANA], "")] == ["Tiene un perro"]


async def test_a_pause_stops_what_is_under_way(database: Database, clock: Clock) -> None:
    """What the model says after the person paused is not kept, also where they have resumed meanwhile."""
    script = Script(answer("Vive en Bogotá"))
    memory = resolving(database, clock, script)

    async def pausing(prompt: object) -> None:
        await memory.choose(ANA, paused=True)
        await memory.choose(ANA, paused=False)

    complete = script.complete

    class Meanwhile(Script):
        async def complete(self, prompt):  # type: ignore[no-untyped-def]
            await pausing(prompt)
            return await complete(prompt)

    other = resolving(database, clock, Meanwhile())

    assert await other.extract(ANA, "Vivo en Bogotá", "") == []
    assert await texts(memory) == []


async def test_what_a_person_chose_is_kept(memory: OwnMemory) -> None:
    """One choice leaves the other as it is, and forgetting all facts leaves both."""
    await memory.choose(ANA, quiet=True)
    await memory.choose(ANA, paused=True)
    await memory.forget(ANA)

    assert await memory.state(ANA) == MemoryState(paused=True, quiet=True)
    assert await memory.state(LEO) == MemoryState()
