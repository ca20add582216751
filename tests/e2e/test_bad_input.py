"""What cannot work: one clear line, a code that scripts can use, and never a traceback."""

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.child import BOT, Place

MISUSED, NO_STORAGE = 2, 3


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("BOT_TOPK", "3", "BOT_TOP_K"),
        ("BOT_MEMORY_TTL", "0d", "above 0"),
        ("BOT_ADMINS", "me", "telegram:123"),
        ("BOT_EMBEDDINGS", "magic", "local"),
    ],
)
async def test_a_setting_that_cannot_work(place: Place, name: str, value: str, says: str) -> None:
    """It stops the start with 2 and one line that names the variable and what is allowed."""
    done = await place.run("check", **{name: value})

    assert done.code == MISUSED
    (line,) = done.err.splitlines()
    assert name in line
    assert says in line


async def test_a_broken_catalog(place: Place) -> None:
    """A translation whose placeholder is not that of its message stops the start with its file, its line and the placeholder."""
    add_plugin(place, "def register(registry):\n    registry.locales(Path(__file__).parent / 'locales')\n")
    catalog = place.folder / "lib" / "locales" / "es" / "LC_MESSAGES" / "messages.po"
    catalog.parent.mkdir(parents=True)
    header = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: es\\n"\n\n'
    catalog.write_text(header + 'msgid "Sources: {sources}"\nmsgstr "Fuentes: {fuentes}"\n', encoding="utf-8")

    done = await place.run("check", PYTHONPATH=str(place.folder / "lib"))

    assert done.code == MISUSED
    (line,) = done.err.splitlines()
    assert f"{catalog}:6" in line
    assert "sources" in line


async def test_a_plugin_that_cannot_be_imported(place: Place) -> None:
    """A plugin that fails on import stops the start with one line that names it."""
    add_plugin(place, "raise RuntimeError('not today')\n")

    done = await place.run("check", PYTHONPATH=str(place.folder / "lib"))

    assert done.code == MISUSED
    assert len(done.err.splitlines()) == 1
    assert "guest" in done.err
    assert "not today" in done.err


def add_plugin(place: Place, code: str) -> None:
    """Install a package with nothing but a module and an entry point under `lib`."""
    info = place.folder / "lib" / "guest-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guest\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[sabio.plugins]\nguest = guest\n", encoding="utf-8")
    (place.folder / "lib" / "guest.py").write_text(f"from pathlib import Path\n\n{code}", encoding="utf-8")


# ---------------------------------------------------------------------------------------------- the disk

SETPRIV = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search")
"""Root may read and write anything; without these two capabilities, permissions hold for root too."""


@pytest.fixture
def ordinary() -> tuple[str, ...]:
    """The command of the bot as a user for whom permissions hold."""
    if os.geteuid():
        return BOT
    if shutil.which("setpriv") is None:
        pytest.skip("the tests run as root, for whom permissions do not hold, and there is no setpriv to drop that")
    return (*SETPRIV, *BOT)


@pytest.fixture
def locked(place: Place) -> Iterator[Path]:
    """A folder that may neither be read nor written."""
    folder = place.folder / "locked"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nText.\n", encoding="utf-8")
    folder.chmod(0)
    yield folder
    folder.chmod(0o700)


async def test_a_folder_that_may_not_be_read(place: Place, ordinary: tuple[str, ...], locked: Path) -> None:
    """`ingest` of it ends with 1 and one line that names it; as a configured folder it is named, and the others answer."""
    ingested = await place.run("ingest", "locked", command=ordinary)
    asked = await place.run("ask", "¿Cuánto cuesta el envío?", command=ordinary, BOT_DOCUMENTS="locked,docs")

    assert ingested.code == 1
    (line,) = ingested.err.splitlines()
    assert line.startswith("locked: ")
    assert asked.code == 0
    assert "cinco euros" in asked.out
    assert "locked" in asked.err
    assert "Traceback" not in asked.err


async def test_a_database_that_cannot_be_written(place: Place, ordinary: tuple[str, ...], locked: Path) -> None:
    """It ends with 3 and one line that names the file."""
    done = await place.run("ask", "hola", command=ordinary, BOT_DATABASE_URL="sqlite:///locked/bot.db")

    assert done.code == NO_STORAGE
    (line,) = done.err.splitlines()
    assert "locked/bot.db" in line


async def test_a_file_that_is_no_database(place: Place) -> None:
    """A file with other contents is left as it is, and named in one line."""
    (place.folder / "notes.txt").write_text("my notes\n" * 200, encoding="utf-8")

    done = await place.run("ask", "hola", BOT_DATABASE_URL="sqlite:///notes.txt")

    assert done.code == NO_STORAGE
    assert len(done.err.splitlines()) == 1
    assert "notes.txt" in done.err
    assert (place.folder / "notes.txt").read_text(encoding="utf-8") == "my notes\n" * 200


async def test_a_disk_too_small_to_begin(place: Place) -> None:
    """Where the tables do not fit on the disk it ends with 3 and one line that names the database."""
    done = await place.run("ask", "hola", prepare=_room_for(16_384))

    assert done.code == NO_STORAGE
    assert len(done.err.splitlines()) == 1
    assert "bot.db" in done.err


async def test_a_disk_that_fills_up(place: Place) -> None:
    """While it runs, what cannot be stored is said in a sentence, what needs no more room is answered, and the process ends well."""
    await place.run("check")
    full = max(path.stat().st_size for path in place.data.iterdir())
    text = " ".join(f"palabra{n}" for n in range(60_000))

    done = await place.run(says=f"/ingest {text}\n/documents\n", prepare=_room_for(full + 40_960))

    assert done.code == 0
    assert "Traceback" not in done.err
    assert len(done.answers) >= 2
    assert "envios.md" in done.out
    healthy = await place.run("ask", "¿Cuánto cuesta el envío?")
    assert "cinco euros" in healthy.out


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a file system cannot be mounted here; test_a_disk_too_small_to_begin limits the size of files instead")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_small_disk(place: Place, small_disk: Path) -> None:
    """The same on a real file system that is full."""
    done = await place.run("ask", "hola", BOT_DATABASE_URL="sqlite:///small/bot.db")

    assert done.code == NO_STORAGE
    assert len(done.err.splitlines()) == 1
    assert "bot.db" in done.err


def _room_for(size: int) -> Callable[[], None]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit
