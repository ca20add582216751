"""plugins/ai/turn.py and history.py in the real bot: the table, the fence, the outbox."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot import (
    ConfigurationError,
    Context,
    Marks,
    MemoryOptions,
    Message,
    Passage,
    Prompt,
    Provider,
    RagOptions,
    Registry,
    Reply,
    SubjectErased,
    Update,
)
from bot.testing import MockAIProvider, TestBot, create_test_bot
from plugins.ai.store import Messages
from plugins.ai.turn import Order

pytestmark = pytest.mark.usefixtures("each_engine")

FAQ = Passage("El envío tarda 3 días.", citation="faq")


class Shipping:
    """A retriever that always finds the same."""

    async def retrieve(self, query: str, *, top_k: int | None = None, min_score: float | None = None) -> list[Passage]:
        return [FAQ]


async def rows(bot: TestBot, sql: str = "SELECT * FROM messages ORDER BY seq") -> list[Any]:
    return list(await bot.database.all(sql))


# ---------------------------------------------------------------------------------------------- what is stored


async def test_both_messages_are_stored() -> None:
    """The question and the answer, as the model gave it, both with the id of the person."""
    async with create_test_bot(
        provider=MockAIProvider(reply="Tarda [1][9]."), rag=RagOptions(retriever=Shipping(), append_sources=True)
    ) as bot:
        await bot.ai.reply_in_chat("chat-1", "¿envío?", user_id="user-1", turn_id="t1")

        stored = [(r["chat_key"], r["user_id"], r["role"], r["content"], r["turn_id"]) for r in await rows(bot)]
        assert stored == [
            ("chat-1", "user-1", "user", "¿envío?", "t1"),
            ("chat-1", "user-1", "assistant", "Tarda [1][9].", "t1"),
        ]


async def test_the_window_survives_a_restart(engine_url: str) -> None:
    """Another process goes on where this one was, with the same number of messages."""
    settings = {"BOT_MAX_CONTEXT_MESSAGES": "4"}
    async with create_test_bot(provider=MockAIProvider(reply=["a1", "a2", "a3"]), database_url=engine_url, settings=settings) as bot:
        for n in range(3):
            await bot.say(f"q{n + 1}")
    async with create_test_bot(provider=MockAIProvider(reply="a4"), database_url=engine_url, settings=settings) as bot:
        await bot.say("q4")

        assert [m["content"] for m in bot.provider.calls[0].messages] == ["q2", "a2", "q3", "a3", "q4"]


async def test_two_processes_see_each_others_turns(engine_url: str) -> None:
    """A window in RAM does not hide what another process of the same database answered, or emptied, meanwhile."""
    one, two = MockAIProvider(reply="uno"), MockAIProvider(reply="dos")
    async with (
        create_test_bot(provider=one, database_url=engine_url) as first,
        create_test_bot(provider=two, database_url=engine_url) as second,
    ):
        await first.ai.reply_in_chat("c", "q1")
        await second.ai.reply_in_chat("c", "q2")
        await first.ai.reply_in_chat("c", "q3")
        await second.ai.reset("c")
        await second.ai.reply_in_chat("c", "q4")
        await second.ai.reply_in_chat("c", "q5")
        await second.ai.reply_in_chat("c", "q6")
        await first.ai.reply_in_chat("c", "q7")

        assert [m["content"] for m in one.calls[1].messages] == ["q1", "uno", "q2", "dos", "q3"]
        assert [m["content"] for m in one.calls[2].messages] == ["q4", "dos", "q5", "dos", "q6", "dos", "q7"]


async def test_a_reset_empties_table_and_window() -> None:
    """/reset says how many messages went; facts stay."""
    async with create_test_bot(provider=MockAIProvider(reply="a"), memory=MemoryOptions()) as bot:
        await bot.ai.remember("user-1", "Vive en Bogotá")
        await bot.say("q1")
        count = await bot.ai.reset("user-1")
        await bot.say("q2")

        assert count == 2
        assert len(bot.provider.calls[1].messages) == 1
        assert await bot.ai.memory("user-1") == ["Vive en Bogotá"]


async def test_a_turn_that_was_answered_before_in_another_process(engine_url: str) -> None:
    """The stored reply comes back whole, and no model is asked."""
    options: Any = {"rag": RagOptions(retriever=Shipping(), append_sources=True), "memory": MemoryOptions(), "database_url": engine_url}
    async with create_test_bot(provider=MockAIProvider(reply="Tarda [1]."), **options) as bot:
        await bot.ai.remember("u", "Prefiere español")
        first = await bot.ai.reply_in_chat_detailed("c", "¿envío?", user_id="u", turn_id="t1")
    async with create_test_bot(provider=MockAIProvider(reply="otra"), **options) as bot:
        again = await bot.ai.reply_in_chat_detailed("c", "¿envío?", user_id="u", turn_id="t1")

        assert again == first
        assert bot.provider.calls == []


async def test_a_stored_reply_holds_no_text_of_facts_or_passages() -> None:
    """What is forgotten or removed elsewhere has no copy in this table."""
    async with create_test_bot(
        provider=MockAIProvider(reply="Sí [1]."), rag=Shipping(), memory=MemoryOptions(), settings={"BOT_DEFAULT_LANGUAGE": "es"}
    ) as bot:
        await bot.ai.remember("u", "Prefiere español")
        await bot.ai.reply_in_chat("c", "¿envío?", user_id="u", turn_id="t1")

        stored = json.dumps([dict(row) for row in await rows(bot)], ensure_ascii=False)
        assert "Prefiere" not in stored
        assert FAQ.text not in stored


async def test_a_turn_that_fails_stores_nothing() -> None:
    """Neither message is there where the transaction failed, and the window is as it was."""

    async def deliver(tx: Any, reply: Reply) -> None:
        raise RuntimeError("the outbox is gone")

    async with create_test_bot(provider=MockAIProvider(reply=["a1", "a2"])) as bot:
        stream = bot.ai.reply_in_chat_stream("c", "q1", deliver=deliver)
        with pytest.raises(RuntimeError, match="outbox"):
            async for _ in stream:
                pass
        await bot.ai.reply_in_chat("c", "q2")

        assert stream.reply is None
        assert [r["content"] for r in await rows(bot)] == ["q2", "a2"]
        assert len(bot.provider.calls[1].messages) == 1


async def test_the_reply_is_delivered_in_the_same_transaction() -> None:
    """What is put into the outbox is there exactly when the turn is in the table."""
    seen: list[tuple[str, int]] = []

    async def deliver(tx: Any, reply: Reply) -> None:
        stored = await tx.all("SELECT id FROM messages WHERE agent_id = :agent_id")
        seen.append((reply.text, len(stored)))

    async with create_test_bot(provider=MockAIProvider(reply="hola")) as bot:
        async for _ in bot.ai.reply_in_chat_stream("c", "q", deliver=deliver):
            pass

    assert seen == [("hola", 2)]


# ---------------------------------------------------------------------------------------------- erasure


@pytest.mark.parametrize("chat", ["user-1", "room"])
async def test_erasure_wins_over_a_turn_under_way(chat: str) -> None:
    """A person who is erased while the model answers leaves no message, in private and in a group."""
    async with create_test_bot(provider=MockAIProvider(reply="tarde", delay=0.15), memory=MemoryOptions(auto_extract=True)) as bot:
        turn = asyncio.create_task(bot.ai.reply_in_chat(chat, "hola", user_id="user-1", is_group=chat == "room"))
        await asyncio.sleep(0.05)
        await bot.ai.delete_subject("user-1")
        with pytest.raises(SubjectErased):
            await turn
        bot.provider.delay = 0
        await bot.ai.reply_in_chat(chat, "otra", user_id="user-2", is_group=chat == "room")

        assert [r["content"] for r in await rows(bot)] == ["otra", "tarde"]
        assert len(bot.provider.calls[-1].messages) == 1


async def test_a_group_forgets_one_person() -> None:
    """Their questions and the answers to them go, from the table and from the window in RAM; the others' stay."""
    async with create_test_bot(provider=MockAIProvider(reply=lambda call: f"eco {call.question}")) as bot:
        for user in ("u1", "u2", "u1"):
            await bot.ai.reply_in_chat("room", f"de {user}", user_id=user, is_group=True)
        counts = await bot.delete_subject("u1")
        await bot.ai.reply_in_chat("room", "¿y?", user_id="u2", is_group=True)

        assert counts["messages"] == 4
        assert [m["content"] for m in bot.provider.calls[-1].messages] == ["de u2", "eco de u2", "¿y?"]


