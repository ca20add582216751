"""plugins/ai/retrieval.py"""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from bot import Counters, Passage, RagError, RagOptions
from plugins.ai import retrieval
from plugins.ai.retrieval import Bounded, Several


class Finds:
    """A retriever that gives what it was made with, and keeps how it was asked."""

    def __init__(self, found: Any) -> None:
        self.found = found
        self.asked: list[dict[str, Any]] = []

    async def retrieve(self, query: str, **options: Any) -> Any:
        """What it was made with; an exception is raised."""
        self.asked.append(options)
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def named(*names: str) -> list[Passage]:
    return [Passage(name) for name in names]


async def test_options_that_are_not_set_are_not_passed() -> None:
    """A retriever without min_score is never asked for it."""
    finds = Finds(named("a"))

    await retrieval.passages(RagOptions(retriever=finds), "q")
    await retrieval.passages(RagOptions(retriever=finds, top_k=2, min_score=0.0), "q")

    assert finds.asked == [{}, {"top_k": 2, "min_score": 0.0}]


@pytest.mark.parametrize(
    ("found", "texts"),
    [
        ([SimpleNamespace(text="a", citation="c", other=1)], ["a"]),
        (None, []),
        (named("a", "  ", "\n", "b"), ["a", "b"]),
        ((Passage(str(n)) for n in range(2)), ["0", "1"]),
    ],
)
async def test_anything_with_a_text_is_a_passage(found: Any, texts: list[str]) -> None:
    """A retriever of someone's own need not know our class; what has no words is left out."""
    passages = await retrieval.passages(RagOptions(retriever=Finds(found)), "q")

    assert [p.text for p in passages] == texts


# ---------------------------------------------------------------------------------------------- time-outs


async def test_what_takes_too_long_is_left_behind() -> None:
    """Work that outlives its time is given up then, with a counter, even where it swallows cancellation."""
    counters, ended = Counters(), asyncio.Event()

    async def stubborn() -> list[Passage]:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await ended.wait()
        return named("late")

    started = time.monotonic()
    work = Bounded("retrieval", stubborn(), seconds=0.05, counters=counters)
    result = await work.result()
    work.cancel()

    assert (result, counters.snapshot()) == ([], {"retrieval_timeout": 1})
    assert time.monotonic() - started < 1
    ended.set()
    await asyncio.sleep(0)


@pytest.mark.parametrize("error", [ValueError("secret text"), RagError("LOAD_FAILED", "no"), asyncio.CancelledError()])
async def test_what_fails_is_an_empty_result(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is raised, the turn goes on; the log has the kind of it, not its words."""
    counters = Counters()

    async def failing() -> list[Passage]:
        raise error

    result = await Bounded("retrieval", failing(), seconds=1.0, counters=counters).result()

    assert (result, counters.snapshot()) == ([], {"retrieval_failed": 1})
    assert "retrieval" in caplog.text
    assert "secret text" not in caplog.text


async def test_no_limit() -> None:
    """`timeout_ms=0` waits for as long as it takes."""

    async def slow() -> list[Passage]:
        await asyncio.sleep(0.05)
        return named("a")

    assert await Bounded("retrieval", slow(), seconds=None, counters=Counters()).result() == named("a")


# ---------------------------------------------------------------------------------------------- several retrievers


async def test_the_best_of_each_come_first() -> None:
    """Their scores cannot be compared, so they take turns."""
    several = Several({"documents": Finds(named("d1", "d2", "d3")), "stock": Finds(named("s1"))}, Counters())

    assert await several.retrieve("q") == named("d1", "s1", "d2", "d3")


async def test_the_failure_of_one_leaves_the_others() -> None:
    """A plugin that fails costs its own passages alone, and is counted."""
    counters = Counters()
    several = Several({"documents": Finds(named("d1")), "stock": Finds(ValueError("no"))}, counters)

    assert await several.retrieve("q", top_k=3) == named("d1")
    assert counters.snapshot() == {"retriever_failed": 1}


async def test_where_all_fail_it_is_a_failure() -> None:
    """The turn's own boundary counts that."""
    with pytest.raises(ValueError, match="no"):
        await Several({"a": Finds(ValueError("no"))}, Counters()).retrieve("q")


async def test_each_is_warmed_up() -> None:
    """Those that have a warm-up are warmed up, although one fails; the failure is told."""
    warmed = []

    class Warm(Finds):
        async def warmup(self) -> None:
            warmed.append(self.found)
            if self.found == "broken":
                raise RagError("LOAD_FAILED", "no")

    with pytest.raises(RagError):
        await Several({"a": Warm("broken"), "b": Finds([]), "c": Warm("well")}, Counters()).warmup()

    assert warmed == ["broken", "well"]
