"""The terminal chat of the real bot, over pipes and at a terminal."""

import asyncio
import json
import re
import sqlite3
import stat
import sys

from bot.settings import ROOT
from tests.e2e.child import BOT, Place
from tests.e2e.test_bad_input import add_plugin
from tests.standins.model_server import hangs, model_server, says
from tests.standins.pseudo_terminal import PseudoTerminal

OWN_DOCUMENTS = {"BOT_DOCUMENTS": f"{ROOT}/docs/es,{ROOT}/docs/en"}
SOURCES = re.compile(r"^(Fuentes|Sources): \[(?P<n>\d)\] (?P<file>docs/\S+\.md) › (?P<sections>[^,\n]+)", re.M)


async def test_a_fresh_start_answers_about_itself(place: Place) -> None:
    """Without a setting it answers from its own documents in the language of the question, and names a section that is there."""
    done = await place.run(says="¿Cómo borro todos mis datos?\nHow do I erase all my data?\n", **OWN_DOCUMENTS)

    spanish, english = SOURCES.finditer(done.out)
    assert (done.code, done.err) == (0, "")
    for line, folder in ((spanish, "es"), (english, "en")):
        text = (ROOT / line["file"]).read_text(encoding="utf-8")
        assert line["file"].startswith(f"docs/{folder}/")
        assert all(re.search(rf"^#+ {re.escape(section)}$", text, re.M) for section in line["sections"].split(" › "))
    assert [spanish[1], english[1]] == ["Fuentes", "Sources"]
    assert spanish["n"] == "1"
    assert "/forget_me" in done.out.split("Fuentes:")[0]


async def test_what_was_erased_is_gone_from_the_disk(place: Place) -> None:
    """A fact is there after /remember and gone after /forget_me, also from the raw bytes of every file, also while the process runs."""
    async with place.start(**OWN_DOCUMENTS) as bot:
        await bot.say("/remember Vivo en Bogotá")
        await bot.hear("Vivo en Bogotá")
        await bot.say("/memory")
        await bot.hear("1. Vivo en Bogotá")
        held = place.bytes_of_data()
        await bot.say("/forget_me")
        await bot.hear("¿Lo hago?")
        await bot.say("sí")
        await bot.hear("todo está borrado")
        await bot.say("/memory")
        nothing = await bot.hear("/remember")
        left = place.bytes_of_data()
        done = await bot.end()

    assert b"Bogot" in held
    assert "Bogot" not in nothing
    assert b"Bogot" not in left
    assert b"Bogot" not in place.bytes_of_data()
    assert (done.code, done.err) == (0, "")


