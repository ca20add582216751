"""Long-term memory: what the turn, the commands and the model's tools ask of it."""

import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence

from bot import (
    Counters,
    Database,
    Fact,
    Fence,
    Job,
    Jobs,
    Learned,
    Marks,
    MemoryOptions,
    MemoryState,
    Provider,
    Replaced,
    Transaction,
    ttl_ms,
)

from . import facts, relevance
from .changes import KEEP_MS, Changes, Step, old_text
from .extractor import JOB, Extractor, Notify
from .queue import Queue
from .store import Draft, Facts

log = logging.getLogger(__name__)

SOURCES = ("manual", "auto")

Score = Callable[[Sequence[Fact], str], Awaitable[Sequence[float]]]
"""How much each fact has to do with a question."""


class Memory:
    """The bot's `Recall`. `options` of None: nothing is injected or extracted by itself, and the methods work all the same."""

    def __init__(
        self,
        options: MemoryOptions | None,
        *,
        database: Database,
        jobs: Jobs,
        fence: Fence,
        provider: Callable[[], Provider | None],
        counters: Counters,
        clock: Callable[[], int],
        score: Score | None = None,
        notify: Notify | None = None,
    ) -> None:
        self.options = options
        self.counters = counters
        self._set = options or MemoryOptions()
        self._database = database
        self._jobs = jobs
        self._fence = fence
        self._score = score
        self._clock = clock
        self._queue = Queue(database, clock=clock)
        self._changes = Changes(namespace=self._set.namespace, clock=clock)
        self.store = Facts(database, namespace=self._set.namespace, max_facts=self._set.max_facts, clock=clock)
        self._extractor = Extractor(
            options=options,
            database=database,
            jobs=jobs,
            fence=fence,
            provider=provider,
            counters=counters,
            clock=clock,
            queue=self._queue,
            store=self.store,
            changes=self._changes,
            accept=lambda texts: self._sorted_out(texts)[0],
            life_ms=self._life(None),
            notify=notify,
        )

    # ------------------------------------------------------------------------------------ what is held

    async def facts(self, subject: str) -> list[Fact]:
        """Live facts, oldest first; none for nobody."""
        return await self.store.get_facts(subject) if subject else []

    async def relevant(self, subjects: Sequence[str], question: str) -> list[Fact]:
        """The facts for a prompt, within `prompt_tokens` all together; none of a person whose memory is paused."""
        held = [fact for subject in subjects if subject for fact in await self.store.read(subject)]
        if relevance.fits(held, self._set.prompt_tokens):
            return held
        scores = await self._score(held, question) if self._score else relevance.by_words(held, question)
        return relevance.choose(held, scores, self._set.prompt_tokens)

    async def remember(
        self, subject: str, facts: str | Sequence[str], *, ttl: str | int | None = None, source: str = "manual"
    ) -> list[str]:
        """The facts that were new. One that is too long or a secret is left out; `why_not` tells. Raises ValueError for a bad `ttl`."""
        return list((await self.learn(subject, facts, ttl=ttl, source=source)).added)

    async def learn(self, subject: str, facts: str | Sequence[str], *, ttl: str | int | None = None, source: str = "manual") -> Learned:
        """The same, with all that became of the facts."""
        life = self._life(ttl)
        if source not in SOURCES:
            raise ValueError(f'source={source!r} is not allowed: use "manual" or "auto"')
        drafts, refused = self._sorted_out([facts] if isinstance(facts, str) else facts)
        if not subject or not drafts:
            return Learned(refused=tuple(refused))
        async with self._database.transaction() as tx:
            outcome = await self.store.say(tx, subject, drafts, life_ms=life, source=source, evidence="said")
        return Learned(
            added=tuple(draft.value for draft in outcome.new.values()),
            known=tuple(draft.value for draft in outcome.known.values()),
            refused=tuple(refused),
            evicted=tuple(fact.text for fact in outcome.evicted),
            paused=outcome.paused,
        )

    def why_not(self, fact: str) -> str | None:
        """The code for which `remember` would leave this text out (`EMPTY`, `TOO_LONG`, `SECRET_…`), or None."""
        return facts.why_not(fact, max_length=self._set.max_fact_length)

    def _life(self, ttl: str | int | None) -> int | None:
        return ttl_ms(ttl) if ttl is not None else ttl_ms(self._set.ttl)

    def _sorted_out(self, texts: Sequence[str]) -> tuple[list[Draft], list[tuple[str, str]]]:
        """The drafts of those texts that may be kept, and the others with their codes."""
        reasons = [(text, self.why_not(text)) for text in texts]
        refused = [(text, reason) for text, reason in reasons if reason]
        for _, reason in refused:
            self._refused(reason)
        return [Draft(facts.one_line(text)) for text, reason in reasons if not reason], refused

    def _refused(self, reason: str) -> None:
        log.info("a fact was left out: %s", reason)
        self.counters.add("memory_refused")

    async def forget(self, subject: str, fact: str | None = None) -> int:
        """How many facts left: the one with this text, or all; what was replaced and what is being extracted is dropped too."""
        async with self._database.transaction() as tx:
            if fact is None:
                await self._queue.renew(tx, subject)
                await self._changes.forget_all(tx, subject)
                return await self.store.drop_all(tx, subject)
            held = facts.same(await self.store.held(tx, subject), fact)
            await self._queue.forget(tx, subject, fact)
            await self._changes.forget(tx, subject, fact)
            for one in held:
                await self._changes.forget_row(tx, subject, one)
            return sum([await self.store.drop(tx, subject, one.id) for one in held])

    # ------------------------------------------------------------------------------------ keyed facts

    async def remember_keyed(self, subject: str, key: str, value: str, *, source: str = "manual", marks: Marks | None = None) -> bool:
        """Set the value of a key, instead of the one it had; False where it is refused. Raises SubjectErased by `marks`."""
        if reason := self.why_not_keyed(key, value):
            self._refused(reason)
            return False
        draft, batch = Draft(facts.one_line(value), key=facts.normalise(key)), uuid.uuid4().hex
        async with self._fence.transaction(marks or {}) as tx:
            old = next((fact for fact in await self.store.held(tx, subject) if fact.kind == "keyed" and fact.key == draft.row_key), None)
            if old is not None and facts.normalise(old.value) != facts.normalise(value):
                await self._changes.replaced(tx, subject, batch, old_id=old.id, fact_id=old.id)
            outcome = await self.store.say(tx, subject, [draft], life_ms=self._life(None), source=source, evidence=batch)
            for fact_id in outcome.new:
                await self._changes.added(tx, subject, batch, fact_id)
        return not outcome.paused

    def why_not_keyed(self, key: str, value: str) -> str | None:
        """The code for which `remember_keyed` would refuse, or None."""
        return facts.why_not_keyed(key, value, max_length=self._set.max_fact_length)

    async def recall_keyed(self, subject: str, key: str | None = None) -> list[Fact]:
        """The fact of a key, or every fact where no key is given; none of a person whose memory is paused."""
        held = await self.store.read(subject) if subject else []
        return held if key is None else [fact for fact in held if fact.kind == "keyed" and fact.key == facts.normalise(key)]

    async def forget_keyed(self, subject: str, key: str, *, marks: Marks | None = None) -> bool:
        """Whether there was a value for this key; it is gone, and those that it had before cannot be brought back."""
        async with self._fence.transaction(marks or {}) as tx:
            held = [fact for fact in await self.store.held(tx, subject) if fact.kind == "keyed" and fact.key == facts.normalise(key)]
            for fact in held:
                await self._queue.forget(tx, subject, fact.value)
                await self._changes.forget_row(tx, subject, fact)
            return await self.store.drop_keyed(tx, subject, key) > 0

    # ------------------------------------------------------------------------------------ the person's say

    async def edit(self, subject: str, fact_id: str, text: str) -> bool:
        """Change the text of a fact, which is the person's own from then on.

        False where there is none, where the text is refused, or while the person's memory is paused.
        """
        if reason := self.why_not(text):
            self._refused(reason)
            return False
        async with self._database.transaction() as tx:
            old = next((fact for fact in await self.store.held(tx, subject) if fact.id == fact_id), None)
            if old is None or (await self._queue.state(tx, subject)).paused:
                return False
            value = facts.one_line(text)
            name, colon, rest = value.partition(":")
            same_key = old.kind == "keyed" and bool(colon) and facts.normalise(name) == old.key
            draft = Draft(rest.strip() if same_key else value, key=old.key if old.kind == "keyed" else None)
            if draft.key is not None and (reason := self.why_not_keyed(draft.key, draft.value)):  # with its key it may be a secret
                self._refused(reason)
                return False
            return await self.store.rename(tx, subject, fact_id, draft)

    async def pin(self, subject: str, fact_id: str, pinned: bool) -> bool:
        """Let a fact go into every prompt, or no more; False where there is none with this id."""
        async with self._database.transaction() as tx:
            return await self.store.pin(tx, subject, fact_id, pinned)

    async def replaced(self, subject: str) -> list[Replaced]:
        """The facts that were replaced and can still be brought back, the latest last."""
        rows = await self._changes.listed(self._database, subject)
        return [Replaced(old_text(row), row["changed_at"], row["changed_at"] + KEEP_MS) for row in rows]

    async def undo(self, subject: str) -> tuple[list[str], list[str]]:
        """Take back the last change that memory made by itself: `(facts that left, facts that are back)`."""
        left: list[str] = []
        back: list[str] = []
        async with self._database.transaction() as tx:
            for step in await self._changes.take_latest(tx, subject):
                gone, evicted, restored = await self._undone(tx, subject, step)
                left += [*gone, *evicted]
                back += restored
        return left, [text for text in back if text not in left]

    async def _undone(self, tx: Transaction, subject: str, step: Step) -> tuple[list[str], list[str], list[str]]:
        """Take back one step: what left, what left to make room, what is back. What the person has changed since is theirs, and stays."""
        held = {fact.id: fact for fact in await self.store.held(tx, subject)}
        came = held.get(step.fact_id)
        its_own = came is not None and await self.store.is_of(tx, subject, step.fact_id, step.batch)
        gone = [came.text] if came is not None and its_own else []
        if gone:
            await self.store.drop(tx, subject, step.fact_id)
        if step.old is None or (step.old["kind"] == "keyed" and came is not None and not its_own):
            return gone, [], []
        if step.old["expires_at"] is not None and step.old["expires_at"] <= self._clock():
            return gone, [], []
        evicted = await self.store.restore(tx, subject, step.old)
        return gone, [fact.text for fact in evicted], [old_text(step.old)]

    async def state(self, subject: str) -> MemoryState:
        """What the person chose."""
        return await self._queue.state(self._database, subject)

    async def choose(self, subject: str, *, paused: bool | None = None, quiet: bool | None = None) -> None:
        """Change what the person chose; None leaves it. A pause also drops what waits to be looked at."""
        async with self._database.transaction() as tx:
            now = await self._queue.state(tx, subject)
            chosen = MemoryState(now.paused if paused is None else paused, now.quiet if quiet is None else quiet)
            await self._queue.choose(tx, subject, chosen)

    # ------------------------------------------------------------------------------------ extraction

    async def extract(self, subject: str, user_text: str, assistant_text: str) -> list[str]:
        """One extraction by hand; the facts added. Erased meanwhile: none. Raises ModelError."""
        return await self._extractor.by_hand(subject, user_text, assistant_text)

    async def stage_extraction(
        self, tx: Transaction | None, subject: str, user_text: str, assistant_text: str, *, chat_key: str = ""
    ) -> None:
        """Queue an extraction inside the turn's own transaction (None: one of its own); does nothing where extraction is off."""
        await self._extractor.stage(tx, subject, user_text, assistant_text, chat_key=chat_key)

    async def run(self, job: Job) -> None:
        """A job of extraction."""
        await self._extractor.run(job)

    async def idle(self) -> None:
        """Flush what waits and return when background extraction has finished."""
        await self._jobs.idle(JOB)

    # ------------------------------------------------------------------------------------ upkeep

    async def tidy(self) -> None:
        """Remove what has outlived its time: expired facts, words that nothing took, changes that can no longer be taken back."""
        async with self._database.transaction() as tx:
            await self.store.expire(tx)
            await self._queue.prune(tx)
            await self._changes.prune(tx)
