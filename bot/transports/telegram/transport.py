"""Telegram as a transport: what comes in becomes rows, what leaves becomes messages."""

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Protocol

from aiogram.methods import AnswerCallbackQuery, EditMessageReplyMarkup, GetChatAdministrators, GetMe, SetWebhook

from bot.errors import BadRequest, ConfigurationError, TransportError, TransportUnavailable
from bot.ports import ReplyStream, Transaction
from bot.registry import Parts
from bot.transports.telegram import joining
from bot.transports.telegram.addressing import Me
from bot.transports.telegram.api import Api, Refused, Unauthorized
from bot.transports.telegram.buttons import key_of, said_by
from bot.transports.telegram.formatting import plain
from bot.transports.telegram.interface import Menus, bring_up_to_date
from bot.transports.telegram.pacing import Pace, Pacer
from bot.transports.telegram.reading import Undecodable, update_id
from bot.transports.telegram.receiving import ALLOWED, State, poll, until_it_works
from bot.transports.telegram.sending import Sending
from bot.transports.telegram.splitting import split
from bot.transports.telegram.store import Part, Store
from bot.transports.telegram.streaming import Streaming
from bot.transports.telegram.updates import NAME, Arrival, Moved, Nothing, Pressed, Standing, address, chat_key, read
from bot.values import Attachment, Letter, Update
from bot.words import marked as _

log = logging.getLogger(__name__)

ADMINS_SECONDS = 300.0  # how long the administrators of a group are taken to be the same
MOST_BYTES = 20 << 20  # Telegram gives no larger file to a bot
MOST_REMEMBERED = 1_000
REFUSED_SECONDS = 60.0  # between two tries with a token that was revoked


HELLO_GROUP = _(
    "Hello. Mention me as @{name}, reply to me or use a command, and I answer. Personal facts I keep to myself:"
    " those are for a private chat."
)
HELLO_DEAF = _(
    "Hello. Privacy mode is on, so Telegram shows me only commands and replies to me: a plain mention may never reach me."
    " Write /help@{name}, or reply to this message. Whoever set me up can switch privacy mode off at @BotFather."
)
LATE = _("That button is no longer of use. Please ask again.")


class Home(Protocol):
    """What the transport asks of the bot."""

    @property
    def parts(self) -> Parts: ...

    @property
    def languages(self) -> Sequence[str]: ...

    async def accept_all(self, updates: Sequence[Update], *, joins: Any = None) -> None: ...

    async def move_chat(self, old: str, new: str) -> None: ...

    async def tell(self, tx: Transaction, entry_id: str, *, transport: str, chat_key: str, text: str) -> None: ...


