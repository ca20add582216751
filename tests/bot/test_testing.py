"""What is given to those who test what they build on the bot: a scripted model, and the real bot to talk to."""

import asyncio

import pytest

from bot import BadRequest, Context, Prompt, Registry, StorageError, ToolCall
from bot.ports import Retriever
from bot.testing import MockAIProvider, RecordingTransport, create_test_bot
from bot.values import Attachment, MemoryOptions, Passage, RagOptions

PROMPT = Prompt("system", [{"role": "user", "content": "hi"}])


class Shipping:
    """A retriever."""

    async def retrieve(self, query: str, *, top_k: int | None = None, min_score: float | None = None) -> list[Passage]:
        """One passage."""
        return [Passage(text="El envío tarda 3 días.", citation="faq")]


async def test_the_example_of_the_contract() -> None:
    """It works as it is written."""
    assert isinstance(Shipping(), Retriever)
    async with create_test_bot(
        provider=MockAIProvider(reply="Tarda 3 días [1]."),
        memory=MemoryOptions(),
        rag=RagOptions(retriever=Shipping(), append_sources=True),
        language="es",
    ) as bot:
        await bot.ai.remember("user-1", "Prefiere español")
        reply = await bot.ai.reply_in_chat_detailed("chat-1", "¿envío?", user_id="user-1")
        system = bot.provider.calls[0].system
        said = await bot.say("/memory", user="user-1", chat="chat-1", group=False)

    assert reply.text == "Tarda 3 días [1].\n\nFuentes: [1] faq"
    assert reply.facts == ["Prefiere español"]
    assert "Prefiere español" in system
    assert "[1] (faq) El envío tarda 3 días." in system
    assert any("Prefiere español" in one for one in said)


async def test_what_is_said_is_what_comes_back() -> None:
    """In this chat, for this message; a fact of a person is theirs."""
    async with create_test_bot(provider=MockAIProvider(reply=["one", "two"])) as bot:
        first, second, third = await bot.say("a"), await bot.say("b", chat="room"), await bot.say("c")

    assert (first, second, third) == (["one"], ["two"], ["two"])


async def test_a_plugin_and_settings_of_a_test() -> None:
    """Functions and variables, as the bot itself takes them; files go along with what is said."""

    def plugin(registry: Registry) -> None:
        @registry.command("size", who="admins")
        async def size(ctx: Context) -> None:
            assert ctx.files is not None
            data = await ctx.files.fetch(ctx.attachments[0], max_bytes=100)
            await ctx.reply(f"{ctx.attachments[0].name}: {len(data)}")

    async with create_test_bot(plugins=[plugin], settings={"BOT_ADMINS": "test:boss"}) as bot:
        assert await bot.say("/size", user="test:boss", attachments={"a.md": b"12345"}) == ["a.md: 5"]


async def test_what_a_plugin_gives_counts() -> None:
    """Memory and a retriever that a plugin registers are those of the bot; what the test gives itself goes before them."""

    def plugin(registry: Registry) -> None:
        registry.ai(memory=MemoryOptions(ttl="90d"), rag=RagOptions(retriever=Shipping(), append_sources=True))

    async with create_test_bot(provider=MockAIProvider(reply="Tarda 3 días [1]."), plugins=[plugin]) as bot:
        said = await bot.say("¿Cuánto tarda?")
        await bot.say("/remember Vivo en Quito")
        (fact,) = await bot.ai.memory_facts("user-1")
    async with create_test_bot(plugins=[plugin], memory=MemoryOptions(ttl="1d")) as bot:
        await bot.say("/remember Vivo en Quito")
        (shorter,) = await bot.ai.memory_facts("user-1")

    assert said == ["Tarda 3 días [1].\n\nFuentes: [1] faq"]
    assert fact.expires_at == fact.updated_at + 90 * 86_400_000
    assert shorter.expires_at == shorter.updated_at + 86_400_000


async def test_a_bot_that_stopped_says_so() -> None:
    """A test that talks to it fails at once, by what stopped it, and does not wait for ever."""
    async with create_test_bot() as bot:
        assert bot.running is not None
        bot.running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await bot.running
        async with asyncio.timeout(5):
            with pytest.raises(asyncio.CancelledError):
                await bot.say("anybody there?")


# ---------------------------------------------------------------------------------------------- the scripted model


async def test_one_answer_a_call() -> None:
    """A list is said in order, and its last again and again; every call is kept."""
    provider = MockAIProvider(reply=["one", lambda prompt: prompt.system.upper()])
    said = [(await provider.complete(PROMPT)).text for _ in range(3)]

    assert said == ["one", "SYSTEM", "SYSTEM"]
    assert provider.calls == [PROMPT] * 3


async def test_an_exception_is_raised() -> None:
    """Whole and in a stream."""
    provider = MockAIProvider(reply=StorageError("no"))
    with pytest.raises(StorageError):
        await provider.complete(PROMPT)
    with pytest.raises(StorageError):
        [piece async for piece in provider.stream(PROMPT)]


@pytest.mark.parametrize(("fragment", "pieces"), [(0, ["one ", "two ", " ", "three"]), (4, ["one ", "two ", " thr", "ee"])])
async def test_a_stream_is_the_answer_in_pieces(fragment: int, pieces: list[str]) -> None:
    """Word by word, or by so many characters; together they are the answer."""
    provider = MockAIProvider(reply="one two  three", fragment=fragment)

    assert [piece async for piece in provider.stream(PROMPT)] == pieces


async def test_tools_are_asked_for_once() -> None:
    """In the first call; then the answers begin."""
    provider = MockAIProvider(reply=["done", "again"], tool_calls=[("stock", {"product": "té"}), ToolCall("1", "broken", "{")])
    first, second, third = [await provider.complete(PROMPT) for _ in range(3)]

    assert [(call.name, call.arguments) for call in first.tool_calls] == [("stock", '{"product": "t\\u00e9"}'), ("broken", "{")]
    assert (first.text, second.text, third.text) == ("", "done", "again")


async def test_a_delay() -> None:
    """The answer comes after it, and can be cancelled before."""
    provider = MockAIProvider(reply="late", delay=30)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(provider.complete(PROMPT), 0.01)

    assert len(provider.calls) == 1


async def test_a_recording_transport_keeps_everything() -> None:
    """Texts, files and progress; a file that is too large is refused."""
    transport = RecordingTransport(files={"1": b"12345"})
    await transport.send("a", "text")
    await transport.send_file("a", "a.json", b"{}")
    await transport.progress("a", "k", "half")

    assert [(one.text, one.file) for one in transport.sent] == [("text", None), ("a.json", ("a.json", b"{}"))]
    assert transport.progressed == ["half"]
    assert await transport.fetch(Attachment("1", "a"), max_bytes=5) == b"12345"
    with pytest.raises(BadRequest):
        await transport.fetch(Attachment("1", "a"), max_bytes=4)
