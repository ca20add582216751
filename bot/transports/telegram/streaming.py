"""An answer while it is written: drafts in private chats, edits in groups and where there are no drafts; never above the limits."""

import asyncio
import contextlib
import logging
import zlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from bot.errors import TransportError, TransportUnavailable
from bot.ports import ReplyStream
from bot.transports.telegram.api import Api, Refused
from bot.transports.telegram.formatting import Formatted, formatted
from bot.transports.telegram.pacing import Pacer
from bot.transports.telegram.sending import Sending, formats_then_none
from bot.transports.telegram.splitting import split
from bot.transports.telegram.store import Part, Store
from bot.transports.telegram.updates import address
from bot.values import Letter

log = logging.getLogger(__name__)

THINKING_AFTER = 0.6  # seconds; of what is answered sooner nothing is shown, and no task is begun to show it
DRAFT_EVERY = 1.1
DRAFT_LASTS = 20.0  # Telegram lets a draft go after 30
EDIT_EVERY = 3.1
FIRST_EDIT_AFTER = 0.9  # after that
TYPING_EVERY = 4.5
CALL_SECONDS = 10.0
GRACE_SECONDS = 5.0
UNFINISHED = " …"
UNKNOWN = "not found"  # what an older server says of a method that it does not have
MOST_UNTOUCHED = 10_000


@dataclass(slots=True)
class _Shown:
    """What there is of an answer, and what of it is on the screen."""

    text: str = ""
    placed: bool = True  # until it is known that nothing of it stands in the chat
    over: asyncio.Event = field(default_factory=asyncio.Event)
    painter: "asyncio.Task[None] | None" = None


