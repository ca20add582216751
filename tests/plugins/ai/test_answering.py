"""plugins/ai/answering.py and plugins/ai/tools.py: the loop of the model's tools."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Literal

import pytest

from bot import BadRequest, ModelError, Prompt, Tool, ToolCall, tool_of
from bot.testing import MockAIProvider
from plugins.ai import AIClient
from plugins.ai.tools import MAX_ROUNDS, BadArguments, TurnContext, arguments


async def stock(ctx: TurnContext, product: str, most: int = 5, unit: Literal["kg", "g"] = "kg") -> str:
    """How much there is."""
    return f"{most} {unit} of {product} for {ctx.sender} in {ctx.chat}"


async def table(ctx: TurnContext) -> Mapping[str, Any]:
    """Everything."""
    return {"té": [1, 2]}


async def broken(ctx: TurnContext) -> str:
    """Fails."""
    raise RuntimeError("the shelf fell")


async def refusing(ctx: TurnContext) -> str:
    """Says why not."""
    raise BadRequest("closed on Sundays")


async def long(ctx: TurnContext) -> str:
    """Says too much."""
    return "x" * 100_000


TOOLS = [stock, table, broken, refusing, long]


async def answered(*replies: Any, tool_calls: Any = ()) -> tuple[str, list[Prompt]]:
    """What a client says with these tools, and the calls of its model."""
    model = MockAIProvider(reply=list(replies), tool_calls=tool_calls)
    ai = AIClient(model, tools=TOOLS)
    text = await ai.reply_in_chat("c", "¿cuánto té?", user_id="u")
    await ai.aclose()
    return text, model.calls


async def result_of(call: ToolCall) -> str:
    """What the model is told about one call."""
    _, calls = await answered(call, "ya")
    return str(calls[1].messages[-1]["content"])


async def test_a_tool_is_called_and_its_result_told() -> None:
    """The model's own message and the result follow the question; the tools are offered with their schemas."""
    text, calls = await answered("Hay 2 kg.", tool_calls=[("stock", {"product": "té", "most": 2})])

    asked, told = calls[1].messages[-2:]
    assert text == "Hay 2 kg."
    assert asked["tool_calls"][0]["function"]["name"] == "stock"
    assert (told["role"], told["content"]) == ("tool", "2 kg of té for u in c")
    assert told["tool_call_id"] == asked["tool_calls"][0]["id"]
    assert [tool.name for tool in calls[0].tools] == ["stock", "table", "broken", "refusing", "long"]


async def test_several_calls_of_one_round() -> None:
    """Each has its result, in order."""
    _, calls = await answered("ya", tool_calls=[("stock", {"product": "té"}), ("table", {})])

    assert [m["content"] for m in calls[1].messages[-2:]] == ["5 kg of té for u in c", '{"té": [1, 2]}']


async def test_too_many_calls_at_once() -> None:
    """A round has an end too."""
    _, calls = await answered("ya", tool_calls=[("table", {})] * 20)

    results = [m["content"] for m in calls[1].messages if m["role"] == "tool"]
    assert len(results) == 20
    assert results[16:] == ["error: at most 16 calls at once"] * 4


@pytest.mark.parametrize(
    ("name", "written", "told"),
    [
        ("stock", '{"product": ', "not valid JSON"),
        ("stock", "[1]", "must be a JSON object"),
        ("stock", "{}", "'product' is missing"),
        ("stock", '{"product": "té", "colour": 1}', "unknown argument 'colour'"),
        ("stock", '{"product": 3}', "'product' must be of type string"),
        ("stock", '{"product": "té", "most": true}', "'most' must be of type integer"),
        ("stock", '{"product": "té", "unit": "t"}', "'unit' must be one of kg, g"),
        ("nothing", "{}", "there is no tool 'nothing'"),
        ("broken", "{}", "RuntimeError: the shelf fell"),
        ("refusing", "{}", "closed on Sundays"),
        ("table", "[" * 100_000, "not valid JSON"),
    ],
)
async def test_what_goes_wrong_is_told_to_the_model(name: str, written: str, told: str) -> None:
    """Broken JSON, wrong arguments, an unknown name, an exception: the model is told and the turn goes on."""
    result = await result_of(ToolCall("1", name, written))

    assert result.startswith("error: ")
    assert told in result


