"""A package with nothing but an entry point adds to a running bot."""

import json

import pytest

from tests.e2e.child import Place
from tests.e2e.test_bad_input import add_plugin

GUEST = """
from bot import Passage, Section, Settings
from pydantic import Field


class Lamps(Section):
    city: str = Field("Madrid", alias="BOT_LAMPS_CITY", description="where the lamps are made")


class Workshop:
    async def retrieve(self, query, *, top_k=None, min_score=None):
        return [Passage(text="El taller de lámparas abre los jueves a las siete.", citation="taller › Horario", score=1.0)]


def register(registry):
    registry.settings(Lamps)
    registry.retriever("workshop", lambda parts: Workshop())

    @registry.command("lamps", help="Lamps")
    async def lamps(ctx):
        facts = await ctx.ai.memory(ctx.sender)
        await ctx.reply(f"Lámparas de {ctx.bot.parts.sections[Lamps].city} para {ctx.sender}: {ctx.args}; {facts}")

    @registry.text("qué sabes de mí")
    async def known(ctx):
        await ctx.reply("\\n".join(await ctx.ai.memory(ctx.sender)) or "Aún nada")
"""


async def test_a_package_adds_a_retriever_and_a_command(place: Place) -> None:
    """A retriever, a command, a phrase and a setting of an installed package work beside the bot's own, without a change in the bot."""
    add_plugin(place, GUEST)
    lines = ["/lamps rojas", "¿Qué sabes de MÍ?", "/remember Prefiero el té", "qué sabes de mí", "¿Cuándo abre el taller de lámparas?"]

    done = await place.run(says="\n".join(lines), PYTHONPATH=str(place.folder / "lib"), BOT_LAMPS_CITY="Bilbao")

    lamps, nothing, _, known, answer, sources = done.answers
    assert (done.code, done.err) == (0, "")
    assert lamps == "Lámparas de Bilbao para console:local: rojas; []"
    assert nothing == "Aún nada"
    assert known == "Prefiero el té"
    assert "El taller de lámparas abre los jueves a las siete [1]" in answer
    assert sources.startswith("Fuentes: [1] taller › Horario")


async def test_without_the_package_its_command_is_unknown(place: Place) -> None:
    """What the package added is gone with it, its variable too."""
    done = await place.run(says="/lamps rojas\n")
    refused = await place.run("check", BOT_LAMPS_CITY="Bilbao")

    assert "/lamps" in done.out
    assert "console:local" not in done.out
    assert refused.code == 2
    assert "BOT_LAMPS_CITY" in refused.err


async def test_a_package_says_how_its_tables_are_erased(place: Place) -> None:
    """A package's own table is made by its migration, is in the export, and is erased with the rest."""
    add_plugin(
        place,
        """
async def export(reader, user_id):
    return [dict(row) for row in await reader.all("SELECT note FROM notes WHERE agent_id = :agent_id AND user_id = :u", {"u": user_id})]


async def erase(tx, user_id):
    return await tx.run("DELETE FROM notes WHERE agent_id = :agent_id AND user_id = :u", {"u": user_id})


def register(registry):
    registry.migrations("guest", Path(__file__).parent / "migrations")
    registry.personal_data("notes", tables=("notes",), export=export, erase=erase)

    @registry.command("note")
    async def note(ctx):
        async with ctx.bot.database.transaction() as tx:
            await tx.run("INSERT INTO notes (agent_id, user_id, note) VALUES (:agent_id, :u, :n)", {"u": ctx.sender, "n": ctx.args})
        await ctx.reply("noted")
""",
    )
    migrations = place.folder / "lib" / "migrations"
    migrations.mkdir()
    table = "CREATE TABLE notes (\n    agent_id TEXT NOT NULL,\n    user_id TEXT NOT NULL,\n    note TEXT NOT NULL\n);\n"
    (migrations / "0001_notes.sql").write_text(table, encoding="utf-8")
    env = {"PYTHONPATH": str(place.folder / "lib")}

    noted = await place.run(says="/note comprar bombillas\n", **env)
    exported = await place.run("export", "console:local", **env)
    await place.run("forget", "console:local", **env)
    after = await place.run("export", "console:local", **env)

    assert noted.answers == ["noted"]
    assert json.loads(exported.out)["notes"] == [{"note": "comprar bombillas"}]
    assert json.loads(after.out)["notes"] == []
    assert b"bombillas" not in place.bytes_of_data()


ODD = """
import sys


def register(registry):
    @registry.command("leave")
    async def leave(ctx):
        sys.exit(3)

    @registry.command("silent")
    async def silent(ctx):
        await ctx.reply(None)
"""


async def test_a_handler_that_goes_wrong(place: Place) -> None:
    """One that would end the process, or that says what is no text, is an error said in words, at once, and the chat goes on."""
    add_plugin(place, ODD)

    done = await place.run(says="/leave\n/silent\n/forget nada\n", PYTHONPATH=str(place.folder / "lib"))

    assert done.code == 0
    assert [answer.partition(" (error")[0] for answer in done.answers[:2]] == ["Algo falló de mi lado"] * 2
    assert done.answers[2].startswith("No guardo nada así")
    assert "SystemExit: 3" in done.err
    assert "TypeError: a reply is a text, and NoneType is none" in done.err


FAILING = """
import contextlib


def register(registry):
    @contextlib.asynccontextmanager
    async def opened(parts):
        {before}
        yield
        {after}

    registry.lifespan(opened)
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            FAILING.format(before="raise RuntimeError('no\\nlamp')", after="pass"),
            "the plugin 'guest' cannot start: RuntimeError('no\\nlamp')",
        ),
        (FAILING.format(before="pass", after="raise KeyError('lamp')"), "the plugin 'guest' cannot stop: KeyError('lamp')"),
        (FAILING.format(before="return", after="pass"), "the plugin 'guest' cannot start: RuntimeError(\"generator didn't yield\")"),
        ("def register(registry):\n    registry.lifespan(lambda parts: None)\n", "the plugin 'guest' cannot start: AttributeError("),
        (
            "def register(registry):\n    registry.retriever('lamps', lambda parts: 1 / 0)\n",
            "the plugin 'guest' cannot make its retriever 'lamps':",
        ),
        (
            "def register(registry):\n    @registry.command('go')\n    def go(ctx): ...\n",
            "the plugin 'guest': the command 'go' must be an async",
        ),
        ("import sys\n\nsys.exit(0)\n", "the plugin 'guest' cannot be imported: SystemExit(0)"),
        ("register = 'me'\n", "the plugin 'guest' has no function register(registry)"),
    ],
)
async def test_a_plugin_that_fails(place: Place, code: str, said: str) -> None:
    """One line names it and says what it said; the exit code tells scripts that it failed."""
    add_plugin(place, code)

    done = await place.run(says="hola\n", PYTHONPATH=str(place.folder / "lib"))

    assert done.code == 2
    assert done.err.startswith(f"sabio: {said}")
    assert done.err.count("\n") == 1
