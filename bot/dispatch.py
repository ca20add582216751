"""One update at a time: claimed in the order of its chat, given its rights and its language, routed; an error becomes words here, once."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.context import Context
from bot.errors import BotError, NotAllowed, StorageError, SubjectErased, TransportError
from bot.fence import SubjectFence
from bot.i18n import Catalogs, detect
from bot.inbox import MOST_ATTEMPTS, RENEW_SECONDS, Entry, JobQueue, Queue, job_of
from bot.log import Counters
from bot.personal_data import Everyone, Profile
from bot.ports import Assistant, Database, Edits, Files, Library, Marks, Recall, ReplyStream, Sends, Streams, Transaction
from bot.registry import Command, Parts, Registry, route
from bot.settings import Settings
from bot.values import Reply, Update

log = logging.getLogger(__name__)

URGENT = ("stop", "button")  # these pass the queue of their chat
AT_ONCE = 32  # updates under way, over all chats
POLL_SECONDS = 1.0  # how soon a row is seen that another process put
SHOWN_WITHIN_MS = 300_000  # an answer that is shown while it is written is sent again if the process dies before it has ended
UNREACHED_MS = 60_000  # a row for a transport that does not run now is left alone for this long
MAINTENANCE_SECONDS = 30.0
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


class Dispatcher:
    """Takes what is in the inbox, the outbox and the jobs, until it is cancelled."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._answering: dict[str, ReplyStream] = {}
        self._changed = asyncio.Condition()

    async def accept(self, update: Update) -> bool:
        """Store an update, so that it may be acknowledged; False where it came before."""
        inbox = self._core.inbox
        async with self._core.database.transaction() as tx:
            new = await inbox.put(
                tx, update.id, kind=update.kind, line=update.chat_key, user_id=update.sender or "", payload=update.to_json()
            )
        inbox.notify()
        return new

    async def settled(self, chat_key: str) -> None:
        """Return when every update of a chat has been answered and every reply to it sent."""
        core = self._core
        while await core.inbox.waiting(line=chat_key) or await core.outbox.waiting(line=chat_key):
            async with self._changed:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), POLL_SECONDS)

    async def run(self) -> None:
        """Work until cancelled; what is under way then is put back for the next start."""
        core = self._core
        async with asyncio.TaskGroup() as tasks:
            for queue, work, urgent in (
                (core.inbox, self._update, URGENT),
                (core.outbox, self._send, ()),
                (core.jobs.queue, self._job, ()),
            ):
                tasks.create_task(self._consume(queue, work, urgent))
            tasks.create_task(self._maintain())

    # ------------------------------------------------------------------------------------ loops

    async def _consume(self, queue: Queue, work: Callable[[Entry], Awaitable[None]], urgent: tuple[str, ...]) -> None:
        async with asyncio.TaskGroup() as under_way:
            while True:
                queue.wake.clear()
                try:
                    while entry := await queue.claim(urgent=urgent):
                        if entry.kind not in urgent:
                            await self._slots.acquire()
                        under_way.create_task(self._one(queue, entry, work, held=entry.kind not in urgent))
                    due = await queue.next_due_ms()
                except StorageError as error:  # a disk that is full, or a database that is locked, may be well again in a moment
                    log.error("storage: %s", error)
                    due = None
                wait = POLL_SECONDS if due is None else min(POLL_SECONDS, max(due, 1) / 1000)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(queue.wake.wait(), wait)

    async def _one(self, queue: Queue, entry: Entry, work: Callable[[Entry], Awaitable[None]], *, held: bool) -> None:
        try:
            if entry.attempts > MOST_ATTEMPTS:  # each time it was claimed, the process died
                log.error("%s %s is given up after %d attempts", entry.kind, entry.id, entry.attempts - 1)
                await queue.failed(entry.id)
            else:
                await work(entry)
        except asyncio.CancelledError:
            await _shielded(queue.release(entry))
            raise
        except Exception as error:  # the boundary of a worker: one bad row never stops the others
            log.error("%s %s failed: %s", entry.kind, entry.id, error, exc_info=not isinstance(error, BotError))
            self._core.counters.add(f"{queue.table}_failed")
            await self._retry(queue, entry)
        finally:
            if held:
                self._slots.release()
        queue.notify()
        async with self._changed:
            self._changed.notify_all()

    async def _retry(self, queue: Queue, entry: Entry) -> None:
        try:
            if not await queue.retry(entry):
                log.error("%s %s is given up", entry.kind, entry.id)
        except StorageError as error:  # its lease ends, and it is claimed again
            log.error("storage: %s", error)

    async def _maintain(self) -> None:
        core = self._core
        queues = (core.inbox, core.outbox, core.jobs.queue)
        rounds = 0
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            rounds += 1
            try:
                for queue in queues:
                    await queue.renew()
                    if rounds * RENEW_SECONDS % 3600 < RENEW_SECONDS:
                        await queue.prune()
                await core.people.scrub()
            except StorageError as error:
                log.error("storage: %s", error)

    # ------------------------------------------------------------------------------------ the three kinds of work

    async def _update(self, entry: Entry) -> None:
        update = Update.from_json(entry.payload)
        if update.kind == "stop":
            if stream := self._answering.get(update.chat_key):
                await stream.stop()
        elif update.addressed:
            await self._answer(update)
        await self._core.inbox.done(entry.id)

    async def _send(self, entry: Entry) -> None:
        transport = self._core.transports.get(entry.kind)
        if transport is None:
            await self._core.outbox.release(entry, wait_ms=UNREACHED_MS)
            return
        await transport.send(entry.line, entry.payload["text"], reply_to=entry.payload.get("reply_to"))
        await self._core.outbox.done(entry.id)

    async def _job(self, entry: Entry) -> None:
        job = job_of(entry)
        run = self._core.registry.jobs.get(job.kind)
        if run is None:
            await self._core.jobs.queue.release(entry, wait_ms=UNREACHED_MS)
            return
        try:
            await run(self._core.parts, job)
        except SubjectErased:
            log.info("job %s: its subject was erased", job.id)
        await self._core.jobs.queue.done(entry.id)
        await self._core.jobs.finished()

    # ------------------------------------------------------------------------------------ one update

    async def _answer(self, update: Update) -> None:
        turn = _Turn(self._core, update, self._answering)
        await turn.begin()
        ctx, handler, command = await turn.context()
        try:
            if refusal := _refused(self._core.settings, ctx, command):
                raise refusal
            if handler is None:
                unknown = ctx._("I do not know the command /{name}. /help lists those there are.")
                await ctx.reply(unknown.format(name=ctx.command))
            else:
                await handler(ctx)
        except SubjectErased:
            log.info("update %s: erased while it was under way", update.id)
        except StorageError:
            raise  # nothing can be stored now: the update stays in the inbox and is tried again
        except Exception as error:  # noqa: BLE001 - the one boundary where an error becomes words
            await turn.apologise(ctx, error)


