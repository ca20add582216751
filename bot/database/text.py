"""Text as every engine keeps it."""

from typing import Any


def clean(value: Any) -> Any:
    """A parameter without NUL and lone surrogates, which no engine keeps."""
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    return value.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