class Telegram:
    """The transport. `open` it, `run` it; `state.check` says how it stands."""

    name = NAME

    def __init__(self, home: Home, *, token: str, base: str | None = None, a_second: int = 30, rich: bool = False) -> None:
        self._home = home
        self._parts = home.parts
        self._api = Api(token, base=base)
        self._key = key_of(token)
        self._store = Store(self._parts.database, self._parts.clock)
        self._pacer = Pacer(Pace(a_second))
        self._sending = Sending(self._api, self._store, self._pacer, key=self._key, clock=self._parts.clock, moved=self._moved, rich=rich)
        self._streaming = Streaming(self._api, self._sending, self._store, self._pacer)
        self._admins: OrderedDict[int, tuple[float, frozenset[str]]] = OrderedDict()
        self._aside: set[asyncio.Task[None]] = set()
        self._me: Me | None = None
        self.state = State(TransportError("not connected yet"))

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Telegram"]:
        """Hold the connections open meanwhile."""
        async with self._api:
            await self._store.open()
            try:
                yield self
            finally:
                for task in self._aside:
                    task.cancel()
                await asyncio.gather(*self._aside, return_exceptions=True)

    async def run(self, *, webhook: tuple[str, str] | None = None) -> None:
        """Connect, and take updates until cancelled: by polling, or by a webhook `(url, secret)`. Raises ConfigurationError."""
        await self._connect()
        if webhook is None:
            await poll(self._api, self.state, self.take)
        url, secret = webhook or ("", "")
        method = SetWebhook(url=url, secret_token=secret, allowed_updates=list(ALLOWED), drop_pending_updates=False)
        await until_it_works(self.state, "setWebhook", lambda: self._api.call(method))
        log.info("telegram: updates come to the webhook")
        await asyncio.Event().wait()

    async def _connect(self) -> None:
        raw = await until_it_works(self.state, "getMe", self._who_am_i)
        self._me = Me(
            self._api.id, str(raw.get("username") or ""), str(raw.get("first_name") or ""), bool(raw.get("can_read_all_group_messages"))
        )
        log.info("telegram: connected as @%s", self._me.username)
        if not self._me.hears_all:
            log.warning(
                "telegram: privacy mode is on, so in groups @%s sees only commands and replies; /setprivacy at @BotFather changes that",
                self._me.username,
            )
        settings, registry = self._parts.settings, self._parts.registry
        admins = [admin for admin in settings.admins if admin.startswith(f"{NAME}:") and admin.partition(":")[2].isdigit()]
        menus = Menus(list(registry.commands.values()), self._home.languages, settings.default_language, admins, self._parts.translate)
        self._do_aside(self._menus(menus))

    async def _who_am_i(self) -> Any:
        try:
            raw = await self._api.call(GetMe())
        except Refused as error:
            if "not found" in str(error):  # so Telegram answers to a token of a form that it never gives
                raise ConfigurationError("TELEGRAM_TOKEN is refused by Telegram: ask @BotFather for the right one") from error
            raise
        if not isinstance(raw, dict):
            raise TransportError("getMe gave no bot")
        return raw

    async def _menus(self, menus: Menus) -> None:
        await bring_up_to_date(self._api, self._store, menus)

    # ------------------------------------------------------------------------------------ what comes in

    async def take(self, raws: Sequence[Any]) -> None:
        """Store what came. What cannot be read is set aside. Raises StorageError, with nothing of it acknowledged."""
        if self._me is None:
            raise TransportError("not connected yet")
        batch: list[Update] = []
        for raw in raws:
            arrival = self._read(raw)
            if isinstance(arrival, Update):
                batch.append(arrival)
                continue
            await self._accept(batch)
            batch = []
            await self._service(arrival)
        await self._accept(batch)

    def _read(self, raw: Any) -> Arrival:
        assert self._me is not None
        try:
            return read(raw, self._me, self._parts.registry.commands)
        except (Undecodable, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            reason = str(error) if isinstance(error, Undecodable) else type(error).__name__
            log.error("telegram: update %s cannot be read and is set aside: %s", update_id(raw), reason)
            self._parts.counters.add("telegram_undecodable")
            return Nothing("undecodable")

    async def _accept(self, batch: Sequence[Update]) -> None:
        if not batch:
            return
        for update in batch:
            key = chat_key(address(update.chat_key)[0])  # of a topic, that of the chat around it
            if update.kind == "message" and key in self._store.absent:
                await self._store.stand(key, present=True)  # whoever writes is not blocking
        await self._home.accept_all(batch, joins=joining)

    async def _service(self, arrival: Arrival) -> None:
        if isinstance(arrival, Pressed):
            await self._pressed(arrival)
        elif isinstance(arrival, Moved):
            await self._moved(arrival.old, arrival.new)
        elif isinstance(arrival, Standing):
            await self._stands(arrival)

    async def _pressed(self, pressed: Pressed) -> None:
        update, now = pressed.update, self._parts.clock()
        said = said_by(self._key, pressed.data, presser=update.sender or "", chat_key=update.chat_key, now_ms=now)
        if said is None:
            words = self._parts.translate(self._language(update.lang), LATE)
            self._do_aside(self._answer_press(pressed, words))
            return
        says, once = said
        await self._home.accept_all([replace(update, text=says)])
        self._do_aside(self._answer_press(pressed, "", remove=once))

    async def _answer_press(self, pressed: Pressed, words: str, *, remove: bool = False) -> None:
        with contextlib.suppress(TransportError):  # one that is too old cannot be answered any more
            await self._api.call(AnswerCallbackQuery(callback_query_id=pressed.query, text=words or None, show_alert=bool(words) or None))
        if remove and pressed.update.message:
            chat, _ = address(pressed.update.chat_key)
            with contextlib.suppress(TransportError):
                async with self._pacer.turn(chat):
                    await self._api.call(EditMessageReplyMarkup(chat_id=chat, message_id=int(pressed.update.message)))

    async def _moved(self, old: int, new: int) -> None:
        await self._home.move_chat(chat_key(old), chat_key(new))
        log.info("telegram: a group has become a supergroup: %d is %d now", old, new)

    async def _stands(self, standing: Standing) -> None:
        key = chat_key(standing.chat)
        await self._store.stand(key, present=standing.present)
        if standing.is_group and standing.present and not standing.was_present:
            assert self._me is not None
            words = self._parts.translate(
                self._language(standing.lang), HELLO_GROUP if self._me.hears_all or standing.administers else HELLO_DEAF
            )
            async with self._parts.database.transaction() as tx:
                text = words.format(name=self._me.username)
                await self._home.tell(tx, f"{self._greeting}{standing.update}", transport=NAME, chat_key=key, text=text)

    @property
    def _greeting(self) -> str:
        return f"{NAME}:{self._api.id}:hello:"

    def _language(self, told: str | None) -> str:
        code = (told or "").partition("-")[0]
        return code if code in self._home.languages else self._parts.settings.default_language

    def _do_aside(self, work: Any) -> None:
        task = asyncio.create_task(_quietly(work))
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    # ------------------------------------------------------------------------------------ what leaves

    async def deliver(self, letter: Letter) -> None:
        """Send a letter, or what of it was not sent yet. Raises TransportUnavailable and Undeliverable."""
        # whether it was said is known here alone: a greeting to a group that the bot was taken out of at once was not
        greets = letter.id.startswith(self._greeting)
        if greets and await self._store.was_told(letter.chat_key):
            return
        await self._streaming.ended(letter.id)
        untouched = letter.id in self._streaming.untouched
        self._streaming.untouched.discard(letter.id)
        try:
            await self._sending.deliver(letter, untouched=untouched)
        except Unauthorized as error:  # whoever runs the bot has to act; until then nothing is lost
            self.state.problem = TransportError(str(error))
            raise TransportUnavailable(str(error), seconds=REFUSED_SECONDS) from error
        if greets:
            await self._store.note_told(letter.chat_key)

    async def show(self, letter: Letter, fragments: ReplyStream) -> None:
        """Show an answer while it is written."""
        await self._streaming.show(letter, fragments)

    async def send(self, chat_key: str, text: str, *, reply_to: str | None = None) -> None:
        """Send a text now, past the outbox: for words about a storage that is away."""
        for part in split(plain(text)):
            chat, _ = address(chat_key)
            async with self._pacer.turn(chat, patience=10.0):
                await self._sending.send(Letter("direct", chat_key, question=reply_to), part, quotes=reply_to is not None)

    async def progress(self, chat_key: str, key: str, text: str) -> None:
        """Show how far long work is, in one message that changes, and that the reply to it takes over; what comes too soon is left out."""
        chat, _ = address(chat_key)
        reply = Letter(f"{key}:1", chat_key)
        with self._pacer.spare(chat) as may:
            if not may or not (parts := split(plain(text))):
                return
            shown = await self._store.parts(reply.id)
            if any(part.final for part in shown):
                return
            if not shown or not await self._sending.edit(chat, shown[0].message, parts[0]):
                message = await self._sending.send(reply, parts[0])
                await self._store.save(reply, [Part(message, final=False)])

    async def send_file(self, chat_key: str, name: str, data: bytes) -> None:
        """Send a file. Raises TransportError."""
        await self._sending.file(chat_key, name, data)

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        """The bytes of a file that was sent. Raises BadRequest for one that is too large, and fetches nothing where its size is known."""
        most = min(max_bytes, MOST_BYTES)
        too_large = attachment.size is not None and attachment.size > most
        data = None if too_large else await self._api.download(attachment.file_id, max_bytes=most)
        if data is None:
            words = self._parts.translate(self._parts.settings.default_language, _("{name} is too large: {n} MB is the most I can fetch."))
            raise BadRequest(words.format(name=attachment.name, n=most >> 20))
        return data

    # ------------------------------------------------------------------------------------ groups, edits

    async def may_moderate(self, update: Update) -> bool:
        """Whether the sender administers the group, as Telegram says; asked once in a few minutes."""
        if not update.sender or not update.is_group:
            return update.may_moderate
        chat, _ = address(update.chat_key)
        known = self._admins.get(chat)
        if known is None or known[0] < time.monotonic():
            known = (time.monotonic() + ADMINS_SECONDS, await self._administrators(chat))
            self._admins[chat] = known
            while len(self._admins) > MOST_REMEMBERED:
                self._admins.popitem(last=False)
        return update.sender in known[1]

    async def _administrators(self, chat: int) -> frozenset[str]:
        try:
            raw = await self._api.call(GetChatAdministrators(chat_id=chat))
        except TransportError as error:
            log.warning("telegram: the administrators of %d are not known: %s", chat, error)
            return frozenset()
        people = [member.get("user", {}).get("id") for member in raw if isinstance(member, dict)] if isinstance(raw, list) else []
        return frozenset(chat_key(person) for person in people if isinstance(person, int))

    async def may_revise(self, update: Update) -> bool:
        """Whether an edit is of the last message that this person was answered here (or of a later one), and changed its words."""
        last = await self._store.last(update.chat_key, update.sender or "")
        if last is None or not update.message:
            return True
        return int(update.message) > last.question or (int(update.message) == last.question and update.digest != last.asked)


async def _quietly(work: Awaitable[None]) -> None:
    """Work that nobody waits for: its failure is a line in the log, never a task that was lost."""
    try:
        await work
    except Exception as error:  # noqa: BLE001 - nobody is there to catch it
        log.warning("telegram: %s", type(error).__name__)