async def test_a_private_chat_is_the_persons() -> None:
    """Messages of a chat whose key is the person go with them, whoever's id they bear; the export has them too."""
    async with create_test_bot(provider=MockAIProvider(reply="a")) as bot:
        await bot.ai.reply_in_chat("user-1", "sin persona")
        exported = await bot.export("user-1")
        counts = await bot.delete_subject("user-1")

        assert [(m["role"], m["content"]) for m in exported["messages"]] == [("user", "sin persona"), ("assistant", "a")]
        assert counts["messages"] == 2
        assert await rows(bot) == []


async def test_a_group_whose_id_changes_keeps_its_history() -> None:
    """The rows go along, after those that the new id has already."""
    async with create_test_bot(provider=MockAIProvider(reply="a")) as bot:
        await bot.ai.reply_in_chat("new", "n1")
        await bot.ai.reply_in_chat("old", "o1")
        async with bot.database.transaction() as tx:
            for move in bot.registry.chat_moves:
                await move(tx, "old", "new")
        await bot.ai.reply_in_chat("new", "n2")

        assert [m["content"] for m in bot.provider.calls[-1].messages] == ["n1", "a", "o1", "a", "n2"]


async def test_counts_for_stats() -> None:
    """How many messages in how many chats."""
    async with create_test_bot(provider=MockAIProvider(reply="a")) as bot:
        await bot.ai.reply_in_chat("c1", "q")
        await bot.ai.reply_in_chat("c2", "q")
        counted = await bot.statistics()

        assert (counted["Messages"], counted["Chats"]) == (4, 2)


