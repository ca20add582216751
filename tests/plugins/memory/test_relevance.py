"""Which facts go into a prompt that cannot hold all of them."""

from hypothesis import given
from hypothesis import strategies as st

from bot import Database, Fact, MemoryOptions
from plugins.memory import create_memory
from plugins.memory.relevance import by_words, choose, fits, tokens
from tests.plugins.memory.conftest import Clock


def fact(text: str, *, pinned: bool = False, at: int = 0) -> Fact:
    return Fact(text, "ana", "text", text, text, "manual", at, at, pinned=pinned)


def test_the_most_relevant_come_first() -> None:
    """By the words that question and fact share, forms of a word counted as one."""
    held = [fact("Tiene un perro que se llama Bruno"), fact("Vive en Bogotá"), fact("Prefiere el té al café")]
    scores = by_words(held, "¿Dónde vivo? ¿En Bogotá o en otra ciudad?")

    assert max(range(3), key=scores.__getitem__) == 1
    assert choose(held, scores, tokens(held[1])) == [held[1]]


def test_the_pinned_come_before_the_relevant() -> None:
    """A pinned fact is in every prompt, whatever the question."""
    held = [fact("Vive en Bogotá"), fact("Prefiere que le hablen de usted", pinned=True)]

    assert choose(held, [9.0, 0.0], tokens(held[1])) == [held[1]]


def test_the_order_stays() -> None:
    """Those that are chosen stand in the order in which they are held."""
    held = [fact(name, at=n) for n, name in enumerate("abc")]

    assert choose(held, [0.0, 1.0, 2.0], tokens(held[0]) * 2) == held[1:]


@given(st.lists(st.tuples(st.text(max_size=60), st.booleans(), st.floats(0, 9))), st.integers(0, 200))
def test_the_budget_is_never_exceeded(given_facts: list[tuple[str, bool, float]], budget: int) -> None:
    """Whatever is held, what is chosen fits; and where all fits, all is chosen."""
    held = [fact(text, pinned=pinned, at=n) for n, (text, pinned, _) in enumerate(given_facts)]
    chosen = choose(held, [score for _, _, score in given_facts], budget)

    assert fits(chosen, budget)
    assert chosen == held or not fits(held, budget)


async def test_memory_chooses_where_not_all_fit(database: Database, clock: Clock) -> None:
    """Fifty facts of which one answers the question: within the budget, and that one among them."""
    memory = create_memory(MemoryOptions(prompt_tokens=60), database=database, clock=clock)
    await memory.remember("ana", [f"Leyó el libro número {n} de la biblioteca" for n in range(40)])
    await memory.remember("ana", "Es alérgica a la penicilina de su abuela")
    await memory.remember("ana", [f"Visitó la ciudad número {n} en tren" for n in range(9)])
    chosen = await memory.relevant(["ana"], "¿A qué soy alérgica?")

    assert "Es alérgica a la penicilina de su abuela" in [one.text for one in chosen]
    assert fits(chosen, 60)


async def test_memory_gives_all_where_they_fit(database: Database, clock: Clock) -> None:
    """With few facts, all of them, whatever the question."""
    memory = create_memory(True, database=database, clock=clock)
    await memory.remember("ana", ["Vive en Bogotá", "Tiene un perro"])
    await memory.remember("room", "Se reúnen los jueves")

    assert [one.text for one in await memory.relevant(["ana", "room"], "hola")] == [
        "Vive en Bogotá",
        "Tiene un perro",
        "Se reúnen los jueves",
    ]
