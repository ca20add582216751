"""Any server that speaks OpenAI's chat completions, Ollama's among them: streaming, tools, retries within one deadline, errors as ours."""

import asyncio
import importlib
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bot import Completion, ConfigurationError, ModelError, ModelRefused, ModelTimeout, ModelUnavailable, Prompt, ToolCall, Usage
from plugins.ai.providers import failures
from plugins.ai.providers.thinking import WithoutThinking

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk

log = logging.getLogger(__name__)

MOST_TRIES = 4
FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0  # seconds, doubled from one to the other
CONNECT_SECONDS = 10.0
NO_KEY = "none"  # a server without keys takes any
FORMATS = ("json_schema", "json_object", "")


@dataclass(slots=True)
class Learnt:
    """What the server was found to accept: asked once, remembered while the process lives."""

    limit_name: str
    json_format: int = 0
    usage: bool = True
    tools: bool = True


@dataclass(slots=True)
class _Answer:
    """One call as it comes: calls of tools are whole only in the end."""

    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    finish: str = ""
    refusal: str = ""
    spoken: bool = False

    def tool_calls(self) -> list[ToolCall]:
        parts = [self.calls[index] for index in sorted(self.calls)]
        return [ToolCall(p["id"] or f"call_{n}", p["name"], p["arguments"] or "{}") for n, p in enumerate(parts)]


