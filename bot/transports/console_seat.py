"""Which of the terminal chats on one database this one is: the first is `console`, one beside it `console-2`, and so on."""

import contextlib
import fcntl
import itertools
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

NAME = "console"
SEATS_OF_AN_AGENT = 1_000  # bytes of the file that one agent may lock


@contextlib.contextmanager
def seated(file: Path, agent_id: str) -> Iterator[str]:
    """The first name that no other terminal chat of this agent has. It is taken as long as the block runs, or until the process dies.

    Each name is a lock on one byte of `file`, which stays empty. Where nothing can be locked there, the name is that of the first.
    """
    with contextlib.ExitStack() as stack:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(file, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            stack.callback(os.close, fd)
            seat = _take(fd, zlib.crc32(agent_id.encode()) * SEATS_OF_AN_AGENT)
        except OSError:
            seat = 1
        yield NAME if seat == 1 else f"{NAME}-{seat}"


def _take(fd: int, first: int) -> int:
    for seat in itertools.count(1):
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, first + seat)
        except (BlockingIOError, PermissionError):  # taken: which of the two it is depends on the system
            continue
        return seat
    raise AssertionError("there is no last number")


def is_terminal(platform: str) -> bool:
    """Whether a name is that of a terminal chat."""
    return platform == NAME or platform.startswith(f"{NAME}-")
