"""The log holds codes and ids: whatever looks like a key, and every secret that the process knows, is taken out."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from bot.log import HIDDEN, Counters, Redaction, set_up

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
