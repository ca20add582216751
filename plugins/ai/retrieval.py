"""Facts and passages, side by side: neither can fail a reply or hold it up."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from bot import BotError, Counters, Fact, Message, Passage, RagOptions, Recall, Retriever
from plugins.ai.rewriting import Rewrite

log = logging.getLogger(__name__)
T = TypeVar("T")

MEMORY_SECONDS = 2.0
ASKED_BEFORE = 2  # questions that a retriever is told of beside the one that is asked


class Bounded:
    """Work that is given up after some seconds: its failure is a log line and a counter, and an empty result."""

    def __init__(self, name: str, work: Awaitable[Sequence[T]], *, seconds: float | None, counters: Counters) -> None:
        self._name = name
        self._counters = counters
        self._task: asyncio.Future[Sequence[Any]] = asyncio.ensure_future(work)
        self._until = None if seconds is None else asyncio.get_running_loop().time() + seconds

    async def result(self) -> list[Any]:
        """What the work gave, or an empty list. What outlives its time is cancelled and not waited for."""
        if not self._task.done():
            await asyncio.sleep(0)  # what need not wait for anything is done then, without a timer
        if not self._task.done():
            left = None if self._until is None else max(0.0, self._until - asyncio.get_running_loop().time())
            await asyncio.wait({self._task}, timeout=left)
        if not self._task.done():
            return self._failed("timeout", "gave nothing in time: it is cancelled, and the turn goes on without it")
        if self._task.cancelled():
            return self._failed("failed", "was cancelled from within: the turn goes on without it")
        if error := self._task.exception():
            known = isinstance(error, BotError)
            log.warning("%s failed: %s", self._name, f"{getattr(error, 'code', '')} {error}" if known else type(error).__name__)
            self._counters.add(f"{self._name}_failed")
            return []
        return list(self._task.result())

    def cancel(self) -> None:
        """End the work if it is still under way; what it raises is looked at, so that nothing reports it as lost."""
        if self._task.done():
            _ = self._task.cancelled() or self._task.exception()
            return
        self._task.cancel()
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    def _failed(self, how: str, why: str) -> list[Any]:
        log.warning("%s %s", self._name, why)
        self._counters.add(f"{self._name}_{how}")
        return []


async def facts(recall: Recall, subjects: Sequence[str], question: str) -> list[Fact]:
    """The facts of these subjects for a prompt: all, or the most relevant where there are too many."""
    return list(await recall.relevant(subjects, question))


def subjects(recall: Recall | None, chat_key: str, user_id: str | None, *, is_group: bool) -> list[str]:
    """Whose facts may stand in the prompt: in a group, which everyone reads, the room's, and the person's where that was chosen."""
    options = recall.options if recall is not None else None
    if options is None or not options.inject or not user_id:
        return []
    if not is_group:
        return [user_id]
    return [user_id, chat_key] if options.inject_in_groups else [chat_key]


def asked_before(messages: Sequence[Message]) -> list[str]:
    """The last questions of a conversation, the latest first."""
    return [message.content for message in reversed(messages) if message.role == "user"][:ASKED_BEFORE]


def takes_previous(retriever: Retriever) -> bool:
    """Whether a retriever understands a follow-up by `previous`: one of somebody's own need not know of it."""
    return _takes_previous(getattr(retriever.retrieve, "__func__", retriever.retrieve))


@lru_cache(maxsize=64)
def _takes_previous(retrieve: Callable[..., Any]) -> bool:
    try:
        return "previous" in inspect.signature(retrieve).parameters
    except (TypeError, ValueError):  # written in another language than Python
        return False


async def passages(options: RagOptions, query: str, *, previous: Sequence[str] = (), rewrite: Rewrite | None = None) -> list[Passage]:
    """What the retriever finds, as passages; options that are not set are not passed. Raises whatever the retriever raises.

    `previous` are the questions before, the latest first; `rewrite` says a question whole.
    """
    chosen: dict[str, Any] = {name: value for name in ("top_k", "min_score") if (value := getattr(options, name)) is not None}
    if rewrite is not None and (whole := await rewrite(query)):
        query, previous = whole, [query]
    if previous and takes_previous(options.retriever):
        chosen["previous"] = previous
    found = await options.retriever.retrieve(query, **chosen)
    return [passage for each in found or () if (passage := _passage(each)).text.strip()]


_FIELDS = ("source", "citation", "score", "section", "id", "doc_id", "index")


def _passage(found: Any) -> Passage:
    """A passage from anything that has a text: a retriever of someone else's need not know our class."""
    if isinstance(found, Passage):
        return found
    named: dict[str, Any] = {name: getattr(found, name, None) for name in _FIELDS}
    return Passage(str(found.text), **named)


class Several:
    """The bot's own documents and the retrievers that plugins add, asked side by side; the failure of one leaves the others' passages."""

    def __init__(self, retrievers: Mapping[str, Retriever], counters: Counters) -> None:
        self._retrievers = retrievers
        self._counters = counters

    async def retrieve(
        self, query: str, *, top_k: int | None = None, min_score: float | None = None, previous: Sequence[str] = ()
    ) -> list[Passage]:
        """At most `top_k` passages of each, taken in turns: the best of every retriever first. Raises only where every one failed."""
        before: dict[str, Any] = {"previous": previous} if previous else {}
        options: dict[str, Any] = {name: value for name, value in (("top_k", top_k), ("min_score", min_score)) if value is not None}
        asked = [
            self._ask(each.retrieve(query, **options, **(before if takes_previous(each) else {}))) for each in self._retrievers.values()
        ]
        answers = await asyncio.gather(*asked)
        for name, answer in zip(self._retrievers, answers, strict=True):
            if isinstance(answer, Exception):
                log.warning("retriever %s failed: %s", name, getattr(answer, "code", type(answer).__name__))
                self._counters.add("retriever_failed")
        good = [answer for answer in answers if not isinstance(answer, Exception)]
        if not good and answers:
            raise next(answer for answer in answers if isinstance(answer, Exception))
        return list(_in_turns(good))

    async def warmup(self) -> None:
        """Warm up each that can be. Raises the first failure, after all of them were tried."""
        warm: list[Callable[[], Awaitable[Any]]] = [w for r in self._retrievers.values() if (w := getattr(r, "warmup", None))]
        failures = [answer for answer in await asyncio.gather(*(self._ask(each()) for each in warm)) if isinstance(answer, Exception)]
        if failures:
            raise failures[0]

    @staticmethod
    async def _ask(work: Awaitable[T]) -> T | Exception:
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - a retriever is someone else's code and may raise anything
            return error


def _in_turns(answers: Sequence[Sequence[Passage]]) -> list[Passage]:
    """The first of each, then the second of each, and so on."""
    longest = max(map(len, answers), default=0)
    return [answer[rank] for rank in range(longest) for answer in answers if rank < len(answer)]
