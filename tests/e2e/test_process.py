"""The process as whoever runs it meets it: starting twice, being stopped, health, and a model server that goes away."""

import asyncio
import json
import sqlite3
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack

from tests.e2e.child import Place
from tests.standins.model_server import hangs, model_server, says
from tests.standins.ports import free_port


async def test_two_that_start_together(place: Place) -> None:
    """Two processes that start at once on a new database make its tables once, and both answer."""
    first, second = await asyncio.gather(
        place.run("ask", "¿Cuánto cuesta el envío?"), place.run("ask", "How long do refunds of returned lamps take?")
    )

    assert [first.code, second.code] == [0, 0]
    assert [first.err, second.err] == ["", ""]
    assert "cinco euros" in first.out
    assert "fourteen days" in second.out


async def test_a_database_of_a_newer_version(place: Place) -> None:
    """It is refused with 3 and one line that says what to do, and is left as it was."""
    await place.run("check")
    file = place.data / "bot.db"
    with sqlite3.connect(file) as database:
        database.execute("UPDATE schema_versions SET version = 9999 WHERE owner = 'bot'")
    database.close()

    done = await place.run("ask", "hola")

    assert done.code == 3
    (line,) = done.err.splitlines()
    assert "newer version" in line
    assert "bot.db" in line


async def test_a_model_server(place: Place) -> None:
    """An answer is streamed from the server; with the server gone, a sentence says so within the deadline, and the chat goes on."""
    async with AsyncExitStack() as up:
        server = await up.enter_async_context(model_server(says("Cuesta ", "cinco ", "euros [1].\n", every=0.01)))
        env = {"OPENAI_BASE_URL": server.url, "BOT_MODEL_TIMEOUT": "15", "BOT_MEMORY_AUTO_EXTRACT": "false"}
        async with place.start(**env) as bot:
            await bot.say("¿Cuánto cuesta el envío?")
            await bot.hear("Cuesta cinco euros [1].\n\nFuentes: [1] docs/envios.md › Envíos › Coste\n\n")
            await up.aclose()
            started = time.monotonic()
            await bot.say("¿Y a Canarias?")
            sentence = await bot.hear("\n\n")
            took = time.monotonic() - started
            await bot.say("/help")
            await bot.hear("/forget_me")
            done = await bot.end()

    assert server.requests[0]["stream"] is True
    assert "modelo" in sentence
    assert took < 15 + 5
    assert done.code == 0
    assert "Traceback" not in done.err


async def test_it_is_stopped_in_the_middle_of_a_turn(place: Place) -> None:
    """SIGTERM while the model writes ends it at once and well; the question is answered at the next start, before what comes then."""
    begun = asyncio.Event()
    async with model_server(hangs("Todavía ", begun=begun), says("Cuesta cinco euros [1].")) as server:
        env = {"OPENAI_BASE_URL": server.url, "BOT_MEMORY_AUTO_EXTRACT": "false"}
        async with place.start(**env) as bot:
            await bot.say("¿Cuánto cuesta el envío?")
            await asyncio.wait_for(begun.wait(), 20)
            started = time.monotonic()
            stopped = await bot.end(stop=True)
            took = time.monotonic() - started
        later = await place.run(says="/help\n", **env)

    assert (stopped.code, stopped.err) == (0, "")
    assert took < 15
    assert later.code == 0
    assert later.out.index("Cuesta cinco euros") < later.out.index("/forget_me")


async def test_two_quick_messages_are_answered_in_order(place: Place) -> None:
    """What is asked first is answered first, whichever is quicker."""
    async with model_server(says("primera", every=0.2), says("segunda")) as server:
        done = await place.run(
            says="¿Cuánto cuesta el envío?\n¿Cuánto tarda a Canarias?\n", OPENAI_BASE_URL=server.url, BOT_MEMORY_AUTO_EXTRACT="false"
        )

    assert done.code == 0
    assert done.out.index("primera") < done.out.index("segunda")


async def test_its_health(place: Place) -> None:
    """/healthz and /readyz answer beside the terminal chat where a port is set; a port that is taken stops the start in one line."""
    port = free_port()
    async with place.start(BOT_HTTP_PORT=str(port)) as bot:
        await bot.say("/help")
        await bot.hear("/forget_me")
        alive, ready = await _get(port, "/healthz"), await _get(port, "/readyz")
        second = await place.run("run", BOT_HTTP_PORT=str(port))
        done = await bot.end()

    assert alive == (200, {"status": "ok"})
    assert (ready[0], ready[1]["checks"]) == (200, {"database": "ok", "index": "ok"})
    assert second.code == 2
    assert [f"BOT_HTTP_PORT={port}" in line for line in second.err.splitlines()] == [True]
    assert (done.code, done.err) == (0, "")


async def _get(port: int, path: str) -> tuple[int, Mapping[str, object]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await asyncio.wait_for(reader.read(), 5)).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return int(head.split()[1]), json.loads(body)
