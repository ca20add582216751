"""plugins/ai/client.py: an AIClient by hand."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bot import (
    ContextTooLong,
    Counters,
    MemoryOptions,
    Message,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    Passage,
    Prompt,
    RagOptions,
    SubjectErased,
    ToolCall,
)
from bot.testing import MockAIProvider
from plugins.ai import AIClient

FAQ = Passage("El envío tarda 3 días.", citation="faq")


class Shipping:
    """A retriever that always finds the same; `delay` in seconds."""

    def __init__(self, *passages: Passage, delay: float = 0.0) -> None:
        self.passages = list(passages) or [FAQ]
        self.delay = delay
        self.queries: list[str] = []

    async def retrieve(self, query: str, *, top_k: int | None = None, min_score: float | None = None) -> list[Passage]:
        self.queries.append(query)
        await asyncio.sleep(self.delay)
        return self.passages


@asynccontextmanager
async def client(reply: Any = "Hola.", *, provider: Any = None, **options: Any) -> AsyncIterator[tuple[AIClient, Any]]:
    """A client by hand and its model, which says `reply`."""
    model = provider or MockAIProvider(reply=reply)
    ai = AIClient(model, **options)
    try:
        yield ai, model
    finally:
        await ai.aclose()


def sources(**options: Any) -> RagOptions:
    return RagOptions(**{"retriever": Shipping(), "append_sources": True, **options})


# ---------------------------------------------------------------------------------------------- the reply


async def test_the_example_of_the_contract() -> None:
    """Facts and passages are in the prompt, the line of sources in the text, and the reply knows all of it."""
    async with client("Tarda 3 días [1].", memory=MemoryOptions(), rag=sources()) as (ai, model):
        new = await ai.remember("user-1", "Prefiere español")
        reply = await ai.reply_in_chat_detailed("chat-1", "¿envío?", user_id="user-1")

        assert new == ["Prefiere español"]
        assert reply.text == "Tarda 3 días [1].\n\nFuentes: [1] faq"
        assert (reply.answer, reply.facts) == ("Tarda 3 días [1].", ["Prefiere español"])
        assert (reply.citations, reply.cited) == ([FAQ], [(1, FAQ)])
        assert "Prefiere español" in model.calls[0].system
        assert "[1] (faq) El envío tarda 3 días." in model.calls[0].system


async def test_the_text_alone() -> None:
    """`reply_in_chat` gives what is sent."""
    async with client("Tarda 3 días [1].", rag=sources()) as (ai, _):
        assert await ai.reply_in_chat("c", "¿envío?", lang="en") == "Tarda 3 días [1].\n\nSources: [1] faq"


async def test_a_retriever_alone() -> None:
    """`rag=retriever` is RagOptions with its defaults: passages in the prompt, no line of sources."""
    async with client("Tarda 3 días [1].", rag=Shipping()) as (ai, model):
        reply = await ai.reply_in_chat_detailed("c", "¿envío?")

        assert reply.text == "Tarda 3 días [1]."
        assert reply.cited == [(1, FAQ)]
        assert "<passages>" in model.calls[0].system


async def test_a_number_without_a_passage() -> None:
    """It is neither cited nor shown, though the answer is kept as the model gave it."""
    async with client("Tarda 3 días [1][7].", rag=sources()) as (ai, model):
        reply = await ai.reply_in_chat_detailed("c", "¿envío?")
        await ai.reply_in_chat("c", "¿y?")

        assert reply.text == "Tarda 3 días [1].\n\nFuentes: [1] faq"
        assert (reply.answer, reply.cited) == ("Tarda 3 días [1][7].", [(1, FAQ)])
        assert model.calls[1].messages[1] == {"role": "assistant", "content": "Tarda 3 días [1][7]."}


async def test_without_rag_numbers_are_only_numbers() -> None:
    """Where nothing can be cited, an answer is left as it is."""
    async with client("La lista [1] y la [2].") as (ai, _):
        assert await ai.reply_in_chat("c", "?") == "La lista [1] y la [2]."


@pytest.mark.parametrize(
    ("own", "text"),
    [
        (lambda citations, cited: f"Ver {cited[0][1].citation}", "Sí [1].\n\nVer faq"),
        (lambda citations, cited: "", "Sí [1]."),
        (lambda citations, cited: 1 / 0, "Sí [1].\n\nFuentes: [1] faq"),
        (lambda citations, cited: None, "Sí [1].\n\nFuentes: [1] faq"),
    ],
)
async def test_a_line_of_sources_of_ones_own(own: Callable[..., Any], text: str) -> None:
    """`append_sources` may be a function; where it fails, the default line is used."""
    async with client("Sí [1].", rag=sources(append_sources=own)) as (ai, _):
        assert await ai.reply_in_chat("c", "?") == text


async def test_the_model_writes_sources_by_itself() -> None:
    """There are never two lines."""
    async with client("Tarda 3 días [1].\n\n**Fuentes:** [1] faq.md", rag=sources()) as (ai, _):
        assert await ai.reply_in_chat("c", "?") == "Tarda 3 días [1].\n\nFuentes: [1] faq"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Tarda 3 días.\n\nFuentes: [2] b", "Tarda 3 días.\n\nFuentes: [2] b"),  # not a, which it did not use
        ("Fuentes: [1]", "Fuentes: [1]"),
        ("**Sources:**\n- [1] a", "**Sources:**\n- [1] a"),
    ],
)
async def test_a_model_that_cites_in_its_own_line_alone(answer: str, text: str) -> None:
    """What it names there is what it cites, and one line of sources is enough, also where there is nothing else."""
    found = Shipping(Passage("A", citation="a"), Passage("B", citation="b"))
    async with client(answer, rag=sources(retriever=found)) as (ai, _):
        assert await ai.reply_in_chat("c", "?") == text


async def test_nothing_found_no_line() -> None:
    """With nothing retrieved there are no sources."""
    retriever = Shipping()
    retriever.passages = []
    async with client("No lo sé.", rag=sources(retriever=retriever)) as (ai, _):
        assert await ai.reply_in_chat("c", "?") == "No lo sé."


async def test_ask_is_the_model_alone() -> None:
    """No chat, no memory, no documents."""
    async with client("42", memory=True, rag=sources()) as (ai, model):
        answer = await ai.ask("¿6×7?", system="Calcula.")
        await ai.reply_in_chat("c", "hola")

        assert answer == "42"
        assert (model.calls[0].system, model.calls[0].messages) == ("Calcula.", [{"role": "user", "content": "¿6×7?"}])
        assert len(model.calls[1].messages) == 1


# ---------------------------------------------------------------------------------------------- the window


async def test_the_window_goes_along() -> None:
    """The last messages are the history of the next prompt, each chat its own."""
    async with client(["uno", "dos"], window=2) as (ai, model):
        await ai.reply_in_chat("c", "primera")
        await ai.reply_in_chat("c", "segunda")
        await ai.reply_in_chat("c", "tercera")
        await ai.reply_in_chat("otra", "hola")

        assert [m["content"] for m in model.calls[2].messages] == ["segunda", "dos", "tercera"]
        assert [m["content"] for m in model.calls[3].messages] == ["hola"]


async def test_reset_empties_the_window_alone() -> None:
    """Facts stay; the number is that of the messages."""
    async with client(memory=True) as (ai, model):
        await ai.remember("u", "Vive en Bogotá")
        await ai.reply_in_chat("c", "hola", user_id="u")
        count = await ai.reset("c")
        await ai.reply_in_chat("c", "otra", user_id="u")

        assert count == 2
        assert len(model.calls[1].messages) == 1
        assert await ai.memory("u") == ["Vive en Bogotá"]


async def test_a_store_of_ones_own() -> None:
    """A MessageStore is asked for the history and given both messages."""
    kept: list[tuple[str, Message]] = []

    class Store:
        async def append_message(self, chat_key: str, message: Message) -> None:
            kept.append((chat_key, message))

        async def get_history(self, chat_key: str, limit: int) -> list[Message]:
            return [message for key, message in kept if key == chat_key][-limit:]

    async with client(["uno", "dos"], window=Store()) as (ai, model):
        await ai.reply_in_chat("c", "primera", user_id="u")
        await ai.reply_in_chat("c", "segunda")

        assert [(key, m.role, m.content, m.user_id) for key, m in kept[:2]] == [
            ("c", "user", "primera", "u"),
            ("c", "assistant", "uno", "u"),
        ]
        assert [m["content"] for m in model.calls[1].messages] == ["primera", "uno", "segunda"]


async def test_a_turn_that_was_answered_before() -> None:
    """The stored reply is given again, and the model is not asked."""
    async with client(["Tarda [1].", "otra cosa"], memory=True, rag=sources()) as (ai, model):
        await ai.remember("u", "Prefiere español")
        first = await ai.reply_in_chat_detailed("c", "¿envío?", user_id="u", turn_id="t1")
        again = await ai.reply_in_chat_detailed("c", "¿envío?", user_id="u", turn_id="t1")

        assert again == first
        assert len(model.calls) == 1


async def test_what_was_forgotten_is_not_in_a_stored_reply() -> None:
    """The texts of facts and passages are not stored with a reply."""
    shipping = Shipping()
    async with client(["Tarda [1]."], memory=True, rag=sources(retriever=shipping)) as (ai, _):
        await ai.remember("u", "Prefiere español")
        first = await ai.reply_in_chat_detailed("c", "¿envío?", user_id="u", turn_id="t1")
        await ai.forget("u")
        shipping.passages = []
        again = await ai.reply_in_chat_detailed("c", "¿envío?", user_id="u", turn_id="t1")

        assert (again.text, again.facts) == (first.text, [])
        assert [(n, p.citation, p.text) for n, p in again.cited] == [(1, "faq", "")]


async def test_an_error_of_the_model_leaves_nothing() -> None:
    """The question is not kept alone."""
    async with client([ModelUnavailable("down"), "ya"]) as (ai, model):
        with pytest.raises(ModelUnavailable):
            await ai.reply_in_chat("c", "primera")
        await ai.reply_in_chat("c", "segunda")

        assert [m["content"] for m in model.calls[1].messages] == ["segunda"]


@pytest.mark.parametrize("answer", ["", "   \n "])
async def test_an_empty_answer_is_an_error(answer: str) -> None:
    """Nothing is sent as if it were something."""
    async with client(answer) as (ai, _):
        with pytest.raises(ModelError, match="empty"):
            await ai.reply_in_chat("c", "hola")
        with pytest.raises(ModelError, match="empty"):
            await ai.ask("hola")


# ---------------------------------------------------------------------------------------------- memory and retrieval cannot hold it up


async def test_facts_and_passages_are_sought_side_by_side() -> None:
    """The turn waits for the slower, not for the sum."""
    async with client(memory=SlowRecall(0.2), rag=Shipping(delay=0.2)) as (ai, _):
        started = time.monotonic()
        await ai.reply_in_chat("c", "hola", user_id="u")

        assert time.monotonic() - started < 0.35


class SlowRecall:
    """A Recall whose facts take a while, or fail."""

    options = MemoryOptions()

    def __init__(self, delay: float = 0.0, error: Exception | None = None) -> None:
        self.delay, self.error = delay, error
        self.staged: list[tuple[str, str, str]] = []

    async def relevant(self, subjects: Any, question: str) -> list[Any]:
        await asyncio.sleep(self.delay)
        if self.error:
            raise self.error
        return []

    async def stage_extraction(self, tx: Any, subject: str, user_text: str, assistant_text: str, *, chat_key: str = "") -> None:
        self.staged.append((subject, user_text, assistant_text))


async def test_a_retriever_that_hangs() -> None:
    """After `timeout_ms` the reply goes on without context, with a counter."""
    counters = Counters()
    async with client("Hola.", rag=sources(retriever=Shipping(delay=30), timeout_ms=50), counters=counters) as (ai, model):
        reply = await ai.reply_in_chat_detailed("c", "hola")

        assert (reply.text, reply.citations) == ("Hola.", [])
        assert counters.snapshot() == {"retrieval_timeout": 1}
        assert "[1]" not in model.calls[0].system.partition("</passages>")[0].rpartition("<passages>")[2]


async def test_memory_that_fails() -> None:
    """A broken database costs the facts, not the reply."""
    counters = Counters()
    async with client("Hola.", memory=SlowRecall(error=RuntimeError("disk")), counters=counters) as (ai, _):
        assert await ai.reply_in_chat("c", "hola", user_id="u") == "Hola."
        assert counters.snapshot() == {"memory_failed": 1}


async def test_memory_that_hangs_for_ever() -> None:
    """After a time (2 seconds, if nobody says otherwise) the reply goes on without facts."""
    counters = Counters()
    async with client("Hola.", memory=SlowRecall(30), memory_seconds=0.05, counters=counters) as (ai, _):
        assert await ai.reply_in_chat("c", "hola", user_id="u") == "Hola."
        assert counters.snapshot() == {"memory_timeout": 1}


# ---------------------------------------------------------------------------------------------- who reads it


@pytest.mark.parametrize(("in_groups", "expected"), [(False, []), (True, ["Toma café"])])
async def test_no_personal_fact_in_a_group(in_groups: bool, expected: list[str]) -> None:
    """Everyone reads the answer there: the person's facts stay out, unless that was chosen; the room's are its own."""
    async with client(memory=MemoryOptions(inject_in_groups=in_groups)) as (ai, model):
        await ai.remember("u", "Toma café")
        await ai.remember("room", "Hablan de café los lunes")
        group = await ai.reply_in_chat_detailed("room", "hola", user_id="u", is_group=True)
        private = await ai.reply_in_chat_detailed("u", "hola", user_id="u")

        assert group.facts == [*expected, "Hablan de café los lunes"]
        assert ("Toma café" in model.calls[0].system) is in_groups
        assert private.facts == ["Toma café"]


async def test_nobody_has_no_memory() -> None:
    """Without user_id nothing is injected, in a group neither."""
    async with client(memory=True) as (ai, _):
        await ai.remember("room", "Hablan de café")

        assert (await ai.reply_in_chat_detailed("room", "hola", is_group=True)).facts == []


async def test_memory_that_is_off_still_has_its_methods() -> None:
    """Nothing is injected, but everything can be asked for by hand."""
    async with client() as (ai, model):
        added = await ai.remember("u", ["Vive en Bogotá", "Toma café"])
        reply = await ai.reply_in_chat_detailed("c", "hola", user_id="u")
        one = await ai.forget("u", "vive en bogotá.")
        none = await ai.forget("u", "otra cosa")
        rest = await ai.forget("u")

        assert added == ["Vive en Bogotá", "Toma café"]
        assert (reply.facts, one, none, rest) == ([], True, False, 1)
        assert "Bogotá" not in model.calls[0].system


async def test_erasing_a_person_by_hand() -> None:
    """Facts and windows that hold words of theirs go."""
    async with client(["uno", "dos", "tres"], memory=True) as (ai, model):
        await ai.remember("u", "Vive en Bogotá")
        await ai.reply_in_chat("grupo", "hola", user_id="u", is_group=True)
        counts = await ai.delete_subject("u")
        await ai.reply_in_chat("grupo", "otra", user_id="v", is_group=True)

        assert counts == {"facts": 1, "messages": 2}
        assert await ai.memory("u") == []
        assert len(model.calls[1].messages) == 1


async def test_erasure_wins_over_a_turn_under_way() -> None:
    """What was asked before the erasure and answered after it is kept nowhere."""
    async with client("tarde", provider=MockAIProvider(reply="tarde", delay=0.1)) as (ai, model):
        turn = asyncio.create_task(ai.reply_in_chat("u", "hola", user_id="u"))
        await asyncio.sleep(0.03)
        await ai.delete_subject("u")
        with pytest.raises(SubjectErased):
            await turn
        await ai.reply_in_chat("u", "otra", user_id="u")

        assert len(model.calls[1].messages) == 1


@pytest.mark.parametrize(
    ("evidence", "staged"), [(None, [("u", "vivo en Bogotá", "Hola.")]), ("", []), ("solo esto", [("u", "solo esto", "Hola.")])]
)
async def test_only_the_persons_own_words_are_evidence(evidence: str | None, staged: list[tuple[str, str, str]]) -> None:
    """Extraction is given what counts as their own words, and nothing where there are none."""
    recall = SlowRecall()
    async with client(memory=recall) as (ai, _):
        await ai.reply_in_chat("c", "vivo en Bogotá", user_id="u", evidence=evidence, quoted="Vivo en Lima")

        assert recall.staged == staged


async def test_extraction_follows_the_reply() -> None:
    """With auto_extract, `idle()` returns when the facts are there."""
    model = MockAIProvider(reply=["Anotado.", '{"facts": ["Vive en Bogotá"]}'])
    async with client(provider=model, memory=MemoryOptions(auto_extract=True)) as (ai, _):
        await ai.reply_in_chat("c", "vivo en Bogotá", user_id="u")
        await ai.idle()

        assert await ai.memory("u") == ["Vive en Bogotá"]


# ---------------------------------------------------------------------------------------------- order


async def test_two_messages_of_a_chat_are_answered_in_order() -> None:
    """The second sees the first and its answer; another chat does not wait."""
    model = Gated()
    async with client(provider=model) as (ai, _):
        first = asyncio.create_task(ai.reply_in_chat("c", "primera"))
        await asyncio.sleep(0)
        second = asyncio.create_task(ai.reply_in_chat("c", "segunda"))
        other = asyncio.create_task(ai.reply_in_chat("otra", "hola"))
        await asyncio.sleep(0.02)
        under_way = [call.question for call in model.calls]
        model.gate.set()
        await asyncio.gather(first, second, other)

        assert under_way == ["primera", "hola"]
        assert [m["content"] for m in model.calls[2].messages] == ["primera", "eco primera", "segunda"]


class Gated(MockAIProvider):
    """A model that answers once its gate is open."""

    def __init__(self) -> None:
        super().__init__(reply=lambda prompt: f"eco {prompt.question}")
        self.gate = asyncio.Event()

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | ToolCall]:
        self.calls.append(prompt)
        await self.gate.wait()
        yield f"eco {prompt.question}"


# ---------------------------------------------------------------------------------------------- streams


async def test_the_sources_come_last() -> None:
    """Fragments together are the text of the reply, and the line of sources is the last."""
    async with client("Tarda 3 días [1].", rag=sources()) as (ai, _):
        stream = ai.reply_in_chat_stream("c", "¿envío?")
        fragments = [fragment async for fragment in stream]

        assert fragments == ["Tarda", " 3", " días", " [1].", "\n\nFuentes: [1] faq"]
        assert stream.reply is not None
        assert "".join(fragments) == stream.reply.text


async def test_no_reply_before_the_end() -> None:
    """`.reply` is there when the stream has ended."""
    async with client("uno dos") as (ai, _):
        stream = ai.reply_in_chat_stream("c", "?")
        await anext(stream)

        assert stream.reply is None


async def test_stopping_keeps_what_there_is() -> None:
    """A stop ends the model's answer at once; what was said is the answer, and is in the window."""
    model = Endless()
    async with client(provider=model, rag=sources()) as (ai, _):
        stream = ai.reply_in_chat_stream("c", "¿?")
        shown = [await anext(stream) for _ in range(3)]
        await stream.stop()
        shown += [fragment async for fragment in stream]
        await ai.reply_in_chat_stream("c", "¿y?").stop()

        assert stream.reply is not None
        assert stream.reply.text == "".join(shown)
        assert stream.reply.answer.startswith("a a a")
        assert shown[-1] == "\n\nFuentes: faq"
        assert model.closed == 1