# ---------------------------------------------------------------------------------------------- how it is put together


async def test_retrievers_of_plugins_are_asked_beside_the_documents(tmp_path: Path) -> None:
    """A plugin's passages stand beside those of the bot's documents, numbered and cited."""
    (tmp_path / "pago.md").write_text("# Pago\n\nSe paga con tarjeta.\n", encoding="utf-8")

    def plugin(registry: Registry) -> None:
        registry.retriever("shipping", lambda parts: Shipping())

    async with create_test_bot(
        provider=MockAIProvider(reply="Con tarjeta [1] en 3 días [2]."), plugins=[plugin], settings={"BOT_DOCUMENTS": str(tmp_path)}
    ) as bot:
        reply = await bot.ai.reply_in_chat_detailed("c", "¿se paga con tarjeta?")

        assert [p.text.split(" ")[0] for p in reply.citations] == ["Se", "El"]
        assert reply.text.endswith("[2] faq")


async def test_the_language_of_the_person() -> None:
    """Without `lang`, it is the one that the person chose, else the default."""
    async with create_test_bot(provider=MockAIProvider(reply="Yes [1]."), rag=RagOptions(retriever=Shipping(), append_sources=True)) as bot:
        await bot.user("u").choose_language("en")
        chosen = await bot.ai.reply_in_chat("c", "?", user_id="u")
        default = await bot.ai.reply_in_chat("c", "?", user_id="v")

        assert (chosen.split("\n")[-1], default.split("\n")[-1]) == ("Sources: [1] faq", "Fuentes: [1] faq")


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"BOT_PROVIDER": "auto"}, "extractive"),
        ({"BOT_PROVIDER": "auto", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "openai"),
        ({"BOT_PROVIDER": "auto", "OPENAI_API_KEY": "sk-test-0123456789abcdef"}, "openai"),
        ({"BOT_PROVIDER": "ollama"}, "ollama"),
        ({"BOT_PROVIDER": "extractive", "OPENAI_API_KEY": "sk-test-0123456789abcdef"}, "extractive"),
    ],
)
async def test_which_provider(settings: dict[str, str], name: str) -> None:
    """`auto` is a model where a key or an address is set, else none; a name is that provider."""
    async with create_test_bot(settings=settings) as bot:
        assert bot.parts.find(Provider).name == name  # type: ignore[type-abstract]


async def test_openai_without_a_key_or_an_address() -> None:
    """It is said at the start."""
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        async with create_test_bot(settings={"BOT_PROVIDER": "openai"}):
            pass


async def test_a_tool_of_a_plugin_has_the_handlers_context() -> None:
    """In the bot, a tool is called with the Context of the update, its evidence included."""
    seen: list[Context] = []

    def plugin(registry: Registry) -> None:
        @registry.tool
        async def look(ctx: Context, what: str) -> str:
            """Looks."""
            seen.append(ctx)
            return what

    model = MockAIProvider(reply="ya", tool_calls=[("look", {"what": "x"})])
    async with create_test_bot(provider=model, plugins=[plugin]) as bot:
        said = await bot.say("mira", evidence="")

        assert said == ["ya"]
        assert (seen[0].sender, seen[0].chat, seen[0].evidence) == ("user-1", "user-1", "")
        assert isinstance(seen[0].update, Update)


async def test_a_system_prompt_of_ones_own() -> None:
    """BOT_SYSTEM_PROMPT is who the bot is."""
    async with create_test_bot(provider=MockAIProvider(reply="Arr."), settings={"BOT_SYSTEM_PROMPT": "Eres un pirata."}) as bot:
        await bot.say("hola")

        call: Prompt = bot.provider.calls[0]
        assert call.system.startswith("Eres un pirata.\n")


