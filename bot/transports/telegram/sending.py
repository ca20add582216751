"""A letter becomes messages: sent, or edited into what was shown before; each once, whatever breaks on the way."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from aiogram.methods import SendDocument
from aiogram.types import BufferedInputFile

from bot.errors import TransportError, TransportUnavailable, Undeliverable
from bot.transports.telegram.api import Api, ChatMoved, Pause, Refused
from bot.transports.telegram.buttons import data_of
from bot.transports.telegram.formatting import Formatted, cleaned, formatted, plain, units
from bot.transports.telegram.pacing import Pacer
from bot.transports.telegram.splitting import split
from bot.transports.telegram.store import Part, Store
from bot.transports.telegram.updates import address, chat_key
from bot.values import Letter

log = logging.getLogger(__name__)

T = TypeVar("T")
Keyboard = Mapping[str, Any]
GRACE_SECONDS = 8.0  # what is being sent when the process stops may end
NOT_MODIFIED = "message is not modified"
LOST = ("message to edit not found", "message can't be edited", "message_id_invalid")
NO_TOPIC = ("message thread not found", "topic_deleted", "topic_closed")
RICH_UNITS = 30_000
LONGEST_BACK_OFF = 32.0


class _TopicGone(Undeliverable):
    """The rest of the group is still there."""


class Sending:
    """Sends letters, edits and files. `moved` is told of a group whose id has changed; `key` signs buttons."""

    def __init__(
        self,
        api: Api,
        store: Store,
        pacer: Pacer,
        *,
        key: bytes,
        clock: Callable[[], int],
        moved: Callable[[int, int], Awaitable[None]],
        rich: bool = False,
    ) -> None:
        self._api = api
        self._store = store
        self._pacer = pacer
        self._key = key
        self._clock = clock
        self._moved = moved
        self._rich = rich
        self._failures = 0  # in a row, over all chats

    async def deliver(self, letter: Letter, *, untouched: bool = False) -> None:
        """Send what of a letter was not sent yet; with `untouched`, nothing was. Raises TransportUnavailable and Undeliverable.

        Whoever calls it lets it end when the process stops: a message that was sent and not noted would be sent again at the next start.
        """
        chat, _ = address(letter.chat_key)
        if f"telegram:{chat}" in self._store.absent:
            raise Undeliverable("the bot may not write there")
        try:
            await self._deliver(letter, chat, untouched)
        except ChatMoved as error:
            await self._moved(chat, error.new)  # the messages that it replies to have other numbers there
            there = replace(letter, chat_key=chat_key(error.new), question=None, quotes=False)
            await self._deliver(there, error.new, untouched=True)
        except _TopicGone:
            raise
        except Undeliverable:
            await self._store.stand(f"telegram:{chat}", present=False)
            raise

    async def _deliver(self, letter: Letter, chat: int, untouched: bool) -> None:
        sent = [] if untouched else await self._store.parts(letter.id) or await self._revised(letter)
        if not sent and self._rich and letter.markdown and _renders_better(letter.text) and await self._richly(letter, chat):
            return
        parts = split(formatted(letter.text) if letter.markdown else plain(letter.text))
        for n, part in enumerate(parts):
            if n < len(sent) and sent[n].final:
                continue
            last = n == len(parts) - 1
            keyboard = self._keyboard(letter) if last else None
            sent = await self._one(letter, chat, part, sent, n, keyboard)
        for surplus in sent[len(parts) :]:
            await self.remove(chat, surplus.message)
        if len(sent) > len(parts):
            await self._store.save(letter, sent[: len(parts)])

    async def _richly(self, letter: Letter, chat: int) -> bool:
        """Whether the whole could be sent as a rich message, with its tables and formulas."""
        if units(letter.text) > RICH_UNITS:
            return False
        where, message = _where(letter, quotes=letter.quotes), {"markdown": cleaned(letter.text)}
        try:
            async with self._pacer.turn(chat):
                call = self._api.send("sendRichMessage", **where, rich_message=message, reply_markup=self._keyboard(letter))
                await self._store.save(letter, [Part(await self._paused(chat, call))])
        except Refused as error:
            log.info("letter %s: a rich message was refused, and it is sent plain: %s", letter.id, error)
            return False
        return True

    async def _revised(self, letter: Letter) -> list[Part]:
        """The messages of the answer that this one takes the place of."""
        last = await self._store.last(letter.chat_key, letter.user_id) if letter.revises else None
        if last is None or str(last.question) != letter.question:
            return []
        return [Part(part.message, final=False) for part in last.parts]

    async def _one(self, letter: Letter, chat: int, part: Formatted, sent: Sequence[Part], n: int, keyboard: Keyboard | None) -> list[Part]:
        """Send or edit one part, and note it: nothing comes between the two."""
        if n < len(sent):
            async with self._pacer.turn(chat):
                if await self.edit(chat, sent[n].message, part, keyboard=keyboard):
                    return await self._note(letter, sent, n, sent[n].message)
        async with self._pacer.turn(chat):
            message = await self.send(letter, part, quotes=letter.quotes and n == 0, keyboard=keyboard)
            return await self._note(letter, sent, n, message)

    async def _note(self, letter: Letter, sent: Sequence[Part], n: int, message: int) -> list[Part]:
        known = [*sent[:n], Part(message), *sent[n + 1 :]]
        await self._store.save(letter, known)
        return known

    # ------------------------------------------------------------------------------------ one message

    async def send(self, letter: Letter, part: Formatted, *, quotes: bool = False, keyboard: Keyboard | None = None) -> int:
        """Send one message now; its number. Refused with entities, it is sent without them, once; a topic that is gone is said."""
        chat, thread = address(letter.chat_key)
        for entities in formats_then_none(part):
            fields = {**_where(letter, quotes=quotes), **_said(part.text, entities, keyboard)}
            try:
                return await self._paused(chat, self._api.send("sendMessage", **fields))
            except Refused as error:
                if thread is not None and any(word in str(error) for word in NO_TOPIC):
                    raise _TopicGone("the topic is gone or closed") from error
                if not entities:
                    raise
                log.info("letter %s: its formatting was refused, and it is sent plain", letter.id)
        raise AssertionError("unreachable")

    async def edit(self, chat: int, message: int, part: Formatted, *, keyboard: Keyboard | None = None) -> bool:
        """Change one message now; False where it is not there any more. "Not modified" is success."""
        for entities in formats_then_none(part):
            fields = {"chat_id": chat, "message_id": message, **_said(part.text, entities, keyboard)}
            try:
                await self._paused(chat, self._api.ask("editMessageText", **fields))
            except Refused as error:
                said = str(error)
                if NOT_MODIFIED in said:
                    return True
                if any(word in said for word in LOST):
                    return False
                if not entities:
                    raise
            else:
                return True
        return False

    async def remove(self, chat: int, message: int) -> None:
        """Take a message away, where that can be done."""
        with contextlib.suppress(TransportError):
            async with self._pacer.turn(chat):
                await self._api.ask("deleteMessage", chat_id=chat, message_id=message)

    async def file(self, chat_key: str, name: str, data: bytes) -> None:
        """Send a file. Raises TransportError."""
        chat, thread = address(chat_key)
        method = SendDocument(chat_id=chat, message_thread_id=thread, document=BufferedInputFile(data, filename=name))
        for attempt in range(3):
            try:
                async with self._pacer.turn(chat, patience=30.0):
                    await self._through(self._paused(chat, self._api.call(method)))
                return
            except TransportUnavailable as error:
                if attempt == 2 or error.seconds > 30:
                    raise
                await asyncio.sleep(error.seconds)

    async def _paused(self, chat: int, call: Awaitable[T]) -> T:
        """Make a call; where Telegram asks to wait, nothing more goes to that chat meanwhile."""
        try:
            result = await call
        except Pause as error:
            self._pacer.pause(chat, error.seconds)
            raise
        except TransportUnavailable as error:
            self._failures += 1
            raise TransportUnavailable(str(error), seconds=min(2.0 ** (self._failures - 1), LONGEST_BACK_OFF)) from error
        self._failures = 0
        return result

    def _keyboard(self, letter: Letter) -> Keyboard | None:
        now, rows = self._clock(), []
        for choice in letter.choices:
            data = data_of(self._key, choice, owner=letter.user_id, chat_key=letter.chat_key, now_ms=now)
            if data is not None:
                rows.append([{"text": choice.label[:60], "callback_data": data}])
        if len(rows) == 2 and sum(len(choice.label) for choice in letter.choices) < 30:
            rows = [rows[0] + rows[1]]
        return {"inline_keyboard": rows[:50]} if rows else None

    async def _through(self, work: Awaitable[T]) -> T:
        """Let what was begun end although the process stops: else a file would be sent, and sent again at the next start."""
        task = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                await asyncio.wait({task}, timeout=GRACE_SECONDS)
                task.cancel()
            raise


def _where(letter: Letter, *, quotes: bool) -> dict[str, Any]:
    """The fields of a call that say where a message goes, and to which it replies."""
    chat, thread = address(letter.chat_key)
    question = int(letter.question) if quotes and letter.question is not None and letter.question.isdigit() else 0
    reply = {"message_id": question, "allow_sending_without_reply": True} if question else None  # some messages have no number
    return {"chat_id": chat, "message_thread_id": thread, "reply_parameters": reply}


def _said(text: str, entities: Sequence[Mapping[str, Any]] | None, keyboard: Keyboard | None) -> dict[str, Any]:
    """The fields of a call that say what a message says."""
    return {"text": text, "entities": entities, "link_preview_options": {"is_disabled": True}, "reply_markup": keyboard}


def formats_then_none(part: Formatted) -> Sequence[list[dict[str, Any]] | None]:
    """The entities to try a text with, one after the other: its own, and where those are refused, none."""
    entities = [one.to_json() for one in part.entities]
    return [entities, None] if entities else [None]


def _renders_better(markdown: str) -> bool:
    """Whether a text has what plain messages cannot show: a table, or a formula."""
    lines = markdown.splitlines()
    table = any(line.lstrip().startswith("|") and set(line.strip()) <= set("|-: ") and "-" in line for line in lines)
    return table or "$$" in markdown or "\\[" in markdown
