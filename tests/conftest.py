"""What more than one part's tests stand on: a clock that is set by hand, and a log that forgets nothing."""

from dataclasses import dataclass

import pytest


@dataclass(slots=True)
class Clock:
    """UTC milliseconds that pass only when they are told to."""

    at: int = 1_800_000_000_000

    def __call__(self) -> int:
        """The time."""
        return self.at

    def advance(self, *, seconds: float) -> None:
        """Let time pass."""
        self.at += int(seconds * 1000)


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()