async def test_stopping_drops_what_nobody_took_yet() -> None:
    """A model may be far ahead of whoever reads: a stop keeps what was taken, not what it had written by then."""
    async with client("palabra " * 50) as (ai, _):
        stream = ai.reply_in_chat_stream("c", "¿?")
        shown = [await anext(stream) for _ in range(3)]
        await stream.stop()
        shown += [fragment async for fragment in stream]

        assert stream.reply is not None
        assert stream.reply.text == "".join(shown) == "palabra palabra palabra"


class Endless(MockAIProvider):
    """A model that never ends by itself."""

    closed = 0

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | ToolCall]:
        try:
            while True:
                yield "a "
                await asyncio.sleep(0.005)
        finally:
            self.closed += 1


async def test_a_stop_reaches_a_model_that_is_silent() -> None:
    """Whoever takes the fragments is waiting, and another task stops it: both end at once, with nothing kept."""
    model = Gated()
    async with client(provider=model) as (ai, _):
        stream = ai.reply_in_chat_stream("c", "¿?")
        taking = asyncio.create_task(_all(stream))
        await asyncio.sleep(0.02)
        await asyncio.wait_for(stream.stop(), 1)
        model.gate.set()
        await ai.reply_in_chat("c", "otra")

        assert await taking == []
        assert stream.reply is not None
        assert stream.reply.text == ""
        assert len(model.calls[1].messages) == 1


