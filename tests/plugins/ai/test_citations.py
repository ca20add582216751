"""plugins/ai/citations.py"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import Passage
from plugins.ai import citations

FAQ, PRICES, AGAIN = Passage("a", citation="faq.md"), Passage("b", citation="precios.md"), Passage("c", citation="faq.md")
THREE = [FAQ, PRICES, AGAIN]


def spanish(message: str) -> str:
    return {"Sources: {sources}": "Fuentes: {sources}"}.get(message, message)


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("Tarda 3 días [1].", [1]),
        ("Tarda [1][3].", [1, 3]),
        ("Tarda [1, 3].", [1, 3]),
        ("Tarda [1,3].", [1, 3]),
        ("Tarda [1-3].", [1, 2, 3]),
        ("Tarda [1–3].", [1, 2, 3]),
        ("Tarda [3-1].", [1, 2, 3]),
        ("Tarda [1-2, 3].", [1, 2, 3]),
        ("Tarda[2].", [2]),
        ("**Tarda [2]** y *[1]*", [1, 2]),
        ("- uno [1]\n- dos [2]", [1, 2]),
        ("# Título [1]\n\n> cita [3]", [1, 3]),
        ("Tarda [9] o [0] o [1].", [1]),
        ("De [1-99999].", []),
        ("De [1-9999].", [1, 2, 3]),
        ("Nada.", []),
        ("", []),
        ("`a[1]` y ``b[2]``", []),
        ("```python\nx = a[1]\n```\nAsí [2].", [2]),
        ("~~~\nx[1]", []),
        ("Dice:\n\n    x = a[1]\n\nFin [3].", [3]),
        ('Mira [1](https://example.org) y [el 2](x "[3]").', []),
        ("![1](x.png) [2]", [2]),
        ("[[1]](https://example.org) [2]", [2]),
        (r"Escapado \[1\] [2]", [2]),
        ("`sin cerrar [1]", [1]),
        ("[ 1 ] [1 2] [uno]", []),
        ("\ue0000\ue001 [1]", [1]),
    ],
)
def test_what_is_a_citation(answer: str, numbers: list[int]) -> None:
    """Marks in prose count, alone, in lists and in ranges; in code, links and images they do not, nor does a number without a passage."""
    cited = citations.cited(citations.find(answer, len(THREE)), THREE)

    assert [n for n, _ in cited] == numbers
    assert [passage for _, passage in cited] == [THREE[n - 1] for n in numbers]


PIECES = [
    "`",
    "`x`",
    "[1]",
    "[2, 3]",
    "[1\n- 2]",
    "a",
    " ",
    "  ",
    "\n",
    "\r",
    "\n\n",
    "- ",
    "1. ",
    "> ",
    "# ",
    "---",
    "=",
    "*",
    "_",
    "\\",
    "!",
    "[",
    "]",
]


@given(st.lists(st.sampled_from([*PIECES, "``", "&#96;", "~", "(", ":", "   "]), max_size=24).map("".join))
def test_marks_between_backticks_are_told_apart_as_markdown_does(answer: str) -> None:
    """What is found without the parser is what the parser finds, which the `<` at the end calls for; it belongs to no mark."""
    assert citations.find(answer, len(THREE)) == citations.find(f"{answer}\n\n<", len(THREE))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Tarda 3 días [9].", "Tarda 3 días."),
        ("Tarda [1][9].", "Tarda [1]."),
        ("Tarda [1, 9].", "Tarda [1]."),
        ("Tarda [2-9].", "Tarda [2][3]."),
        ("Tarda [1, 3].", "Tarda [1, 3]."),
        ("`a[9]` y [9](x) y [2]", "`a[9]` y [9](x) y [2]"),
        ("[9] Tarda [8] mucho [7]", " Tarda mucho"),
        ("```\na[9]\n```\n[9]", "```\na[9]\n```\n"),
    ],
)
def test_numbers_without_a_passage_are_taken_out(answer: str, expected: str) -> None:
    """What a person reads has no number that leads nowhere; what is right stays as the model wrote it."""
    assert citations.without_unknown(answer, 3) == expected


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([2], "Fuentes: [2] precios.md"),
        ([1, 2, 3], "Fuentes: [1][3] faq.md, [2] precios.md"),
        ([], "Fuentes: faq.md, precios.md"),
    ],
)
def test_the_line_of_sources(numbers: list[int], expected: str) -> None:
    """Those cited, with the numbers of the text; one label, one entry; with none cited, all without numbers."""
    assert citations.line(THREE, [(n, THREE[n - 1]) for n in numbers], spanish) == expected


def test_nothing_retrieved_no_line() -> None:
    """Without passages there are no sources."""
    assert citations.line([], [], spanish) == ""


def test_a_label_is_one_line() -> None:
    """A label with line ends or invisible characters does not break the line of sources."""
    odd = Passage("x", citation="docs/a.md\n\n› Pagos\u202e\u200b")

    assert citations.line([odd], [(1, odd)], spanish) == "Fuentes: [1] docs/a.md › Pagos"


def test_a_passage_without_a_label() -> None:
    """One that was cited keeps its number; one that was not has nothing to show."""
    bare = Passage("x")

    assert citations.line([bare], [(1, bare)], spanish) == "Fuentes: [1]"
    assert citations.line([bare], [], spanish) == ""


@pytest.mark.parametrize(
    "tail",
    [
        "\n\nFuentes: [1] faq.md",
        "\nFuentes: [1] faq.md, [2] precios.md.",
        "\n\n**Fuentes:** faq.md",
        "\n\n**Fuentes**: [1]",
        "\n\n## Fuentes:\n\n- [1] faq.md\n- [2] https://example.org/precios",
        "\n\nSources:\n1. faq.md\n2. precios.md\n",
        "\n\nReferencias: docs/otra.md",
        " Fuentes: [1] faq.md",
        "\n\nFuente: documentación interna",
        "\n\nfuentes :\n[1] faq.md\n[2] precios.md",
        "\n\nFuentes:",
    ],
)
def test_the_models_own_line_is_found(tail: str) -> None:
    """A line or list of sources at the end is the model's own, in whatever form it likes."""
    answer = f"Tarda 3 días [1].{tail}"

    assert citations.tail(answer, THREE, spanish) == len("Tarda 3 días [1].") + (len(tail) - len(tail.lstrip("\n")))


@pytest.mark.parametrize(
    "answer",
    [
        "Fuentes: faq.md",
        "Hay dos.\n\nFuentes: solares y eólicas, que dan la mitad de la energía [1], y otras que no se cuentan aquí.",
        "Hay dos.\n\nFuentes: las de energía.\n\nLas primeras son solares, y las segundas no.",
        "Un ejemplo:\n\n```\nhola.\nFuentes: [1] faq.md\n```",
        "Las fuentes de energía son varias.",
        "Recursos: faq.md",
    ],
)
def test_what_is_no_line_of_sources(answer: str) -> None:
    """An answer that speaks of sources, shows one in an example, or is nothing else, stays whole."""
    assert citations.tail(answer, THREE, spanish) is None


def test_the_word_of_the_readers_catalog_counts() -> None:
    """A catalog that a plugin adds has its own word for sources, and a model writes that."""
    portuguese = {"Sources: {sources}": "Origens: {sources}"}

    assert citations.tail("Sim [1].\n\nOrigens: [1] faq.md", THREE, lambda m: portuguese[m]) == 10
