"""The log: codes and ids to standard error, with every secret that the process knows taken out."""

import logging
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping

# Key formats that may come inside an exception or a library's own log line, whether or not this process was configured with them.
_KEY_FORMATS = re.compile(
    r"\b(?:sk-[\w-]{16,}|\d{6,12}:[\w-]{30,}|EAA[\w]{20,}|gh[pousr]_\w{20,}|xox[abp]-[\w-]{10,}|AIza[\w-]{30,})"
    r"|(?i:(?<=bearer )\S+|(?<=://)[^/\s:@]+:[^/\s@]+(?=@))"
)
HIDDEN = "[hidden]"


class Redaction(logging.Filter):
    """Takes secrets out of a record before any handler formats it, its traceback included."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._secrets = sorted({s for s in secrets if len(s) >= 4}, key=len, reverse=True)

    def clean(self, text: str) -> str:
        """`text` with each known secret, and whatever looks like a key, replaced."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return _KEY_FORMATS.sub(HIDDEN, text)

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrites the record in place; it is always let through."""
        record.msg, record.args = self.clean(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self.clean(record.exc_text)
        return True


def set_up(level: str, *, secrets: Iterable[str] = ()) -> Redaction:
    """Send the log of the whole process to standard error, redacted; called once, by whoever starts the process."""
    redaction = Redaction(secrets)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.addFilter(redaction)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    return redaction


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
