"""plugins/ai/figures.py and numerals.py"""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot import Passage
from plugins.ai.citations import find
from plugins.ai.figures import figures, held, unsupported
from plugins.ai.numerals import spelled_out


def missing(answer: str, *passages: str, known: tuple[str, ...] = ()) -> list[str]:
    found = [Passage(text, citation=f"doc {name}.md") for name, text in zip("abc", passages, strict=False)]
    return unsupported(answer, find(answer, len(found)), found, known)


@pytest.mark.parametrize(
    ("answer", "passage", "wrong"),
    [
        ("Tarda 3 días [1].", "El envío tarda 5 días.", ["3"]),
        ("Cuesta 1.000,50 € [1].", "Cuesta 1.000,05 €.", ["1.000,50"]),
        ("It costs $1,000.50 [1].", "It costs $1,050.00.", ["1,000.50"]),
        ("El IVA es del 10 % [1].", "El IVA es del 21 %.", ["10"]),
        ("Abre el 12 de marzo de 2024 [1].", "Abre el 13 de marzo de 2024.", ["12 de marzo de 2024"]),
        ("Abre el 12/03/2024 [1].", "Abre el 12/04/2024.", ["12/03/2024"]),
        ("It opens on March 5, 2024 [1].", "It opens on May 5, 2024.", ["March 5, 2024"]),
        ("Desde 2019 [1].", "Desde 2018.", ["2019"]),
        ("Abre a las 10:30 [1].", "Abre a las 10:15.", ["10:30"]),
        ("Hay 2,5 millones [1].", "Hay 2.500 socios.", ["2,5"]),
        ("De 10 a 14 días [1].", "De 10 a 15 días.", ["14"]),
        ("Usa la versión 3.11.7 [1].", "Usa la versión 3.11.8.", ["3.11.7"]),
        ("Son 30 días y 45 € [1].", "Nada de eso.", ["30", "45"]),
        ("- 3 días [1]\n- 4 días [1]", "Son 3 días.", ["4"]),
        ("Tarda 3 días. [1]", "Tarda 5 días.", ["3"]),
        ("El precio, aprox. 30 €, es con IVA [1].", "El precio es de 20 €.", ["30"]),
        ("| Norte | 7 días [1] |", "Norte: 3 días.", ["7"]),
    ],
)
def test_a_figure_that_the_passage_lacks_is_found(answer: str, passage: str, wrong: list[str]) -> None:
    """Numbers in either custom, percentages, dates, times, versions; in lists and tables, and where the mark follows the full stop."""
    assert missing(answer, passage) == wrong


@pytest.mark.parametrize(
    ("answer", "passage"),
    [
        ("Cuesta 1.000,50 € [1].", "It costs $1,000.50."),
        ("It costs 1,000.50 [1].", "Cuesta 1000,5 €."),
        ("Cuesta 12.000 € [1].", "Cuesta 12 000 €."),
        ("Cuesta 12\u202f000 € [1].", "Cuesta 12000 euros."),
        ("Cuesta 1.500 € [1].", "It costs 1,500."),
        ("Es el 21% [1].", "Es el 21 %."),
        ("Es el 2,50 % [1].", "It is 2.5 percent."),
        ("Son 3 días [1].", "Tarda tres días."),
        ("Son 31 días [1].", "Tarda treinta y un días."),
        ("There are 250 of them [1].", "There are two hundred and fifty of them."),
        ("Son 2000 € [1].", "Son dos mil euros."),
        ("Son 2,5 millones [1].", "Son 2.500.000 de euros."),
        ("It is 5k [1].", "It is 5,000."),
        ("Abre el 12 de marzo de 2024 [1].", "Abre el 12/03/2024."),
        ("Abre el 12/03/2024 [1].", "Opens on 2024-03-12."),
        ("Opens on March 12th, 2024 [1].", "Abre el 12 de marzo de 2024."),
        ("Abre el 12 de marzo [1].", "Abre el 12 de marzo de 2024."),
        ("Abre el 12 de marzo de 2024 [1].", "Calendario de 2024: abre el 12 de marzo."),
        ("Abre el 12 de marzo [1].", "Abre los días 12 y 15 de marzo."),
        ("Abre el 1.º de mayo [1].", "Abre el primero de mayo."),
        ("Fue en 2024 [1].", "Fue el 12/03/2024."),
        ("Abre a las 10 [1].", "Abre a las 10:00."),
        ("Cierra a las 22:00 [1].", "Closes at 10 p. m."),
        ("Abre a las 10:30 [1].", "Abre a las 10.30 h."),
        ("Llama al 600 123 456 [1].", "Tel. 600123456"),
        ("Está en la página 12 [1].", "nada"),
        ("Tarda 30d [1].", "Tarda 30 días."),
    ],
)
def test_the_same_figure_in_another_spelling_is_there(answer: str, passage: str) -> None:
    """Separators, blanks, signs, words, the order of a date, half of a day: what is meant counts."""
    assert unsupported(answer, find(answer, 1), [Passage(passage, citation="manual.pdf › p. 12")]) == []


