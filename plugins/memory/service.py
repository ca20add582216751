"""Long-term memory: what the turn, the commands and the model's tools ask of it."""

import logging
from collections.abc import Callable, Sequence

from bot import Counters, Database, ExtractOptions, Fact, Fence, Job, Jobs, Marks, MemoryOptions, Prompt, Provider, Transaction, ttl_ms

from . import extraction, facts
from .queue import Queue, Words
from .store import Draft, Facts

log = logging.getLogger(__name__)

JOB = "memory.extract"
EXTRACTIVE = "extractive"
SOURCES = ("manual", "auto")
LONGEST_WAIT_MS = 60_000  # words wait no longer than this for a person who goes on writing


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
    ) -> None:
        self.options = options
        self._set = options or MemoryOptions()
        self._database = database
        self._jobs = jobs
        self._fence = fence
        self._provider = provider
        self.counters = counters
        self._clock = clock
        self._queue = Queue(database, clock=clock)
        self.store = Facts(database, namespace=self._set.namespace, max_facts=self._set.max_facts, clock=clock)

    # ------------------------------------------------------------------------------------ what is held

    async def facts(self, subject: str) -> list[Fact]:
        """Live facts, oldest first; none for nobody."""
        return await self.store.get_facts(subject) if subject else []

    async def remember(
        self, subject: str, facts: str | Sequence[str], *, ttl: str | int | None = None, source: str = "manual"
    ) -> list[str]:
        """The facts that were new. One that is too long or a secret is left out; `why_not` tells. Raises ValueError for a bad `ttl`."""
        life = self._life(ttl)
        if source not in SOURCES:
            raise ValueError(f'source={source!r} is not allowed: use "manual" or "auto"')
        drafts = self._accepted([facts] if isinstance(facts, str) else facts)
        if not subject or not drafts:
            return []
        async with self._database.transaction() as tx:
            new, _, _ = await self.store.state(tx, subject, drafts, life_ms=life, source=source, evidence="said")
        return [draft.value for draft in new]

    def why_not(self, fact: str) -> str | None:
        """The code for which `remember` would leave this text out (`EMPTY`, `TOO_LONG`, `SECRET_…`), or None."""
        return facts.why_not(fact, max_length=self._set.max_fact_length)

    def _life(self, ttl: str | int | None) -> int | None:
        return ttl_ms(ttl) if ttl is not None else ttl_ms(self._set.ttl)

    def _accepted(self, texts: Sequence[str]) -> list[Draft]:
        drafts = []
        for text in texts:
            if reason := self.why_not(text):
                self._refused(reason)
            else:
                drafts.append(Draft(facts.one_line(text)))
        return drafts

    def _refused(self, reason: str) -> None:
        log.info("a fact was left out: %s", reason)
        self.counters.add("memory_refused")

    async def forget(self, subject: str, fact: str | None = None) -> int:
        """How many facts left: the one with this text, or all; then what is being extracted is dropped too."""
        async with self._database.transaction() as tx:
            if fact is None:
                await self._queue.renew(tx, subject)
                return await self.store.drop_all(tx, subject)
            held = facts.same(await self.store.held(tx, subject), fact)
            return sum([await self.store.drop(tx, subject, one.id) for one in held])

    # ------------------------------------------------------------------------------------ keyed facts

    async def remember_keyed(self, subject: str, key: str, value: str, *, source: str = "manual", marks: Marks | None = None) -> bool:
        """Set the value of a key, instead of the one it had; False where the text is refused. Raises SubjectErased by `marks`."""
        if reason := self.why_not_keyed(key, value):
            self._refused(reason)
            return False
        draft = Draft(facts.one_line(value), key=facts.normalise(key))
        async with self._fence.transaction(marks or {}) as tx:
            await self.store.state(tx, subject, [draft], life_ms=self._life(None), source=source, evidence="tool")
        return True

    def why_not_keyed(self, key: str, value: str) -> str | None:
        """The code for which `remember_keyed` would refuse, or None."""
        return facts.why_not_keyed(key, value, max_length=self._set.max_fact_length)

    async def recall_keyed(self, subject: str, key: str | None = None) -> list[Fact]:
        """The fact of a key, or every fact where no key is given."""
        held = await self.facts(subject)
        return held if key is None else [fact for fact in held if fact.kind == "keyed" and fact.key == facts.normalise(key)]

    async def forget_keyed(self, subject: str, key: str, *, marks: Marks | None = None) -> bool:
        """Whether there was a value for this key; it is gone."""
        async with self._fence.transaction(marks or {}) as tx:
            return await self.store.drop_keyed(tx, subject, key) > 0

    # ------------------------------------------------------------------------------------ extraction

    async def extract(self, subject: str, user_text: str, assistant_text: str) -> list[str]:
        """One extraction by hand; the facts added. Erased meanwhile: none. Raises ModelError."""
        provider = self._provider()
        if not subject or not user_text.strip() or provider is None or provider.name == EXTRACTIVE:
            return []
        marks = await self._fence.mark(subject)
        async with self._database.transaction() as tx:
            generation, paused = await self._queue.enter(tx, subject)
        if paused:
            return []
        words = Words("", generation, user_text, assistant_text, self._clock())
        return await self._extract(provider, subject, [words], marks)

    async def stage_extraction(self, tx: Transaction | None, subject: str, user_text: str, assistant_text: str) -> None:
        """Queue an extraction inside the turn's own transaction (None: one of its own); does nothing where extraction is off."""
        provider = self._provider()
        if self._extraction is None or not subject or not user_text.strip() or provider is None or provider.name == EXTRACTIVE:
            return
        if tx is None:
            async with self._database.transaction() as own:
                await self._stage(own, subject, user_text, assistant_text)
        else:
            await self._stage(tx, subject, user_text, assistant_text)

    @property
    def _extraction(self) -> ExtractOptions | None:
        return self.options.extraction if self.options else None

    async def _stage(self, tx: Transaction, subject: str, user_text: str, assistant_text: str) -> None:
        generation, paused = await self._queue.enter(tx, subject)
        if paused:
            return
        words_id = await self._queue.add(tx, subject, generation, user_text, assistant_text)
        options = self._extraction or ExtractOptions()
        await self._jobs.put(tx, JOB, subject, {"words": words_id}, wait_ms=options.debounce_ms)

    async def run(self, job: Job) -> None:
        """The job of a turn: extracts from all that its person said by then, unless they said more, whose job does it later."""
        provider = self._provider()
        waiting = await self._queue.waiting(job.subject)
        mine = [words for words in waiting if words.id == job.payload.get("words")]
        if not mine or provider is None:
            return
        if waiting[-1].id != mine[0].id and self._clock() - waiting[0].at < LONGEST_WAIT_MS:
            return
        if await self._may_spend(job.subject, waiting):
            await self._extract(provider, job.subject, waiting, job.marks)

    async def _may_spend(self, subject: str, waiting: Sequence[Words]) -> bool:
        """Whether the day's bound allows one more call; if not, the words are dropped rather than kept for another day."""
        options = self._extraction or ExtractOptions()
        async with self._database.transaction() as tx:
            calls, tokens = await self._queue.spend(tx, subject)
            if calls < options.max_calls_per_day and tokens < options.max_tokens_per_day:
                return True
            await self._queue.drop(tx, subject, waiting)
        self.counters.add("memory_over_budget")
        return False

    async def _extract(self, provider: Provider, subject: str, words: Sequence[Words], marks: Marks) -> list[str]:
        options = self._extraction or ExtractOptions()
        said = [one.said for one in words]
        found = await self._ask(provider, subject, extraction.prompt(said, options, provider=provider.name))
        drafts = self._accepted([fact for fact in found if self._wanted(options, fact)])
        async with self._fence.transaction(marks) as tx:
            await self._queue.drop(tx, subject, [one for one in words if one.id])
            if not await self._queue.passes(tx, subject, max(one.generation for one in words)):
                self.counters.add("memory_discarded")
                return []
            most = options.max_facts_per_turn * len(words)
            new, _, _ = await self.store.state(
                tx, subject, drafts, life_ms=self._life(None), source="auto", evidence="extracted", most_new=most
            )
        self.counters.add("memory_extracted", len(new))
        return [draft.value for draft in new]

    async def _ask(self, provider: Provider, subject: str, prompt: Prompt) -> list[str]:
        """What the model found. An answer of another form is asked for once more, then dropped whole and counted."""
        answer = await self._complete(provider, subject, prompt)
        found = extraction.parse(answer)
        if isinstance(found, extraction.Malformed):
            answer = await self._complete(provider, subject, extraction.retry(prompt, answer, found))
            found = extraction.parse(answer)
        if isinstance(found, extraction.Malformed):
            log.warning("an extraction was dropped: %s", found.reason)
            self.counters.add("memory_malformed")
            return []
        return found

    async def _complete(self, provider: Provider, subject: str, prompt: Prompt) -> str:
        answer = await provider.complete(prompt)
        async with self._database.transaction() as tx:
            await self._queue.spend(tx, subject, calls=1, tokens=answer.usage.prompt_tokens + answer.usage.completion_tokens)
        return answer.text

    def _wanted(self, options: ExtractOptions, fact: str) -> bool:
        if options.filter is None:
            return True
        try:
            return options.filter(fact) is not False
        except Exception as error:  # noqa: BLE001 - the filter is someone else's, and it may not cost a person the other facts
            log.warning("the filter of extraction failed: %s", type(error).__name__)
            return False

    async def idle(self) -> None:
        """Flush what waits and return when background extraction has finished."""
        await self._jobs.idle(JOB)

    # ------------------------------------------------------------------------------------ upkeep

    async def tidy(self) -> None:
        """Remove what has outlived its time: expired facts, words that nothing took."""
        async with self._database.transaction() as tx:
            await self.store.expire(tx)
            await self._queue.prune(tx)
