"""The HTTP server, asked over real sockets."""

import asyncio
import json
import socket
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import web

from bot.errors import ConfigurationError, RagError, StorageError
from bot.transports.http import Address, Route, readiness, serve


async def ask(at: Address, request: str, body: bytes = b"") -> tuple[int, Mapping[str, str], bytes]:
    """One request, raw; the status, the headers (names in lower case) and the body that came back."""
    reader, writer = await asyncio.open_connection(at.host, at.port)
    head = f"{request} HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    await writer.wait_closed()
    first, _, rest = answer.partition(b"\r\n")
    headers, _, content = rest.partition(b"\r\n\r\n")
    named = dict(line.split(": ", 1) for line in headers.decode().split("\r\n"))
    return int(first.split()[1]), {name.lower(): value for name, value in named.items()}, content


async def well() -> None:
    """A part that is ready."""


async def locked() -> None:
    """A part that is not, and whose error names a secret."""
    raise StorageError("cannot open postgresql://me:hunter2@host/db")


async def unsearchable() -> None:
    """A part whose code is its own."""
    raise RagError("INVALID_INDEX", "broken")


async def unforeseen() -> None:
    """A part that fails as nobody foresaw."""
    raise ValueError("hunter2")


async def test_it_lives() -> None:
    """/healthz says that the process lives, whatever its parts say, and nothing of which versions run here."""
    async with serve("127.0.0.1", 0, checks={"database": locked}) as at:
        status, headers, body = await ask(at, "GET /healthz")

    assert (status, json.loads(body)) == (200, {"status": "ok"})
    assert headers["content-type"] == "application/json; charset=utf-8"
    assert "server" not in headers


async def test_it_is_ready() -> None:
    """/readyz is 200 where every part is ready; the port is the real one where 0 was asked for."""
    async with serve("127.0.0.1", 0, checks={"database": well, "index": well}) as at:
        status, _, body = await ask(at, "GET /readyz")

    assert at.port > 0
    assert at.url == f"http://127.0.0.1:{at.port}"
    assert (status, json.loads(body)) == (200, {"status": "ready", "checks": {"database": "ok", "index": "ok"}})


async def test_it_is_not_ready() -> None:
    """/readyz is 503 where a part is not ready, and says which by a code: an exception's text may hold a secret."""
    async with serve("127.0.0.1", 0, checks={"database": locked, "index": unsearchable, "other": unforeseen}) as at:
        status, _, body = await ask(at, "GET /readyz")

    assert status == 503
    assert json.loads(body)["checks"] == {"database": "STORAGE", "index": "INVALID_INDEX", "other": "ERROR"}
    assert b"hunter2" not in body


async def test_a_part_that_hangs() -> None:
    """A check that takes too long is cancelled and not waited for, also where it swallows that; the others are heard."""
    let_go = asyncio.Event()

    async def stubborn() -> None:
        try:
            await let_go.wait()
        except asyncio.CancelledError:
            await let_go.wait()

    said = await asyncio.wait_for(readiness({"slow": stubborn, "database": well}, 0.01), 5)
    let_go.set()

    assert said == {"slow": "TIMEOUT", "database": "ok"}


async def echo(request: web.Request) -> web.Response:
    """A platform's route."""
    return web.Response(body=await request.read())


async def test_a_platform_adds_a_route() -> None:
    """A platform's route answers beside health; a body over the limit is refused, and so is a path that nobody has."""
    async with serve("127.0.0.1", 0, routes=[Route("POST", "/hook", echo)], max_body=10) as at:
        taken = await ask(at, "POST /hook", b"0123456789")
        refused = await ask(at, "POST /hook", b"0123456789!")
        absent = await ask(at, "GET /nothing")

    assert (taken[0], taken[2]) == (200, b"0123456789")
    assert refused[0] == 413
    assert absent[0] == 404
    assert "server" not in absent[1]


async def test_a_port_that_is_taken() -> None:
    """A port that somebody else listens at stops the start in one line that names the setting."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        with pytest.raises(ConfigurationError) as refusal:
            async with serve("127.0.0.1", port):
                pass

    assert (
        str(refusal.value)
        == f"BOT_HTTP_PORT={port} cannot be listened at on 127.0.0.1: it is taken; choose another, or 0 for any that is free"
    )


@pytest.mark.parametrize("host", ["203.0.113.1", "a..b"])
async def test_an_address_that_is_not_ours(host: str) -> None:
    """An address that this machine does not have stops the start in one line that names the setting."""
    with pytest.raises(ConfigurationError, match=r"^BOT_HTTP_HOST=.* cannot be listened at: [^\n]*$"):
        async with serve(host, 0):
            pass


async def test_what_is_under_way_ends() -> None:
    """Closing lets a request that is under way be answered, and takes no new one."""
    begun = asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        begun.set()
        await asyncio.sleep(0.05)
        return web.Response(text="done")

    async with serve("127.0.0.1", 0, routes=[Route("GET", "/slow", slow)]) as at:
        asked = asyncio.create_task(ask(at, "GET /slow"))
        await asyncio.wait_for(begun.wait(), 5)
    answer: Any = await asked

    assert (answer[0], answer[2]) == (200, b"done")
    with pytest.raises(ConnectionRefusedError):
        await ask(at, "GET /healthz")
