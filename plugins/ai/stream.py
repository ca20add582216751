"""An answer as it comes: what `reply_in_chat_stream` returns."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from bot import Reply
from plugins.ai.answering import Stop


class Outcome:
    """Where a turn puts its reply."""

    reply: Reply | None = None


class AnswerStream:
    """An async iterator of text fragments. `reply` is there when it has ended; `stop()` ends it early and keeps what there is.

    An error of the turn is raised where the fragments are taken. A stream that is left unfinished keeps nothing: use `stop`, or take it to
    its end; `aclose` ends it at once.
    """

    def __init__(self, turn: Callable[[Stop, Outcome], AsyncGenerator[str, None]]) -> None:
        self._stop = Stop()
        self._outcome = Outcome()
        self._fragments = turn(self._stop, self._outcome)
        self._one_at_a_time = asyncio.Lock()
        self._ahead: deque[str] = deque()
        self._error: BaseException | None = None

    @property
    def reply(self) -> Reply | None:
        """The whole, when the stream has ended."""
        return self._outcome.reply

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        async with self._one_at_a_time:
            if self._ahead:
                return self._ahead.popleft()
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            return await self._fragments.__anext__()

    async def stop(self) -> None:
        """End the model's answer and keep what there is; the fragments that are left can still be taken."""
        self._stop.request()
        async with self._one_at_a_time:
            try:
                async for fragment in self._fragments:
                    self._ahead.append(fragment)
            except Exception as error:  # noqa: BLE001 - it belongs to whoever takes the fragments, and is raised there
                self._error = error

    async def aclose(self) -> None:
        """End the turn at once; a turn that was not kept by then is dropped."""
        self._stop.request()
        async with self._one_at_a_time:
            await self._fragments.aclose()
