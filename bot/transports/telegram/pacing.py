"""Telegram's limits, kept on our side: 30 messages a second in all, one a second to a chat, 20 a minute to a group."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from bot.errors import TransportUnavailable

SECOND = 1.03  # a little more than one, for what the way to the server adds
MINUTE = 61.0
PER_CHAT = 1.05
RESERVED = 0.4  # the part of each limit that is kept for what must arrive
LONGEST_WAIT = 3.0  # seconds; what has to wait longer goes back to the outbox


@dataclass(slots=True)
class Pace:
    """When the next message may go: pure, by the times that it is told. `a_second` is for all chats, `a_minute` for each group."""

    a_second: int = 30
    a_minute: int = 20
    _all: deque[float] = field(default_factory=deque)
    _chats: dict[int, float] = field(default_factory=dict)
    _groups: dict[int, deque[float]] = field(default_factory=dict)
    _paused: dict[int, float] = field(default_factory=dict)

    def wait(self, chat: int, now: float, *, spare: bool = False) -> float:
        """Seconds until a message may go to a chat; 0 for now. `spare`: it must leave room for others."""
        share = 1 - RESERVED if spare else 1.0
        free = [self._window(self._all, max(1, int(self.a_second * share)), SECOND, now)]
        free.append(self._chats.get(chat, -PER_CHAT) + PER_CHAT)
        free.append(self._paused.get(chat, 0.0))
        if chat < 0:
            free.append(self._window(self._groups.get(chat, deque()), max(1, int(self.a_minute * share)), MINUTE, now))
        return max(0.0, max(free) - now)

    @staticmethod
    def _window(times: deque[float], most: int, seconds: float, now: float) -> float:
        while times and times[0] <= now - seconds:
            times.popleft()
        return times[-most] + seconds if len(times) >= most else 0.0

    def take(self, chat: int, now: float) -> None:
        """Note that a message goes now."""
        self._all.append(now)
        self._chats[chat] = now
        if chat < 0:
            self._groups.setdefault(chat, deque()).append(now)
        if len(self._chats) > 10_000:
            self._forget(now)

    def pause(self, chat: int, until: float) -> None:
        """Telegram asked to wait."""
        self._paused[chat] = max(until, self._paused.get(chat, 0.0))

    def _forget(self, now: float) -> None:
        self._chats = {chat: at for chat, at in self._chats.items() if at > now - PER_CHAT}
        self._groups = {chat: times for chat, times in self._groups.items() if times and times[-1] > now - MINUTE}
        self._paused = {chat: until for chat, until in self._paused.items() if until > now}


class Pacer:
    """Lets messages through at the pace, one at a time to each chat; what is merely shown meanwhile gives way."""

    def __init__(self, pace: Pace | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._pace = pace or Pace()
        self._clock = clock
        self._waiting = 0
        self._busy: dict[int, asyncio.Lock] = {}

    @contextlib.asynccontextmanager
    async def turn(self, chat: int, *, patience: float = LONGEST_WAIT) -> AsyncIterator[None]:
        """Wait for the turn of a message that must arrive. Raises TransportUnavailable where that is longer than `patience` seconds."""
        lock = self._busy.setdefault(chat, asyncio.Lock())
        try:
            async with lock:
                await self._due(chat, patience)
                yield
        finally:
            if not lock.locked():
                self._busy.pop(chat, None)

    async def _due(self, chat: int, patience: float) -> None:
        until = self._clock() + patience
        self._waiting += 1
        try:
            while (seconds := self._pace.wait(chat, now := self._clock())) > 0:
                if now + seconds > until:
                    raise TransportUnavailable("it is not its turn yet", seconds=seconds)
                await asyncio.sleep(seconds)
            self._pace.take(chat, now)
        finally:
            self._waiting -= 1

    def spare(self, chat: int) -> bool:
        """Whether something that need not arrive may go now; it is taken then."""
        now = self._clock()
        if self._waiting or chat in self._busy or self._pace.wait(chat, now, spare=True) > 0:
            return False
        self._pace.take(chat, now)
        return True

    def pause(self, chat: int, seconds: float) -> None:
        """Telegram asked for a pause."""
        self._pace.pause(chat, self._clock() + seconds)
