"""Facts are chosen by what they mean where there is an embedder, by their words where it fails, and never over the budget."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from bot import Embedder, Fact, MemoryOptions, RagError, Registry
from bot.testing import MockAIProvider, create_test_bot
from plugins.memory.meaning import MOST_VECTORS, Meaning
from plugins.memory.relevance import choose, fits
from plugins.rag.embedders import HashingEmbedder
from tests.standins.embedding_server import embedding_server

ANA = "test:ana"
BY_MEANING = "Le duele la cabeza con la luz del sol"
QUESTION = "¿Por qué tendré migrañas en verano?"
OTHERS = [f"Leyó el libro número {n} de la biblioteca" for n in range(40)]


def fact(text: str, *, pinned: bool = False, at: int = 0) -> Fact:
    return Fact(text, "ana", "text", text, text, "manual", at, at, pinned=pinned)


class Thesaurus:
    """An embedder that knows that two texts are about one thing; `broken` fails, `slow` takes its time."""

    id = "thesaurus"

    def __init__(self) -> None:
        self.broken: Exception | None = None
        self.slow = 0.0
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        self.asked += texts
        await asyncio.sleep(self.slow)
        if self.broken:
            raise self.broken
        return np.array([[1.0, 0.0] if text in (BY_MEANING, QUESTION) else [0.0, 1.0] for text in texts], np.float32)


def plugin(thesaurus: Thesaurus) -> Any:
    def register(registry: Registry) -> None:
        registry.embedder("thesaurus", lambda options: thesaurus)

    return register


# ------------------------------------------------------------------------------------------ in the bot


@pytest.mark.parametrize(
    ("broken", "slow", "chosen"),
    [(None, 0.0, True), (RagError("EMBEDDING_FAILED", "down"), 0.0, False), (None, 5.0, False)],
    ids=["up", "down", "slow"],
)
async def test_a_fact_that_shares_no_word_with_the_question(
    broken: Exception | None, slow: float, chosen: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The embedder that documents use finds it; where that is down or slow the turn goes on by words, in the budget; the log says so."""
    thesaurus = Thesaurus()
    options, environment = MemoryOptions(prompt_tokens=60), {"BOT_EMBEDDINGS": "thesaurus"}
    provider = MockAIProvider(reply="Hola.")
    async with create_test_bot(provider=provider, memory=options, settings=environment, plugins=[plugin(thesaurus)]) as bot:
        await bot.ai.remember(ANA, [BY_MEANING, *OTHERS])
        thesaurus.broken, thesaurus.slow = broken, slow
        with caplog.at_level(logging.WARNING):
            async with asyncio.timeout(4):
                reply = await bot.ai.reply_in_chat_detailed(ANA, QUESTION, user_id=ANA)

        assert (BY_MEANING in reply.facts) is chosen
        assert (BY_MEANING in provider.calls[0].system) is chosen
        assert 0 < len(reply.facts) < 10
        assert ("facts" in caplog.text) is not chosen
        assert BY_MEANING not in caplog.text


