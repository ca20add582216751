"""bot/evaluation/measures.py"""

import pytest

from bot import Passage
from bot.evaluation import measures
from bot.evaluation.measures import Measures, Result
from bot.evaluation.questions import Asked

RIGHT, WRONG = Passage("sí", source="a.md", score=0.7), Passage("no", source="b.md", score=0.6)
ASKED, NONE = Asked(1, "?", ("a.md",)), Asked(2, "?")


def test_the_figures() -> None:
    """Ranks count from 1; a question without an answer counts for abstention alone."""
    results = [
        Result(ASKED, (RIGHT, WRONG)),
        Result(ASKED, (WRONG, RIGHT)),
        Result(ASKED, (WRONG,)),
        Result(ASKED, ()),
        Result(NONE, ()),
        Result(NONE, (WRONG,)),
    ]

    found = measures.measure(results)

    assert found == Measures(answerable=4, unanswerable=2, hits=2, first=1, abstained=1, mrr=(1 + 1 / 2) / 4)
    assert [result.rank for result in results] == [1, 2, 0, 0, 0, 0]
    assert [result.missed for result in results] == [False, False, True, True, False, True]


def test_nothing_asked_nothing_divided() -> None:
    """No question of a kind is no error."""
    assert measures.measure([]) == Measures(0, 0, 0, 0, 0, 0.0)
    assert measures.curve([], 3)[0].hit_rate is None
    assert measures.by_depth([]) == [0.0] * 10


def test_the_curve_says_what_each_min_score_gives() -> None:
    """Passages below it leave, and those after them move up among the first `top_k`."""
    results = [Result(ASKED, (), (WRONG, RIGHT)), Result(NONE, (), (WRONG,))]

    points = {point.min_score: (point.hit_rate, point.abstention) for point in measures.curve(results, top_k=1)}

    assert points[0.0] == (0.0, 0.0)
    assert points[0.6] == (0.0, 0.0)
    assert points[0.62] == (1.0, 1.0)
    assert points[0.72] == (0.0, 1.0)


def test_a_better_min_score_is_told_and_no_other() -> None:
    """The lowest of the best, where it beats what is in force; with one kind of question there is nothing to weigh."""
    results = [Result(ASKED, (WRONG,), (WRONG, RIGHT)), Result(NONE, (WRONG,), (WRONG,))]
    good = [Result(ASKED, (RIGHT,), (RIGHT,)), Result(NONE, (), ())]

    best = measures.best(measures.curve(results, 1), measures.measure(results))

    assert best is not None
    assert best.min_score == 0.62
    assert measures.best(measures.curve(good, 1), measures.measure(good)) is None
    assert measures.best(measures.curve(results[:1], 1), measures.measure(results[:1])) is None


def test_the_depth_counts_among_everything() -> None:
    """How many passages it would take."""
    results = [Result(ASKED, (), (WRONG, WRONG, RIGHT)), Result(ASKED, (), (RIGHT,)), Result(NONE, (), (RIGHT,))]

    assert measures.by_depth(results, deepest=4) == [0.5, 0.5, 1.0, 1.0]


class Recorded:
    def __init__(self) -> None:
        self.calls: list[dict[str, object]] = []

    async def retrieve(self, query: str, **options: object) -> list[Passage]:
        self.calls.append(options)
        return [RIGHT]


@pytest.mark.parametrize(("chosen", "passed"), [({}, {}), ({"top_k": 5, "min_score": 0.2}, {"top_k": 5, "min_score": 0.2})])
async def test_it_asks_as_a_turn_does(chosen: dict[str, float], passed: dict[str, float]) -> None:
    """Options that are not set are not passed; progress is told."""
    library, said = Recorded(), list[str]()

    async def progress(line: str) -> None:
        said.append(line)

    results = await measures.ask(library, [ASKED, NONE], progress=progress, **chosen)  # type: ignore[arg-type]

    assert library.calls == [passed, {"top_k": 50, "min_score": 0.0}] * 2
    assert [result.found for result in results] == [(RIGHT,), (RIGHT,)]
    assert said == ["1/2", "2/2"]
