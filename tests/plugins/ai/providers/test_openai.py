"""plugins/ai/providers/openai.py, against a stand-in server on loopback."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from bot import (
    ConfigurationError,
    ContextTooLong,
    ModelError,
    ModelMisconfigured,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    Prompt,
    ToolCall,
    ToolSpec,
)
from plugins.ai.providers.openai import OpenAIProvider, ollama
from tests.standins.model_server import Act, ModelServer, calls, drops, fails, hangs, model_server, page, picky, refuses, says, sends

KEY = "sk-test-0123456789abcdef"
ASKED = Prompt("You are a test.", [{"role": "user", "content": "hola"}])
TOOL = ToolSpec("stock", "How many there are", {"type": "object", "properties": {"product": {"type": "string"}}})


@asynccontextmanager
async def served(*script: Act, timeout: float = 5.0, **options: Any) -> AsyncIterator[tuple[OpenAIProvider, ModelServer]]:
    """A provider at a server with this script; waits between tries are short."""
    async with model_server(*script) as server:
        provider = OpenAIProvider(
            **{"model": "standin", "api_key": KEY, "base_url": server.url, "first_wait": 0.01, "timeout": timeout, **options}
        )
        try:
            yield provider, server
        finally:
            await provider.aclose()


async def taken(provider: OpenAIProvider, prompt: Prompt = ASKED) -> list[str | ToolCall]:
    """All that a stream gives."""
    return [item async for item in provider.stream(prompt)]


# ---------------------------------------------------------------------------------------------- answers


async def test_text_comes_in_the_fragments_of_the_server() -> None:
    """Fragments are handed on as they come, with the system prompt ahead of the messages."""
    async with served(says("Ho", "la", ".")) as (provider, server):
        fragments = await taken(provider)

        assert fragments == ["Ho", "la", "."]
        assert server.requests[0]["messages"] == [{"role": "system", "content": "You are a test."}, {"role": "user", "content": "hola"}]


async def test_a_whole_answer_has_its_text_and_usage() -> None:
    """`complete` joins the fragments and knows the tokens that the call took."""
    async with served(says("Ho", "la", usage=(12, 4))) as (provider, _):
        completion = await provider.complete(ASKED)

        assert (completion.text, completion.usage.prompt_tokens, completion.usage.completion_tokens) == ("Hola", 12, 4)


async def test_calls_of_tools_are_put_together() -> None:
    """A call whose arguments come in pieces is one ToolCall, after the text."""
    async with served(calls(("stock", '{"product": "té"}'), ("stock", "{}"), text="Miro.")) as (provider, server):
        items = await taken(provider, Prompt("", [], tools=[TOOL]))

        assert items == ["Miro.", ToolCall("call-0", "stock", '{"product": "té"}'), ToolCall("call-1", "stock", "{}")]
        assert server.requests[0]["tools"][0]["function"]["name"] == "stock"


async def test_thinking_is_not_shown() -> None:
    """What stands between <think> marks at the beginning is dropped, however it is cut into fragments."""
    async with served(says("\n<thi", "nk>let me see [1]</th", "ink>\n\nHola", " <think>")) as (provider, _):
        text = "".join(str(item) for item in await taken(provider))

        assert text == "Hola <think>"


async def test_no_key_is_needed_where_an_address_is_set() -> None:
    """A server of one's own may have no keys."""
    async with served(says("sí"), api_key=None) as (provider, _):
        completion = await provider.complete(ASKED)

        assert completion.text == "sí"


async def test_closing_the_stream_ends_the_request() -> None:
    """A reader that leaves early takes the request along: the server notices within a moment."""
    async with served(says(*["palabra "] * 500, every=0.01)) as (provider, server):
        async with aclosing(provider.stream(ASKED)) as fragments:  # type: ignore[type-var]
            async for _ in fragments:
                break
        for _ in range(100):
            if server.left:
                break
            await asyncio.sleep(0.02)

        assert server.left == 1


# ---------------------------------------------------------------------------------------------- no answer


