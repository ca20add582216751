"""What is in the inbox, the outbox and the jobs is claimed, worked on, and done, put back or given up, while others go on meanwhile."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from bot.accepting import Joins, put, stands_alone, take
from bot.errors import BotError, StorageError, SubjectErased, TransportUnavailable, Undeliverable
from bot.handling import Core, Handling, for_log, stopping
from bot.inbox import MOST_ATTEMPTS, RENEW_SECONDS, Entry, Queue, job_of
from bot.ports import Delivers, ReplyStream, Sends
from bot.values import Letter, Update

log = logging.getLogger(__name__)

URGENT = ("stop", "button")  # these pass the queue of their chat, and do not wait for a slot
AT_ONCE = 32  # rows under way of each queue, over all chats
POLL_SECONDS = 1.0  # how soon a row is seen that another process put
ENOUGH = AT_ONCE // 2  # slots that are filled together, where rows wait for one
FULL_SECONDS = 0.02  # after which fewer are
DRAIN_SECONDS = 8.0  # how long a stop waits for what is being sent
ROUNDS_BETWEEN_PRUNING = 360  # of RENEW_SECONDS: an hour


@dataclass(slots=True)
class _Lane:
    """One queue and the work of its rows. `via` is what this process has for them; `busy` counts those under way, but for urgent ones.

    `full`: rows may wait for a slot. `tasks` is there while rows are taken. `unnoted` is how rows ended that the database did not take:
    they stay claimed, and their leases are renewed, until it does.
    """

    queue: Queue
    work: Callable[[Entry], Awaitable[None]]
    via: Collection[str]
    urgent: tuple[str, ...] = ()
    busy: int = 0
    full: bool = False
    tasks: asyncio.TaskGroup | None = None
    unnoted: list[Callable[[], Awaitable[object]]] = field(default_factory=list)

    @property
    def free(self) -> int:
        """How many more may be under way."""
        return AT_ONCE - self.busy

    def refill(self) -> None:
        """See to it that the slots that are free again are filled: soon where they are many, else in a while, with those that join them."""
        if self.free >= ENOUGH:
            self.queue.notify()
        elif self.free == 1:
            asyncio.get_running_loop().call_later(FULL_SECONDS, self.queue.notify)

    async def note(self) -> None:
        """Note what was not noted. Raises StorageError where that still cannot be."""
        while self.unnoted:
            await self.unnoted[0]()
            del self.unnoted[0]


class Dispatcher:
    """Takes what is in the inbox, the outbox and the jobs, until it is cancelled."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._answering: dict[str, ReplyStream] = {}
        self._open_lines: set[str] = set()
        self._sending: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._at_work: Counter[str] = Counter()  # by line: a row under way says no more whose it is once that person is erased
        self._jobs = _Lane(core.jobs.queue, self._job, core.registry.jobs)
        there = core.transports
        self._outbox = _Lane(core.outbox, self._send, there)
        self._lanes = (_Lane(core.inbox, self._update, there, URGENT), self._outbox, self._jobs)
        core.jobs.work = self._job_by_hand

    async def accept(self, update: Update) -> bool:
        """Store an update, so that it may be acknowledged; False where it came before. What is not said to the bot is not stored."""
        if not update.addressed:
            return True
        inbox = self._core.inbox
        new = await put(None, inbox, update)
        inbox.notify()
        return new

    async def accept_all(self, updates: Sequence[Update], *, joins: Joins | None = None) -> None:
        """Store several at once, all or none. `joins` puts those together that are parts of one."""
        inbox = self._core.inbox
        if len(updates) == 1 and stands_alone(updates[0], joins=joins, open_lines=self._open_lines):
            await self.accept(updates[0])  # a webhook's, mostly: those that come at once share a commit
            return
        async with self._core.database.transaction() as tx:
            await take(tx, inbox, updates, joins=joins, open_lines=self._open_lines)
        inbox.notify()

    async def settled(self, chat_key: str) -> None:
        """Return when every update of a chat has been answered and every reply to it sent."""
        core = self._core
        while True:
            changed = self._changed  # noted before looking, so that what ends in between is not missed
            at_work = self._at_work[chat_key]
            waiting = await core.inbox.waiting(line=chat_key) or await core.outbox.waiting(line=chat_key)
            if not (at_work or waiting or self._at_work[chat_key]):
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):  # wait_for of Python 3.11 can swallow a cancellation
                    await changed.wait()

    async def run(self) -> None:
        """Work until cancelled; what is under way then is put back for the next start."""
        self._core.jobs.attended = True
        try:
            async with asyncio.TaskGroup() as tasks:
                for lane in self._lanes:
                    tasks.create_task(self._consume(lane))
                tasks.create_task(self._maintain())
        finally:
            self._core.jobs.attended = False
            await _to_its_end(self._release_all())

    async def _release_all(self) -> None:
        try:
            for lane in self._lanes:
                await lane.queue.release_all()
        except StorageError as error:  # their leases end, and they are claimed again
            log.error("storage: %s", error)

    # ------------------------------------------------------------------------------------ loops

    async def _consume(self, lane: _Lane) -> None:
        queue, timely = lane.queue, False
        async with asyncio.TaskGroup() as lane.tasks:
            try:
                while True:
                    queue.look()
                    try:
                        await lane.note()
                        await self._claim(lane)
                        if not timely:
                            await queue.look_ahead()
                    except StorageError as error:  # a disk that is full, or a database that is locked, may be well again in a moment
                        log.error("storage: %s", error)
                    timely = await queue.wait(POLL_SECONDS)
            finally:
                lane.tasks = None
                if lane is self._outbox and self._sending:  # what is not sent to its end, the next start sends again
                    await asyncio.wait(self._sending, timeout=DRAIN_SECONDS)

    async def _claim(self, lane: _Lane) -> None:
        """Start on what waits, as far as there are slots."""
        while True:
            most, lane.full = max(lane.free, 1), lane.free <= 0
            if lane.full and not lane.urgent:
                return
            entries = await lane.queue.claims(most, urgent=lane.urgent, only_urgent=lane.full, via=lane.via)
            for entry in entries:
                self._start(lane, entry)
            if len(entries) < most:
                return

    def _start(self, lane: _Lane, entry: Entry) -> None:
        lane.busy += entry.kind not in lane.urgent
        assert lane.tasks is not None
        lane.tasks.create_task(self._one(lane, entry))

    async def _one(self, lane: _Lane, entry: Entry) -> None:
        self._at_work[entry.line] += 1
        try:
            await lane.work(entry)
        except asyncio.CancelledError as error:
            if stopping():
                raise  # `run` puts the row back, with all others
            await self._failed(lane, entry, error)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the boundary of a worker: one bad row never stops the others
            await self._failed(lane, entry, error)
        finally:
            lane.busy -= entry.kind not in lane.urgent
            self._at_work[entry.line] -= 1
            if not self._at_work[entry.line]:
                del self._at_work[entry.line]
        if lane.full:
            lane.refill()
        if lane is self._jobs:
            self._core.jobs.finished()
        self._changed.set()
        self._changed = asyncio.Event()

    async def _job_by_hand(self, entry: Entry) -> None:
        self._jobs.busy += 1
        await self._one(self._jobs, entry)

    async def _failed(self, lane: _Lane, entry: Entry, error: BaseException) -> None:
        queue = lane.queue
        log.error("%s %s failed: %s", entry.kind, entry.id, for_log(error), exc_info=None if isinstance(error, BotError) else error)
        self._core.counters.add(f"{queue.table}_failed")
        try:
            if not await queue.retry(entry):
                log.error("%s %s is given up", entry.kind, entry.id)
        except StorageError as failure:
            log.error("storage: %s", failure)
            lane.unnoted.append(partial(queue.retry, entry))

    async def _maintain(self) -> None:
        core = self._core
        rounds = 0
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                for lane in self._lanes:
                    await lane.queue.renew()
                    if rounds % ROUNDS_BETWEEN_PRUNING == 0:
                        await lane.queue.prune()
                await core.people.finish()
            except StorageError as error:
                log.error("storage: %s", error)
            rounds += 1

    # ------------------------------------------------------------------------------------ Sender

    @property
    def may_claim(self) -> bool:
        """Whether there is a slot for a reply that is put as claimed."""
        return self._outbox.tasks is not None and self._outbox.free > 0

    def send(self, entry: Entry) -> None:
        """Send a reply that was put as claimed, now that it is stored. After a stop, `run` gives it back."""
        if self._outbox.tasks is not None:
            self._start(self._outbox, entry)

    def give_back(self, entry: Entry) -> None:
        """Let go of a reply of which nobody knows whether it is stored."""
        self._outbox.unnoted.append(partial(self._core.outbox.release, entry))
        self._core.outbox.notify()

    # ------------------------------------------------------------------------------------ the three kinds of work

    async def _update(self, entry: Entry) -> None:
        update = Update.from_json(entry.payload)
        if update.kind == "stop":
            if stream := self._answering.get(update.chat_key):
                await stream.stop()
        elif update.kind != "edited" or await self._may_revise(update):
            handling = Handling(self._core, update, self._answering, sender=self)
            if entry.attempts > MOST_ATTEMPTS:  # each time it was claimed, the process died
                await handling.apologise(BotError(f"given up after {entry.attempts - 1} attempts"), directly=True)
            else:
                await handling.run(last_try=entry.attempts == MOST_ATTEMPTS)
        await self._core.inbox.done(entry.id, line=entry.line)

    async def _send(self, entry: Entry) -> None:
        if _is_given_up(entry):
            await self._core.outbox.failed(entry.id, line=entry.line)
            return
        task = asyncio.current_task()
        assert task is not None
        self._sending.add(task)
        try:
            transport, ways = self._core.transports[entry.via], self._core.ways(entry.via)
            await (self._deliver(ways.delivers, entry) if ways.delivers else self._say(transport, entry))
        finally:
            self._sending.discard(task)

    async def _say(self, transport: Sends, entry: Entry) -> None:
        await transport.send(entry.line, entry.payload["text"], reply_to=entry.payload.get("reply_to"))
        await self._sent(entry)

    async def _deliver(self, transport: Delivers, entry: Entry) -> None:
        outbox = self._core.outbox
        try:
            await transport.deliver(Letter.from_payload(entry.id, entry.line, entry.user_id, entry.payload))
        except TransportUnavailable as error:  # not its fault: the attempt does not count
            log.info("outbox %s waits for %.1f s: %s", entry.id, error.seconds, error)
            await outbox.release(entry, wait_ms=int(error.seconds * 1000))
        except Undeliverable as error:
            log.info("outbox %s cannot be delivered: %s", entry.id, error)
            await outbox.failed(entry.id, line=entry.line)
        else:
            await self._sent(entry)

    async def _sent(self, entry: Entry) -> None:
        """Note that a reply was sent; it is not sent again because that has to wait."""
        try:
            await self._core.outbox.done(entry.id, line=entry.line)
        except StorageError as error:
            log.error("storage: %s", error)
            self._outbox.unnoted.append(partial(self._core.outbox.done, entry.id, line=entry.line))

    async def _may_revise(self, update: Update) -> bool:
        revises = self._core.ways(update.transport).revises
        return revises is not None and await revises.may_revise(update)

    async def _job(self, entry: Entry) -> None:
        job = job_of(entry)
        run = self._core.registry.jobs[job.kind]
        if _is_given_up(entry):
            await self._core.jobs.queue.failed(entry.id, line=entry.line)
            return
        try:
            await run(self._core.parts, job)
        except SubjectErased:
            log.info("job %s: its subject was erased", job.id)
        await self._core.jobs.queue.done(entry.id, line=entry.line)


def _is_given_up(entry: Entry) -> bool:
    """Whether a row was claimed so often that it cannot be tried again: each time, the process died."""
    if entry.attempts <= MOST_ATTEMPTS:
        return False
    log.error("%s %s is given up after %d attempts", entry.kind, entry.id, entry.attempts - 1)
    return True


async def _to_its_end(work: Awaitable[None]) -> None:
    """Finish a short write although this task is being cancelled."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    task.result()
