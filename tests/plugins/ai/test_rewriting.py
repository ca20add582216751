"""plugins/ai/rewriting.py, and what a turn tells a retriever of the conversation."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from bot import Counters, Message, ModelError, Passage, RagOptions
from bot.testing import MockAIProvider, create_test_bot
from plugins.ai import AIClient
from plugins.ai.providers.extractive import ExtractiveProvider
from plugins.ai.rewriting import rewriter, told

BEFORE = [Message("user", "¿cuánto tarda el envío?", 0, "u"), Message("assistant", "Tres días [1].", 0, "u")]


class Finds:
    """Keeps what it is asked; takes what was asked before."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    async def retrieve(self, query: str, *, top_k: int | None = None, min_score: float | None = None, previous: Any = ()) -> list[Passage]:
        """One passage, whatever is asked."""
        self.asked.append((query, list(previous)))
        return [Passage("El envío tarda 3 días.", citation="faq")]


class Plain(Finds):
    """The signature of the contract: it knows nothing of what was asked before."""

    async def retrieve(self, query: str, *, top_k: int | None = None, min_score: float | None = None) -> list[Passage]:  # type: ignore[override]
        """One passage, whatever is asked."""
        return await super().retrieve(query)


def rewriting(provider: Any, how: str = "auto", counters: Counters | None = None, **options: Any) -> Any:
    rag = RagOptions(retriever=Finds(), rewrite=how, **options)  # type: ignore[arg-type]
    return rewriter(rag, provider, BEFORE, lang="es", counters=counters or Counters())


# ---------------------------------------------------------------------------------------------- without a model


async def test_a_retriever_is_told_of_the_questions_before() -> None:
    """The last two of the chat, the latest first; the first question has none."""
    finds = Finds()
    ai = AIClient(MockAIProvider(reply="ok"), rag=finds)

    for question in ("¿cuánto tarda el envío?", "¿y en Canarias?", "¿y en Ceuta?", "¿y cuánto cuesta?"):
        await ai.reply_in_chat("chat", question)

    assert finds.asked == [
        ("¿cuánto tarda el envío?", []),
        ("¿y en Canarias?", ["¿cuánto tarda el envío?"]),
        ("¿y en Ceuta?", ["¿y en Canarias?", "¿cuánto tarda el envío?"]),
        ("¿y cuánto cuesta?", ["¿y en Ceuta?", "¿y en Canarias?"]),
    ]


async def test_a_retriever_with_the_plain_signature_is_asked_as_ever() -> None:
    """One of somebody's own is passed nothing that it does not take."""
    plain = Plain()
    ai = AIClient(MockAIProvider(reply="ok"), rag=plain)

    for question in ("¿cuánto tarda el envío?", "¿y en Canarias?"):
        assert (await ai.reply_in_chat_detailed("chat", question)).citations

    assert [query for query, _ in plain.asked] == ["¿cuánto tarda el envío?", "¿y en Canarias?"]


@pytest.mark.parametrize("plugin", [False, True])
async def test_a_follow_up_in_the_bot(tmp_path: Path, plugin: bool) -> None:
    """With no model, "¿y en Canarias?" finds what it is about; so it does where a plugin's retriever is asked beside the documents."""
    (tmp_path / "envios.md").write_text("# Envíos\n\nEl envío tarda tres días, y a las islas, siete.\n", encoding="utf-8")
    (tmp_path / "pagos.md").write_text("# Pagos\n\nSe paga con tarjeta.\n", encoding="utf-8")
    plugins = [lambda registry: registry.retriever("own", lambda parts: Plain())] if plugin else []

    async with create_test_bot(settings={"BOT_DOCUMENTS": str(tmp_path)}, plugins=plugins) as bot:
        await bot.ai.reply_in_chat("chat", "¿cuánto tarda el envío?")
        reply = await bot.ai.reply_in_chat_detailed("chat", "¿y a las islas?")
        other = await bot.ai.reply_in_chat_detailed("chat", "¿se paga con tarjeta?")

    assert "siete" in reply.citations[0].text
    assert other.citations[0].text == "Se paga con tarjeta."