@pytest.mark.parametrize(
    ("act", "expected", "words"),
    [
        (says(), ModelError, "empty"),
        (says(finish="length"), ModelError, "tokens"),
        (says("<think>hmm, still thinking"), ModelError, "empty"),
        (sends({"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": []}), ModelUnavailable, "ended"),
        (says("Ho", finish=None), ModelUnavailable, "ended"),
        (refuses(), ModelRefused, "refused"),
        (says("I", finish="content_filter"), ModelRefused, "refused"),
        (fails(400, "filtered", code="content_filter"), ModelRefused, "400"),
        (fails(401, f"Incorrect API key provided: {KEY}"), ModelMisconfigured, "OPENAI_API_KEY"),
        (fails(403, "forbidden"), ModelMisconfigured, "403"),
        (fails(404, "no such model"), ModelMisconfigured, "BOT_MODEL"),
        (fails(429, "pay first", code="insufficient_quota"), ModelMisconfigured, "credit"),
        (fails(400, "what is this?"), ModelMisconfigured, "what is this?"),
        (fails(504, "gateway"), ModelTimeout, "504"),
        (fails(503, "loading"), ModelUnavailable, "503"),
        (page(502), ModelUnavailable, "502"),
        (drops("Tarda 3"), ModelUnavailable, "connection"),
        (sends('{"broken'), ModelUnavailable, "no chat completion"),
        (sends({"error": {"message": "slot died", "code": "server_error"}}), ModelUnavailable, "slot died"),
        (fails(400, "This model's maximum context length is 4096 tokens", code="context_length_exceeded"), ContextTooLong, "400"),
    ],
)
async def test_every_kind_of_failure_is_one_of_our_errors(act: Act, expected: type[ModelError], words: str) -> None:
    """What the server does wrong becomes the ModelError that says it, on one short line that holds neither key nor page."""
    async with served(act) as (provider, _):
        with pytest.raises(ModelError) as raised:
            await provider.complete(ASKED)

        assert type(raised.value) is expected
        assert words in str(raised.value)
        assert KEY not in str(raised.value)
        assert "<" not in str(raised.value)
        assert len(str(raised.value)) < 330


async def test_nobody_listens() -> None:
    """A server that is not there is a ModelUnavailable well within the deadline."""
    async with model_server(says("x")) as server:
        gone = server.url
    provider = OpenAIProvider(model="m", base_url=gone, timeout=5.0, first_wait=0.01)
    started = time.monotonic()

    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        await provider.complete(ASKED)

    assert time.monotonic() - started < 4
    await provider.aclose()


@pytest.mark.parametrize("address", ["http://[broken", "ftp://127.0.0.1/v1", "nonsense"])
async def test_an_address_that_is_none(address: str) -> None:
    """A wrong OPENAI_BASE_URL is said as such."""
    provider = OpenAIProvider(model="m", base_url=address, timeout=2.0, first_wait=0.01)

    with pytest.raises(ModelMisconfigured, match="address"):
        await provider.complete(ASKED)

    await provider.aclose()


def test_a_key_that_no_header_can_carry() -> None:
    """A key with a line end or a letter with an accent is refused at the start, and not repeated."""
    with pytest.raises(ConfigurationError) as raised:
        OpenAIProvider(model="m", api_key="sk-ñandú-123")

    assert "ñandú" not in str(raised.value)


async def test_numbers_of_a_prompt_that_is_too_long() -> None:
    """What the server tells about its limit is kept, so that the next prompt can be cut to measure."""
    told = fails(400, "the request exceeds the available context size", n_ctx=4096, n_prompt_tokens=9000)
    async with served(told) as (provider, _):
        with pytest.raises(ContextTooLong) as raised:
            await provider.complete(ASKED)

        assert (raised.value.limit, raised.value.used) == (4096, 9000)


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 10233 tokens. Please reduce the length.",
        "This model's maximum context length is 8192 tokens. However, you requested 10233 tokens (9000 in the messages).",
    ],
)
async def test_numbers_in_words(message: str) -> None:
    """Servers that tell their limit in a sentence are understood too."""
    async with served(fails(400, message, code="context_length_exceeded")) as (provider, _):
        with pytest.raises(ContextTooLong) as raised:
            await provider.complete(ASKED)

        assert (raised.value.limit, raised.value.used) == (8192, 10233)


# ---------------------------------------------------------------------------------------------- deadlines and retries


async def test_retry_after_is_honoured() -> None:
    """After a 429 the next try comes no sooner than the server asked for."""
    async with served(fails(429, "slow down", headers={"Retry-After": "0.3"}), says("ya")) as (provider, server):
        started = time.monotonic()
        completion = await provider.complete(ASKED)

        assert completion.text == "ya"
        assert len(server.requests) == 2
        assert time.monotonic() - started >= 0.3


async def test_a_wait_beyond_the_deadline_is_not_waited() -> None:
    """Where the server asks for more than is left, the answer is given up at once."""
    async with served(fails(429, "slow down", headers={"Retry-After": "60"}), timeout=2.0) as (provider, server):
        started = time.monotonic()
        with pytest.raises(ModelUnavailable):
            await provider.complete(ASKED)

        assert len(server.requests) == 1
        assert time.monotonic() - started < 1


