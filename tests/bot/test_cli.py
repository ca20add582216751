"""The command line: one clear line and an exit code that scripts can use, whatever is wrong."""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.cli import FAILED, MISUSED, NO_STORAGE, OK, loops_for, main
from bot.settings import Settings

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """`run("ask", "hi", BOT_X="…")` in an empty folder: the exit code, what was printed, and what was complained of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    monkeypatch.setenv("BOT_DOCUMENTS", str(tmp_path / "docs"))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "shop.md").write_text("# Shop\n\n## Hours\n\nThe shop opens at ten in the morning.\n", encoding="utf-8")
    root, hook = logging.getLogger(), sys.excepthook
    handlers, level = root.handlers[:], root.level

    def command(*arguments: str, **variables: str) -> tuple[int, str, str]:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        try:
            code = main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    yield command
    root.handlers, sys.excepthook = handlers, hook
    root.setLevel(level)
    for name in ("bot", "handlers", "plugins"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("variables", "code", "said"),
    [
        ({"BOT_TOPK": "3"}, MISUSED, "BOT_TOPK is not a setting; did you mean BOT_TOP_K?"),
        ({"BOT_MEMORY_TTL": "soon"}, MISUSED, "BOT_MEMORY_TTL='soon' cannot work"),
        ({"BOT_DEFAULT_LANGUAGE": "xx"}, MISUSED, "BOT_DEFAULT_LANGUAGE='xx' has no catalog"),
        ({"BOT_DATABASE_URL": "mysql://ana:s3cret@host/db"}, MISUSED, "BOT_DATABASE_URL="),
        ({"BOT_DATABASE_URL": "sqlite:////proc/nowhere/bot.db"}, NO_STORAGE, "/proc/nowhere/bot.db"),
    ],
)
def test_what_cannot_work_is_said_in_one_line(run: Run, variables: dict[str, str], code: int, said: str) -> None:
    """On standard error, with the exit code of its kind, and without a traceback or a password."""
    done = run("check", **variables)

    assert done[0] == code
    assert done[2].startswith("sabio: ")
    assert said in done[2]
    assert done[2].count("\n") == 1
    assert "s3cret" not in done[2]


def test_one_question(run: Run) -> None:
    """The answer is printed, and nothing else."""
    code, out, err = run("ask", "When does the shop open?")

    assert (code, err) == (OK, "")
    assert "ten in the morning" in out
    assert "shop.md" in out


def test_everything_is_checked(run: Run) -> None:
    """One line each."""
    code, out, _ = run("check")

    assert code == OK
    assert [line.split(":")[0] for line in out.splitlines()] == ["configuration", "database", "model", "index"]


def test_a_check_sees_documents_that_are_not_there(run: Run) -> None:
    """A slip in BOT_DOCUMENTS leaves a bot that knows nothing: its line says so."""
    code, out, _ = run("check", BOT_DOCUMENTS="docs,no-such-folder")

    assert code == MISUSED
    assert "no-such-folder" in out.splitlines()[-1]


def test_erasing_nobody_says_so(run: Run) -> None:
    """Whoever mistypes a person is not left to believe that they are gone."""
    code, out, _ = run("forget", "123")

    assert code == OK
    assert "Nothing was held about 123" in out


def test_help_is_in_the_language_of_the_shell(run: Run) -> None:
    """All of it, the words that come from argparse too."""
    for arguments in (["--help"], ["ingest", "--help"]):
        code, out, _ = run(*arguments, LC_ALL="es_CO.UTF-8")

        assert code == OK
        assert out.startswith("uso: python -m bot")
        assert not [word for word in ("usage", "positional", "options", "show this") if word in out]


def test_a_person_is_exported_and_erased(run: Run, tmp_path: Path) -> None:
    """As JSON, to a file that its owner alone can read; then nothing of them is left."""
    run("ask", "When does the shop open? CANARY")
    code, _, _ = run("export", "console:local", "-o", "me.json")
    exported = json.loads((tmp_path / "me.json").read_text(encoding="utf-8"))
    erased, out, _ = run("forget", "console:local")
    _, after, _ = run("export", "console:local")

    assert (code, erased) == (OK, OK)
    assert "CANARY" in json.dumps(exported)
    assert (tmp_path / "me.json").stat().st_mode & 0o777 == 0o600
    assert "console:local" in out
    assert "CANARY" not in after
    assert sum(path.read_bytes().count(b"CANARY") for path in (tmp_path / "data").rglob("*") if path.is_file()) == 0


def test_a_file_that_cannot_be_written(run: Run) -> None:
    """It is named, with why."""
    code, _, err = run("export", "console:local", "-o", "nowhere/me.json")

    assert code == FAILED
    assert "'nowhere/me.json' cannot be written: No such file or directory" in err


@pytest.mark.parametrize("arguments", [["dance"], ["ask"], ["export"], ["ingest"]])
def test_arguments_that_are_wrong(run: Run, arguments: list[str]) -> None:
    """The exit code is that of misuse, and the usage is shown."""
    code, _, err = run(*arguments)

    assert code == MISUSED
    assert "usage" in err.lower()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dance"], "argumento COMANDO: 'dance' no es ninguno de estos: 'run', 'ask'"),
        (["ask"], "faltan estos argumentos: question"),
        (["ask", "hola", "otra"], "argumentos desconocidos: otra"),
        (["--fast"], "argumentos desconocidos: --fast"),
        (["ingest"], "faltan estos argumentos: PATH"),
        (["export", "console:local", "-o"], "argumento -o/--output: falta un valor"),
        (["eval", "q.jsonl", "--top-k", "many"], "argumento --top-k: 'many' no es un valor de tipo int"),
        (["run", "--help=me"], "argumento -h/--help: no lleva ningún valor, y recibió 'me'"),
    ],
)
def test_what_is_wrong_is_said_in_the_language_of_the_shell(run: Run, arguments: list[str], said: str) -> None:
    """What argparse finds, too; in English it says it in its own words."""
    code, _, err = run(*arguments, LC_ALL="es_CO.UTF-8")
    _, _, english = run(*arguments, LC_ALL="en_GB.UTF-8")

    assert code == MISUSED
    assert err.startswith("uso: python -m bot")
    assert f": error: {said}" in err
    assert english.startswith("usage: python -m bot")
    assert not [word for word in ("usage", "required", "argument ", "expected", "invalid", "unrecognized") if word in err]


@pytest.mark.parametrize("arguments", [[], ["ask"], ["ingest"], ["eval"], ["forget"], ["export"], ["check"], ["run"]])
def test_help_helps(run: Run, arguments: list[str]) -> None:
    """Every command says what it does and what its exit codes mean."""
    code, out, _ = run(*arguments, "--help")

    assert code == OK
    assert "Exit codes" in out


def test_documents_are_measured(run: Run, tmp_path: Path) -> None:
    """Figures and misses are printed, a page is written, and a line that is no question is named and makes the exit code that of a part."""
    questions = '{"question": "When does the shop open?", "source": "shop.md"}\n{"question": "Who won in 1954?", "answer": null}\n'
    (tmp_path / "good.jsonl").write_text(questions, encoding="utf-8")
    (tmp_path / "bad.jsonl").write_text(questions + "nonsense\n", encoding="utf-8")

    good, out, err = run("eval", "good.jsonl", "--report", "report.html")
    bad, _, complaint = run("eval", "bad.jsonl")

    assert (good, err) == (OK, "")
    assert "1 of 1 (100%)" in out
    assert "1.000" in out
    assert '<html lang="en">' in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (bad, complaint) == (FAILED, "line 3 is left out: it is no JSON object\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.jsonl"], "'nowhere.jsonl' cannot be read"),
        (["empty.jsonl"], "'empty.jsonl' holds no question"),
        (["latin.jsonl"], "'latin.jsonl' is not UTF-8 text"),
        (["empty.jsonl", "--top-k", "0"], "--top-k 0 cannot work: use 1 to 50"),
        (["empty.jsonl", "--min-score", "2"], "--min-score 2.0 cannot work: use 0 to 1"),
    ],
)
def test_nothing_to_measure_by(run: Run, tmp_path: Path, arguments: list[str], said: str) -> None:
    """It is said in one line, with the exit code of misuse."""
    (tmp_path / "empty.jsonl").write_text("\n", encoding="utf-8")
    (tmp_path / "latin.jsonl").write_bytes("ñ".encode("latin-1"))

    code, _, err = run("eval", *arguments)

    assert code == MISUSED
    assert said in err


def test_many_are_served_by_a_faster_loop() -> None:
    """Where a platform is configured; the terminal does not pay for importing it."""
    served = loops_for(Settings.model_validate({"telegram_token": "1:abc"}))
    assert served is not None
    loop = served()
    loop.close()

    assert type(loop).__module__.startswith("uvloop") == (sys.platform != "win32")
    assert loops_for(Settings()) is None