@pytest.mark.parametrize(
    "answer",
    [
        "Según el documento [1], así es [1][2], y [1-2].",
        "1. Abre la caja [1].\n2. Ciérrala [1].\n\n**3.** Fin [1].",
        "12) Abre la caja [1].",
        "### 4. Fin [1]",
        "Paso 2: ciérrala [1]. En el paso 3, ábrela [1].",
        "Usa A4, H2O, COVID-19 y UTF-8 [1].",
        "Mira https://example.org/2024/x [1] o [esto](https://example.org/7) [1].",
        "Así [1]:\n\n```python\nx = 42\n```\n",
        "El elemento es `a[7]` [1].",
        "Hoy es 2031. El documento no lo dice [1].",
        "Son 99. No se sabe más.",
        "Pediste 5 cajas: te llegan mañana [1].",
    ],
)
def test_what_is_no_claim_is_not_counted(answer: str) -> None:
    """The mark itself, the number of an item or a step, names, addresses, examples, sentences that cite nothing, what was asked."""
    assert missing(answer, "Nada.", "Nada.", known=("Quiero 5 cajas",)) == []


def test_each_sentence_is_held_against_what_it_cites() -> None:
    """A number that stands in another passage is not there."""
    assert missing("Son 3 días [1]. Son 5 € [2].", "Son 5 €.", "Son 3 días.") == ["3", "5"]
    assert missing("Son 3 días [1]. Son 5 € [2].", "Son 3 días.", "Son 5 €.") == []
    assert missing("Son 3 días y 5 € [1][2].", "Son 3 días.", "Son 5 €.") == []


def test_nothing_cited_nothing_to_hold() -> None:
    """Without passages, or without marks."""
    assert missing("Son 3 días.", "x") == missing("Son 3 días [1].") == missing("", "x") == []


@given(st.text(alphabet="0123456789.,:/- \n%€hkM[]()abyde\u00a0º'", max_size=60))
@settings(max_examples=300, deadline=None)
def test_what_was_copied_is_there(text: str) -> None:
    """Whatever stands in a passage word for word is held by it, however odd; and nothing raises."""
    assert all(readings & held(text) for _, readings in figures(text))
    assert unsupported(f"{text} [1]", find(f"{text} [1]", 1), [Passage(text)]) == []


@pytest.mark.parametrize("odd", ["9" * 5_000, "1." * 5_000, "1 000" * 3_000, "1,000." * 2_000, "12 de " * 3_000, ("dos mil " * 2_000)])
def test_odd_figures_take_no_time(odd: str) -> None:
    """A passage is a stranger's."""
    began = time.perf_counter()

    missing(f"Son 7{odd} [1].", odd)

    assert time.perf_counter() - began < 2


def test_words_that_are_numbers() -> None:
    """Alone and together."""
    assert {31, 30, 1} <= spelled_out("treinta y un días")
    assert 2_500 in spelled_out("dos mil quinientos")
    assert 1_999 in spelled_out("one thousand nine hundred and ninety-nine")
    assert 5_000_000 in spelled_out("Cinco millones")
    assert spelled_out("tres, cuatro") == {3, 4}
    assert spelled_out("nada y and") == set()
