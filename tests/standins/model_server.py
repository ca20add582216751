"""An OpenAI-compatible chat server on loopback that answers by script: the wire is real, the model is not."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Act = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class ModelServer:
    """What was asked of it: `requests` are the bodies, `headers` those of each, `left` how many readers went before the end."""

    script: list[Act]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    left: int = 0
    heard: list[tuple[str, bytes, str]] = field(default_factory=list)
    transcript: str = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The next act of the script; the last repeats."""
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        act = self.script[min(len(self.requests), len(self.script)) - 1]
        try:
            return await act(request, body)
        except (ConnectionResetError, asyncio.CancelledError):
            self.left += 1
            raise

    async def listen(self, request: web.Request) -> web.Response:
        """Write down a recording: `transcript`, whatever it is; `heard` keeps its name, its bytes and the model that was asked for."""
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        self.heard.append((file.filename, file.file.read(), str(form["model"])))
        return web.json_response({"text": self.transcript})


@asynccontextmanager
async def model_server(*script: Act) -> AsyncIterator[ModelServer]:
    """A server that is up for the block; `server.url` is what OPENAI_BASE_URL would be."""
    server = ModelServer(list(script))
    app = web.Application()
    app.router.add_post("/v1/chat/completions", server.answer)
    app.router.add_post("/v1/audio/transcriptions", server.listen)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()


# ---------------------------------------------------------------------------------------------- acts


def says(*fragments: str, finish: str | None = "stop", every: float = 0.0, usage: tuple[int, int] = (7, 3)) -> Act:
    """Streams these fragments, `every` so many seconds, then how it ended and the usage."""

    async def act(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        response = await _events(request)
        for fragment in fragments:
            await _send(response, _chunk({"content": fragment}))
            if every:
                await asyncio.sleep(every)
        if finish:
            await _send(response, _chunk({}, finish))
        if body.get("stream_options", {}).get("include_usage"):
            await _send(response, {**_chunk({}), "choices": [], "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]}})
        await response.write(b"data: [DONE]\n\n")
        return response

    return act


def calls(*tools: tuple[str, str], text: str = "") -> Act:
    """Asks for tools: `(name, arguments)`, the arguments in pieces, as servers send them."""

    async def act(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        response = await _events(request)
        if text:
            await _send(response, _chunk({"content": text}))
        for index, (name, arguments) in enumerate(tools):
            head = {"index": index, "id": f"call-{index}", "type": "function", "function": {"name": name, "arguments": ""}}
            await _send(response, _chunk({"tool_calls": [head]}))
            middle = len(arguments) // 2
            for piece in (arguments[:middle], arguments[middle:]):
                await _send(response, _chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
        await _send(response, _chunk({}, "tool_calls"))
        await response.write(b"data: [DONE]\n\n")
        return response

    return act


def refuses(words: str = "I cannot help with that.") -> Act:
    """A refusal in the field that OpenAI has for it."""
    return sends(_chunk({"refusal": words}), _chunk({}, "stop"))


def sends(*events: Mapping[str, Any] | str) -> Act:
    """Streams these events as they are; a string goes out unchanged, so that it may be no JSON."""

    async def act(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        response = await _events(request)
        for event in events:
            await _send(response, event)
        await response.write(b"data: [DONE]\n\n")
        return response

    return act


def drops(*fragments: str) -> Act:
    """Streams these fragments, then cuts the connection."""

    async def act(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        response = await _events(request)
        for fragment in fragments:
            await _send(response, _chunk({"content": fragment}))
        await asyncio.sleep(0.01)  # let what was written leave ahead of the cut
        assert request.transport is not None
        request.transport.abort()
        return response

    return act


def hangs(*fragments: str, begun: asyncio.Event | None = None) -> Act:
    """Streams these fragments, then nothing for as long as a test may last. `begun` is set when it is asked."""

    async def act(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if begun is not None:
            begun.set()
        response = await _events(request)
        for fragment in fragments:
            await _send(response, _chunk({"content": fragment}))
        await asyncio.sleep(30)
        return response

    return act


def fails(
    status: int,
    message: str = "no",
    *,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Act:
    """An error in OpenAI's form."""

    async def act(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        error = {"message": message, "type": "error", "code": code, "param": param, **more}
        return web.json_response({"error": error}, status=status, headers=headers)

    return act


def page(status: int = 502) -> Act:
    """What a proxy says when the server behind it is gone."""

    async def act(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        html = f"<html><head><title>{status} Bad Gateway</title></head><body>{'<p>nginx</p>' * 200}</body></html>"
        return web.Response(text=html, status=status, content_type="text/html")

    return act


def picky(refused: Callable[[dict[str, Any]], Act | None], otherwise: Act) -> Act:
    """Looks at the request first: `refused(body)` gives the act of a refusal, or None."""

    async def act(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        return await (refused(body) or otherwise)(request, body)

    return act


# ---------------------------------------------------------------------------------------------- the wire


async def _events(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    return response


async def _send(response: web.StreamResponse, event: Mapping[str, Any] | str) -> None:
    await response.write(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode())


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    choices: Sequence[Mapping[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "standin", "choices": choices}
