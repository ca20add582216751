"""Extraction in the background: words are staged with the turn, looked at together when the person pauses, and kept behind erasure."""

import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bot import (
    Counters,
    Database,
    ExtractOptions,
    Fact,
    Fence,
    Job,
    Jobs,
    Marks,
    MemoryOptions,
    ModelError,
    ModelRefused,
    Prompt,
    Provider,
    SubjectErased,
    Transaction,
)

from . import evidence, extraction
from .changes import Changes
from .extraction import Found, Malformed
from .facts import normalise
from .queue import Queue, Words
from .store import Draft, Facts

log = logging.getLogger(__name__)

JOB = "memory.extract"
EXTRACTIVE = "extractive"
LONGEST_WAIT_MS = 60_000  # words wait no longer than this for a person who goes on writing

Notify = Callable[[Transaction, str, str, Sequence[str]], Awaitable[None]]
"""Tells a person in their private chat what was learnt: `(tx, subject, chat_key, facts)`."""


@dataclass(frozen=True, slots=True)
class Extractor:
    """Finds facts in what a person says. `accept` makes drafts of the texts that the rules let through."""

    options: MemoryOptions | None
    database: Database
    jobs: Jobs
    fence: Fence
    provider: Callable[[], Provider | None]
    counters: Counters
    clock: Callable[[], int]
    queue: Queue
    store: Facts
    changes: Changes
    accept: Callable[[Sequence[str]], list[Draft]]
    life_ms: int | None
    notify: Notify | None = None

    @property
    def _set(self) -> ExtractOptions:
        return (self.options.extraction if self.options else None) or ExtractOptions()

    @property
    def _resolves(self) -> bool:
        return bool(self.options and self.options.resolve)

    def _model(self) -> Provider | None:
        """Who extracts; the provider that needs no model cannot."""
        provider = self.provider()
        return None if provider is None or provider.name == EXTRACTIVE else provider

    # ------------------------------------------------------------------------------------ from a turn to a job

    async def stage(self, tx: Transaction | None, subject: str, said: str, replied: str, *, chat_key: str) -> None:
        """Let what a person said wait, with a job to look at it; nothing where extraction is off or their memory is paused."""
        if not (self.options and self.options.extraction and subject and said.strip() and self._model()):
            return
        if tx is None:
            async with self.database.transaction() as own:
                await self._stage(own, subject, said, replied, chat_key)
        else:
            await self._stage(tx, subject, said, replied, chat_key)

    async def _stage(self, tx: Transaction, subject: str, said: str, replied: str, chat_key: str) -> None:
        generation, paused = await self.queue.enter(tx, subject)
        if not paused:
            words_id = await self.queue.add(tx, subject, generation, said=said, replied=replied, chat_key=chat_key)
            await self.jobs.put(tx, JOB, subject, {"words": words_id}, wait_ms=self._set.debounce_ms)

    async def run(self, job: Job) -> None:
        """The job of a turn: extracts from all that its person said by then, unless they said more, whose job does it later."""
        provider = self._model()
        waiting = await self.queue.waiting(job.subject)
        mine = [words for words in waiting if words.id == job.payload.get("words")]
        if not mine or provider is None:
            return
        if waiting[-1].id != mine[0].id and self.clock() - waiting[0].at < LONGEST_WAIT_MS:
            return
        if await self._may_call(job.subject, waiting, job.marks):
            await self._extract(provider, job.subject, waiting, job.marks, counted=True)

    async def _may_call(self, subject: str, waiting: Sequence[Words], marks: Marks) -> bool:
        """Whether the day's bound allows one more call, which is counted then; if not, the words are dropped, not kept for another day."""
        bounds = {"most_calls": self._set.max_calls_per_day, "most_tokens": self._set.max_tokens_per_day}
        async with self.fence.transaction(marks) as tx:
            if await self.queue.book(tx, subject, **bounds):
                return True
            await self.queue.drop(tx, subject, waiting)
        self.counters.add("memory_over_budget")
        return False

    async def by_hand(self, subject: str, said: str, replied: str) -> list[str]:
        """One extraction at once; the facts added. Raises ModelError."""
        provider = self._model()
        if not subject or not said.strip() or provider is None:
            return []
        marks = await self.fence.mark(subject)
        async with self.database.transaction() as tx:
            generation, paused = await self.queue.enter(tx, subject)
        if paused:
            return []
        try:
            return await self._extract(provider, subject, [Words("", generation, said, replied, self.clock())], marks)
        except SubjectErased:
            self.counters.add("memory_discarded")
            return []

    # ------------------------------------------------------------------------------------ one extraction

    async def _extract(self, provider: Provider, subject: str, words: Sequence[Words], marks: Marks, *, counted: bool = False) -> list[str]:
        """The facts added. Where the person forgot something that was said in these words meanwhile, the others are looked at anew.

        A call counts before it is made, so that one that fails counts too; `counted`: the first one is.
        """
        while words:
            if not counted:
                await self._spend(subject, marks, calls=1)
            counted = False
            held = await self.store.read(subject) if self._resolves else []
            found, tokens = await self._ask(provider, subject, [one.said for one in words], held, marks)
            async with self.fence.transaction(marks) as tx:
                await self.queue.spend(tx, subject, tokens=tokens)
                left = await self.queue.take(tx, subject, words)
                if len(left) == len(words):
                    added = await self._take(tx, subject, words, found, held)
                    break
            words = left
        else:
            return []
        self.counters.add("memory_extracted", len(added))
        return added

    async def _spend(self, subject: str, marks: Marks, *, calls: int, tokens: int = 0) -> None:
        """Count what a call cost, unless its person was erased meanwhile: a count bears their name too."""
        async with self.fence.transaction(marks) as tx:
            await self.queue.spend(tx, subject, calls=calls, tokens=tokens)

    async def _take(self, tx: Transaction, subject: str, words: Sequence[Words], found: Found, held: Sequence[Fact]) -> list[str]:
        """Keep what was found, and tell of it, unless all was forgotten or the person paused meanwhile."""
        if not (found.facts or found.replacements):
            return []
        if not await self.queue.passes(tx, subject, max(one.generation for one in words)):
            self.counters.add("memory_discarded")
            return []
        added = await self._keep(tx, subject, found, held, most_new=self._set.max_facts_per_turn * len(words))
        if added and self.notify is not None and words[-1].chat_key:
            await self.notify(tx, subject, words[-1].chat_key, added)
        return added

    async def _keep(self, tx: Transaction, subject: str, found: Found, held: Sequence[Fact], *, most_new: int) -> list[str]:
        """Write what was found: replacements first, the old kept for as long as it can be brought back."""
        batch, added = uuid.uuid4().hex, []
        by_number = dict(enumerate_ids(held))
        for number, text in found.replacements[:most_new]:
            for draft in self.accept([text]):
                old = by_number.pop(number, None)
                if old is not None and normalise(old.text) != normalise(text):
                    added += await self._replace(tx, subject, batch, old, draft)
        drafts = self.accept([fact for fact in found.facts if self._wanted(fact)])
        outcome = await self.store.say(
            tx, subject, drafts, life_ms=self.life_ms, source="auto", evidence=batch, most_new=max(0, most_new - len(added))
        )
        for fact_id in outcome.new:
            await self.changes.added(tx, subject, batch, fact_id)
        return added + [draft.value for draft in outcome.new.values()]

    async def _replace(self, tx: Transaction, subject: str, batch: str, old: Fact, draft: Draft) -> list[str]:
        if not self._wanted(draft.value) or await self.store.find_id(tx, subject, old.id) is None:
            return []  # it left while the model was asked
        outcome = await self.store.say(tx, subject, [draft], life_ms=self.life_ms, source="auto", evidence=batch)
        for fact_id in (*outcome.new, *outcome.known):
            if fact_id != old.id:
                await self.changes.replaced(tx, subject, batch, old_id=old.id, fact_id=fact_id)
                await self.store.drop(tx, subject, old.id)
        return [new.value for new in outcome.new.values()]

    def _wanted(self, fact: str) -> bool:
        if self._set.filter is None:
            return True
        try:
            return self._set.filter(fact) is not False
        except Exception as error:  # noqa: BLE001 - the filter is someone else's, and it may not cost a person the other facts
            log.warning("the filter of extraction failed: %s", type(error).__name__)
            return False

    # ------------------------------------------------------------------------------------ the model

    async def _ask(self, provider: Provider, subject: str, said: Sequence[str], held: Sequence[Fact], marks: Marks) -> tuple[Found, int]:
        """What the model found, and the tokens of its last answer, which are still to be counted.

        An answer of another form is asked for once more, then dropped whole and counted.
        """
        shown = {number: fact.text for number, fact in enumerate_ids(held)} if self._resolves else None
        prompt = extraction.prompt(said, self._set, provider=provider.name, held=shown)
        answer, tokens = await self._complete(provider, prompt)
        found = self._parse(answer, shown)
        if isinstance(found, Malformed):
            await self._spend(subject, marks, calls=1, tokens=tokens)
            answer, tokens = await self._complete(provider, extraction.retry(prompt, answer, found))
            found = self._parse(answer, shown)
        if isinstance(found, Malformed):
            log.warning("an extraction was dropped: %s", found.reason)
            self.counters.add("memory_malformed")
            return Found(), tokens
        own = " ".join(said)
        facts = tuple(map(extraction.without_subject, found.facts))
        replacements = tuple((number, extraction.without_subject(fact)) for number, fact in found.replacements)
        return Found(tuple(f for f in facts if not shown or not evidence.is_echo(f, own, shown.values())), replacements), tokens

    @staticmethod
    def _parse(answer: str, shown: dict[str, str] | None) -> Found | Malformed:
        if shown is not None:
            return extraction.parse_replacing(answer, shown)
        plain = extraction.parse(answer)
        return plain if isinstance(plain, Malformed) else Found(tuple(plain))

    @staticmethod
    async def _complete(provider: Provider, prompt: Prompt) -> tuple[str, int]:
        """What the model said, and the tokens of it; they are estimated where the server tells none."""
        try:
            answer = await provider.complete(prompt)
        except ModelError as error:
            if type(error) not in (ModelError, ModelRefused):  # it cannot be had now: the words wait for a later try
                raise
            return "", 0  # it was there, and said nothing: that is an answer of another form
        used = answer.usage.prompt_tokens + answer.usage.completion_tokens
        return answer.text, used or extraction.estimated_tokens(prompt, answer.text)


def enumerate_ids(held: Sequence[Fact]) -> list[tuple[str, Fact]]:
    """Facts with the ids that a model is shown: they mean something in this one call, and for this one person, only."""
    return [(f"m{number}", fact) for number, fact in enumerate(held, 1)]
