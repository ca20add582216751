"""The command line: what each command prints, and the code it ends with."""

import json
import re
import stat
import sys

import pytest

from bot.settings import ROOT
from tests.e2e.child import Place
from tests.standins.embedding_server import embedding_server
from tests.standins.model_server import fails, model_server, says

SHARED = ROOT.parent / "shared" / "data" / "docs"
FOREIGN = {"aiogram", "pywa", "openai", "asyncpg", "rich", "prompt_toolkit", "aiohttp", "pypdf"}


async def test_ask_prints_the_answer(place: Place) -> None:
    """`ask` is one turn: the answer with its sources on standard output, and exit code 0."""
    done = await place.run("ask", "¿Cuánto cuesta el envío?")

    assert (done.code, done.err) == (0, "")
    assert "cinco euros [1]" in done.out
    assert "Fuentes: [1] docs/envios.md › Envíos › Coste" in done.out


async def test_ask_imports_no_more_than_it_uses(place: Place) -> None:
    """`ask` pays for no platform, no model client and no terminal."""
    command = (sys.executable, "-X", "importtime", "-m", "bot")
    await place.run("check")

    done = await place.run("ask", "hola", command=command)

    imported = set(re.findall(r"\| +([\w]+)(?:\.[\w.]+)?$", done.err, re.M))
    assert done.code == 0
    assert "bot" in imported
    assert "numpy" in imported
    assert imported & FOREIGN == set()


async def test_a_model_that_fails(place: Place) -> None:
    """Where the model gives no answer, `ask` says so in words on standard error and ends with 4; a right one ends with 0."""
    async with model_server(fails(401, "bad key"), says("Cinco euros [1].")) as server:
        failed = await place.run("ask", "¿Cuánto cuesta el envío?", OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-secret-0123456789abcdef")
        done = await place.run("ask", "¿Cuánto cuesta el envío?", OPENAI_BASE_URL=server.url)

    assert failed.code == 4
    assert failed.out == ""
    assert "sk-secret" not in failed.err
    assert "Traceback" not in failed.err
    assert (done.code, done.answers) == (0, ["Cinco euros [1].", "Fuentes: [1] docs/envios.md › Envíos › Coste"])


async def test_ingest_names_each_file(place: Place) -> None:
    """`ingest` takes what can be read, names what cannot with its reason, and ends with 1 where something failed."""
    (place.folder / "more").mkdir()
    (place.folder / "more" / "good.md").write_text("# Taller\n\nEl taller abre los jueves.\n", encoding="utf-8")
    (place.folder / "more" / "broken.json").write_text('{"a": ', encoding="utf-8")
    (place.folder / "more" / "broken.pdf").write_bytes(b"%PDF-1.7\nnot really")

    mixed = await place.run("ingest", "more")
    again = await place.run("ingest", "more/good.md")
    answer = await place.run("ask", "¿Cuándo abre el taller?")

    assert mixed.code == 1
    assert "good.md: agregado" in mixed.out
    for name in ("broken.json", "broken.pdf"):
        assert re.search(rf"^more/{name}: .+", mixed.err, re.M)
    assert "Traceback" not in mixed.err
    assert again.code == 0
    assert "good.md: sin cambios" in again.out
    assert "El taller abre los jueves" in answer.out


async def test_nothing_is_embedded_twice(place: Place) -> None:
    """A second `ingest` of the same files makes no request to the embedder; a file that changed costs its own chunks."""
    async with embedding_server() as server:
        env = {"BOT_EMBEDDINGS": "openai", "BOT_EMBEDDINGS_BASE_URL": server.url, "OPENAI_API_KEY": "none", "BOT_PROVIDER": "extractive"}
        first = await place.run("ingest", "docs", **env)
        embedded, server.requests = len(server.texts), 0
        second = await place.run("ingest", "docs", **env)
        asked = server.requests
        (place.folder / "docs" / "returns.md").write_text("# Returns\n\nWe take lamps back within a month.\n", encoding="utf-8")
        await place.run("ingest", "docs", **env)

    assert (first.code, second.code) == (0, 0)
    assert embedded > 0
    assert asked == 0
    assert len(server.texts) == embedded + 1


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared collection of real documents is not here")
async def test_real_documents(place: Place) -> None:
    """Real documents of every kind are taken, and a second run reads nothing twice."""
    async with embedding_server() as server:
        env = {"BOT_EMBEDDINGS": "openai", "BOT_EMBEDDINGS_BASE_URL": server.url, "OPENAI_API_KEY": "none", "BOT_PROVIDER": "extractive"}
        first = await place.run("ingest", str(SHARED), **env)
        server.requests = 0
        second = await place.run("ingest", str(SHARED), **env)

    files = [path for path in SHARED.rglob("*") if path.suffix in {".md", ".mdx", ".txt", ".json", ".pdf"}]
    lines = [*first.out.splitlines(), *first.err.splitlines()]
    assert all(any(path.name in line for line in lines) for path in files)
    assert "Traceback" not in first.err
    assert second.code == first.code
    assert ": agregado" not in second.out
    assert server.requests == 0


async def test_a_person_is_exported_and_erased(place: Place) -> None:
    """`export` prints what is held as JSON; `forget` erases it, from the files too."""
    await place.run(says="/remember Prefiero el té de jazmín\n/my_data\n")

    exported = await place.run("export", "console:local")
    private = await place.run("export", "console:local", "-o", "mine.json")
    erased = await place.run("forget", "console:local")
    after = await place.run("export", "console:local")

    assert "Prefiero el té de jazmín" in json.dumps(json.loads(exported.out), ensure_ascii=False)
    assert stat.S_IMODE((place.folder / "mine.json").stat().st_mode) == 0o600
    assert [private.code, erased.code, after.code] == [0, 0, 0]
    assert "jazm" not in after.out
    assert b"jazm" not in place.bytes_of_data()


async def test_a_terminal_that_cannot_show_everything(place: Place) -> None:
    """Help, errors and answers are shown as far as they can be; an export for it is whole, and can be taken back."""
    env = {"PYTHONIOENCODING": "ascii", "LC_ALL": "es_ES.UTF-8"}
    await place.run(says="/remember Vivo en Bogotá 😀\n")
    shown = [await place.run(*arguments, **env) for arguments in (["--help"], ["ask", "¿Cuánto cuesta el envío?"], ["forget", "ñandú:😀"])]
    exported = await place.run("export", "console:local", **env)
    again = await place.run("import", "-", says=exported.out)

    assert [(done.code, done.err) for done in (*shown, exported, again)] == [(0, "")] * 5
    assert [fact["value"] for fact in json.loads(exported.out)["facts"]] == ["Vivo en Bogotá 😀"]


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
async def test_a_stream_that_is_closed(place: Place, closed: str) -> None:
    """What is written to it is written nowhere, and everything else works."""
    command = ("sh", "-c", f'"$0" -m bot "$@" {closed}', sys.executable)
    for arguments in (["ask", "hola"], ["ingest", "docs"], ["run"]):
        done = await place.run(*arguments, command=command, says="hola\n")

        assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    "arguments", [("ask", "hola"), ("export", "console:local"), ("ingest", "docs"), ("check",), ("forget", "console:local")]
)
async def test_what_is_printed_is_not_read(place: Place, arguments: tuple[str, ...]) -> None:
    """A reader that goes away ends nothing; output that cannot be written is an error in one line."""
    read = await place.run(*arguments, command=("sh", "-c", '{ "$0" -m bot "$@"; echo "ended with $?" >&2; } | true', sys.executable))
    full = await place.run(*arguments, command=("sh", "-c", '"$0" -m bot "$@" >/dev/full', sys.executable))

    assert read.err == "ended with 0\n"
    assert (full.code, full.err) == (1, "sabio: standard output cannot be written: No space left on device\n")