async def test_by_the_embedder_over_the_wire() -> None:
    """`/embeddings` is asked for each fact once, for the question each time, and not at all where everything fits."""
    async with embedding_server() as server:
        environment = {"BOT_EMBEDDINGS": "openai", "BOT_EMBEDDINGS_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
        options = MemoryOptions(prompt_tokens=60)
        async with create_test_bot(provider=MockAIProvider(reply="Hola."), memory=options, settings=environment) as bot:
            await bot.ai.remember(ANA, OTHERS[:2])
            few = await bot.ai.reply_in_chat_detailed(ANA, "hola", user_id=ANA)
            asked_for_few = list(server.texts)
            await bot.ai.remember(ANA, OTHERS)
            await bot.parts.find(Embedder).embed(["hola"])  # the first call of all loads its library, which takes a second
            server.texts.clear()
            await bot.ai.reply_in_chat_detailed(ANA, "¿Qué leí?", user_id=ANA)
            await bot.ai.reply_in_chat_detailed(ANA, "¿Y después?", user_id=ANA)

    assert (list(few.facts), asked_for_few) == (OTHERS[:2], [])
    assert sorted(server.texts) == sorted([*OTHERS, "¿Qué leí?", "¿Y después?"])


async def test_an_erasure_leaves_no_vector_in_ram() -> None:
    """A vector can tell of the words that it was made of: they are asked for again when they are needed."""
    thesaurus = Thesaurus()
    options, environment = MemoryOptions(prompt_tokens=60), {"BOT_EMBEDDINGS": "thesaurus"}
    async with create_test_bot(
        provider=MockAIProvider(reply="Hola."), memory=options, settings=environment, plugins=[plugin(thesaurus)]
    ) as bot:
        await bot.ai.remember(ANA, OTHERS)
        for _ in range(2):
            await bot.ai.reply_in_chat(ANA, QUESTION, user_id=ANA)
        once = len(thesaurus.asked)
        await bot.delete_subject("test:somebody else")
        await bot.ai.reply_in_chat(ANA, QUESTION, user_id=ANA)

    assert (once, len(thesaurus.asked)) == (len(OTHERS) + 2, 2 * len(OTHERS) + 3)


async def test_an_embedder_that_refuses_over_the_wire() -> None:
    """A server that answers 500 costs the meaning, not the reply."""
    async with embedding_server() as server:
        server.act = lambda texts: web.Response(status=500)
        environment = {"BOT_EMBEDDINGS": "openai", "BOT_EMBEDDINGS_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
        options = MemoryOptions(prompt_tokens=60)
        async with create_test_bot(provider=MockAIProvider(reply="Hola."), memory=options, settings=environment) as bot:
            await bot.ai.remember(ANA, [*OTHERS, "Toca la guitarra los domingos"])
            reply = await bot.ai.reply_in_chat_detailed(ANA, "¿Qué toco los domingos?", user_id=ANA)

    assert reply.text == "Hola."
    assert "Toca la guitarra los domingos" in reply.facts


# ------------------------------------------------------------------------------------------ by itself


@given(st.lists(st.tuples(st.text(max_size=60), st.booleans()), max_size=30), st.text(max_size=60), st.integers(0, 300))
@settings(max_examples=60, deadline=None)
async def test_the_budget_is_never_exceeded(given_facts: list[tuple[str, bool]], question: str, budget: int) -> None:
    """Whatever the facts, the question and the vectors: what is chosen fits, and no pinned one is left out for one that is not."""
    held = [fact(text, pinned=pinned, at=n) for n, (text, pinned) in enumerate(given_facts)]
    chosen = choose(held, await Meaning(lambda: HashingEmbedder(64))(held, question), budget)
    left_out = [one for one in held if one.pinned and one not in chosen]

    assert fits(chosen, budget)
    assert all(not fits([*(other for other in chosen if other.pinned), one], budget) for one in left_out)


async def test_what_was_embedded_in_time_stays_for_the_next_turn() -> None:
    """An embedder that is too slow for all facts in one turn gets through them in a few."""

    class Slow(Thesaurus):
        async def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
            self.slow = 0.03 * len(texts)
            return await super().embed(texts)

    slow = Slow()
    meaning, held = Meaning(lambda: slow), [fact(text) for text in (*OTHERS, BY_MEANING)]
    turns = [await meaning(held, QUESTION) for _ in range(2)]

    assert max(range(41), key=turns[1].__getitem__) == 40
    assert len(slow.asked) < 2 * 41


async def test_an_embedder_that_breaks_its_promises() -> None:
    """Too few vectors, or an error that is nobody's: the words decide."""
    thesaurus, held = Thesaurus(), [fact("Vive en Bogotá"), fact("Tiene un perro")]
    thesaurus.broken = ZeroDivisionError("x")

    class TooFew:
        id = "few"

        async def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
            return np.ones((1, 2), np.float32)

    for embedder in (thesaurus, TooFew()):
        scores = await Meaning(lambda embedder=embedder: embedder)(held, "¿Cómo se llama mi perro?")  # type: ignore[misc]
        assert scores[1] > scores[0]


async def test_a_vector_that_is_no_number_decides_nothing() -> None:
    """NaN or infinity from a server of somebody else's leaves the order to the words."""

    class Odd:
        id = "odd"

        async def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
            return np.array([[np.nan, 1.0]] * len(texts), np.float32)

    held = [fact("Vive en Bogotá"), fact("Tiene un perro")]
    scores = await Meaning(Odd)(held, "¿Cómo se llama mi perro?")

    assert scores == sorted(scores)
    assert all(np.isfinite(scores))


async def test_vectors_in_ram_are_bounded_and_hold_no_words() -> None:
    """They are kept by a hash; the oldest leave, also in the call that went over the bound."""
    meaning = Meaning(lambda: HashingEmbedder(2))
    for start in range(0, MOST_VECTORS + 2_000, 2_000):
        scores = await meaning([fact(f"dato {n}") for n in range(start, start + 2_000)], "dato")

    assert len(scores) == 2_000
    assert len(meaning._vectors) == MOST_VECTORS
    assert all(isinstance(key, int) for key in meaning._vectors)


async def test_the_same_facts_asked_about_at_once() -> None:
    """Calls side by side do not disturb one another."""
    thesaurus = Thesaurus()
    thesaurus.slow = 0.01
    meaning, held = Meaning(lambda: thesaurus), [fact(BY_MEANING), fact(OTHERS[0])]
    scores = await asyncio.gather(*(meaning(held, QUESTION) for _ in range(20)))

    assert all(one[0] > one[1] for one in scores)
