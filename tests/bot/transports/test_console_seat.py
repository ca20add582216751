"""Several terminal chats on one database tell themselves apart."""

import subprocess
import sys
from pathlib import Path

import pytest

from bot.settings import ROOT
from bot.transports.console_seat import is_terminal, seated

HOLD = "import sys, pathlib\nfrom bot.transports.console_seat import seated\nwith seated(pathlib.Path(sys.argv[1]), 'a') as name:\n"
HOLD += "    print(name, flush=True)\n    sys.stdin.read()\n"


def holding(file: Path) -> "subprocess.Popen[str]":
    """A process that sits, and says where."""
    command = [sys.executable, "-c", HOLD, str(file)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_each_has_a_name_of_its_own(tmp_path: Path) -> None:
    """The first free one; that of a process that was killed is free at once. Other agents do not count."""
    file = tmp_path / "data" / "bot.db-terminals"
    with holding(file) as first, holding(file) as second:
        assert first.stdout is not None
        assert second.stdout is not None
        names = {first.stdout.readline().strip(), second.stdout.readline().strip()}
        with seated(file, "a") as third, seated(file, "b") as of_another:
            pass
        first.kill()
        second.kill()
        first.wait()
        second.wait()
        with seated(file, "a") as after:
            pass

    assert names == {"console", "console-2"}
    assert (third, of_another, after) == ("console-3", "console", "console")
    assert file.read_bytes() == b""


def test_where_nothing_can_be_locked(tmp_path: Path) -> None:
    """The chat is opened all the same."""
    (tmp_path / "data").write_text("no folder")

    with seated(tmp_path / "data" / "bot.db-terminals", "a") as name:
        assert name == "console"


@pytest.mark.parametrize(
    ("platform", "is_one"), [("console", True), ("console-2", True), ("consoles", False), ("telegram", False), ("", False)]
)
def test_which_names_are_terminals(platform: str, is_one: bool) -> None:
    """Those that `seated` gives."""
    assert is_terminal(platform) is is_one
