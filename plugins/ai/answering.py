"""The model's answer: its fragments as they come, its calls of tools answered in a loop that ends."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
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


@dataclass(frozen=True, slots=True)
class Model:
    """A provider, the tools that it is offered, and the seconds that an answer may take in all (None: the provider's own limit)."""

    provider: Provider
    tools: Mapping[str, Tool]
    seconds: float | None = None

    async def answer(self, prompt: Prompt, context: Any, stop: Stop) -> AsyncGenerator[str, None]:
        """The fragments of the answer. Raises ModelError; ends without an error where `stop` was requested, with what was taken by then.

        The provider runs in a task of its own: so a stop reaches it at once, its deadline does not run while a slow reader reads, and
        nothing is yielded inside a time-out.
        """
        fragments: asyncio.Queue[str | None] = asyncio.Queue()
        task = asyncio.create_task(self._rounds(prompt, context, fragments.put_nowait))
        task.add_done_callback(lambda _: fragments.put_nowait(None))

        def end() -> None:
            task.cancel()
            fragments.put_nowait(None)

        stop.calls(end)
        try:
            while (fragment := await fragments.get()) is not None and not stop.requested:  # a quick model is ahead of who reads
                yield fragment
            if not stop.requested:
                task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=GRACE_SECONDS)
            if task.done() and not task.cancelled():
                task.exception()  # seen, so that it is not reported as lost

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
