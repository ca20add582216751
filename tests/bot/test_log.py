"""The log holds codes and ids: whatever looks like a key, and every secret that the process knows, is taken out."""

import io
import json
import logging
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from bot.log import HIDDEN, Counters, Redaction, kept_in, set_up

SECRET = 'p@ss/"wörd" 1'


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What arrives at standard error of a process whose secret is SECRET."""
    written = io.StringIO()
    root, hook = logging.getLogger(), sys.excepthook
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    monkeypatch.setattr(sys, "stderr", written)
    set_up("DEBUG", secrets=[SECRET, "ab"])
    yield written
    root.handlers, sys.excepthook = handlers, hook
    root.setLevel(level)
    for name in ("bot", "handlers", "plugins"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.parametrize("form", [SECRET, quote(SECRET, safe=""), json.dumps(SECRET)[1:-1], repr(SECRET)])
def test_a_known_secret_is_hidden(log: io.StringIO, form: str) -> None:
    """As it is, and as it stands in a URL, in JSON and in the text of an error; as an argument and in the message."""
    logging.getLogger("bot.x").error("at %s, " + form.replace("%", "%%"), form)

    assert log.getvalue().count(HIDDEN) == 2
    assert "rd" not in log.getvalue().split("at ")[1].replace(HIDDEN, "")


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-abcdefghijklmnop1234",
        "123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc",
        "https://api.telegram.org/bot123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc/getMe",
        "https://api.telegram.org/file/bot123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc/documents/1.pdf",
        "EAAGm0PX4ZCpsBAKZCZBq2Lx",
        "ghp_abcdefghijklmnopqrstuvwxyz012345",
        "xoxb-1234567890-abcdef",
        "AIzaSyA-1234567890abcdefghijklmnopqrstu",
        "Authorization: Bearer abc.def-ghi",
        "{'Authorization': 'bearer abcdefgh'}",
        "Authorization: Basic dXNlcjpwYXNz",
        "postgresql://bot:hunter2@db/sabio",
        "https://graph.facebook.com/v20.0/1/messages?access_token=abcdefgh&x=1",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    ],
)
def test_what_looks_like_a_key_is_hidden(key: str) -> None:
    """Also one that this process was not configured with."""
    shown = Redaction().clean(f"failed: {key} after 3 tries")

    assert HIDDEN in shown
    assert shown.startswith("failed: ")
    assert shown.endswith(" after 3 tries")
    for piece in ("AAEhBO", "sk-proj", "abc.def", "abcdefgh", "hunter2", "dXNlcj", "eyJhb", "Gm0PX4", "1234567890"):
        assert piece not in shown


@pytest.mark.parametrize(
    "text",
    [
        "update telegram:123456789:42 answered",
        "12:30:45 sqlite:///data/bot.db",
        "http://localhost:11434/api",
        "ask-me task-1234567890123456",
    ],
)
def test_what_is_no_key_is_left(text: str) -> None:
    """Ids, times, addresses and paths."""
    assert Redaction(["ab"]).clean(text) == text


def test_a_traceback_is_cleaned(log: io.StringIO) -> None:
    """Its causes and its notes too."""
    try:
        try:
            raise ValueError(f"https://x?access_token={quote(SECRET)}")
        except ValueError as error:
            error.add_note(SECRET)
            raise RuntimeError("sk-abcdefghijklmnop1234") from error
    except RuntimeError:
        logging.getLogger("bot.x").exception("broke with %r", SECRET, stack_info=True)

    assert "RuntimeError" in log.getvalue()
    assert "test_a_traceback_is_cleaned" in log.getvalue()
    for piece in ("sk-abc", quote(SECRET), SECRET):
        assert piece not in log.getvalue()


def test_an_error_given_as_exc_info(log: io.StringIO) -> None:
    """As the dispatcher hands one on."""
    logging.getLogger("bot.x").error("broke", exc_info=ValueError(SECRET))

    assert f"ValueError: {HIDDEN}" in log.getvalue()


def test_a_line_that_cannot_be_formatted(log: io.StringIO) -> None:
    """A mistake in a library's log line stops nobody, and is logged as far as it can be."""

    class Odd:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    logging.getLogger("a.library").warning("%d of %d", "one")
    logging.getLogger("a.library").warning("%s", Odd())

    assert log.getvalue().count("cannot be logged") == 2


def test_libraries_do_not_debug(log: io.StringIO) -> None:
    """Their DEBUG lines hold statements with values and requests with bodies: ours are written, theirs are not."""
    logging.getLogger("aiosqlite").debug("executing INSERT my diary")
    logging.getLogger("openai._base_client").debug("Request options: my diary")
    logging.getLogger("bot.dispatch").debug("update u1")
    logging.getLogger("aiosqlite").info("opened")

    assert "diary" not in log.getvalue()
    assert "update u1" in log.getvalue()
    assert "opened" in log.getvalue()


def test_what_nobody_catches_is_cleaned(log: io.StringIO) -> None:
    """The interpreter would print it as it is."""
    error = RuntimeError(SECRET)
    sys.excepthook(RuntimeError, error, None)

    assert f"RuntimeError: {HIDDEN}" in log.getvalue()


def test_levels_are_kept(log: io.StringIO, capsys: pytest.CaptureFixture[str]) -> None:
    """Setting up again replaces what was set up before."""
    set_up("ERROR")
    logging.getLogger("bot.x").warning("not this")
    logging.getLogger("bot.x").error("this")

    assert log.getvalue() == ""
    assert capsys.readouterr().err.endswith("ERROR bot.x: this\n")


def test_counters() -> None:
    """Each name counts by itself; what is handed out does not change any more."""
    counters = Counters()
    counters.add("b")
    counters.add("a", 2)
    before = counters.snapshot()
    counters.add("a")

    assert before == {"a": 2, "b": 1}
    assert list(before) == ["a", "b"]
    assert counters.snapshot()["a"] == 3


def test_a_log_beside_a_chat(log: io.StringIO, tmp_path: Path) -> None:
    """It goes to a file of its owner's, cleaned as ever, and back where it went before at the end."""
    file = tmp_path / "data" / "sabio.log"

    with kept_in(file):
        logging.getLogger("bot").error("inside %s", SECRET)
    logging.getLogger("bot").error("outside")

    assert "inside" not in log.getvalue()
    assert "outside" in log.getvalue()
    assert f"ERROR bot: inside {HIDDEN}" in file.read_text(encoding="utf-8")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_log_that_cannot_be_kept(log: io.StringIO, tmp_path: Path) -> None:
    """It stays where it is, and says so."""
    (tmp_path / "data").write_text("no folder")

    with kept_in(tmp_path / "data" / "sabio.log"):
        logging.getLogger("bot").error("inside")

    assert "the log is not kept in" in log.getvalue()
    assert "inside" in log.getvalue()


def test_a_log_that_grows(log: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is begun anew past its bound, and one before it is kept."""
    monkeypatch.setattr("bot.log.LOG_BYTES", 1_000)

    with kept_in(tmp_path / "sabio.log"):
        for number in range(200):
            logging.getLogger("bot").error("line %d", number)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["sabio.log", "sabio.log.1"]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2_000
    assert "line 199" in (tmp_path / "sabio.log").read_text(encoding="utf-8")
