"""One question, one turn: gather, prompt, answer, keep. Everything that waits is here; what is decided is decided in pure functions."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from bot import (
    Assistant,
    ContextTooLong,
    Counters,
    Deliver,
    Fact,
    Marks,
    Message,
    ModelError,
    Passage,
    Prompt,
    RagOptions,
    Recall,
    Reply,
    Transaction,
    Update,
)
from plugins.ai import citations, figures, prompt, retrieval
from plugins.ai.answering import Model, Stop
from plugins.ai.history import Also, History, Opening
from plugins.ai.rewriting import rewriter
from plugins.ai.showing import Showing, Style
from plugins.ai.store import Turn
from plugins.ai.stream import Outcome
from plugins.ai.tools import TurnContext

log = logging.getLogger(__name__)

LEAST_BUDGET = 256


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, by whom, where; the fields are the arguments of `reply_in_chat_stream`. A `lang` of "" is still to be found out."""

    chat_key: str
    text: str
    user_id: str | None = None
    is_group: bool = False
    lang: str = "es"
    quoted: str | None = None
    evidence: str | None = None
    turn_id: str | None = None
    deliver: Deliver | None = None
    context: object | None = None
    message: str | None = None
    revises: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What was gathered for a turn."""

    facts: Sequence[Fact] = ()
    passages: Sequence[Passage] = ()


@dataclass(slots=True)
class Turns:
    """All that turns need. `budget` is in estimated tokens, and shrinks to what the model has said that it takes."""

    model: Model
    history: History
    recall: Recall | None
    rag: RagOptions | None
    counters: Counters
    clock: Callable[[], int]
    translate: Callable[[str, str], str]
    persona: str | None = None
    budget: int = prompt.MAX_TOKENS
    memory_seconds: float = retrieval.MEMORY_SECONDS
    language_for: Callable[[str | None], Awaitable[str]] | None = None
    order: "Order" = field(default_factory=lambda: Order())

    async def run(self, ai: Assistant, question: Question, stop: Stop, outcome: Outcome) -> AsyncGenerator[str, None]:
        """The fragments of the reply; `outcome.reply` is there once the turn is kept. Raises ModelError, SubjectErased, StorageError."""
        if not question.lang and self.language_for is not None:
            question = replace(question, lang=await self.language_for(question.user_id))
        async with self.order.of(question.chat_key):
            revised = question.message if question.revises else None
            opening = await self.history.open(question.chat_key, question.user_id, question.turn_id, revised, _marks(question.context))
            found = await self._gather(question, opening)
            if opening.stored is not None:
                outcome.reply = _again(opening.stored, found)
                yield outcome.reply.text
                return
            context = question.context or self._context(ai, question, opening)
            for again in (False, True):
                asked = self._prompt(question, opening, found)
                showing = Showing(self._style(asked.passages, question.lang))
                try:
                    async with self.model.answer(asked, context, stop) as fragments:
                        async for fragment in fragments:
                            if shown := showing.add(fragment):
                                yield shown
                    break
                except ContextTooLong as error:
                    if again or showing.answer:
                        raise
                    self._cut(asked, error)
            if not showing.answer.strip():
                if not stop.requested:
                    raise ModelError(f"{self.model.provider.name}: the answer is empty")
                outcome.reply = Reply("", "")
                return
            rest = showing.rest()
            reply = self._reply(question, found, showing)
            await self._keep(question, opening, found, reply)
            outcome.reply = reply
            for last in (rest, reply.text[len(showing.body) :]):
                if last:
                    yield last

    # ------------------------------------------------------------------------------------ gather

    async def _gather(self, question: Question, opening: Opening) -> Found:
        """Facts and passages side by side, each with its own time; both may come back empty."""
        subjects = retrieval.subjects(self.recall, question.chat_key, question.user_id, is_group=question.is_group)
        remembering = finding = None
        if self.recall is not None and subjects:
            facts = retrieval.facts(self.recall, subjects, question.text)
            remembering = retrieval.Bounded("memory", facts, seconds=self.memory_seconds, counters=self.counters)
        if self.rag is not None and (query := question.text.strip() or (question.quoted or "").strip()):
            seconds = self.rag.timeout_ms / 1000 or None
            work = retrieval.passages(self.rag, query, **self._before(self.rag, question, opening))
            finding = retrieval.Bounded("retrieval", work, seconds=seconds, counters=self.counters)
        try:
            return Found(await remembering.result() if remembering else (), await finding.result() if finding else ())
        finally:
            for bounded in filter(None, (remembering, finding)):
                bounded.cancel()

    def _before(self, rag: RagOptions, question: Question, opening: Opening) -> dict[str, Any]:
        """What the conversation says about the question. A turn that is given again stands in its own window, and asks no model."""
        messages = opening.window.messages
        if opening.stored is not None:
            last = max((at for at, said in enumerate(messages) if said.role == "user" and said.content == question.text), default=None)
            return {"previous": retrieval.asked_before(messages[:last])}
        rewrite = rewriter(rag, self.model.provider, messages, lang=question.lang, counters=self.counters)
        return {"previous": retrieval.asked_before(messages), "rewrite": rewrite}

    # ------------------------------------------------------------------------------------ answer

    def _cut(self, asked: Prompt, error: ContextTooLong) -> None:
        """A prompt was too long: this one, which is sent once more, and all after it are cut down."""
        self.budget = _smaller(min(self.budget, prompt.size(asked)), error)
        log.warning("the prompt was too long: it is cut down to %d estimated tokens, from now on", self.budget)
        self.counters.add("prompt_cut")

    def _prompt(self, question: Question, opening: Opening, found: Found) -> Prompt:
        personal = [fact.text for fact in found.facts if fact.subject != question.chat_key or not question.is_group]
        rooms = [fact.text for fact in found.facts if fact.subject == question.chat_key and question.is_group]
        return prompt.build(
            question.text,
            window=opening.window,
            evidence=prompt.Evidence(personal, rooms, found.passages, question.quoted),
            lang=question.lang,
            persona=self.persona,
            instructions=self.rag.instructions if self.rag else None,
            tools=[tool.spec for tool in self.model.tools.values()],
            budget=self.budget,
        )

    def _context(self, ai: Assistant, question: Question, opening: Opening) -> TurnContext:
        update = Update(
            id=question.turn_id or "",
            transport="",
            chat_key=question.chat_key,
            sender=question.user_id,
            text=question.text,
            is_group=question.is_group,
            quoted=question.quoted,
            evidence=question.evidence,
        )
        return TurnContext(ai, update, question.lang, self.recall, opening.marks)

    def _style(self, passages: Sequence[Passage], lang: str) -> Style:
        def gettext(message: str) -> str:
            return self.translate(lang, message)

        return Style(passages, gettext, numbered=self.rag is not None, own_line=bool(self.rag and self.rag.append_sources))

    # ------------------------------------------------------------------------------------ reply

    def _reply(self, question: Question, found: Found, showing: Showing) -> Reply:
        passages = list(showing.style.passages)
        style = showing.style
        # a model may name its passages nowhere but in a line of its own, which is not shown
        marks = citations.find(showing.body, len(passages))
        cited = citations.cited(marks, passages) or citations.cited(citations.find(showing.answer, len(passages)), passages)
        wanted = style.own_line and passages and not citations.only_sources(showing.body, passages, style.gettext)
        line = self._sources(passages, cited, style) if wanted else ""
        facts = [fact.text for fact in found.facts]
        if doubtful := figures.unsupported(showing.body, marks, passages, [question.text, question.quoted or "", *facts]):
            log.info("%d figures of an answer stand in none of the passages that it cites for them", len(doubtful))
            self.counters.add("citation_unsupported", len(doubtful))
        return Reply(showing.body + line, showing.answer, citations=passages, cited=cited, facts=facts)

    def _sources(self, passages: Sequence[Passage], cited: Sequence[tuple[int, Passage]], style: Style) -> str:
        line = ""
        own = self.rag.append_sources if self.rag else False
        try:
            line = own(passages, cited) if callable(own) else citations.line(passages, cited, style.gettext)
            if not isinstance(line, str):
                raise TypeError(f"append_sources returned {type(line).__name__}, not str")
        except Exception as error:  # noqa: BLE001 - a function of someone else's, which may not cost the reply
            log.warning("append_sources failed, the default line is used: %s", type(error).__name__)
            line = citations.line(passages, cited, style.gettext)
        return line if not line.strip() or line.startswith("\n") else f"\n\n{line}"

    # ------------------------------------------------------------------------------------ keep

    async def _keep(self, question: Question, opening: Opening, found: Found, reply: Reply) -> None:
        """Both messages, what is to be extracted and what is to be delivered: together, behind the fence, or not at all."""
        evidence = question.text if question.evidence is None else question.evidence
        also: list[Also] = []
        staged = self.recall if question.user_id and evidence.strip() else None
        private = "" if question.is_group else question.chat_key
        alone = not opening.marks
        if staged is not None and not alone:
            also.append(lambda tx: staged.stage_extraction(tx, question.user_id or "", evidence, reply.answer, chat_key=private))
        if question.deliver is not None:
            also.append(_delivering(question.deliver, reply))
        now = self.clock()
        kept = Turn(
            Message("user", question.text, now, question.user_id),
            Message("assistant", reply.answer, now, question.user_id),
            _storable(reply, found),
            question.turn_id,
            question.message,
            question.revises,
        )
        await self.history.keep(opening, kept, also)
        if staged is not None and alone:
            await staged.stage_extraction(None, question.user_id or "", evidence, reply.answer, chat_key=private)


def _marks(context: object) -> Marks | None:
    """The marks that a Marked context bears; None where it has none."""
    return getattr(context, "marks", None) or None


def _delivering(deliver: Deliver, reply: Reply) -> Also:
    async def also(tx: Transaction) -> None:
        await deliver(tx, reply)

    return also


def _smaller(spent: int, error: ContextTooLong) -> int:
    """The budget after a prompt of `spent` estimated tokens was too long: by what the server told, else half."""
    told = spent * 9 * error.limit // (10 * error.used) if error.limit and error.used else error.limit
    return max(LEAST_BUDGET, min(told or spent // 2, spent * 9 // 10))


class Order:
    """Lets the turns of one chat follow each other; other chats go on. A chat that nobody waits for takes no room."""

    def __init__(self) -> None:
        self._chats: dict[str, tuple[asyncio.Lock, int]] = {}

    def of(self, chat_key: str) -> "_Place":
        """Held by one turn of a chat at a time, in the order in which they came."""
        return _Place(self._chats, chat_key)


class _Place:
    """The place of a turn in the order of its chat: a class, since every turn has one and a generator costs several times as much."""

    def __init__(self, chats: dict[str, tuple[asyncio.Lock, int]], chat_key: str) -> None:
        self._chats = chats
        self._chat_key = chat_key

    async def __aenter__(self) -> None:
        lock, waiting = self._chats.get(self._chat_key) or (asyncio.Lock(), 0)
        self._chats[self._chat_key] = (lock, waiting + 1)
        try:
            await lock.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._leave().release()

    def _leave(self) -> asyncio.Lock:
        lock, waiting = self._chats[self._chat_key]
        if waiting == 1:
            del self._chats[self._chat_key]
        else:
            self._chats[self._chat_key] = (lock, waiting - 1)
        return lock


# ---------------------------------------------------------------------------------------------- a reply that is given again


def _storable(reply: Reply, found: Found) -> dict[str, Any]:
    """A reply as it is stored: without the texts of facts and passages, so that what is forgotten or removed leaves no copy here."""
    return {
        "text": reply.text,
        "answer": reply.answer,
        "facts": [fact.id for fact in found.facts],
        "passages": [{"digest": _digest(p.text), "source": p.source, "citation": p.citation, "id": p.id} for p in reply.citations],
        "cited": [n for n, _ in reply.cited],
    }


def _again(stored: Mapping[str, Any], found: Found) -> Reply:
    """The reply of a turn that was answered before. Facts and passages that are no longer there are missing, or have no text."""
    texts = {fact.id: fact.text for fact in found.facts}
    there = {_digest(passage.text): passage for passage in found.passages}
    passages = [there.get(p["digest"]) or Passage("", p["source"], p["citation"], id=p["id"]) for p in stored["passages"]]
    facts = [texts[fact_id] for fact_id in stored["facts"] if fact_id in texts]
    cited = [(n, passages[n - 1]) for n in stored["cited"]]
    return Reply(stored["text"], stored["answer"], citations=passages, cited=cited, facts=facts)


@lru_cache(maxsize=1024)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