async def test_a_result_is_bounded() -> None:
    """A tool that says too much does not fill the prompt."""
    assert len(await result_of(ToolCall("1", "long", ""))) == 8_000


async def test_an_endless_loop_ends() -> None:
    """After 8 rounds of tools the model is asked once more, without them, and has to answer."""
    calls = [ToolCall(str(n), "table", "{}") for n in range(20)]
    text, asked = await answered(*calls[:MAX_ROUNDS], "Me rindo.")

    assert text == "Me rindo."
    assert len(asked) == MAX_ROUNDS + 1
    assert [bool(prompt.tools) for prompt in asked] == [True] * MAX_ROUNDS + [False]


async def test_a_model_that_never_answers() -> None:
    """One that asks for tools even then gave no answer."""
    with pytest.raises(ModelError, match="empty"):
        await answered(ToolCall("1", "table", "{}"))


async def test_what_is_said_between_tools_is_said() -> None:
    """Words ahead of a call stay, parted from those after it."""

    class Talking(MockAIProvider):
        async def stream(self, prompt: Prompt) -> Any:
            self.calls.append(prompt)
            yield "Miro." if len(self.calls) == 1 else "Hay té."
            if len(self.calls) == 1:
                yield ToolCall("1", "table", "{}")

    ai = AIClient(Talking(), tools=TOOLS)

    assert await ai.reply_in_chat("c", "?") == "Miro.\n\nHay té."
    await ai.aclose()


async def test_a_context_of_the_callers_own() -> None:
    """In the bot, tools are called with the handler's context."""
    seen: list[Any] = []

    async def look(ctx: Any) -> str:
        """Looks."""
        seen.append(ctx)
        return "seen"

    ai = AIClient(MockAIProvider(reply="ya", tool_calls=[("look", {})]), tools=[look])
    stream = ai.reply_in_chat_stream("c", "?", context="the handler's")
    async for _ in stream:
        pass

    assert seen == ["the handler's"]
    await ai.aclose()


async def test_the_context_by_hand() -> None:
    """It knows who asks what where, and what counts as their own words."""
    seen: list[TurnContext] = []

    async def look(ctx: Any) -> str:
        """Looks."""
        seen.append(ctx)
        return "seen"

    ai = AIClient(MockAIProvider(reply="ya", tool_calls=[("look", {})]), tools=[look])
    await ai.reply_in_chat("c", "hola", user_id="u", is_group=True, lang="en", evidence="")

    ctx = seen[0]
    assert (ctx.chat, ctx.sender, ctx.text, ctx.is_group, ctx.lang, ctx.evidence, ctx.ai) == ("c", "u", "hola", True, "en", "", ai)
    await ai.aclose()


async def test_a_stop_ends_a_tool_too() -> None:
    """A tool that is under way does not hold up a stop."""
    cancelled = asyncio.Event()

    async def forever(ctx: Any) -> str:
        """Waits."""
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    ai = AIClient(MockAIProvider(reply="ya", tool_calls=[("forever", {})]), tools=[forever])
    stream = ai.reply_in_chat_stream("c", "?")
    taking = asyncio.create_task(anext(stream, None))
    await asyncio.sleep(0.02)
    await asyncio.wait_for(stream.stop(), 1)

    assert await taking is None
    assert cancelled.is_set()
    await ai.aclose()


def test_arguments_that_fit() -> None:
    """Defaults may be left out, or be null; lists are checked item by item."""
    tool = tool_of(stock)
    schema = {"properties": {"names": {"type": "array", "items": {"type": "string"}}}, "required": ["names"]}

    assert isinstance(tool, Tool)
    assert arguments('{"product": "té", "most": null}', tool.spec.parameters) == {"product": "té"}
    assert arguments("", {"properties": {}}) == {}
    assert arguments(json.dumps({"names": ["a"]}), schema) == {"names": ["a"]}
    with pytest.raises(BadArguments, match="'names' must be of type string"):
        arguments('{"names": [1]}', schema)