async def _all(stream: Any) -> list[str]:
    return [fragment async for fragment in stream]


async def test_a_reader_that_is_cancelled_ends_the_turn() -> None:
    """The model's request ends, nothing is kept, and the chat is free again."""
    model = Endless()
    async with client(provider=model) as (ai, _):
        reading = asyncio.create_task(_all(ai.reply_in_chat_stream("c", "¿?")))
        await asyncio.sleep(0.03)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asyncio.sleep(0)

        assert model.closed == 1
        assert await ai.reset("c") == 0


async def test_a_stream_that_is_left_is_dropped() -> None:
    """A reader that breaks off without a stop keeps nothing, and does not hold up the chat."""
    async with client("uno dos tres") as (ai, model):
        stream = ai.reply_in_chat_stream("c", "primera")
        async for _ in stream:
            break
        del stream
        gc.collect()
        await asyncio.wait_for(ai.reply_in_chat("c", "segunda"), 1)

        assert [m["content"] for m in model.calls[-1].messages] == ["segunda"]


async def test_an_error_is_raised_where_the_fragments_are_taken() -> None:
    """Also one that comes after a stop from elsewhere."""
    async with client(ModelUnavailable("down")) as (ai, _):
        stream = ai.reply_in_chat_stream("c", "¿?")

        with pytest.raises(ModelUnavailable):
            await _all(stream)
        assert await _all(stream) == []