async def test_check_says_a_line_each(place: Place) -> None:
    """`check` has a line for configuration, database, model and index, and ends with 0 where all is well."""
    done = await place.run("check")

    assert (done.code, done.err) == (0, "")
    assert [line.split(":")[0] for line in done.out.splitlines()] == ["configuration", "database", "model", "index"]
    assert "2 documents" in done.out


async def test_check_asks_the_model(place: Place) -> None:
    """A key that is refused, or a server that is not there, is seen: its line says so, and the code is 4; one word is enough."""
    async with model_server(fails(401, "bad key"), says("OK")) as server:
        refused = await place.run("check", OPENAI_BASE_URL=server.url)
        done = await place.run("check", OPENAI_BASE_URL=server.url)
    gone = await place.run("check", OPENAI_BASE_URL=server.url)

    assert [refused.code, done.code, gone.code] == [4, 0, 4]
    assert refused.out.splitlines()[2].startswith("model: MODEL_MISCONFIGURED")
    assert gone.out.splitlines()[2].startswith("model: MODEL_UNAVAILABLE")


@pytest.mark.parametrize(
    "arguments",
    [("nonsense",), ("ask",)],
    ids=" ".join,
)
async def test_misuse(place: Place, arguments: tuple[str, ...]) -> None:
    """What the command line does not know ends with 2 and says how it is used; nothing is opened."""
    done = await place.run(*arguments)

    assert done.code == 2
    assert "uso: python -m bot" in done.err
    assert not place.data.exists()


@pytest.mark.parametrize("command", ["", "export"])
async def test_help(place: Place, command: str) -> None:
    """`--help` explains itself and the exit codes, and opens nothing."""
    done = await place.run(*filter(None, [command]), "--help")

    assert (done.code, done.err) == (0, "")
    assert re.search(r"[Cc]ódigos de salida|[Ee]xit codes", done.out)
    assert not place.data.exists()
