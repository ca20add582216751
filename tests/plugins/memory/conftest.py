"""A clock that tests move, a model that answers from a script, and memory over a real database."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from bot import Completion, Database, ModelUnavailable, Prompt, Usage, open_database
from plugins.memory import MIGRATIONS, OwnMemory, create_memory


class Clock:
    """Milliseconds that stand still until a test moves them."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def forward(self, *, ms: int = 0, days: float = 0) -> None:
        self.now += ms + int(days * 86_400_000)


class Script:
    """A Provider that gives the answers it was made with, the last one again and again. `gate` holds up each call until it is set."""

    name = "openai"
    model = "scripted"

    def __init__(self, *answers: str | Exception | Callable[[Prompt], str], tokens: int = 10) -> None:
        self.answers: Sequence[str | Exception | Callable[[Prompt], str]] = answers or ('{"facts": []}',)
        self.calls: list[Prompt] = []
        self.tokens = tokens
        self.gate: asyncio.Event | None = None
        self.asked = asyncio.Event()

    async def complete(self, prompt: Prompt) -> Completion:
        answer = self.answers[min(len(self.calls), len(self.answers) - 1)]
        self.calls.append(prompt)
        self.asked.set()
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer(prompt) if callable(answer) else answer, usage=Usage(self.tokens, self.tokens))

    def stream(self, prompt: Prompt) -> AsyncIterator[str]:
        raise ModelUnavailable("the script does not stream")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def database(engine_url: str) -> AsyncIterator[Database]:
    async with open_database(engine_url, migrations=[MIGRATIONS]) as database:
        yield database


@pytest.fixture
async def memory(database: Database, clock: Clock) -> AsyncIterator[OwnMemory]:
    async with create_memory(True, database=database, clock=clock) as memory:
        yield memory
