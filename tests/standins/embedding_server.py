"""An OpenAI-compatible `/embeddings` on loopback that counts what is asked of it."""

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

DIMENSIONS = 8
Act = Callable[[list[str]], web.Response | None]


@dataclass(slots=True)
class EmbeddingServer:
    """`texts` is everything that was to be embedded, in order; `requests` how many requests that took.

    `act` sees the texts of each request first, and may answer in the server's place. `keys` are the Authorization headers that came.
    """

    url: str = ""
    requests: int = 0
    texts: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    act: Act | None = None

    async def answer(self, request: web.Request) -> web.Response:
        """A vector for each text, the same one each time."""
        texts = (await request.json())["input"]
        self.requests += 1
        self.keys.append(request.headers.get("Authorization", ""))
        if self.act is not None and (instead := self.act(texts)) is not None:
            return instead
        self.texts += texts
        data = [{"object": "embedding", "index": n, "embedding": _vector(text)} for n, text in enumerate(texts)]
        return web.json_response({"object": "list", "data": data, "model": "standin", "usage": {"prompt_tokens": 1, "total_tokens": 1}})


@asynccontextmanager
async def embedding_server() -> AsyncIterator[EmbeddingServer]:
    """A server that is up for the block; `server.url` is what BOT_EMBEDDINGS_BASE_URL would be."""
    server = EmbeddingServer()
    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/embeddings", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()


def _vector(text: str) -> list[float]:
    return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]]
