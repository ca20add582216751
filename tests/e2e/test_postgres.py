"""The process as whoever runs it on PostgreSQL meets it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from bot import open_database
from tests.e2e.child import Place
from tests.standins.model_server import hangs, model_server, says
from tests.standins.postgres_server import PASSWORD, PostgresServer
from tests.tables import everything

CANARY = "CANARIO4471"


@pytest.fixture
def here(place: Place, postgres_url: str) -> Place:
    """The folder of the test, with its database on a real server."""
    return replace(place, env={"BOT_DATABASE_URL": postgres_url})


async def rows_of(url: str) -> str:
    """Every row of every table."""
    async with open_database(url, core=False) as database:
        return repr(await everything(database))


async def test_remembered_answered_erased_and_started_again(here: Place, postgres: PostgresServer, postgres_url: str) -> None:
    """A fact and the documents are there at the next start; after /forget_me no row and no file of a table holds the fact, then too."""
    async with here.start() as bot:
        await bot.say(f"/remember Mi gato se llama {CANARY}")
        await bot.hear("Lo recordaré")
        await bot.say("¿Cuánto cuesta el envío?")
        answer = await bot.hear("Fuentes: [1] docs/envios.md › Envíos › Coste")
        first = await bot.end()
    planted = await rows_of(postgres_url)
    async with here.start() as bot:
        await bot.say("/memory")
        await bot.hear(CANARY)
        await bot.say("/forget_me")
        await bot.hear("¿Lo hago?")
        await bot.say("sí")
        await bot.hear("todo está borrado")
        left = postgres.files_with(CANARY, postgres_url.rpartition("=")[2])
        second = await bot.end()
    last = await here.run(says="/memory\n¿Cuánto tarda el envío a Canarias?\n")

    assert "cinco euros [1]" in answer
    assert CANARY in planted
    assert left == set()
    assert CANARY not in await rows_of(postgres_url)
    assert CANARY not in last.out
    assert "nueve días hábiles [1]" in last.out
    assert [(done.code, done.err) for done in (first, second, last)] == [(0, "")] * 3
    assert list(here.data.glob("*.db*")) == []


async def test_it_is_killed_in_the_middle_of_a_turn(here: Place, postgres_url: str) -> None:
    """SIGKILL while the model writes loses no question: the next start answers it once, before what comes then."""
    begun = asyncio.Event()
    async with model_server(hangs("Todavía ", begun=begun), says("Cuesta cinco euros [1].")) as server:
        env = {"OPENAI_BASE_URL": server.url, "BOT_MEMORY_AUTO_EXTRACT": "false"}
        async with here.start(**env) as bot:
            await bot.say("¿Cuánto cuesta el envío?")
            await asyncio.wait_for(begun.wait(), 20)
            bot.process.kill()
            await bot.process.wait()
        async with open_database(postgres_url, core=False) as database:  # its lease would end by itself, in half a minute
            await database.write("UPDATE inbox SET claimed_until = 0 WHERE state = 'claimed'")
        later = await here.run(says="/help\n", **env)
        again = await here.run(says="/help\n", **env)

    assert (later.code, later.err) == (0, "")
    assert later.out.index("Cuesta cinco euros") < later.out.index("/forget_me")
    assert "Cuesta cinco euros" not in again.out


async def test_the_server_goes_away_under_it(here: Place, postgres: PostgresServer) -> None:
    """The process lives on, says so while it is away, and answers when the server is back."""
    async with here.start() as bot:
        await bot.say("/help")
        await bot.hear("/forget_me")
        await asyncio.to_thread(postgres.stop)
        try:
            await bot.say("¿Cuánto tarda el envío a Canarias?")
            await bot.hear("almacenamiento")
        finally:
            await asyncio.to_thread(postgres.start)
        await bot.say("¿Cuánto cuesta el envío?")
        await bot.hear("cinco euros [1]")
        done = await bot.end()

    assert done.code == 0
    assert "Traceback" not in done.err
    assert PASSWORD not in done.err


async def test_two_that_start_together(here: Place) -> None:
    """Two processes that start at once on an empty database make its tables once, and both answer."""
    first, second = await asyncio.gather(
        here.run("ask", "¿Cuánto cuesta el envío?"), here.run("ask", "How long do refunds of returned lamps take?")
    )

    assert [(first.code, first.err), (second.code, second.err)] == [(0, ""), (0, "")]
    assert "cinco euros" in first.out
    assert "fourteen days" in second.out


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        (lambda url: url.replace("s3cret%2Fpass%40word", "wr0ng"), "check the user and the password"),
        (lambda url: url.replace("/postgres?", "/nowhere?"), "createdb"),
        (lambda url: "postgresql://ana:wr0ng@127.0.0.1:1/db", "check that the server is up"),
    ],
)
async def test_a_server_that_cannot_be_used(here: Place, postgres_url: str, change: Callable[[str], str], hint: str) -> None:
    """It ends with 3 and one line that says what to do, and shows no password."""
    done = await here.run("ask", "hola", BOT_DATABASE_URL=change(postgres_url))

    assert (done.code, done.out) == (3, "")
    (line,) = done.err.splitlines()
    assert hint in line
    assert "wr0ng" not in line
    assert "s3cret" not in line


async def test_check_shows_no_password(here: Place) -> None:
    """`check` says which database it is, without who opens it and how."""
    done = await here.run("check")

    assert done.code == 0
    assert "database: ok (postgresql://127.0.0.1:" in done.out
    assert "s3cret" not in done.out + done.err