class OpenAIProvider:
    """A Provider. `timeout` is in seconds, for one whole answer with its retries; `max_tokens` caps answers whose prompt has no cap.

    Nothing is imported or opened before the first call. `missing` is said where the server does not know the model.
    """

    def __init__(
        self,
        *,
        model: str,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 60.0,
        max_tokens: int | None = None,
        name: str = "openai",
        missing: str = "",
        first_wait: float = FIRST_WAIT,
    ) -> None:
        key = (api_key or "").strip()
        if not key.isascii() or not key.isprintable():
            raise ConfigurationError("OPENAI_API_KEY has a character that no key has: copy it again")
        self.name = name
        self.model = model
        self._key = key
        self._base_url = base_url
        self._timeout = timeout
        self._max_tokens = max_tokens
        self._missing = missing
        self._first_wait = first_wait
        self._client: AsyncOpenAI | None = None
        # OpenAI's reasoning models refuse the old name; of other servers, some know no other and ignore the new one in silence
        self._learnt = Learnt("max_tokens" if base_url else "max_completion_tokens")

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def complete(self, prompt: Prompt) -> Completion:
        """The whole of one answer. Raises ModelError."""
        answer, said = _Answer(), list[str]()
        async with aclosing(self._run(prompt, answer)) as fragments:
            async for fragment in fragments:
                said.append(fragment)
        return Completion("".join(said), tuple(answer.tool_calls()), answer.usage)

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | ToolCall]:
        """Fragments of text as they come, then the calls of tools. Closing the iterator ends the request. Raises ModelError."""
        answer = _Answer()
        async with aclosing(self._run(prompt, answer)) as fragments:
            async for fragment in fragments:
                yield fragment
        for call in answer.tool_calls():
            yield call

    # ------------------------------------------------------------------------------------ one answer within its deadline

    async def _run(self, prompt: Prompt, answer: _Answer) -> AsyncGenerator[str, None]:
        """Opens the stream, again where that helps, and hands on its text; every wait is within the one deadline."""
        deadline = asyncio.get_running_loop().time() + self._timeout
        tries = 0
        while True:
            tries += 1
            try:
                async with aclosing(self._attempt(prompt, answer, deadline)) as fragments:
                    async for fragment in fragments:
                        yield fragment
            except failures.foreign() as error:
                if answer.spoken:
                    raise failures.translate(error, self.name, self.model, self._key, self._missing) from error
                await self._before_next_try(error, prompt, tries, deadline)
            else:
                break
        self._check(answer)

    async def _attempt(self, prompt: Prompt, answer: _Answer, deadline: float) -> AsyncGenerator[str, None]:
        thinking = WithoutThinking()
        try:
            async with asyncio.timeout_at(deadline):
                stream = await self._open(prompt)
        except TimeoutError as error:
            raise self._too_late() from error
        async with aclosing(stream):
            chunks = aiter(stream)
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        chunk = await anext(chunks, None)
                except TimeoutError as error:
                    raise self._too_late() from error
                text = thinking.rest() if chunk is None else thinking.add(_take(chunk, answer))
                if text:
                    answer.spoken = True
                    yield text
                if chunk is None:
                    return

    async def _open(self, prompt: Prompt) -> "AsyncStream[ChatCompletionChunk]":
        if self._client is None:
            # importing takes 0.8 s, which other chats need not wait for
            openai: Any = await asyncio.to_thread(importlib.import_module, "openai")
            if self._client is None:
                self._client = failures.building(
                    lambda: openai.AsyncOpenAI(
                        api_key=self._key or NO_KEY,
                        base_url=self._base_url,
                        max_retries=0,
                        timeout=openai.Timeout(self._timeout, connect=min(CONNECT_SECONDS, self._timeout)),
                    ),
                    self._base_url,
                )
        opened: AsyncStream[ChatCompletionChunk] = await self._client.chat.completions.create(**self._request(prompt))
        return opened

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        system = [{"role": "system", "content": prompt.system}] if prompt.system else []
        request: dict[str, Any] = {
            "model": prompt.model or self.model,
            "messages": [*system, *prompt.messages],
            "stream": True,
        }
        if self._learnt.usage:
            request["stream_options"] = {"include_usage": True}
        if limit := prompt.max_tokens or self._max_tokens:
            request[self._learnt.limit_name] = limit
        if prompt.tools and self._learnt.tools:
            request["tools"] = [
                {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": dict(t.parameters)}}
                for t in prompt.tools
            ]
        wanted = FORMATS[self._learnt.json_format] if prompt.schema else ""
        if wanted == "json_schema":
            request["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": dict(prompt.schema or {})},
            }
        elif wanted:
            request["response_format"] = {"type": wanted}
        return request

    # ------------------------------------------------------------------------------------ when it fails

    async def _before_next_try(self, error: Exception, prompt: Prompt, tries: int, deadline: float) -> None:
        """Return when it is worth trying again; else raise what the failure means."""
        ours = failures.translate(error, self.name, self.model, self._key, self._missing)
        if self._learn(error, prompt):
            return
        left = deadline - asyncio.get_running_loop().time()
        told = failures.retry_after(error)
        wait = told if told is not None else min(LONGEST_WAIT, self._first_wait * 2 ** (tries - 1)) * random.uniform(0.75, 1.25)
        if not failures.passing(error) or tries >= MOST_TRIES or wait >= left:
            raise ours from error
        log.info("%s: %s; trying again in %.1f s", self.name, ours, wait)
        await asyncio.sleep(wait)

    def _learn(self, error: Exception, prompt: Prompt) -> bool:
        """Whether the server refused a part of the request that it can be asked without: each is given up once."""
        refused, learnt = failures.refused_part(error), self._learnt
        first_name = "max_tokens" if self._base_url else "max_completion_tokens"
        if refused == "limit" and learnt.limit_name == first_name and (prompt.max_tokens or self._max_tokens):
            learnt.limit_name = "max_completion_tokens" if self._base_url else "max_tokens"
        elif refused == "format" and prompt.schema and learnt.json_format < len(FORMATS) - 1:
            learnt.json_format += 1
        elif refused == "usage" and learnt.usage:
            learnt.usage = False
        elif refused == "tools" and prompt.tools and learnt.tools:
            learnt.tools = False
        else:
            return False
        log.info("%s: the server does not take this %s; from now on it is asked another way", self.name, refused)
        return True

    def _too_late(self) -> ModelTimeout:
        return ModelTimeout(f"{self.name}: no whole answer within {self._timeout:g} s (BOT_MODEL_TIMEOUT)")

    def _check(self, answer: _Answer) -> None:
        """Raise what an answer means that is none."""
        if answer.refusal or answer.finish == "content_filter":
            raise ModelRefused(f"{self.name}: the model, or a filter before it, refused")
        if not answer.finish:
            raise ModelUnavailable(f"{self.name}: the connection ended before the answer did")
        if not answer.spoken and not answer.calls:
            why = "it used up its tokens before it said anything" if answer.finish == "length" else "the answer is empty"
            raise ModelError(f"{self.name}: {why}")


def _take(chunk: "ChatCompletionChunk", answer: _Answer) -> str:
    """The text of a chunk; what else it brings goes into `answer`."""
    if chunk.usage is not None:
        answer.usage = Usage(chunk.usage.prompt_tokens or 0, chunk.usage.completion_tokens or 0)
    if not chunk.choices:  # as in the chunk that brings the usage
        return ""
    choice = chunk.choices[0]
    answer.finish = choice.finish_reason or answer.finish
    delta = choice.delta
    answer.refusal += delta.refusal or ""
    for position, part in enumerate(delta.tool_calls or ()):
        index = part.index if part.index is not None else position
        call = answer.calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
        call["id"] = part.id or call["id"]
        if part.function is not None:
            call["name"] = call["name"] or part.function.name or ""
            call["arguments"] += part.function.arguments or ""
    return delta.content or ""


def ollama(base_url: str, *, model: str, timeout: float = 60.0) -> OpenAIProvider:
    """The provider for an Ollama server at `base_url`, as in http://localhost:11434."""
    return OpenAIProvider(
        model=model,
        base_url=f"{base_url.rstrip('/')}/v1",
        timeout=timeout,
        name="ollama",
        missing=f"this Ollama server has no model {model!r}: get one with `ollama pull llama3.2` and set BOT_MODEL=llama3.2",
    )
