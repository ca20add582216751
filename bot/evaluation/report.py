"""What is said about an evaluation: lines for a terminal, and a page by itself that needs no network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from bot.evaluation import plot
from bot.evaluation.measures import Measures, Result, best, by_depth, curve, measure
from bot.evaluation.questions import Fault
from bot.values import Passage

Gettext = Callable[[str], str]
SHOWN_MISSES = 50
SHOWN_PASSAGES = 5


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything that is reported. `top_k` is how many passages a question may have, `unknown` whose source is no document."""

    results: Sequence[Result]
    faults: Sequence[Fault]
    top_k: int
    unknown: Sequence[Fault] = ()

    @property
    def measures(self) -> Measures:
        """The figures."""
        return measure(self.results)

    @property
    def misses(self) -> list[Result]:
        """The questions that an answer could not be right for."""
        return [result for result in self.results if result.missed]


# ---------------------------------------------------------------------------------------------- for a terminal


def lines(evaluation: Evaluation, gettext: Gettext) -> list[str]:
    """The figures, a line each, and the misses."""
    _ = gettext
    said = [f"{name}: {value}" for name, value in figures(evaluation, _)]
    if advice := advised(evaluation, _):
        said.append(advice)
    misses = evaluation.misses
    if misses:
        said += ["", _("Misses:")]
    for result in misses[:SHOWN_MISSES]:
        said.append(_("line {n}: {question}").format(n=result.asked.line, question=result.asked.question))
        said.append("    " + _("expected: {what}").format(what=expected(result, _)))
        said.append("    " + _("found: {what}").format(what="; ".join(map(_shown, result.found)) or _("nothing")))
    if (rest := len(misses) - SHOWN_MISSES) > 0:
        said.append(_("… and {n} more: --report writes all of them").format(n=rest))
    return said


def figures(evaluation: Evaluation, gettext: Gettext) -> list[tuple[str, str]]:
    """What was counted, by its name."""
    _ = gettext
    m, k = evaluation.measures, evaluation.top_k
    rows = [(_("Questions"), str(m.answerable + m.unanswerable))]
    if m.answerable:
        rows.append((_("Hit rate (the right passage is among the first {k})").format(k=k), _of(m.hits, m.answerable, _)))
        rows.append((_("The right passage comes first"), _of(m.first, m.answerable, _)))
        rows.append((_("MRR (1 where it always comes first)"), f"{m.mrr:.3f}"))
    if m.unanswerable:
        rows.append((_("Abstention (nothing found where there is no answer)"), _of(m.abstained, m.unanswerable, _)))
    return rows


def advised(evaluation: Evaluation, gettext: Gettext) -> str:
    """What another BOT_MIN_SCORE would give, where it would be better; else nothing."""
    _ = gettext
    point = best(curve(evaluation.results, evaluation.top_k), evaluation.measures)
    if point is None or point.hit_rate is None or point.abstention is None:
        return ""
    return _("With BOT_MIN_SCORE={score} these questions would give a hit rate of {hits} and an abstention of {silent}.").format(
        score=f"{point.min_score:.2f}", hits=f"{point.hit_rate:.0%}", silent=f"{point.abstention:.0%}"
    )


def expected(result: Result, gettext: Gettext) -> str:
    """What should have been found."""
    _ = gettext
    return result.asked.expected or _("nothing")


def _of(part: int, whole: int, gettext: Gettext) -> str:
    _ = gettext
    return _("{part} of {whole} ({share})").format(part=part, whole=whole, share=f"{part / whole:.0%}")


def _shown(passage: Passage) -> str:
    label = passage.citation or passage.source or passage.doc_id or "?"
    return label if passage.score is None else f"{label} ({passage.score:.2f})"


# ---------------------------------------------------------------------------------------------- as a page

STYLE = """
:root { color-scheme: light dark; --hit: #1a7f5a; --silent: #b3541e; --faint: #8884; }
@media (prefers-color-scheme: dark) { :root { --hit: #4cc38a; --silent: #f0a060; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--faint); overflow-wrap: anywhere; }
svg { width: 100%; max-width: 44rem; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
.grid { stroke: var(--faint); } .mark { stroke: currentColor; stroke-dasharray: 4 3; }
.line { fill: none; stroke-width: 2.5; } .hit { stroke: var(--hit); } .silent { stroke: var(--silent); } .bar { fill: var(--hit); }
.missed td:first-child { border-left: 3px solid var(--silent); }
"""


def page(evaluation: Evaluation, gettext: Gettext, *, language: str, min_score: float | None = None) -> str:
    """An HTML page with the figures, the plots, the misses and every question. `min_score` is the one in force, where one is set."""
    _ = gettext
    title = _("How well documents are found")
    parts = [f"<h1>{escape(title)}</h1>", _rows(figures(evaluation, _))]
    parts += [f"<p>{escape(advice)}</p>" if (advice := advised(evaluation, _)) else "", *_plots(evaluation, _, min_score)]
    for heading, faults in ((_("Lines left out"), evaluation.faults), (_("Sources that are no document"), evaluation.unknown)):
        rows = [(_("line {n}").format(n=fault.line), _(fault.reason)) for fault in faults]
        parts += [f"<h2>{escape(heading)}</h2>", _rows(rows)] if rows else []
    misses = evaluation.misses
    heading = escape(_("Misses"))
    parts += [f"<h2>{heading} ({len(misses)})</h2>", _questions(misses, _) if misses else ""]
    every = escape(_("Every question"))
    parts.append(f"<details><summary>{every} ({len(evaluation.results)})</summary>{_questions(evaluation.results, _)}</details>")
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    body = "\n".join(filter(None, parts))
    return (
        f'<!doctype html>\n<html lang="{escape(language)}">\n<head>{head}<style>{STYLE}</style></head>\n<body>\n{body}\n</body>\n</html>\n'
    )


def _plots(evaluation: Evaluation, gettext: Gettext, min_score: float | None) -> list[str]:
    _ = gettext
    points = curve(evaluation.results, evaluation.top_k)
    drawn: list[plot.Line] = []
    if evaluation.measures.answerable:
        drawn.append((_("Hit rate"), "hit", [(p.min_score, p.hit_rate) for p in points if p.hit_rate is not None]))
    if evaluation.measures.unanswerable:
        drawn.append((_("Abstention"), "silent", [(p.min_score, p.abstention) for p in points if p.abstention is not None]))
    title = _("What another BOT_MIN_SCORE would give")
    mark = (min_score, _("now")) if min_score else None
    parts = [f"<h2>{escape(title)}</h2>", plot.lines(title, drawn, below="BOT_MIN_SCORE", mark=mark)]
    if evaluation.measures.answerable:
        title = _("Hit rate by the number of passages")
        parts += [f"<h2>{escape(title)}</h2>", plot.bars(title, by_depth(evaluation.results), below="BOT_TOP_K")]
    return parts


def _rows(rows: Sequence[tuple[str, str]]) -> str:
    return "<table>" + "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows) + "</table>"


def _questions(results: Sequence[Result], gettext: Gettext) -> str:
    _ = gettext
    names = (_("Line"), _("Question"), _("Expected"), _("Rank"), _("Found"))
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = []
    for result in results:
        found = "<br>".join(escape(_shown(passage)) for passage in result.found[:SHOWN_PASSAGES]) or escape(_("nothing"))
        cells = (str(result.asked.line), result.asked.question, expected(result, _), str(result.rank or "–"))
        row = "".join(f"<td>{escape(cell)}</td>" for cell in cells) + f"<td>{found}</td>"
        rows.append(f'<tr class="missed">{row}</tr>' if result.missed else f"<tr>{row}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