async def test_a_page_of_html_is_tried_again() -> None:
    """A proxy that fails for a moment costs no reply."""
    async with served(page(502), page(503), says("bien")) as (provider, _):
        assert (await provider.complete(ASKED)).text == "bien"


async def test_nothing_is_tried_again_once_words_were_shown() -> None:
    """A stream that broke off is not begun anew: the reader would read it twice."""
    async with served(drops("Tarda "), says("Tarda 3 días")) as (provider, server):
        with pytest.raises(ModelUnavailable):
            await taken(provider)

        assert len(server.requests) == 1


@pytest.mark.parametrize("fragments", [(), ("Tarda ",)])
async def test_one_deadline_for_the_whole_answer(fragments: tuple[str, ...]) -> None:
    """A server that falls silent, before or within its answer, is a ModelTimeout at the deadline."""
    async with served(hangs(*fragments), timeout=0.4) as (provider, _):
        started = time.monotonic()
        with pytest.raises(ModelTimeout):
            await provider.complete(ASKED)

        assert 0.3 < time.monotonic() - started < 2


async def test_a_slow_stream_does_not_outlive_the_deadline() -> None:
    """The deadline covers the whole stream, however lively it is."""
    async with served(says(*["a "] * 1000, every=0.02), timeout=0.4) as (provider, _):
        with pytest.raises(ModelTimeout):
            await provider.complete(ASKED)


# ---------------------------------------------------------------------------------------------- what a server accepts


def _refusing(name: str, message: str) -> Act:
    return picky(lambda body: fails(400, message, param=name) if name in body else None, says("bien"))


async def test_the_name_of_the_limit_is_found_out_once() -> None:
    """A server that refuses max_tokens is asked with max_completion_tokens, from then on at once."""
    refusing = _refusing("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    async with served(refusing, max_tokens=50) as (provider, server):
        await provider.complete(ASKED)
        await provider.complete(ASKED)

        assert [("max_tokens" in r, r.get("max_completion_tokens")) for r in server.requests] == [(True, None), (False, 50), (False, 50)]


async def test_no_limit_is_sent_where_none_is_set() -> None:
    """Without max_tokens neither name is in the request."""
    async with served(says("bien")) as (provider, server):
        await provider.complete(ASKED)

        assert not {"max_tokens", "max_completion_tokens"} & server.requests[0].keys()


async def test_strict_json_falls_back_step_by_step() -> None:
    """json_schema, then json_object, then plain: found out once and remembered."""
    refusing = _refusing("response_format", "response_format is not supported by this model")
    prompt = Prompt("", [{"role": "user", "content": "JSON"}], schema={"type": "object"})
    async with served(refusing) as (provider, server):
        await provider.complete(prompt)
        await provider.complete(prompt)

        forms = [r.get("response_format", {}).get("type") for r in server.requests]
        assert forms == ["json_schema", "json_object", None, None]


async def test_a_schema_is_asked_for_strictly() -> None:
    """A server that has json_schema gets the whole schema, strict."""
    schema = {"type": "object", "properties": {"facts": {"type": "array"}}}
    async with served(says("{}")) as (provider, server):
        await provider.complete(Prompt("", [], schema=schema))

        assert server.requests[0]["response_format"]["json_schema"] == {"name": "answer", "strict": True, "schema": schema}


async def test_a_model_without_tools_is_asked_without_them() -> None:
    """Ollama refuses tools for models that have none: the chat goes on."""
    refusing = _refusing("tools", "registry.ollama.ai/library/gemma does not support tools")
    async with served(refusing) as (provider, server):
        items = await taken(provider, Prompt("", [], tools=[TOOL]))

        assert items == ["bien"]
        assert "tools" not in server.requests[1]


async def test_usage_is_given_up_where_it_is_refused() -> None:
    """A server that does not know stream_options answers all the same."""
    async with served(_refusing("stream_options", "unknown field stream_options")) as (provider, _):
        assert (await provider.complete(ASKED)).text == "bien"


async def test_ollama_says_which_model_to_get() -> None:
    """A model that is not there: the error says how to get one."""
    async with model_server(fails(404, 'model "gpt-5-mini" not found, try pulling it first')) as server:
        provider = ollama(server.url.removesuffix("/v1"), model="gpt-5-mini")

        with pytest.raises(ModelMisconfigured, match="ollama pull"):
            await provider.complete(ASKED)

        await provider.aclose()
