"""Where a chat's window comes from and where a turn is kept: in RAM alone, in a store by hand, or in the table behind the fence."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bot import Database, Fence, Marks, MessageStore, SubjectErased, Transaction
from plugins.ai.store import Messages, Turn
from plugins.ai.window import Window

MOST_CHATS = 2_000  # windows held in RAM beside the table
MOST_CHATS_ALONE = 50_000  # where RAM is all there is
PRUNE_EVERY = 20  # messages of a chat: what no window can hold any more leaves the table then, and not in every turn

Also = Callable[[Transaction], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Opening:
    """A chat at the start of a turn. `stored` is the reply that the turn has got before; `prunes`: old messages leave with this turn."""

    window: Window
    marks: Marks = field(default_factory=dict)
    stored: Mapping[str, Any] | None = None
    token: object = None
    prunes: bool = False


class History(Protocol):
    """The window of each chat."""

    async def open(
        self, chat_key: str, user_id: str | None, turn_id: str | None, revised: str | None = None, marks: Marks | None = None
    ) -> Opening:
        """A chat as a turn finds it; without the turn that answered the message `revised`, where such turns are kept in the table.

        `marks` are those that were noted before, as the work began that the turn is part of. Raises SubjectErased where the chat was
        erased since then.
        """
        ...

    async def keep(self, opening: Opening, kept: Turn, also: Sequence[Also]) -> None:
        """Keep a turn; `also` runs in the same transaction, where there is one. Raises SubjectErased, with nothing kept."""
        ...

    async def reset(self, chat_key: str) -> int:
        """Empty the window of a chat; how many messages left."""
        ...

    async def erase(self, user_id: str) -> int:
        """Drop the windows that hold words of a person; how many messages left."""
        ...


class Windows:
    """Windows in RAM, the least used one leaving first, each with what tells whether it still counts."""

    def __init__(self, most: int = MOST_CHATS) -> None:
        self._held: OrderedDict[str, tuple[object, Window]] = OrderedDict()
        self._most = most

    def get(self, chat_key: str) -> tuple[object, Window] | None:
        """What is held for a chat."""
        if chat_key in self._held:
            self._held.move_to_end(chat_key)
        return self._held.get(chat_key)

    def put(self, window: Window, token: object) -> None:
        """Hold a window; `token` is what it counts for."""
        self._held[window.chat_key] = (token, window)
        self._held.move_to_end(window.chat_key)
        if len(self._held) > self._most:
            self._held.popitem(last=False)

    def drop(self, chat_key: str) -> int:
        """Forget a chat; how many messages left."""
        return len(held[1].messages) if (held := self._held.pop(chat_key, None)) else 0

    def drop_person(self, user_id: str) -> int:
        """Forget every chat that holds words of a person."""
        theirs = [key for key, (_, window) in self._held.items() if _holds(window, user_id)]
        return sum(map(self.drop, theirs))


def _holds(window: Window, user_id: str) -> bool:
    return window.chat_key == user_id or any(message.user_id == user_id for message in window.messages)


class InMemory:
    """RAM alone: for an AIClient that is built by hand."""

    def __init__(self, max_size: int) -> None:
        self._windows = Windows(MOST_CHATS_ALONE)
        self._replies: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()
        self._max_size = max_size

    async def open(
        self, chat_key: str, user_id: str | None, turn_id: str | None, revised: str | None = None, marks: Marks | None = None
    ) -> Opening:
        """The window, with a token that a reset or an erasure meanwhile takes away."""
        held = self._windows.get(chat_key)
        token, window = held or (object(), Window(chat_key, (), self._max_size))
        if held is None:
            self._windows.put(window, token)
        return Opening(window, stored=self._replies.get((chat_key, turn_id)) if turn_id else None, token=token)

    async def keep(self, opening: Opening, kept: Turn, also: Sequence[Also]) -> None:
        """Append both messages, unless the chat was emptied meanwhile. There is no transaction for `also`."""
        chat_key = opening.window.chat_key
        held = self._windows.get(chat_key)
        if held is None or held[0] is not opening.token:
            raise SubjectErased("erased while this was under way")
        self._windows.put(held[1].append(kept.question).append(kept.answer), opening.token)
        if kept.turn_id:
            self._replies[chat_key, kept.turn_id] = kept.reply
            if len(self._replies) > MOST_CHATS_ALONE:
                self._replies.popitem(last=False)

    async def reset(self, chat_key: str) -> int:
        """Forget a chat."""
        self._forget_replies({chat_key})
        return self._windows.drop(chat_key)

    async def erase(self, user_id: str) -> int:
        """Forget every chat that holds words of a person."""
        theirs = {key for key, (_, window) in self._windows._held.items() if _holds(window, user_id)}
        self._forget_replies(theirs)
        return self._windows.drop_person(user_id)

    def _forget_replies(self, chats: set[str]) -> None:
        for key in [key for key in self._replies if key[0] in chats]:
            del self._replies[key]


class InStore:
    """A MessageStore of someone's own: it is asked in every turn, so that it alone decides what a chat holds."""

    def __init__(self, store: MessageStore, max_size: int) -> None:
        self._store = store
        self._max_size = max_size

    async def open(
        self, chat_key: str, user_id: str | None, turn_id: str | None, revised: str | None = None, marks: Marks | None = None
    ) -> Opening:
        """The newest messages of the store."""
        messages = await self._store.get_history(chat_key, self._max_size)
        return Opening(Window(chat_key, tuple(messages), self._max_size))

    async def keep(self, opening: Opening, kept: Turn, also: Sequence[Also]) -> None:
        """Append both messages to the store."""
        await self._store.append_message(opening.window.chat_key, kept.question)
        await self._store.append_message(opening.window.chat_key, kept.answer)

    async def reset(self, chat_key: str) -> int:
        """A store without a way to delete keeps what it has; one with `clear(chat_key) -> int` is asked to."""
        clear = getattr(self._store, "clear", None)
        return int(await clear(chat_key)) if clear else 0

    async def erase(self, user_id: str) -> int:
        """The private chat of the person; the rest is the store's owner's to erase."""
        return await self.reset(user_id)


