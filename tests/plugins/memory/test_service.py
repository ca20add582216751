"""What the turn and the commands ask of memory, over a real database file."""

import asyncio

import pytest

from bot import Database, ExtractOptions, MemoryOptions, ModelError, ModelRefused, ModelUnavailable
from plugins.memory import OwnMemory, create_memory
from tests.plugins.memory.conftest import Clock, Script

ANA = "console:ana"
LEO = "console:leo"


async def texts(memory: OwnMemory, subject: str = ANA) -> list[str]:
    return [fact.text for fact in await memory.facts(subject)]


async def rows(database: Database, table: str = "facts") -> int:
    row = await database.one(f"SELECT count(*) AS n FROM {table}")
    assert row is not None
    return int(row["n"])


# ------------------------------------------------------------------------------------------ remember


async def test_new_facts_are_returned_and_listed_oldest_first(memory: OwnMemory) -> None:
    """`remember` returns those that were new; `facts` lists them oldest first, although they came in one millisecond."""
    new = await memory.remember(ANA, ["Vive en Bogotá", "Prefiere español", "Tiene un perro"])

    assert new == ["Vive en Bogotá", "Prefiere español", "Tiene un perro"]
    assert await texts(memory) == new


async def test_a_duplicate_renews_the_one_there(memory: OwnMemory, clock: Clock) -> None:
    """Case, punctuation and space aside it is the same fact: not new, its first words kept, and the youngest now."""
    await memory.remember(ANA, ["Vive en Bogotá", "Tiene un perro"])
    clock.forward(ms=5_000)
    new = await memory.remember(ANA, "  vive  en BOGOTÁ. ")

    assert new == []
    assert await texts(memory) == ["Tiene un perro", "Vive en Bogotá"]


async def test_an_edit_renews_the_life_of_a_fact(database: Database, clock: Clock) -> None:
    """As stating it again does; one that lives for ever goes on to."""
    async with create_memory(MemoryOptions(ttl="10s"), database=database, clock=clock) as memory:
        await memory.remember(ANA, "Vive en Bogotá")
        [fact] = await memory.facts(ANA)
        clock.forward(ms=6_000)
        await memory.edit(ANA, fact.id, "Vive en Medellín")
        clock.forward(ms=6_000)
        [renewed] = await memory.facts(ANA)
        clock.forward(ms=4_000)
        after = await memory.facts(ANA)

    assert (renewed.text, renewed.expires_at) == ("Vive en Medellín", renewed.updated_at + 10_000)
    assert after == []


async def test_people_do_not_share_facts(memory: OwnMemory) -> None:
    """A fact belongs to its subject alone."""
    await memory.remember(ANA, "Vive en Bogotá")

    assert await memory.remember(LEO, "Vive en Bogotá") == ["Vive en Bogotá"]
    assert await memory.forget(LEO) == 1
    assert await texts(memory) == ["Vive en Bogotá"]


async def test_nobody_has_no_memory(memory: OwnMemory, database: Database) -> None:
    """Where the platform gives no person, nothing is kept: all the nameless would share it."""
    assert await memory.remember("", "Vive en Bogotá") == []
    assert await memory.facts("") == []
    assert await rows(database) == 0


async def test_what_is_too_long_or_a_secret_is_left_out(memory: OwnMemory) -> None:
    """The others of the same call are kept, and `why_not` gives the reason."""
    new = await memory.remember(ANA, ["x" * 301, "Mi contraseña: gato1234", "", "Vive en Bogotá"])

    assert new == ["Vive en Bogotá"]
    assert [memory.why_not(text) for text in ("x" * 301, "x" * 300, "Mi contraseña: gato1234", " \u200b")] == [
        "TOO_LONG",
        None,
        "SECRET_PASSWORD",
        "EMPTY",
    ]


async def test_a_source_that_is_none_is_refused(memory: OwnMemory) -> None:
    """A source is "manual" or "auto"."""
    with pytest.raises(ValueError, match="source='rumour'"):
        await memory.remember(ANA, "Vive en Bogotá", source="rumour")


# ------------------------------------------------------------------------------------------ time to live


