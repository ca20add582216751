"""The log: codes and ids to standard error, with every secret that the process knows taken out."""

import contextlib
import json
import logging
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

# Key formats that may come inside an exception or a library's own log line, whether or not this process was configured with them.
_KEY_FORMATS = re.compile(
    r"\bsk-[\w-]{16,}|(?<!\d)\d{6,12}:[\w-]{30,}|\bEAA\w{20,}|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bxox[abp]-[\w-]{10,}|\bAIza[\w-]{30,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|(?i:(?<=bearer )[^\s'\"]+|(?<=basic )[\w+/=]{8,}|(?<=access_token=)[^&\s'\"]+|(?<=api_key=)[^&\s'\"]+)"
    r"|(?<=://)[^/\s:@]*:[^\s/@]+(?=@)"
)
HIDDEN = "[hidden]"
OURS = ("bot", "handlers", "plugins")
LOG_BYTES = 1_000_000
SHORTEST_SECRET = 4  # a shorter one would take ordinary words along


class Redaction(logging.Filter):
    """Takes secrets out of a record before any handler formats it, its traceback included."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        forms = {form for secret in secrets for form in _forms(secret.strip())}
        self._secrets = sorted((form for form in forms if len(form) >= SHORTEST_SECRET), key=len, reverse=True)

    def clean(self, text: str) -> str:
        """`text` with each known secret, and whatever looks like a key, replaced."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return _KEY_FORMATS.sub(HIDDEN, text)

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrites the record in place; it is always let through."""
        try:
            message = record.getMessage()
        except Exception as error:  # noqa: BLE001 - a library's own mistake in its arguments, or in an object's text, must not stop whoever logs
            message = f"{record.msg!r} cannot be logged: {error!r}"
        record.msg, record.args = self.clean(message), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        record.exc_text = self.clean(record.exc_text) if record.exc_text else record.exc_text
        record.stack_info = self.clean(record.stack_info) if record.stack_info else record.stack_info
        return True


def _forms(secret: str) -> set[str]:
    """A secret as it stands in a URL, in JSON and in the text of an error."""
    return {secret, quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1]}


def set_up(level: str, *, secrets: Iterable[str] = ()) -> Redaction:
    """Send the log of the whole process to standard error, redacted; called once, by whoever starts the process.

    What nobody catches goes there as well: the interpreter would print it as it is.
    """
    redaction = Redaction(secrets)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.addFilter(redaction)
    logging.basicConfig(level=max(logging.getLevelName(level), logging.INFO), handlers=[handler], force=True)
    for name in OURS:  # libraries write what people say into their DEBUG lines: statements with their values, requests with their bodies
        logging.getLogger(name).setLevel(level)
    sys.excepthook = _uncaught
    return redaction


@contextlib.contextmanager
def kept_in(file: Path) -> Iterator[None]:
    """Send the log to a file, its owner's alone, as long as the block runs: a terminal in which a person writes is no place for it.

    It is begun anew past a megabyte, and the one before it is kept. Where the file cannot be written, the log stays where it is.
    """
    from logging.handlers import RotatingFileHandler  # brings sockets along, and only a terminal chat needs it

    root = logging.getLogger()
    before = list(root.handlers)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW, 0o600))
        handler = RotatingFileHandler(file, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        logging.getLogger(__name__).warning("the log is not kept in %s: %s", file, error.strerror)
        yield
        return
    for one in before[:1]:
        handler.setFormatter(one.formatter)
        for each in one.filters:
            handler.addFilter(each)
    root.handlers = [handler]
    try:
        yield
    finally:
        root.handlers = before
        handler.close()


def _uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
    else:
        logging.getLogger("bot").critical("stopped by an error that nobody foresaw", exc_info=(kind, error, traceback))


class Counters:
    """How often something happened in this process; `/stats` shows them. Names are codes, never contents."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, name: str, n: int = 1) -> None:
        """Count `n` more of `name`."""
        self._counts[name] += n

    def snapshot(self) -> Mapping[str, int]:
        """All counts so far, by name."""
        return dict(sorted(self._counts.items()))