# ---------------------------------------------------------------------------------------------- the update's own marks


@dataclass(frozen=True)
class Noted:
    """A context that says what the epochs were when the update was taken up."""

    marks: Marks


async def test_an_erasure_since_the_update_began_ends_the_turn(engine_url: str) -> None:
    """A handler may have taken its time before it asked: what was said before an erasure reaches neither the model nor the table."""
    provider = MockAIProvider(reply="vale")
    async with create_test_bot(provider=provider, database_url=engine_url) as bot:
        await bot.ai.reply_in_chat("test:1", "antes", user_id="test:1")
        context = Noted(await bot.core.fence.mark("test:1"))
        await bot.delete_subject("test:1")
        calls = len(provider.calls)
        with pytest.raises(SubjectErased):
            await bot.ai.reply_in_chat("test:1", "mi secreto", user_id="test:1", context=context)
        assert len(provider.calls) == calls
        assert await bot.database.all("SELECT content FROM messages") == []

        again = Noted(await bot.core.fence.mark("test:1"))
        assert await bot.ai.reply_in_chat("test:1", "hola", user_id="test:1", context=again) == "vale"


async def test_marks_of_others_are_none() -> None:
    """A context that has noted another chat alone says nothing about this one: the epochs are noted as ever."""
    async with create_test_bot(provider=MockAIProvider(reply="vale")) as bot:
        assert await bot.ai.reply_in_chat("test:1", "hola", user_id="test:1", context=Noted({"test:2": 1})) == "vale"
        await bot.delete_subject("test:1")

        assert await bot.database.all("SELECT content FROM messages") == []


# ---------------------------------------------------------------------------------------------- order


async def test_the_order_of_a_chat_takes_no_room() -> None:
    """Turns of one chat follow each other in the order they came; what nobody waits for is forgotten, also after a cancellation."""
    order, entered = Order(), list[int]()

    async def turn(n: int) -> None:
        async with order.of("c"):
            entered.append(n)
            await asyncio.sleep(0.01)

    tasks = [asyncio.create_task(turn(n)) for n in range(4)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert entered == [0, 1, 3]
    assert order._chats == {}


async def test_a_store_of_messages() -> None:
    """The table is a MessageStore too: the newest messages of a chat, oldest first."""
    async with create_test_bot() as bot:
        store = Messages(bot.database)
        for n in range(4):
            await store.append_message("c", Message("user", f"m{n}", n, "u"))
        await store.append_message("other", Message("user", "x", 9))

        assert [(m.content, m.at, m.user_id) for m in await store.get_history("c", 2)] == [("m2", 2, "u"), ("m3", 3, "u")]


async def test_the_same_turn_in_two_processes(engine_url: str) -> None:
    """Where another process has answered the same turn meanwhile, nothing is stored or delivered twice."""
    delivered: list[str] = []

    async def deliver(tx: Any, reply: Reply) -> None:
        delivered.append(reply.text)

    async def turn(bot: TestBot) -> None:
        async for _ in bot.ai.reply_in_chat_stream("c", "q", turn_id="t1", deliver=deliver):
            pass

    slow, quick = MockAIProvider(reply="tarde", delay=0.2), MockAIProvider(reply="pronto")
    async with (
        create_test_bot(provider=slow, database_url=engine_url) as one,
        create_test_bot(provider=quick, database_url=engine_url) as two,
    ):
        late = asyncio.create_task(turn(one))
        await asyncio.sleep(0.08)
        await turn(two)
        await late

        assert delivered == ["pronto"]
        assert [r["content"] for r in await rows(one)] == ["q", "pronto"]


# ---------------------------------------------------------------------------------------------- figures


@pytest.mark.parametrize(
    ("answer", "counted"),
    [
        ("Tarda 3 días [1].", None),
        ("Tarda 4 días [1], o 5 si llueve.", 2),
        ("Tarda 4 días.", None),
        ("1. Tarda [1].", None),
        ("Pediste 7: tarda 3 días [1].", None),
    ],
)
async def test_figures_that_no_cited_passage_holds_are_counted(answer: str, counted: int | None) -> None:
    """For the administrator to look into: the answer is sent as it is, and `/stats` shows how many there were."""
    async with create_test_bot(provider=MockAIProvider(reply=answer), rag=RagOptions(retriever=Shipping())) as bot:
        reply = await bot.ai.reply_in_chat("chat-1", "¿cuánto tardan las 7 cajas?", user_id="user-1")

        assert reply == answer
        assert (await bot.statistics()).get("citation_unsupported") == counted