async def test_an_expired_fact_is_neither_listed_nor_kept(memory: OwnMemory, clock: Clock, database: Database) -> None:
    """After its life a fact is gone from the answer and from the table."""
    await memory.remember(ANA, "Está de viaje", ttl="2d")
    clock.forward(days=2)

    assert await texts(memory) == []
    assert await rows(database) == 0


async def test_stating_again_renews_the_life(database: Database, clock: Clock) -> None:
    """With `ttl` of the options, a restated fact lives for that long from now."""
    memory = create_memory(MemoryOptions(ttl="90d"), database=database, clock=clock)
    await memory.remember(ANA, "Vive en Bogotá")
    clock.forward(days=80)
    await memory.remember(ANA, "vive en bogotá")
    clock.forward(days=80)

    [fact] = await memory.facts(ANA)
    assert fact.expires_at == fact.updated_at + 90 * 86_400_000


async def test_a_life_of_its_own_is_renewed_where_none_is_set(memory: OwnMemory, clock: Clock) -> None:
    """A fact that was given two days does not become permanent by being said again."""
    await memory.remember(ANA, "Está de viaje", ttl="2d")
    clock.forward(days=1)
    await memory.remember(ANA, "Está de viaje")

    [fact] = await memory.facts(ANA)
    assert fact.expires_at is not None
    assert abs(fact.expires_at - clock.now - 2 * 86_400_000) <= 1


async def test_a_fact_said_after_its_life_is_new(memory: OwnMemory, clock: Clock) -> None:
    """An expired row that was not yet removed does not count as known."""
    await memory.remember(ANA, "Está de viaje", ttl="1s")
    clock.forward(ms=1_000)

    assert await memory.remember(ANA, "está de viaje!", ttl="1s") == ["está de viaje!"]
    assert await texts(memory) == ["está de viaje!"]


async def test_a_life_that_cannot_work_is_refused(memory: OwnMemory) -> None:
    """A bad `ttl` is a ValueError that names it, and nothing is kept."""
    with pytest.raises(ValueError, match="ttl='soon'"):
        await memory.remember(ANA, "Vive en Bogotá", ttl="soon")
    assert await texts(memory) == []


# ------------------------------------------------------------------------------------------ the cap


async def test_the_one_not_stated_for_longest_goes_first(database: Database, clock: Clock) -> None:
    """At the cap the oldest leaves, and stating a fact again makes it young."""
    memory = create_memory(MemoryOptions(max_facts=2), database=database, clock=clock)
    await memory.remember(ANA, ["uno", "dos"])
    await memory.remember(ANA, "uno")
    await memory.remember(ANA, "tres")

    assert await texts(memory) == ["uno", "tres"]


async def test_extracted_facts_go_before_given_ones(database: Database, clock: Clock) -> None:
    """A fact that the person gave stays while there is an extracted one to go, however young that is."""
    memory = create_memory(MemoryOptions(max_facts=2), database=database, clock=clock)
    await memory.remember(ANA, "dado")
    await memory.remember(ANA, "hallado", source="auto")
    await memory.remember(ANA, "dado después")

    assert await texts(memory) == ["dado", "dado después"]


async def test_what_the_cap_does_not_hold_is_not_new(database: Database, clock: Clock) -> None:
    """With the memory full of given facts, an extracted one is not taken, and `remember` does not say that it was."""
    memory = create_memory(MemoryOptions(max_facts=1), database=database, clock=clock)
    await memory.remember(ANA, "dado")

    assert await memory.remember(ANA, "hallado", source="auto") == []
    assert await texts(memory) == ["dado"]


# ------------------------------------------------------------------------------------------ forget


async def test_one_fact_is_forgotten_by_its_text(memory: OwnMemory) -> None:
    """Case, punctuation and space aside; a keyed one by its `key: value` too."""
    await memory.remember(ANA, ["Vive en Bogotá", "Tiene un perro"])
    await memory.remember_keyed(ANA, "ciudad", "Bogotá")

    assert await memory.forget(ANA, "vive en bogotá!") == 1
    assert await memory.forget(ANA, "Ciudad: Bogotá") == 1
    assert await memory.forget(ANA, "Vive en Bogotá") == 0
    assert await texts(memory) == ["Tiene un perro"]


