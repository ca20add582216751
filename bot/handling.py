"""One update: its rights, its language, its handler, and how the words of the answer leave; an error becomes words here, once."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, cast

from bot.beginning import Beginning, begin
from bot.context import Context, Handler
from bot.errors import BadRequest, BotError, NotAllowed, StorageError, SubjectErased, TransportError
from bot.fence import SubjectFence
from bot.i18n import Catalogs, detect
from bot.inbox import Entry, JobQueue, NewRow, Queue
from bot.log import Counters
from bot.personal_data import Everyone, Profile
from bot.ports import (
    Assistant,
    Database,
    Delivers,
    Edits,
    Files,
    Library,
    Marks,
    Moderated,
    Recall,
    ReplyStream,
    Revises,
    Sends,
    Streams,
    Transaction,
)
from bot.registry import Command, Parts, Registry, parse_command, route
from bot.settings import Settings
from bot.values import Choice, Letter, Reply, Update
from bot.words import marked as _

log = logging.getLogger(__name__)

SHOWN_WITHIN_MS = 300_000  # an answer that is shown while it is written is sent again if the process dies before it has ended
CONSOLE_ADMIN = "console:local"


@dataclass(slots=True)
class Core:
    """The parts that dispatching needs; made once, in `app.py`."""

    settings: Settings
    registry: Registry
    database: Database
    fence: SubjectFence
    inbox: Queue
    outbox: Queue
    jobs: JobQueue
    people: Everyone
    catalogs: Catalogs
    counters: Counters
    clock: Callable[[], int]
    ai: Assistant
    library: Library
    parts: Parts
    bot: Any
    transports: dict[str, Sends] = field(default_factory=dict)
    _ways: dict[str, "Ways"] = field(default_factory=dict, init=False, repr=False)

    def ways(self, transport: str) -> "Ways":
        """What a transport can, by its name; one that is not there can nothing."""
        there = self.transports.get(transport)
        known = self._ways.get(transport)
        if known is None or known.of is not there:
            known = self._ways[transport] = Ways.of_transport(there)
        return known


@dataclass(frozen=True, slots=True)
class Ways:
    """A transport as each of the ports that it may fill, or None. Found out once: asking an object takes longer than most of the work."""

    of: Sends | None
    delivers: Delivers | None
    streams: Streams | None
    files: Files | None
    edits: Edits | None
    moderated: Moderated | None
    revises: Revises | None

    @classmethod
    def of_transport(cls, transport: Any) -> "Ways":
        """The ways of one."""
        return cls(
            transport,
            transport if isinstance(transport, Delivers) else None,
            transport if isinstance(transport, Streams) else None,
            transport if isinstance(transport, Files) else None,
            transport if isinstance(transport, Edits) else None,
            transport if isinstance(transport, Moderated) else None,
            transport if isinstance(transport, Revises) else None,
        )


class Sender(Protocol):
    """Sends replies that were put as claimed, so that nobody has to look for them in the outbox."""

    @property
    def may_claim(self) -> bool:
        """Whether it has a hand free for one."""
        ...

    def send(self, entry: Entry) -> None:
        """Send one, now that it is stored."""
        ...

    def give_back(self, entry: Entry) -> None:
        """Let go of one of which nobody knows whether it is stored."""
        ...


class _NoModerator(NotAllowed):
    message = _("In a group, only its administrators may use that command.")


class _Stranger(NotAllowed):
    message = _("This bot answers only the people that it was set up for. /help still works, and so does everything about your own data.")


@dataclass(frozen=True, slots=True)
class Routed:
    """Who takes an update. `handler` is None for a command that nobody registered; `awaited`: it answers what the bot had asked."""

    handler: Handler | None
    command: Command | None
    args: str
    awaited: bool


def refused(settings: Settings, ctx: Context, routed: Routed) -> NotAllowed | None:
    """Whether this person may not do this: commands by their `who`, anything else by the list of those allowed."""
    command = routed.command
    if ctx.is_admin:
        return None
    if command is None:
        allowed = ctx.command or routed.awaited or not settings.allowed_users or ctx.sender in settings.allowed_users
        return None if allowed else _Stranger()
    if command.who == "admins":
        return NotAllowed(command.name)
    if command.who == "moderators" and ctx.is_group and not ctx.update.may_moderate:
        return _NoModerator(command.name)
    return None


def for_log(error: BaseException) -> str:
    """An error as the log may have it: the sentence of a BadRequest can quote what a person wrote."""
    if isinstance(error, BadRequest):
        return error.code
    return f"{error.code}: {error}" if isinstance(error, BotError) else repr(error)


def stopping() -> bool:
    """Whether this task is being cancelled, as opposed to a CancelledError that came out of something it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Handling:
    """What answering one update needs; also how its words leave. `answering` has the streams under way, by chat.

    Without a `sender` the replies wait in the outbox until somebody looks for them.
    """

    def __init__(self, core: Core, update: Update, answering: dict[str, ReplyStream], *, sender: Sender | None = None) -> None:
        self._core = core
        self._update = update
        self._answering = answering
        self._sender = sender
        self._claimed: dict[str, Entry] = {}  # replies for the sender, by their ids: those whose transaction is not through, or failed
        self._ways = core.ways(update.transport)
        self._marks: Marks = {}
        self._answered = False  # the answer is in the outbox
        self._delivered = False
        self._replies = 0
        self._gettext = core.catalogs.gettext(update.lang)

    async def run(self, *, last_try: bool) -> None:
        """Answer the update. Raises StorageError where it is to be tried again, unless it is the last try; every other error is said."""
        try:
            beginning = await begin(self._core.database, self._core.fence, self._update, answer_id=self._answer_id)
            self._marks, self._answered = beginning.marks, beginning.answered
            await self._handle(*await self._context(beginning))
        except SubjectErased:
            log.info("update %s: erased while it was under way", self._update.id)
        except StorageError as error:  # nothing can be stored now: the update stays in the inbox
            if not last_try:
                raise
            await self.apologise(error, directly=True)
        except asyncio.CancelledError as error:
            if stopping():
                raise
            await self.apologise(error)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the one boundary where an error becomes words
            await self.apologise(error)
        finally:
            if self._sender is not None:
                for entry in self._claimed.values():
                    self._sender.give_back(entry)

    async def _handle(self, ctx: Context, routed: Routed) -> None:
        if refusal := refused(self._core.settings, ctx, routed):
            raise refusal
        if self._update.kind == "button" and not (routed.awaited or ctx.command):
            await ctx.reply(ctx._("That question is closed. Please ask again."))
        elif routed.handler is not None:
            await routed.handler(ctx)
        elif ctx.command:
            await ctx.reply(ctx._("I do not know the command /{name}. /help lists those there are.").format(name=ctx.command))

    async def apologise(self, error: BaseException, *, directly: bool = False) -> None:
        """Say an error in words. One that nobody foresaw gets a short id that the log has too.

        `directly`: also where nothing can be stored. Else that is a StorageError.
        """
        if isinstance(error, BotError):
            refused = isinstance(error, BadRequest | NotAllowed)  # nothing is wrong: it was answered
            log.log(logging.INFO if refused else logging.WARNING, "update %s: %s", self._update.id, for_log(error))
            words = error.words(self._gettext)
        else:
            short = secrets.token_hex(3)
            log.error("update %s: error %s", self._update.id, short, exc_info=error)
            _ = self._gettext
            words = _("Something went wrong on my side (error {id}). Please try again in a moment.").format(id=short)
        self._core.counters.add("errors_said")
        try:
            await self.reply(words)
        except SubjectErased:
            pass
        except StorageError:
            transport = self._core.transports.get(self._update.transport)
            if not directly or transport is None:
                raise
            with contextlib.suppress(TransportError):
                await transport.send(self._update.chat_key, words)

    # ------------------------------------------------------------------------------------ context

    async def _context(self, beginning: Beginning) -> tuple[Context, Routed]:
        core, update = self._core, self._update
        user = Profile(core.database, core.fence, update.sender or "", clock=core.clock, marks=lambda: self._marks)
        lang = await self._language(user, beginning)
        self._gettext = core.catalogs.gettext(lang)
        expected = await self._expected(user, beginning.profile)
        handler, command, args = route(core.registry, update, expected)
        awaited = expected is not None and command is None and handler is core.registry.answers.get(expected)
        parsed = parse_command(update.text)
        update = self._update = await self._moderated(update) if parsed else update

        async def expect(name: str, *, seconds: int = 300) -> None:
            until = core.clock() + seconds * 1000
            await user.set("bot", "expected", {"name": name, "chat": update.chat_key, "until": until})

        ctx = Context(
            update=update,
            lang=lang,
            gettext=self._gettext,
            ngettext=core.catalogs.ngettext(lang),
            ai=core.ai,
            library=core.library,
            recall=core.parts.find(cast(type[Any], Recall)) if Recall in core.registry.parts else None,
            user=user,
            people=self,
            outgoing=self,
            expect=expect,
            counters=core.counters,
            is_admin=update.sender == CONSOLE_ADMIN or update.sender in core.settings.admins,
            args=args,
            command=parsed[0] if parsed else "",
            languages=core.catalogs.languages,
            files=self._ways.files,
            bot=core.bot,
            marks=self._marks,
        )
        return ctx, Routed(handler, command, args, awaited)

    async def _expected(self, user: Profile, profile: Mapping[str, Any]) -> str | None:
        """The name of the answer that is expected from this person in this chat; whatever they write here next takes it, a command too.

        It is marked with the update that took it, and not removed: that update may have to run again.
        """
        update, expected = self._update, profile.get("bot", {}).get("expected")
        if not expected:
            return None
        over = expected["until"] < self._core.clock() or expected.get("taken") not in (None, update.id)
        if over or (expected["chat"] == update.chat_key and parse_command(update.text)):
            await user.set("bot", "expected", None)
        elif expected["chat"] == update.chat_key:
            await user.set("bot", "expected", {**expected, "taken": update.id})
            return str(expected["name"])
        return None

    async def _moderated(self, update: Update) -> Update:
        moderated = self._ways.moderated
        if update.is_group and not update.may_moderate and moderated:
            return replace(update, may_moderate=await moderated.may_moderate(update))
        return update

    async def _language(self, user: Profile, beginning: Beginning) -> str:
        """The group's choice, else the person's, the platform's word, that of the message (or of the last that told), the default."""
        core, update = self._core, self._update
        known = core.catalogs.languages
        chosen = beginning.room_language or beginning.language
        if told := core.catalogs.match(chosen) or core.catalogs.match(update.lang):
            return told
        seen = beginning.profile.get("bot", {}).get("language")
        found = detect(_own_words(update.text))
        if found in known and found != seen:
            await user.set("bot", "language", found)
        return next(lang for lang in (found, seen, core.catalogs.default) if lang in known)

    # ------------------------------------------------------------------------------------ Outgoing

    async def reply(self, text: str, *, choices: Sequence[Choice] = ()) -> None:
        """Put a reply into the outbox; a second run of the same update puts the same row, so nobody reads it twice."""
        self._replies += 1
        reply_id = f"{self._update.id}:{self._replies}"
        async with self._core.fence.transaction(self._marks) as tx:
            await self._put(tx, reply_id, {"text": text, "choices": [list(astuple(one)) for one in choices]})
        self._stored(reply_id)

    async def deliver(self, tx: Transaction, reply: Reply) -> None:
        """Put a turn's reply into the outbox, inside the transaction that stores the turn."""
        shown = self._ways.streams is not None
        await self._put(tx, self._answer_id, {"text": reply.text, "markdown": True}, wait_ms=SHOWN_WITHIN_MS if shown else 0)
        self._delivered = True

    async def answer(self, stream: ReplyStream) -> None:
        """Show an answer, as it comes where the platform can; one that an earlier run of this update has stored is only sent."""
        chat, ways = self._update.chat_key, self._ways
        if self._answered:
            await self._core.outbox.due_now(self._answer_id)
            return
        self._answering[chat] = stream
        try:
            if ways.streams and not ways.delivers:
                await self._stream(ways.streams, stream)
            else:
                await (ways.delivers.show(self._letter(), stream) if ways.delivers else _drained(stream))
                self._stored(self._answer_id)
            self._answered = self._delivered
        finally:
            self._answering.pop(chat, None)

    async def _stream(self, platform: Streams, stream: ReplyStream) -> None:
        outbox, chat = self._core.outbox, self._update.chat_key
        try:
            await platform.stream(chat, stream)
        except TransportError as error:  # the turn goes on, and what it stores is sent whole
            log.warning("update %s: streaming failed: %s", self._update.id, error)
            await _drained(stream)
            await outbox.due_now(self._answer_id)
        else:
            await outbox.done(self._answer_id, line=chat)

    async def progress(self, text: str) -> None:
        """Show how far long work is, where the platform can change a line in place."""
        if self._ways.edits:
            with contextlib.suppress(TransportError):
                await self._ways.edits.progress(self._update.chat_key, self._update.id, text)

    @property
    def _answer_id(self) -> str:
        return f"{self._update.id}:answer"

    @cached_property
    def _asked(self) -> str:
        return self._update.digest

    def _letter(self) -> Letter:
        update = self._update
        return Letter(
            self._answer_id,
            update.chat_key,
            user_id=update.sender or "",
            question=update.message,
            quotes=update.is_group,
            revises=update.kind == "edited",
            markdown=True,
            asked=self._asked,
        )

    async def _put(self, tx: Transaction, entry_id: str, said: Mapping[str, Any], *, wait_ms: int = 0) -> None:
        update, outbox = self._update, self._core.outbox
        quotes = (update.message or update.id) if update.is_group else None
        row: NewRow = {
            "kind": "reply",
            "line": update.chat_key,
            "user_id": update.sender or "",
            "via": update.transport,
            "payload": {**said, "reply_to": quotes, "question": update.message, "revises": update.kind == "edited", "asked": self._asked},
            "wait_ms": wait_ms,
        }
        if wait_ms or self._sender is None or self._ways.of is None or not self._sender.may_claim:
            await outbox.put_soon(tx, entry_id, **row)
        elif entry := await outbox.put_claimed(tx, entry_id, **row):
            self._claimed[entry_id] = entry

    def _stored(self, entry_id: str) -> None:
        """The transaction that put a reply is through: it can be sent."""
        entry = self._claimed.pop(entry_id, None)
        if entry is not None and self._sender is not None:
            self._sender.send(entry)
        else:
            self._core.outbox.notify()

    # ------------------------------------------------------------------------------------ People

    async def export(self, user_id: str) -> dict[str, Any]:
        """All that is held about a person."""
        return await self._core.people.export(user_id)

    async def erase(self, user_id: str) -> dict[str, int]:
        """Erase a person. The words about it are written after it, so the epochs are noted anew; not the person's: no row of them stays."""
        try:
            return await self._core.people.erase(user_id)
        finally:  # also where it could not be finished: that has to be said too
            left = (subject for subject in (self._update.sender, self._update.chat_key) if subject and subject != user_id)
            self._marks = await self._core.fence.mark(*left)


def _own_words(text: str) -> str:
    """What a message has of its sender's language: of a command its words, if they are more than an option such as `en`."""
    command = parse_command(text)
    if command is None:
        return text
    return command[1] if len(command[1].split()) > 1 else ""


async def _drained(stream: ReplyStream) -> None:
    async for _fragment in stream:
        pass