# ---------------------------------------------------------------------------------------------- with one


async def test_the_model_says_a_leaning_question_whole() -> None:
    """What is looked up is the whole question, with the words of the one that was asked; a question that stands by itself costs no call."""
    finds, model = Finds(), MockAIProvider(reply=["Tres días.", "«¿Cuánto tarda el envío a Canarias?»", "Siete días.", "Sí."])
    ai = AIClient(model, rag=RagOptions(retriever=finds, rewrite="auto"))

    for question in ("¿cuánto tarda el envío?", "¿y en Canarias?", "¿aceptan pagos con tarjeta de crédito?"):
        await ai.reply_in_chat("chat", question)

    assert finds.asked[1] == ("¿Cuánto tarda el envío a Canarias?", ["¿y en Canarias?"])
    assert finds.asked[2][0] == "¿aceptan pagos con tarjeta de crédito?"
    assert len(model.calls) == 4
    shown = json.loads(str(model.calls[1].messages[0]["content"]))
    assert shown["message"] == "¿y en Canarias?"
    assert [said["text"] for said in shown["conversation"]] == ["¿cuánto tarda el envío?", "Tres días."]
    assert model.calls[2].messages[-1]["content"] == "¿y en Canarias?"


@pytest.mark.parametrize(("how", "calls"), [("never", 0), ("auto", 0), ("always", 1)])
async def test_when_a_question_that_stands_by_itself_is_rewritten(how: str, calls: int) -> None:
    """Only where it is asked for always."""
    model = MockAIProvider(reply="¿Se aceptan tarjetas?")
    rewrite = rewriting(model, how)

    whole = await rewrite("¿aceptan pagos con tarjeta de crédito?") if rewrite else None

    assert len(model.calls) == calls
    assert whole == ("¿Se aceptan tarjetas?" if calls else None)


def test_nothing_is_rewritten_without_a_model_or_a_conversation() -> None:
    """`extractive` is no model, and a first question has nothing to lean on."""
    options = RagOptions(retriever=Finds(), rewrite="always")

    assert rewriting(ExtractiveProvider(lambda lang, text: text), "always") is None
    assert rewriter(options, MockAIProvider(), [], lang="es", counters=Counters()) is None


@pytest.mark.parametrize("failure", [ModelError("no"), ValueError("no")])
async def test_a_failure_costs_nothing(failure: Exception) -> None:
    """The question is looked up as it is, and the failure is counted."""
    counters = Counters()

    assert await rewriting(MockAIProvider(reply=failure), counters=counters)("¿y en Canarias?") is None  # type: ignore[arg-type]
    assert counters.snapshot() == {"rewrite_failed": 1}


async def test_a_slow_model_leaves_time_to_look_up() -> None:
    """It has half of the time of the whole retrieval at most."""
    started = time.monotonic()

    assert await rewriting(MockAIProvider(reply="tarde", delay=30), timeout_ms=200)("¿y en Canarias?") is None
    assert time.monotonic() - started < 1


async def test_a_cancelled_turn_is_cancelled_here_too() -> None:
    """Cancellation is no failure of the model."""
    task = asyncio.create_task(rewriting(MockAIProvider(reply="tarde", delay=30))("¿y en Canarias?"))
    await asyncio.sleep(0.01)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("answer", "whole"),
    [
        ("¿Cuánto tarda a Canarias?", "¿Cuánto tarda a Canarias?"),
        ('Pienso…\n\n"¿Cuánto tarda a Canarias?"\n', "¿Cuánto tarda a Canarias?"),
        ("", None),
        ("¿y en Canarias?", None),
        ("x" * 400, None),
    ],
)
def test_what_counts_as_a_question(answer: str, whole: str | None) -> None:
    """Its last line, without quotation marks; nothing where it is empty, the same, or far too long."""
    assert told(answer, "¿y en Canarias?") == whole


def test_how_is_one_of_three() -> None:
    """Anything else is refused with what is allowed."""
    with pytest.raises(ValueError, match="rewrite='maybe'"):
        RagOptions(retriever=Finds(), rewrite="maybe")  # type: ignore[arg-type]