async def test_all_are_forgotten(memory: OwnMemory) -> None:
    """`forget` with no text says how many there were."""
    await memory.remember(ANA, ["uno", "dos"])

    assert await memory.forget(ANA) == 2
    assert await texts(memory) == []


async def test_a_key_has_one_value(memory: OwnMemory) -> None:
    """A move to Medellín leaves one city, not two."""
    await memory.remember_keyed(ANA, "City", "Bogotá")
    await memory.remember_keyed(ANA, "city", "Medellín")

    assert [fact.text for fact in await memory.recall_keyed(ANA, "CITY")] == ["city: Medellín"]
    assert await memory.forget_keyed(ANA, "city")
    assert not await memory.forget_keyed(ANA, "city")


async def test_fifty_restatements_at_once_are_one_fact(memory: OwnMemory, database: Database) -> None:
    """Concurrent statements of one fact make one row, and one of them is told that it was new."""
    told = await asyncio.gather(*(memory.remember(ANA, "Vive en Bogotá" + "." * n) for n in range(50)))

    assert sum(map(len, told)) == 1
    assert await rows(database) == 1


# ------------------------------------------------------------------------------------------ extraction


def extracting(database: Database | None, clock: Clock, script: Script, **options: object) -> OwnMemory:
    extract = ExtractOptions(debounce_ms=60_000, **options)  # type: ignore[arg-type]
    return create_memory(MemoryOptions(auto_extract=extract), provider=script, database=database, clock=clock)


async def test_facts_are_extracted_in_the_background(database: Database, clock: Clock) -> None:
    """What was staged is extracted, and `idle` ends the wait for more."""
    memory = extracting(database, clock, Script('{"facts": ["Vive en Bogotá"]}'))
    await memory.stage_extraction(None, ANA, "Vivo en Bogotá", "¡Qué bien!")
    assert await texts(memory) == []
    await memory.idle()

    [fact] = await memory.facts(ANA)
    assert (fact.text, fact.source) == ("Vive en Bogotá", "auto")
    assert await rows(database, "memory_queue") == 0


async def test_several_quick_messages_make_one_call(database: Database, clock: Clock) -> None:
    """Messages that follow each other closely are looked at together, in their order."""
    script = Script('{"facts": ["Vive en Bogotá"]}')
    memory = extracting(database, clock, script)
    for said in ("Hola", "Vivo en Bogotá", "¿Y tú?"):
        await memory.stage_extraction(None, ANA, said, "")
    await memory.idle()

    assert len(script.calls) == 1
    assert script.calls[0].messages[0]["content"].endswith('["Hola", "Vivo en Bogotá", "¿Y tú?"]')


async def test_the_assistant_is_no_evidence(database: Database, clock: Clock) -> None:
    """What the assistant said never reaches the extracting model."""
    script = Script()
    memory = extracting(database, clock, script)
    await memory.extract(ANA, "¿Dónde vivo?", "Vives en CANARIO")

    assert len(script.calls) == 1
    assert "CANARIO" not in repr(script.calls)


async def test_an_answer_of_another_form_is_asked_for_again_then_dropped(database: Database, clock: Clock) -> None:
    """One retry, which says what was wrong; then nothing is taken, and it is counted."""
    script = Script('Sure! {"facts": ["x"]}')
    memory = extracting(database, clock, script)
    added = await memory.extract(ANA, "Vivo en Bogotá", "")

    assert added == []
    assert len(script.calls) == 2
    assert "it is not JSON" in script.calls[1].messages[-1]["content"]
    assert memory.counters.snapshot()["memory_malformed"] == 1


@pytest.mark.parametrize("said_nothing", [ModelError("openai: the answer is empty"), ModelRefused("no")])
async def test_an_answer_of_nothing_is_asked_for_again_then_dropped(database: Database, clock: Clock, said_nothing: ModelError) -> None:
    """A model that is there and says nothing, or will not, is not asked for ever: no words wait for the next extraction."""
    script = Script(said_nothing)
    memory = extracting(database, clock, script)
    await memory.stage_extraction(None, ANA, "Vivo en Bogotá", "")
    await memory.idle()

    assert len(script.calls) == 2
    assert script.calls[1].messages[-2] == {"role": "assistant", "content": "(nothing)"}
    assert await rows(database, "memory_queue") == 0
    assert memory.counters.snapshot()["memory_malformed"] == 1


