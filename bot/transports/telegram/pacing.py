"""Telegram's limits, kept on our side: 30 messages a second in all, one a second to a chat, 20 a minute to a group.

A message counts from its start until a second after its answer: so no second at the server holds too many, however slow the way there is.
"""

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bot.errors import TransportUnavailable

SECOND = 1.02
PER_CHAT = 1.02
MINUTE = 60.5
RESERVED = 0.4  # the part of each limit that is kept for what must arrive
LONGEST_WAIT = 3.0  # seconds; what has to wait longer goes back to the outbox
LOOK_AGAIN = 0.02  # seconds, while a message is under way
MOST_CHATS = 10_000


@dataclass(slots=True)
class Pace:
    """When the next message may go: pure, by the times that it is told. `a_second` is for all chats, `a_minute` for each group."""

    a_second: int = 30
    a_minute: int = 20
    _flying: set[int] = field(default_factory=set)  # chats; one message at a time goes to each
    _all: deque[float] = field(default_factory=deque)
    _chats: dict[int, float] = field(default_factory=dict)
    _groups: dict[int, deque[float]] = field(default_factory=dict)
    _paused: dict[int, float] = field(default_factory=dict)

    def wait(self, chat: int, now: float, *, spare: bool = False) -> float:
        """Seconds until a message may go to a chat; 0 for now. `spare`: it must leave room for others."""
        if chat in self._flying:
            return LOOK_AGAIN
        share = 1 - RESERVED if spare else 1.0
        waits = [
            _window(self._all, int(self.a_second * share) - len(self._flying), SECOND, now),
            self._chats.get(chat, now - PER_CHAT) + PER_CHAT - now,
            self._paused.get(chat, now) - now,
        ]
        if chat < 0 and chat in self._groups:
            waits.append(_window(self._groups[chat], int(self.a_minute * share), MINUTE, now))
        return max(0.0, *waits)

    def begin(self, chat: int) -> None:
        """Note that a message goes now."""
        self._flying.add(chat)

    def end(self, chat: int, now: float) -> None:
        """Note that it has arrived, or failed."""
        self._flying.discard(chat)
        self._all.append(now)
        self._chats[chat] = now
        if chat < 0:
            self._groups.setdefault(chat, deque()).append(now)
        if len(self._chats) > MOST_CHATS:
            self._forget(now)

    def pause(self, chat: int, until: float) -> None:
        """Telegram asked to wait."""
        self._paused[chat] = max(until, self._paused.get(chat, until))

    def _forget(self, now: float) -> None:
        self._chats = {chat: at for chat, at in self._chats.items() if at > now - PER_CHAT}
        self._groups = {chat: times for chat, times in self._groups.items() if times and times[-1] > now - MINUTE}
        self._paused = {chat: until for chat, until in self._paused.items() if until > now}


def _window(times: deque[float], most: int, seconds: float, now: float) -> float:
    """Seconds until fewer than `most` of these times lie in the window before then."""
    while times and times[0] <= now - seconds:
        times.popleft()
    if most <= 0:
        return LOOK_AGAIN
    return times[-most] + seconds - now if len(times) >= most else 0.0


@dataclass(frozen=True, slots=True)
class _Turn:
    """The turn of one message, as a class: an async generator takes five times as long to enter and to leave."""

    pacer: "Pacer"
    chat: int
    patience: float

    async def __aenter__(self) -> None:
        await self.pacer.enter(self.chat, self.patience)

    async def __aexit__(self, *_: object) -> None:
        self.pacer.leave(self.chat)


class Pacer:
    """Lets messages through at the pace, one at a time to each chat; what is merely shown meanwhile gives way."""

    def __init__(self, pace: Pace | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._pace = pace or Pace()
        self._clock = clock
        self._waiting: Counter[int] = Counter()
        self._order: dict[int, asyncio.Lock] = {}

    def turn(self, chat: int, *, patience: float = LONGEST_WAIT) -> _Turn:
        """Wait for the turn of a message that must arrive. Raises TransportUnavailable where that is longer than `patience` seconds."""
        return _Turn(self, chat, patience)

    async def enter(self, chat: int, patience: float) -> None:
        """Begin a turn that `leave` ends. Raises like `turn`, and leaves nothing of it then."""
        order = self._order.get(chat) or self._order.setdefault(chat, asyncio.Lock())
        self._waiting[chat] += 1
        try:
            await order.acquire()
            try:
                await self._due(chat, patience)
            except BaseException:
                order.release()
                raise
        except BaseException:
            self._gone(chat)
            raise

    def leave(self, chat: int) -> None:
        """End a turn: the next one for that chat begins."""
        self._pace.end(chat, self._clock())
        self._order[chat].release()
        self._gone(chat)

    def _gone(self, chat: int) -> None:
        self._waiting[chat] -= 1
        if not self._waiting[chat]:
            del self._waiting[chat], self._order[chat]

    async def _due(self, chat: int, patience: float) -> None:
        until = self._clock() + patience
        while (seconds := self._pace.wait(chat, now := self._clock())) > 0:
            if now + seconds > until:
                raise TransportUnavailable("it is not its turn yet", seconds=seconds)
            await asyncio.sleep(seconds)
        self._pace.begin(chat)

    @contextlib.contextmanager
    def spare(self, chat: int) -> Iterator[bool]:
        """Whether something that need not arrive may go now; the block is the call."""
        if self._waiting or self._pace.wait(chat, self._clock(), spare=True) > 0:
            yield False
            return
        self._pace.begin(chat)
        try:
            yield True
        finally:
            self._pace.end(chat, self._clock())

    def pause(self, chat: int, seconds: float) -> None:
        """Telegram asked for a pause."""
        self._pace.pause(chat, self._clock() + seconds)
