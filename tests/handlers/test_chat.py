"""handlers/chat.py"""

import asyncio

from bot import MemoryOptions, ModelUnavailable, Passage, RagOptions, Update
from bot.testing import MockAIProvider, RecordingTransport, create_test_bot


class WithEdits(RecordingTransport):
    """A platform whose messages can be edited."""

    async def may_revise(self, update: Update) -> bool:
        """Any of them."""
        return True


class Shipping:
    """A retriever that always finds the same."""

    async def retrieve(self, query: str, *, top_k: int | None = None, min_score: float | None = None) -> list[Passage]:
        return [Passage("El envío tarda 3 días.", citation="faq")]


async def test_a_question_is_answered_with_its_sources() -> None:
    """Anything that is no command is a turn, in the language of the person."""
    rag = RagOptions(retriever=Shipping(), append_sources=True)
    async with create_test_bot(provider=MockAIProvider(reply="3 días [1]."), rag=rag) as bot:
        assert await bot.say("¿cuánto tarda el envío?") == ["3 días [1].\n\nFuentes: [1] faq"]
        assert await bot.say("how long does it take?", user="user-2", lang="en") == ["3 días [1].\n\nSources: [1] faq"]


async def test_no_model_is_needed() -> None:
    """The extractive provider answers from the passages, cited, or says that it does not know."""
    async with create_test_bot(rag=RagOptions(retriever=Shipping(), append_sources=True)) as bot:
        assert await bot.say("¿cuánto tarda el envío?") == ["El envío tarda 3 días [1].\n\nFuentes: [1] faq"]
        assert "No lo sé" in (await bot.say("¿quién ganó el mundial?"))[0]


async def test_an_error_of_the_model_becomes_a_sentence() -> None:
    """The person reads words; the next question is answered."""
    async with create_test_bot(provider=MockAIProvider(reply=[ModelUnavailable("down"), "ya"])) as bot:
        assert "modelo" in (await bot.say("hola"))[0]
        assert await bot.say("hola") == ["ya"]


async def test_a_redelivered_update_is_answered_once() -> None:
    """The platform may send an update again: the model is asked once and the person reads one answer."""
    async with create_test_bot(provider=MockAIProvider(reply=["uno", "dos"])) as bot:
        update = Update("test:1", "test", "user-1", "user-1", "hola")
        await bot.accept(update)
        await bot.settled("user-1")
        await bot.accept(update)
        await bot.settled("user-1")

        assert [sent.text for sent in bot.transport.sent] == ["uno"]
        assert len(bot.provider.calls) == 1


async def test_quoted_text_is_no_evidence() -> None:
    """What was forwarded is data for the prompt, and nothing of it becomes a fact of the sender."""
    model = MockAIProvider(reply=["vale", '{"facts": ["Vive en Lima"]}'])
    async with create_test_bot(provider=model, memory=MemoryOptions(auto_extract=True)) as bot:
        await bot.say("mira esto", quoted="Vivo en Lima", evidence="")
        await bot.ai.idle()

        assert "Vivo en Lima" in model.calls[0].system
        assert await bot.ai.memory("user-1") == []


async def test_a_stop_keeps_what_was_said() -> None:
    """A stop update passes the queue of its chat and ends the answer under way."""
    model = MockAIProvider(reply="hola", delay=20)
    async with create_test_bot(provider=model) as bot:
        await bot.accept(Update("test:1", "test", "user-1", "user-1", "cuéntame"))
        for _ in range(200):
            if model.calls:
                break
            await asyncio.sleep(0.01)
        await bot.accept(Update("test:2", "test", "user-1", "user-1", kind="stop"))
        await asyncio.wait_for(bot.settled("user-1"), 5)
        model.delay = 0

        assert await bot.say("¿sigues?") == ["hola"]


async def test_an_edited_question_takes_the_place_of_the_old_one() -> None:
    """The model does not see what was taken back, now or later, and nothing of it stays in the table."""
    model = MockAIProvider(reply=["uno", "dos", "dos bis", "tres"])
    async with create_test_bot(provider=model) as bot:
        bot.transport = WithEdits()
        bot.attach(bot.transport)
        await bot.say("primera", message="1")
        await bot.say("segunda con errata", message="2")
        edited = Update("test:e", "test", "user-1", "user-1", "segunda", kind="edited", message="2")
        await bot.accept(edited)
        await bot.settled("user-1")
        await bot.accept(edited)
        await bot.settled("user-1")
        await bot.say("tercera", message="3")
        rows = await bot.core.database.all("SELECT content FROM messages WHERE agent_id = :agent_id ORDER BY seq")

    assert [said["content"] for said in model.calls[2].messages] == ["primera", "uno", "segunda"]
    assert [said["content"] for said in model.calls[3].messages] == ["primera", "uno", "segunda", "dos bis", "tercera"]
    assert [row["content"] for row in rows] == ["primera", "uno", "segunda", "dos bis", "tercera", "tres"]