async def test_the_retry_is_taken(database: Database, clock: Clock) -> None:
    """A model that gets it right the second time is listened to."""
    memory = extracting(database, clock, Script("[]", '{"facts": ["Vive en Bogotá"]}'))

    assert await memory.extract(ANA, "Vivo en Bogotá", "") == ["Vive en Bogotá"]


async def test_no_more_than_so_many_new_facts_a_turn(database: Database, clock: Clock) -> None:
    """`max_facts_per_turn` bounds the new ones; those known already do not count."""
    memory = extracting(database, clock, Script('{"facts": ["uno", "dos", "tres", "cuatro"]}'), max_facts_per_turn=2)
    await memory.remember(ANA, "uno")

    assert await memory.extract(ANA, "hola", "") == ["dos", "tres"]


async def test_one_whose_time_is_over_counts_as_new(database: Database, clock: Clock) -> None:
    """It is not there any more, so it takes a place among the new ones, or finds none left."""
    memory = extracting(database, clock, Script('{"facts": ["dos", "tres", "uno"]}'), max_facts_per_turn=2)
    await memory.remember(ANA, "uno", ttl=60)
    clock.forward(ms=61_000)

    assert await memory.extract(ANA, "hola", "") == ["dos", "tres"]


async def test_the_filter_drops_candidates(database: Database, clock: Clock) -> None:
    """False drops one, and so does an exception; the others are kept."""

    def choosy(fact: str) -> bool:
        if fact == "dos":
            raise RuntimeError("no")
        return fact != "uno"

    memory = extracting(database, clock, Script('{"facts": ["uno", "dos", "tres"]}'), filter=choosy)

    assert await memory.extract(ANA, "hola", "") == ["tres"]


async def test_secrets_that_the_model_found_are_refused(database: Database, clock: Clock) -> None:
    """The rules stand behind the model."""
    memory = extracting(database, clock, Script('{"facts": ["Su contraseña es gato1234", "Vive en Bogotá"]}'))

    assert await memory.extract(ANA, "hola", "") == ["Vive en Bogotá"]


async def test_forgetting_all_discards_an_extraction_under_way(database: Database, clock: Clock) -> None:
    """Erasure wins: what the model says after `forget` is not kept."""
    script = Script('{"facts": ["Vive en Bogotá"]}')
    script.gate = asyncio.Event()
    memory = extracting(database, clock, script)
    await memory.stage_extraction(None, ANA, "Vivo en Bogotá", "")
    idle = asyncio.create_task(memory.idle())
    await script.asked.wait()
    await memory.forget(ANA)
    script.gate.set()
    await idle

    assert await texts(memory) == []
    assert await rows(database, "memory_queue") == 0


async def test_forgetting_all_discards_an_extraction_by_hand(database: Database, clock: Clock) -> None:
    """The same for `extract`, which then says that it added nothing."""
    script = Script('{"facts": ["Vive en Bogotá"]}')
    script.gate = asyncio.Event()
    memory = extracting(database, clock, script)
    extraction = asyncio.create_task(memory.extract(ANA, "Vivo en Bogotá", ""))
    await script.asked.wait()
    await memory.forget(ANA)
    script.gate.set()

    assert await extraction == []
    assert await texts(memory) == []


async def test_a_model_that_fails_loses_no_words(database: Database, clock: Clock) -> None:
    """In the background a failure is no exception; the words wait for the next extraction of this person."""
    script = Script(ModelUnavailable("down"), '{"facts": ["Vive en Bogotá"]}')
    memory = extracting(database, clock, script)
    await memory.stage_extraction(None, ANA, "Vivo en Bogotá", "")
    await memory.idle()
    await memory.stage_extraction(None, ANA, "Hola", "")
    await memory.idle()

    assert await texts(memory) == ["Vive en Bogotá"]
    assert script.calls[1].messages[0]["content"].endswith('["Vivo en Bogotá", "Hola"]')


