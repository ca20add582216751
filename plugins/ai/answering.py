"""The model's answer: its fragments as they come, its calls of tools answered in a loop that ends."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bot import ModelError, ModelTimeout, Prompt, Provider, Tool, ToolCall
from plugins.ai import tools as calling

GRACE_SECONDS = 1.0  # for a provider to end its request; after that it is left behind


class Stop:
    """Ends an answer that is being written, from outside."""

    def __init__(self) -> None:
        self.requested = False
        self._end: Callable[[], None] | None = None

    def request(self) -> None:
        """End it now, or as soon as it begins."""
        self.requested = True
        if self._end is not None:
            self._end()

    def calls(self, end: Callable[[], None]) -> None:
        """What `request` is to call."""
        self._end = end
        if self.requested:
            end()


class Answering:
    """The fragments of an answer that is under way. Raises ModelError; ends without an error where `stop` was requested, with what was
    taken by then.

    The provider runs in a task of its own: so a stop reaches it at once, its deadline does not run while a slow reader reads, and nothing
    is yielded inside a time-out. This is no generator: what the event loop notes of each of those costs as much as a short statement.
    """

    def __init__(self, work: Callable[[Callable[[str], None]], Coroutine[Any, Any, None]], stop: Stop) -> None:
        self._work = work
        self._stop = stop
        self._said: deque[str] = deque()
        self._waiting: asyncio.Future[None] | None = None

    async def __aenter__(self) -> AsyncIterator[str]:
        self._task = asyncio.create_task(self._work(self._say))
        self._task.add_done_callback(self._wake)
        self._stop.calls(self._end)
        return self

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        while not self._stop.requested:  # a quick model is ahead of who reads
            if self._said:
                return self._said.popleft()
            if self._task.done():
                self._task.result()
                break
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        raise StopAsyncIteration

    async def __aexit__(self, *_: object) -> None:
        task = self._task
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_SECONDS)
        if task.done() and not task.cancelled():
            task.exception()  # seen, so that it is not reported as lost

    def _say(self, fragment: str) -> None:
        self._said.append(fragment)
        self._wake()

    def _end(self) -> None:
        self._task.cancel()
        self._wake()

    def _wake(self, *_: object) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


@dataclass(frozen=True, slots=True)
class Model:
    """A provider, the tools that it is offered, and the seconds that an answer may take in all (None: the provider's own limit)."""

    provider: Provider
    tools: Mapping[str, Tool]
    seconds: float | None = None

    def answer(self, prompt: Prompt, context: Any, stop: Stop) -> Answering:
        """The answer, which begins as its context is entered, and ends with it."""
        return Answering(lambda say: self._rounds(prompt, context, say), stop)

    async def _rounds(self, prompt: Prompt, context: Any, say: Callable[[str], None]) -> None:
        try:
            async with asyncio.timeout(self.seconds):
                await self._until_answered(prompt, context, say)
        except TimeoutError as error:
            raise ModelTimeout(f"{self.provider.name}: no whole answer within its deadline") from error

    async def _until_answered(self, prompt: Prompt, context: Any, say: Callable[[str], None]) -> None:
        spoken = False
        for round_ in range(calling.MAX_ROUNDS + 1):
            last = round_ == calling.MAX_ROUNDS
            said, calls = await self._once(replace(prompt, tools=()) if last else prompt, say, gap=spoken)
            spoken = spoken or bool(said.strip())
            if not calls or last:
                break
            results = await calling.answer(calls, self.tools, context)
            prompt = replace(prompt, messages=[*prompt.messages, calling.asked(said, calls), *results])
        if not spoken:
            raise ModelError(f"{self.provider.name}: the answer is empty")

    async def _once(self, prompt: Prompt, say: Callable[[str], None], *, gap: bool) -> tuple[str, list[ToolCall]]:
        """One call of the model: what it said, and the tools it asks for. `gap` parts it from what was said before."""
        said: list[str] = []
        calls: list[ToolCall] = []
        items = self.provider.stream(prompt)
        try:
            async for item in items:
                if isinstance(item, ToolCall):
                    calls.append(item)
                elif item:
                    say(f"\n\n{item}" if gap and not said else item)
                    said.append(item)
        finally:
            if close := getattr(items, "aclose", None):
                await close()
        return "".join(said), calls
