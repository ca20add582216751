"""The image holds what the bot needs, nothing that is secret, and does not run as root. No engine is needed to see that."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
STEPS = [line.split(maxsplit=1) for line in DOCKERFILE.splitlines() if line.strip() and not line.startswith("#")]


def steps(name: str) -> list[str]:
    return [arguments for step, arguments in STEPS if step == name]


def copied() -> list[tuple[str, str]]:
    """`(what, where)` of each COPY."""
    return [(what, where) for what, where in (arguments.split() for arguments in steps("COPY"))]


def variables() -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S+)", " ".join(steps("ENV"))))


def test_the_builder_is_sent_what_is_copied() -> None:
    """`.dockerignore` lets through each path that the Dockerfile names, and begins by leaving everything out."""
    lines = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]

    assert lines[0] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == {what for what, _ in copied()}


def test_it_runs_as_somebody_who_owns_only_the_data() -> None:
    """The last user is not root, `data` is the volume and theirs, and the packages are checked by their hashes."""
    runs = " ".join(steps("RUN"))

    assert steps("USER") == ["sabio"]
    assert steps("VOLUME") == ["/app/data"]
    assert re.findall(r"chown (\S+ \S+)", runs) == ["sabio data"]
    assert "--require-hashes -r requirements.lock" in runs
    assert steps("CMD") == ['["python", "-m", "bot"]']


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the image holds, in a folder."""
    app = tmp_path_factory.mktemp("app")
    for what, where in copied():
        source, target = ROOT / what, app / where
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    (app / "data").mkdir()
    return app


def test_what_is_copied_is_enough(image: Path) -> None:
    """With these files alone, and the image's own settings, the bot answers from its documentation."""
    environment = {"PATH": os.environ["PATH"], **variables(), "BOT_HTTP_HOST": "127.0.0.1", "BOT_HTTP_PORT": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "bot"],
        cwd=image,
        env=environment,
        input="¿Cómo borro todos mis datos?\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "/forget_me" in done.stdout
    assert "Fuentes: [1]" in done.stdout


@pytest.mark.parametrize("command", [["check"], ["ask", "hola"], ["--help"]], ids=lambda command: command[0])
def test_a_broken_catalog_stops_it_with_one_line(image: Path, tmp_path: Path, command: list[str]) -> None:
    """Whatever is started: the line names the file, the line in it and the placeholder, and the exit code is that of a wrong setting."""
    app = tmp_path / "app"
    shutil.copytree(image, app)
    catalog = app / "locales" / "es" / "LC_MESSAGES" / "messages.po"
    catalog.write_text(
        catalog.read_text(encoding="utf-8").replace('msgstr "Fuentes: {sources}"', 'msgstr "Fuentes: {fuentes}"'), encoding="utf-8"
    )
    done = subprocess.run([sys.executable, "-m", "bot", *command], cwd=app, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert re.search(r"messages\.po:\d+: .*\{fuentes\}.*\{sources\}", done.stderr)
