"""bot/evaluation/questions.py"""

import json

import pytest

from bot import Passage
from bot.evaluation import questions
from bot.evaluation.questions import Asked, read

FAQ = Passage("Se paga con  Bizum o\ntarjeta.", source="docs/es/faq.md", citation="docs/es/faq.md › FAQ › Pagos", doc_id="docs/es/faq.md")


def test_a_question_has_a_source_or_a_phrase_or_no_answer() -> None:
    """Each form is read, with the line that it stands in; blank lines and a byte order mark are nothing."""
    lines = [
        '\ufeff{"question": " ¿Pago? ", "source": "faq.md"}',
        "",
        '{"question": "¿Y?", "phrase": ["Bizum", "tarjeta"]}',
        '{"question": "\\ud800?", "answer": null}\r',
        '{"question": "a", "answer": "b"}',
        '{"question": "c", "unanswerable": true}',
    ]

    asked, faults = read("\n".join(lines))

    assert asked == [
        Asked(1, "¿Pago?", ("faq.md",)),
        Asked(3, "¿Y?", (), ("Bizum", "tarjeta")),
        Asked(4, "??"),
        Asked(5, "a", (), ("b",)),
        Asked(6, "c"),
    ]
    assert [one.answerable for one in asked] == [True, True, False, True, False]
    assert faults == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nonsense", questions.NO_JSON),
        ("[1]", questions.NO_JSON),
        ("[" * 100_000, questions.NO_JSON),
        ('{"n": ' + "9" * 5_000 + "}", questions.NO_JSON),
        ('{"source": "faq.md"}', questions.NO_QUESTION),
        ('{"question": "  ", "source": "faq.md"}', questions.NO_QUESTION),
        ('{"question": 7, "source": "faq.md"}', questions.NO_QUESTION),
        ('{"question": "a", "sorce": "faq.md"}', questions.NO_ANSWER),
        ('{"question": "a", "unanswerable": false}', questions.NO_ANSWER),
        ('{"question": "a", "source": "faq.md", "answer": null}', questions.BOTH),
        ('{"question": "a", "source": "faq.md", "unanswerable": true}', questions.BOTH),
        ('{"question": "a", "source": 3}', questions.NO_TEXT),
        ('{"question": "a", "phrase": ["b", ""]}', questions.NO_TEXT),
    ],
    ids=range(13),
)
def test_a_line_that_is_no_question_is_named(line: str, reason: str) -> None:
    """It is left out with its number and why, and the others are read."""
    asked, faults = read(f'{{"question": "a", "phrase": "b"}}\n{line}\n{{"question": "c", "phrase": "d"}}')

    assert [one.line for one in asked] == [1, 3]
    assert [(fault.line, fault.reason) for fault in faults] == [(2, reason)]


@pytest.mark.parametrize(
    "source", ["docs/es/faq.md", "./docs/es/faq.md", "faq.md", "es/faq.md", "FAQ.md", "docs/es/faq.md › FAQ", "faq.md › FAQ › Pagos"]
)
def test_a_source_is_named_as_people_do(source: str) -> None:
    """Whole, by the end of its path, or with a section."""
    assert Asked(1, "?", (source,)).fits(FAQ)


@pytest.mark.parametrize("source", ["aq.md", "q.md", "docs/es", "faq", "otra.md", "faq.md › Envíos", "faq.md › FA"])
def test_another_source_is_another(source: str) -> None:
    """A part of a name is no name."""
    assert not Asked(1, "?", (source,)).fits(FAQ)


@pytest.mark.parametrize(("phrase", "fits"), [("bizum O tarjeta", True), ("Bizum", True), ("efectivo", False)])
def test_a_phrase_stands_in_the_text(phrase: str, fits: bool) -> None:
    """Letter case and line ends do not matter."""
    assert Asked(1, "?", (), (phrase,)).fits(FAQ) is fits


def test_a_source_and_a_phrase_hold_together() -> None:
    """A passage of the source that does not say it is not the right one."""
    assert Asked(1, "?", ("faq.md",), ("Bizum",)).fits(FAQ)
    assert not Asked(1, "?", ("faq.md",), ("efectivo",)).fits(FAQ)
    assert not Asked(1, "?", ("otra.md",), ("Bizum",)).fits(FAQ)


def test_a_source_that_is_no_document_is_told() -> None:
    """So that a slip of the pen does not pass for a miss."""
    asked, _ = read("\n".join(json.dumps({"question": "a", "source": source}) for source in ("faq.md", "fag.md", "faq.md › FAQ")))

    assert [fault.line for fault in questions.unknown(asked, ["docs/es/faq.md"])] == [2]
