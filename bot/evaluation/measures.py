"""What was found for each question, and the figures that follow from it: hit rate, MRR, abstention, and how they move with min_score."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bot.evaluation.questions import Asked
from bot.values import Passage

DEPTH = 50  # passages that are looked at to see how the figures move
STEPS = 50


class Finds(Protocol):
    """Whatever finds passages: the bot's library."""

    async def retrieve(self, query: str, *, top_k: int | None = None, min_score: float | None = None) -> Sequence[Passage]: ...


@dataclass(frozen=True, slots=True)
class Result:
    """`found` is what an answer would be made from; `all` is the best of everything, whether it fits the question or not."""

    asked: Asked
    found: tuple[Passage, ...]
    all: tuple[Passage, ...] = ()

    @property
    def rank(self) -> int:
        """The place of the first right passage among those found, from 1; 0 where there is none."""
        return next((n for n, passage in enumerate(self.found, start=1) if self.asked.fits(passage)), 0)

    @property
    def missed(self) -> bool:
        """Whether an answer could not be right: its passage is not there, or there is one where none should be."""
        return self.rank == 0 if self.asked.answerable else bool(self.found)


@dataclass(frozen=True, slots=True)
class Measures:
    """Counts of questions. `answerable` have an answer: for `hits` of them it was found, for `first` at once; for `abstained` of the
    `unanswerable` nothing was. `mrr` is the mean of 1/rank over the answerable.
    """

    answerable: int
    unanswerable: int
    hits: int
    first: int
    abstained: int
    mrr: float

    @property
    def balance(self) -> float:
        """The mean of the hit rate and of abstention; the one of them that there is."""
        return _balance(share(self.hits, self.answerable), share(self.abstained, self.unanswerable))


@dataclass(frozen=True, slots=True)
class Point:
    """What a min_score would give: shares from 0 to 1; None where no question asks for it."""

    min_score: float
    hit_rate: float | None
    abstention: float | None

    @property
    def balance(self) -> float:
        """As of `Measures`."""
        return _balance(self.hit_rate, self.abstention)


async def ask(
    library: Finds,
    questions: Sequence[Asked],
    *,
    top_k: int | None = None,
    min_score: float | None = None,
    progress: Callable[[str], Awaitable[None]] | None = None,
) -> list[Result]:
    """Ask each question as a turn would (options that are None are not passed), and once more for the best of everything."""
    chosen: dict[str, Any] = {name: value for name, value in (("top_k", top_k), ("min_score", min_score)) if value is not None}
    results = []
    for number, asked in enumerate(questions, start=1):
        found = await library.retrieve(asked.question, **chosen)
        everything = await library.retrieve(asked.question, top_k=max(DEPTH, top_k or 0), min_score=0.0)
        results.append(Result(asked, tuple(found), tuple(everything)))
        if progress:
            await progress(f"{number}/{len(questions)}")
    return results


def measure(results: Sequence[Result]) -> Measures:
    """The figures of what was found."""
    answerable = [result for result in results if result.asked.answerable]
    others = [result for result in results if not result.asked.answerable]
    ranks = [result.rank for result in answerable]
    return Measures(
        answerable=len(answerable),
        unanswerable=len(others),
        hits=sum(rank > 0 for rank in ranks),
        first=ranks.count(1),
        abstained=sum(not result.found for result in others),
        mrr=sum(1 / rank for rank in ranks if rank) / len(ranks) if ranks else 0.0,
    )


def by_depth(results: Sequence[Result], deepest: int = 10) -> list[float]:
    """The hit rate among the first 1, 2, … passages, whether they fit the question or not."""
    answerable = [result for result in results if result.asked.answerable]
    ranks = [Result(result.asked, result.all).rank for result in answerable]
    return [share(sum(0 < rank <= depth for rank in ranks), len(ranks)) or 0.0 for depth in range(1, deepest + 1)]


def curve(results: Sequence[Result], top_k: int) -> list[Point]:
    """What each min_score from 0 to 1 would give, with `top_k` passages a question."""
    judged = [[(passage.score or 0.0, result.asked.fits(passage)) for passage in result.all] for result in results]
    answerable = [passages for passages, result in zip(judged, results, strict=True) if result.asked.answerable]
    others = [passages for passages, result in zip(judged, results, strict=True) if not result.asked.answerable]
    points = []
    for least in (step / STEPS for step in range(STEPS + 1)):
        hits = sum(any(right for _, right in _left(passages, least)[:top_k]) for passages in answerable)
        silent = sum(not _left(passages, least) for passages in others)
        points.append(Point(least, share(hits, len(answerable)), share(silent, len(others))))
    return points


def _left(passages: Sequence[tuple[float, bool]], least: float) -> list[tuple[float, bool]]:
    return [passage for passage in passages if passage[0] >= least]


def best(points: Sequence[Point], now: Measures) -> Point | None:
    """The min_score that serves both kinds of question best, where that is better than what is set now; else None."""
    if not now.answerable or not now.unanswerable or not points:
        return None
    top = max(points, key=lambda point: (point.balance, -point.min_score))
    return top if top.balance > now.balance + 1e-9 else None


def share(part: int, whole: int) -> float | None:
    """A share from 0 to 1; None of nothing."""
    return part / whole if whole else None


def _balance(*shares: float | None) -> float:
    there = [one for one in shares if one is not None]
    return sum(there) / len(there) if there else 0.0
