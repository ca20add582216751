"""bot/evaluation/report.py and plot.py"""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

from bot import Passage
from bot.evaluation import report
from bot.evaluation.measures import Result
from bot.evaluation.questions import NO_JSON, Asked, Fault
from bot.evaluation.report import Evaluation

HOSTILE = "<script>alert('x')</script> & \"más\""
RIGHT, WRONG = Passage("sí", citation="a.md", source="a.md", score=0.7), Passage("no", citation=HOSTILE, score=0.6)
RESULTS = [
    Result(Asked(1, "¿Sí?", ("a.md",)), (RIGHT,), (RIGHT, WRONG)),
    Result(Asked(2, HOSTILE, ("a.md",)), (WRONG,), (WRONG,)),
    Result(Asked(3, "¿Nada?"), (WRONG,), (WRONG,)),
]
EVALUATION = Evaluation(RESULTS, [Fault(4, NO_JSON)], 3)


def english(message: str) -> str:
    return message


class Strict(HTMLParser):
    """Fails on a tag that closes nothing, and keeps what could reach for something else."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.reaching: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.reaching += [(name, value) for name, value in attrs if name in ("src", "href", "onload") or tag in ("script", "link", "img")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone() -> None:
    """Whole, closed, with nothing that reaches out, and what strangers wrote is text in it."""
    page = report.page(EVALUATION, english, language="es", min_score=0.3)

    parser = Strict()
    parser.feed(page)
    assert parser.open == []
    assert parser.reaching == []
    assert "<script" not in page
    assert "url(" not in page
    assert '<html lang="es">' in page
    assert "it is no JSON object" in page


def test_the_plots_are_pictures() -> None:
    """Each is well-formed SVG with a title; a line for each kind of question, a bar for each depth, a mark at what is in force."""
    lines, bars = re.findall(r"<svg.*?</svg>", report.page(EVALUATION, english, language="en", min_score=0.3), re.S)

    drawn = [ElementTree.fromstring(svg) for svg in (lines, bars)]
    space = "{http://www.w3.org/2000/svg}"
    assert [svg.findtext(f"{space}title") for svg in drawn] == [
        "What another BOT_MIN_SCORE would give",
        "Hit rate by the number of passages",
    ]
    assert [len(line.attrib["points"].split()) for line in drawn[0].iter(f"{space}polyline")] == [51, 51]
    assert len(list(drawn[1].iter(f"{space}rect"))) == 10
    assert lines.count('class="mark"') == 1


def test_the_terminal_names_each_miss() -> None:
    """With its line, what was expected, and what came instead; then what another min_score would give."""
    said = "\n".join(report.lines(EVALUATION, english))

    assert "Hit rate (the right passage is among the first 3): 1 of 2 (50%)" in said
    assert "Abstention (nothing found where there is no answer): 0 of 1 (0%)" in said
    assert f"line 2: {HOSTILE}\n    expected: a.md\n    found: {HOSTILE} (0.60)" in said
    assert f"line 3: ¿Nada?\n    expected: nothing\n    found: {HOSTILE} (0.60)" in said
    assert "line 1" not in said
    assert "BOT_MIN_SCORE=0.62" in said


def test_many_misses_are_cut_in_a_terminal_alone() -> None:
    """The page has all of them."""
    many = Evaluation([Result(Asked(n, "¿?", ("a.md",)), ()) for n in range(1, 61)], [], 3)

    assert report.lines(many, english)[-1] == "… and 10 more: --report writes all of them"
    assert report.page(many, english, language="en").count('<tr class="missed">') == 120