class Streaming:
    """Shows answers as they come. The final text is not its business: the outbox delivers that.

    `draft_lasts`: the seconds after which a draft that has not changed is sent again.
    """

    def __init__(self, api: Api, sending: Sending, store: Store, pacer: Pacer, *, draft_lasts: float = DRAFT_LASTS) -> None:
        self._api = api
        self._sending = sending
        self._store = store
        self._pacer = pacer
        self._draft_lasts = draft_lasts
        self._under_way: dict[str, asyncio.Event] = {}
        self._has_drafts = True  # until the server says that it does not know them
        self.untouched: set[str] = set()  # letters of which nothing stands in the chat, as is known without asking

    async def show(self, letter: Letter, fragments: ReplyStream) -> None:
        """Take all fragments and show them. Raises only what they raise; a platform that is away holds nothing up."""
        drafts = address(letter.chat_key)[0] > 0 and self._has_drafts
        shown = _Shown(placed=not drafts)
        self._under_way[letter.id] = over = asyncio.Event()
        timer = asyncio.get_running_loop().call_later(THINKING_AFTER, self._begin, self._drafts if drafts else self._edits, letter, shown)
        try:
            async for fragment in fragments:
                shown.text += fragment
        except Exception:
            timer.cancel()
            await self._ended(shown)
            await self._withdraw(letter)
            raise
        finally:
            timer.cancel()
            await self._ended(shown)
            del self._under_way[letter.id]
            over.set()
        if not shown.placed and not letter.revises and len(self.untouched) < MOST_UNTOUCHED:
            self.untouched.add(letter.id)

    async def ended(self, letter_id: str) -> None:
        """Return when nothing more is shown for a letter: what came after its final text would spoil it."""
        if (over := self._under_way.get(letter_id)) is not None:
            await over.wait()

    def _begin(self, paint: Callable[[Letter, _Shown], Coroutine[Any, Any, None]], letter: Letter, shown: _Shown) -> None:
        shown.painter = asyncio.create_task(paint(letter, shown))

    async def _ended(self, shown: _Shown) -> None:
        """Let a call that is under way end: one that came after the final text would spoil it."""
        shown.over.set()
        if (painter := shown.painter) is None:
            return
        if not painter.done():
            await asyncio.wait({painter}, timeout=GRACE_SECONDS)
            painter.cancel()
        [failure] = await asyncio.gather(painter, return_exceptions=True)
        if isinstance(failure, Exception):  # what is shown meanwhile is of no weight: the outbox has the answer
            log.warning("an answer could not be shown while it was written: %s", type(failure).__name__)

    async def _withdraw(self, letter: Letter) -> None:
        """An answer that broke off leaves nothing half-said."""
        parts = [] if letter.revises else await self._store.parts(letter.id)
        if any(not part.final for part in parts):
            await self._store.save(letter, [])
            for part in parts:
                await self._sending.remove(address(letter.chat_key)[0], part.message)

    # ------------------------------------------------------------------------------------ private: drafts

    async def _drafts(self, letter: Letter, shown: _Shown) -> None:
        chat, _ = address(letter.chat_key)
        number = zlib.crc32(letter.id.encode()) or 1
        painted, painted_at, loop = None, 0.0, asyncio.get_running_loop()
        while not shown.over.is_set():
            stale = loop.time() - painted_at > self._draft_lasts
            if shown.text != painted or stale:
                text = shown.text
                with self._pacer.spare(chat) as may:
                    taken = True
                    if may:
                        painted, painted_at = text, loop.time()
                        taken = await self._draft(letter, number, text)
                if not taken:
                    await self._edits(letter, shown)
                    return
            await _until_over(shown, DRAFT_EVERY)

    async def _draft(self, letter: Letter, number: int, text: str) -> bool:
        """Whether the server takes drafts; one that is away may. What it refuses is shown without its entities, once."""
        chat, thread = address(letter.chat_key)
        part = _latest(text) if text.strip() else Formatted("")
        for entities in formats_then_none(part):
            where = {"chat_id": chat, "message_thread_id": thread, "draft_id": number}
            said = {"text": part.text, "entities": entities, "can_stop": True}
            try:
                await self._api.ask("sendMessageDraft", seconds=CALL_SECONDS, **where, **said)
            except TransportUnavailable as error:
                self._pacer.pause(chat, error.seconds)
            except TransportError as error:
                self._has_drafts = not (isinstance(error, Refused) and str(error).startswith(UNKNOWN))
                log.info("letter %s: a draft is refused: %s", letter.id, error)
                if isinstance(error, Refused) and entities and self._has_drafts:
                    continue
                return False
            return True
        return False

    # ------------------------------------------------------------------------------------ groups, and older servers: edits

    async def _edits(self, letter: Letter, shown: _Shown) -> None:
        chat, _ = address(letter.chat_key)
        if letter.revises:
            return
        begun = asyncio.get_running_loop().time()
        parts, painted = await self._store.parts(letter.id), ""
        shown.placed = bool(parts)
        typed_at = 0.0
        while not shown.over.is_set():
            now = asyncio.get_running_loop().time()
            try:
                if shown.text.strip() and shown.text != painted and now - begun >= FIRST_EDIT_AFTER:
                    with self._pacer.spare(chat) as may:
                        if may:
                            shown.placed, painted = True, shown.text
                            parts = await self._show_part(letter, chat, painted, parts)
                elif not parts and now - typed_at >= TYPING_EVERY:
                    with self._pacer.spare(chat) as may:
                        if may:
                            typed_at = now
                            await self._type(letter)
            except TransportUnavailable as error:
                self._pacer.pause(chat, error.seconds)
            except TransportError as error:
                log.info("letter %s: it cannot be shown while it is written: %s", letter.id, error)
                return
            await _until_over(shown, EDIT_EVERY if parts else 0.5)

    async def _show_part(self, letter: Letter, chat: int, text: str, parts: list[Part]) -> list[Part]:
        first = split(formatted(text + UNFINISHED))[0]
        if parts:
            await self._sending.edit(chat, parts[0].message, first)
            return parts
        message = await self._sending.send(letter, first, quotes=letter.quotes)
        await self._store.save(letter, [Part(message, final=False)])
        return [Part(message, final=False)]

    async def _type(self, letter: Letter) -> None:
        """Show that an answer is being written; whether that works is of no weight."""
        chat, thread = address(letter.chat_key)
        with contextlib.suppress(TransportError):
            await self._api.ask("sendChatAction", seconds=CALL_SECONDS, chat_id=chat, action="typing", message_thread_id=thread)


def _latest(text: str) -> Formatted:
    """What a draft shows: the part that is being written."""
    return split(formatted(text))[-1]


async def _until_over(shown: _Shown, seconds: float) -> None:
    """Wait; an answer that is complete ends it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await shown.over.wait()