async def test_a_slow_reader_does_not_run_into_the_models_deadline() -> None:
    """The deadline is the model's: it does not run while the reader is busy."""
    async with client("uno dos tres", answer_seconds=0.15) as (ai, _):
        shown = []
        async for fragment in ai.reply_in_chat_stream("c", "¿?"):
            shown.append(fragment)
            await asyncio.sleep(0.1)

        assert "".join(shown) == "uno dos tres"


async def test_the_whole_answer_has_a_deadline() -> None:
    """A model that trickles on without an end is a ModelTimeout."""
    async with client(provider=Endless(), answer_seconds=0.1) as (ai, _):
        with pytest.raises(ModelTimeout):
            await ai.reply_in_chat("c", "¿?")


# ---------------------------------------------------------------------------------------------- prompts that are too long


async def test_a_prompt_that_is_too_long_is_cut_and_sent_once_more() -> None:
    """The oldest turns leave, the question stays, and the next turn keeps to what was learnt."""
    model = Short(1200)
    async with client(provider=model, max_context_tokens=100_000) as (ai, _):
        for n in range(6):
            await ai.reply_in_chat("c", f"pregunta {n} " + "x" * 500)
        asked = len(model.calls)
        await ai.reply_in_chat("c", "la última")

        assert len(model.calls) == asked + 1
        assert model.calls[-1].messages[-1]["content"] == "la última"
        assert len(model.calls[-1].messages) > 1


class Short(MockAIProvider):
    """A model that takes a bounded number of characters, and says so."""

    def __init__(self, limit: int) -> None:
        super().__init__(reply="vale")
        self.limit = limit

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | ToolCall]:
        self.calls.append(prompt)
        used = (len(prompt.system) + sum(len(m["content"]) for m in prompt.messages)) // 2
        if used > self.limit:
            error = ContextTooLong("too long")
            error.limit, error.used = self.limit, used
            raise error
        yield "vale"


async def test_a_question_that_is_too_long_by_itself() -> None:
    """After the second refusal the person is told."""
    async with client(provider=Short(10)) as (ai, model):
        with pytest.raises(ContextTooLong):
            await ai.reply_in_chat("c", "hola")

        assert len(model.calls) == 2