async def test_one_persons_say_over_their_data(place: Place) -> None:
    """/language holds, an erasure that is not confirmed erases nothing, and /my_data is a file that its owner alone can read."""
    lines = ["/language en", "/remember Prefiero el té", "/forget_me", "no", "/memory", "/my_data"]

    done = await place.run(says="\n".join(lines))

    (path,) = (place.data / "exports").iterdir()
    assert (done.code, done.err) == (0, "")
    assert "I speak English" in done.answers[0]
    assert "1. Prefiero el té" in done.out
    assert str(path.relative_to(place.folder)) in done.out
    assert "Prefiero el té" in json.dumps(json.loads(path.read_text(encoding="utf-8")), ensure_ascii=False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    erased = await place.run(says="/help\n/forget_me\nyes\n/help\n")

    assert erased.out.index("I am Sabio") < erased.out.index("Soy Sabio")  # the choice of a language was theirs too
    assert not path.exists()


async def test_a_conversation_outlives_the_process(place: Place) -> None:
    """The window is kept: what was said before a restart goes to the model after it; /reset ends that and leaves facts alone."""
    async with model_server(says("Entendido.")) as server:
        await place.run(says="Me llamo Ana y vendo lámparas\n/remember Vendo lámparas rojas\n", OPENAI_BASE_URL=server.url)
        await place.run(says="¿Cómo me llamo?\n/reset\n¿Y ahora?\n", OPENAI_BASE_URL=server.url)

    answers = [request for request in server.requests if request.get("stream")]
    before, after = (json.dumps(request["messages"], ensure_ascii=False) for request in answers[-2:])
    assert "Me llamo Ana" in before
    assert "Me llamo Ana" not in after
    assert "Vendo lámparas rojas" in after


async def test_odd_input(place: Place) -> None:
    """Bytes that are no text, a mark at the start, CRLF, NUL, a line of a megabyte: each is answered, and the chat goes on."""
    lines = [b"\xef\xbb\xbf/help\r", b"\xff\xfe\xfa", b"uno\x00dos", b"lorem ipsum " * 87_000, "¿Cuánto cuesta el envío?".encode()]

    done = await place.run(says=b"\n".join(lines))

    assert done.code == 0
    assert "Traceback" not in done.err
    assert "cinco euros [1]" in done.out
    assert done.out.startswith("Soy Sabio")


async def test_a_reader_that_goes_away(place: Place) -> None:
    """`| head -1` ends it quietly."""
    command = ("sh", "-c", 'printf "/help\\n/help\\n/help\\n" | "$0" -m bot | head -n 1', sys.executable)

    done = await place.run(command=command)

    assert (done.code, done.err) == (0, "")
    assert len(done.out.splitlines()) == 1


def test_at_a_terminal(place: Place) -> None:
    """With a person at the keys, the answer and its marked sources stand in the scrollback, and Ctrl-D leaves."""
    with PseudoTerminal(BOT, env=place._environment({}), cwd=str(place.folder)) as terminal:
        at = terminal.hear("\x1b[?2004h")
        terminal.press("¿Cuánto tarda el envío a Canarias?\r")
        terminal.hear("\x1b[?2004h", after=at)
        terminal.press("\x04")

        assert terminal.ended() == 0
        assert "\x1b[2;3mFuentes: \x1b[0m\x1b[1;36m[1]" in terminal.written
        assert [line for line in terminal.see() if line.startswith("El envío a Canarias tarda nueve días hábiles")]
    assert stat.S_IMODE((place.data / "console_history").stat().st_mode) == 0o600


TELLING = """
import logging


def register(registry):
    @registry.command("break")
    async def broken(ctx):
        logging.getLogger("bot.guest").error("TORN")
        await ctx.reply("still whole")
"""


def test_the_log_tears_no_chat(place: Place) -> None:
    """With a person at the keys the log goes to a file; where standard error is another file already, it stays there."""
    add_plugin(place, TELLING)
    env = place._environment({"PYTHONPATH": str(place.folder / "lib")})
    elsewhere = ("sh", "-c", '"$0" -m bot 2>errors.txt', sys.executable)
    for command, file in ((BOT, place.data / "sabio.log"), (elsewhere, place.folder / "errors.txt")):
        with PseudoTerminal(command, env=env, cwd=str(place.folder)) as terminal:
            at = terminal.hear("\x1b[?2004h")
            terminal.press("/break\r")
            terminal.hear("\x1b[?2004h", after=at)
            terminal.press("\x04")

            assert terminal.ended() == 0
            assert "still whole" in terminal.see()
            assert "TORN" not in terminal.written
        assert file.read_text(encoding="utf-8").count("ERROR bot.guest: TORN") == 1


async def test_two_terminals(place: Place) -> None:
    """Two chats on one database at once: what one asks is answered there, and only there; what one of them remembers, both know."""
    async with place.start() as first, place.start() as second:
        for chat, name in ((first, "Ana"), (second, "Berta")):  # both are up
            await chat.say(f"/remember Conozco a {name}")
            await chat.hear("\n\n")
        for number in range(10):
            await asyncio.gather(first.say(f"/remember Ana tiene {number}"), second.say(f"/remember Berta tiene {number}"))
        ana, berta = await asyncio.gather(first.end(), second.end())

    assert [(chat.code, chat.err) for chat in (ana, berta)] == [(0, ""), (0, "")]
    for chat, name in ((ana, "Ana"), (berta, "Berta")):
        assert chat.answers == [f"Lo recordaré: Conozco a {name}", *(f"Lo recordaré: {name} tiene {number}" for number in range(10))]
    both = await place.run(says="/memory\n")
    assert both.out.count("Ana tiene") == both.out.count("Berta tiene") == 10


async def test_a_terminal_that_died_beside_another(place: Place) -> None:
    """It holds up nobody; what it had been asked is answered where it was asked, by the next one in its place, with what was said there."""
    async with model_server(says("Vale."), hangs("Érase"), says("Otra vez.")) as server:
        env = {"OPENAI_BASE_URL": server.url, "BOT_MEMORY_AUTO_EXTRACT": "false"}
        async with place.start() as first:
            await first.say("/help")
            await first.hear("/forget_me")
            async with place.start(**env) as second:
                await second.say("Me llamo Berta")
                await second.hear("Vale.")
                await second.say("cuéntame")
                async with asyncio.timeout(30):
                    while len(server.requests) < 2:  # noqa: ASYNC110 - the server sets no event
                        await asyncio.sleep(0.01)
                second.process.kill()
                await second.process.wait()
            await first.say("/language en")
            await first.hear("\n\n")
            forgotten = sqlite3.connect(place.data / "bot.db")
            forgotten.execute("UPDATE inbox SET claimed_until = 0")  # its lease would end by itself, in half a minute
            forgotten.commit()
            forgotten.close()
            async with place.start(**env) as next_one:
                await next_one.hear("Otra vez.")
            ended = await first.end()

    assert "Otra vez." not in ended.out
    assert "Me llamo Berta" in json.dumps(server.requests[-1])


async def test_ctrl_c_stops_an_answer(place: Place) -> None:
    """Ctrl-C while the model writes ends the request, what there is stays as the answer, and the chat goes on."""
    async with model_server(hangs("Érase una vez")) as server:

        def talk() -> str:
            env = place._environment({"OPENAI_BASE_URL": server.url, "BOT_MEMORY_AUTO_EXTRACT": "false"})
            with PseudoTerminal(BOT, env=env, cwd=str(place.folder)) as terminal:
                at = terminal.hear("\x1b[?2004h")
                terminal.press("cuéntame\r")
                at = terminal.hear("Érase una vez", after=at)
                terminal.press("\x03")
                at = terminal.hear("\x1b[?2004h", after=at)
                terminal.press("\x04")
                assert terminal.ended() == 0
                return "\n".join(terminal.see())

        seen = await asyncio.to_thread(talk)

    assert seen.count("Érase una vez") == 1
    assert server.left == 1


async def test_an_admin_feeds_it(place: Place) -> None:
    """/ingest of a text or of a path under a documents folder is answered from at once; /documents lists it; /remove takes it out."""
    (place.folder / "docs" / "nota.txt").write_text("El taller de cerámica abre los jueves a las siete.\n", encoding="utf-8")
    lines = ["/ingest docs/nota.txt", "/ingest El faro cierra en agosto.", "¿Cuándo cierra el faro?", "¿Cuándo abre el taller de cerámica?"]

    fed = await place.run(says="\n".join([*lines, "/documents"]))
    removed = await place.run(says="/remove docs/nota.txt\n/documents\n¿Cuándo abre el taller de cerámica?\n")

    assert fed.code == 0
    assert "nota.txt" in fed.err  # how far it is
    assert "El faro cierra en agosto [1]" in fed.out
    assert "abre los jueves a las siete [1]" in fed.out
    assert "docs/nota.txt" in fed.answers[-1]
    assert "jueves" not in removed.out