class InTable:
    """The `messages` table behind the erasure fence, with windows in RAM that count while the epoch and the last message are the same."""

    def __init__(self, database: Database, fence: Fence, *, max_size: int, windows: Windows | None = None) -> None:
        self._database = database
        self._fence = fence
        self._messages = Messages(database)
        self._windows = windows if windows is not None else Windows()
        self._max_size = max_size

    async def open(
        self, chat_key: str, user_id: str | None, turn_id: str | None, revised: str | None = None, marks: Marks | None = None
    ) -> Opening:
        """The epochs first: what changes after that is noticed when the turn is kept.

        Those of the update are older, and so as strict as it gets; but a window that counted for them may hold what was erased since.
        """
        subjects = (user_id, chat_key) if user_id else (chat_key,)
        noted = {subject: marks[subject] for subject in subjects if subject in marks} if marks else {}
        told = len(noted) == len(set(subjects))
        if not told:
            noted = dict(await self._fence.mark(*subjects))
        head = await self._messages.head(chat_key, turn_id)
        if told and head.epoch != noted[chat_key]:
            raise SubjectErased("erased while this was under way")
        marks = noted
        token = (marks[chat_key], head.last)
        prunes = head.seq % PRUNE_EVERY >= PRUNE_EVERY - 2  # a turn adds two: it is the one that fills up the twenty
        if revised is not None:  # seldom, and no window of anyone else
            messages = await self._messages.get_history(chat_key, self._max_size + 1, without=revised)
            return Opening(Window(chat_key, tuple(messages), self._max_size), marks, head.reply, token, prunes)
        held = self._windows.get(chat_key)
        if held is None or held[0] != token:
            # one more than fits, so that an answer whose question is too old leaves with it
            messages = await self._messages.get_history(chat_key, self._max_size + 1) if head.last else []
            held = (token, Window(chat_key, tuple(messages), self._max_size))
            self._windows.put(held[1], token)
        return Opening(held[1], marks, head.reply, token, prunes)

    async def keep(self, opening: Opening, kept: Turn, also: Sequence[Also]) -> None:
        """Both messages and `also`, in one transaction behind the fence."""
        chat_key = opening.window.chat_key
        async with self._fence.transaction(opening.marks) as tx:
            last = await self._messages.add_turn(tx, chat_key, kept)
            if last is None:  # another process has answered, and delivered, the same turn meanwhile
                return
            for each in also:
                await each(tx)
            if opening.prunes:
                await self._messages.prune(tx, chat_key, keep=self._max_size + 1)
        window = opening.window.append(kept.question).append(kept.answer)
        self._windows.put(window, (opening.marks[chat_key], last))

    async def reset(self, chat_key: str) -> int:
        """Delete the chat's messages. Windows of other processes notice that the last message is another."""
        self._windows.drop(chat_key)
        async with self._database.transaction() as tx:
            return await self._messages.empty(tx, chat_key)

    async def erase(self, user_id: str) -> int:
        """Drop from RAM; the rows are erased with everything else of the person."""
        return self._windows.drop_person(user_id)