def _refused(settings: Settings, ctx: Context, command: Command | None) -> NotAllowed | None:
    """Whether this person may not do this: commands by their `who`, anything else by the list of those allowed."""
    if ctx.is_admin:
        return None
    if command is None:
        strangers = settings.allowed_users and ctx.sender not in settings.allowed_users
        return _Stranger() if strangers and not ctx.command else None
    if command.who == "admins":
        return NotAllowed(command.name)
    if command.who == "moderators" and ctx.is_group and not ctx.update.may_moderate:
        return _NoModerator(command.name)
    return None


def _(message: str) -> str:
    return message


class _NoModerator(NotAllowed):
    message = _("In a group, only its administrators may use that command.")


class _Stranger(NotAllowed):
    message = _("This bot answers only the people that it was set up for. /help still works, and so does everything about your own data.")


class _Turn:
    """What answering one update needs; also how its words leave."""

    def __init__(self, core: Core, update: Update, answering: dict[str, ReplyStream]) -> None:
        self._core = core
        self._update = update
        self._answering = answering
        self._marks: Marks = {}
        self._replies = 0

    async def begin(self) -> None:
        """Note the epochs of the sender and the chat: what is written from here on goes behind them."""
        self._marks = await self._core.fence.mark(*filter(None, (self._update.sender, self._update.chat_key)))

    async def context(self) -> tuple[Context, Any, Command | None]:
        """The handler that takes the update, with what it is called with."""
        core, update = self._core, self._update
        user = Profile(core.database, core.fence, update.sender or "", clock=core.clock, marks=lambda: self._marks)
        profile = await user.everything() if update.sender else {}
        awaited = _awaited(profile, update, core.clock())
        if "expected" in profile.get("bot", {}):
            await user.set("bot", "expected", None)
        lang = await self._language(user, profile)
        handler, command, args = route(core.registry, update, awaited)
        parsed = update.text[1:].split("@")[0].split(maxsplit=1)[0] if handler is None and update.text[1:].strip() else ""

        async def expect(name: str, *, seconds: int = 300) -> None:
            until = core.clock() + seconds * 1000
            await user.set("bot", "expected", {"name": name, "chat": update.chat_key, "until": until})

        transport = core.transports.get(update.transport)
        ctx = Context(
            update=update,
            lang=lang,
            gettext=core.catalogs.gettext(lang),
            ngettext=core.catalogs.ngettext(lang),
            ai=core.ai,
            library=core.library,
            user=user,
            people=self,
            outgoing=self,
            expect=expect,
            counters=core.counters,
            is_admin=update.sender == CONSOLE_ADMIN or update.sender in core.settings.admins,
            args=args,
            command=command.name if command else parsed,
            languages=core.catalogs.languages,
            files=transport if isinstance(transport, Files) else None,
            bot=core.bot,
            recall=core.parts.find(Recall),
            marks=self._marks,
        )
        return ctx, handler, command

    async def _language(self, user: Profile, profile: Mapping[str, Any]) -> str:
        """The person's choice, else the platform's word, else that of the message (or of the last that told), else the default."""
        core, update = self._core, self._update
        known = core.catalogs.languages
        chosen = await user.language() if update.sender else None
        seen = profile.get("bot", {}).get("language")
        if told := core.catalogs.match(chosen) or core.catalogs.match(update.lang):
            return told
        found = detect(update.text) if not update.text.startswith("/") else None
        if found in known and found != seen and update.sender:
            await user.set("bot", "language", found)
        return next(lang for lang in (found, seen, core.catalogs.default) if lang in known)

    # ------------------------------------------------------------------------------------ Outgoing

    async def reply(self, text: str) -> None:
        """Put a reply into the outbox; a second run of the same update puts the same row, so nobody reads it twice."""
        self._replies += 1
        async with self._core.fence.transaction(self._marks) as tx:
            await self._put(tx, f"{self._update.id}:{self._replies}", text)
        self._core.outbox.notify()

    async def deliver(self, tx: Transaction, reply: Reply) -> None:
        """Put a turn's reply into the outbox, inside the transaction that stores the turn."""
        await self._put(tx, self._answer_id, reply.text, wait_ms=SHOWN_WITHIN_MS)

    async def answer(self, stream: ReplyStream) -> None:
        """Show an answer, as it comes where the platform can; one that an earlier run of this update has stored is only sent."""
        core, chat = self._core, self._update.chat_key
        if await core.outbox.state(self._answer_id) is not None:
            await core.outbox.due_now(self._answer_id)
            return
        transport: object = core.transports.get(self._update.transport)
        self._answering[chat] = stream
        try:
            if isinstance(transport, Streams):
                await transport.stream(chat, stream)
                await core.outbox.done(self._answer_id)
            else:
                async for _fragment in stream:
                    pass
        except TransportError as error:  # what was stored is sent whole instead
            log.warning("update %s: streaming failed: %s", self._update.id, error)
        finally:
            self._answering.pop(chat, None)
        await core.outbox.due_now(self._answer_id)

    async def progress(self, text: str) -> None:
        """Show how far long work is, where the platform can change a line in place."""
        transport: object = self._core.transports.get(self._update.transport)
        if isinstance(transport, Edits):
            with contextlib.suppress(TransportError):
                await transport.progress(self._update.chat_key, self._update.id, text)

    async def apologise(self, ctx: Context, error: Exception) -> None:
        """Say an error in words. One that nobody foresaw gets a short id that the log has too."""
        if isinstance(error, BotError):
            log.warning("update %s: %s: %s", self._update.id, error.code, error)
            words = error.words(ctx.gettext)
        else:
            short = secrets.token_hex(3)
            log.error("update %s: error %s", self._update.id, short, exc_info=error)
            words = ctx._("Something went wrong on my side (error {id}). Please try again in a moment.").format(id=short)
        self._core.counters.add("errors_said")
        with contextlib.suppress(SubjectErased):
            await self.reply(words)

    @property
    def _answer_id(self) -> str:
        return f"{self._update.id}:answer"

    async def _put(self, tx: Transaction, entry_id: str, text: str, *, wait_ms: int = 0) -> None:
        update = self._update
        payload = {"text": text, "reply_to": update.id if update.is_group else None}
        await self._core.outbox.put(
            tx, entry_id, kind=update.transport, line=update.chat_key, user_id=update.sender or "", payload=payload, wait_ms=wait_ms
        )

    # ------------------------------------------------------------------------------------ People

    async def export(self, user_id: str) -> dict[str, Any]:
        """All that is held about a person."""
        return await self._core.people.export(user_id)

    async def erase(self, user_id: str) -> dict[str, int]:
        """Erase a person; the words about it are written after it, so the epochs are noted anew."""
        counts = await self._core.people.erase(user_id)
        await self.begin()
        return counts


def _awaited(profile: Mapping[str, Any], update: Update, now: int) -> str | None:
    """The name of the answer that is expected from this person in this chat, if it still is."""
    expected = profile.get("bot", {}).get("expected")
    if expected and expected["chat"] == update.chat_key and expected["until"] >= now:
        return str(expected["name"])
    return None


async def _shielded(work: Awaitable[None]) -> None:
    """Finish a short write although this task is being cancelled."""
    task = asyncio.ensure_future(work)
    with contextlib.suppress(asyncio.CancelledError, StorageError):
        await asyncio.shield(task)
    if not task.done():
        with contextlib.suppress(asyncio.CancelledError, StorageError):
            await task