async def test_a_days_calls_are_bounded(database: Database, clock: Clock) -> None:
    """Past the bound the words are dropped, not kept for another day; the next day there is room again."""
    script = Script()
    memory = extracting(database, clock, script, max_calls_per_day=1)
    for _ in range(3):
        await memory.stage_extraction(None, ANA, "Hola", "")
        await memory.idle()
    assert len(script.calls) == 1
    assert await rows(database, "memory_queue") == 0
    clock.forward(days=1)
    await memory.stage_extraction(None, ANA, "Hola", "")
    await memory.idle()

    assert len(script.calls) == 2


async def test_a_days_tokens_are_bounded(database: Database, clock: Clock) -> None:
    """Tokens count as the server counts them."""
    script = Script(tokens=60)
    memory = extracting(database, clock, script, max_tokens_per_day=100)
    for _ in range(3):
        await memory.stage_extraction(None, ANA, "Hola", "")
        await memory.idle()

    assert len(script.calls) == 1


async def test_a_call_that_fails_counts_too(database: Database, clock: Clock) -> None:
    """A server that is down is not asked for ever."""
    script = Script(ModelUnavailable("down"))
    memory = extracting(database, clock, script, max_calls_per_day=2)
    for _ in range(4):
        await memory.stage_extraction(None, ANA, "Hola", "")
        await memory.idle()

    assert len(script.calls) == 2


async def test_what_is_asked_again_counts_twice(database: Database, clock: Clock) -> None:
    """Both calls count, and the tokens of both; a call that a bound refuses counts for nothing."""
    script = Script("no", '{"facts": []}', tokens=30)
    memory = extracting(database, clock, script, max_calls_per_day=2)
    for _ in range(2):
        await memory.stage_extraction(None, ANA, "Hola", "")
        await memory.idle()

    assert len(script.calls) == 2
    assert await database.all("SELECT calls, tokens FROM memory_budget") == [{"calls": 2, "tokens": 120}]


async def test_tokens_that_the_server_does_not_tell_are_estimated(database: Database, clock: Clock) -> None:
    """The bound holds for servers without a usage too."""
    script = Script(tokens=0)
    memory = extracting(database, clock, script, max_tokens_per_day=300)
    for _ in range(3):
        await memory.stage_extraction(None, ANA, "Hola", "")
        await memory.idle()

    assert len(script.calls) == 1


async def test_a_flood_is_one_call_of_a_bounded_size(database: Database, clock: Clock) -> None:
    """However much somebody writes in a minute, the latest of it is looked at, and nothing is left waiting."""
    script = Script()
    memory = extracting(database, clock, script)
    for n in range(60):
        await memory.stage_extraction(None, ANA, f"{n} " + "bla " * 500, "")
    await memory.idle()

    assert len(script.calls) == 1
    content = script.calls[0].messages[0]["content"]
    assert len(content) < 26_000
    assert '"59 bla' in content
    assert await rows(database, "memory_queue") == 0


async def test_nothing_is_extracted_where_it_is_off(database: Database, clock: Clock) -> None:
    """Off by default, and with the provider that needs no model."""
    script, extractive = Script(), Script()
    extractive.name = "extractive"
    off = create_memory(True, provider=script, database=database, clock=clock)
    none = extracting(database, clock, extractive)
    for memory in (off, none):
        await memory.stage_extraction(None, ANA, "Vivo en Bogotá", "")
        await memory.idle()

    assert script.calls == extractive.calls == []
    assert await rows(database, "memory_queue") == 0


async def test_memory_by_hand_needs_no_database() -> None:
    """With nothing given, it opens a database of its own in memory, extracts in tasks, and closes what it opened."""
    async with create_memory(MemoryOptions(auto_extract=True), provider=Script('{"facts": ["Vive en Bogotá"]}')) as memory:
        await memory.stage_extraction(None, ANA, "Vivo en Bogotá", "")
        await memory.idle()

        assert await texts(memory) == ["Vive en Bogotá"]


async def test_memory_that_is_off_works_by_hand() -> None:
    """Where memory is off nothing happens by itself, and the methods work all the same."""
    async with create_memory(None) as memory:
        await memory.remember(ANA, "Vive en Bogotá")

        assert memory.options is None
        assert await texts(memory) == ["Vive en Bogotá"]
