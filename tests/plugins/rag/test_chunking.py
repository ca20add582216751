"""What a chunker must never do, whatever the text."""

import re
from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.rag.chunking import blocks, chunk

line = st.one_of(
    st.text(alphabet="abc ñé.,!?\u0301", max_size=60),
    st.sampled_from(["```", "```python", "~~~", "| a | b |", "|---|---|", "| 1 | 2 |", "# x", "- item", "", "    code", "x" * 90, "> ```"]),
)
texts = st.lists(line, max_size=30).map("\n".join)
sizes = st.integers(min_value=16, max_value=200)


def inked(text: str) -> Counter[str]:
    return Counter(c for c in text if not c.isspace())


@given(texts, sizes, st.floats(min_value=0, max_value=0.25))
@settings(max_examples=300, deadline=None)
def test_no_piece_is_over_the_size_and_none_is_blank(text: str, size: int, share: float) -> None:
    """The cap holds for every piece, overlap, frames and all; nothing blank goes on."""
    pieces = chunk(text, size=size, overlap=int(size * share))

    assert all(len(piece) <= size for piece in pieces)
    assert all(piece.strip() for piece in pieces)


@given(texts, sizes, st.floats(min_value=0, max_value=0.25))
@settings(max_examples=300, deadline=None)
def test_every_character_is_in_some_piece(text: str, size: int, share: float) -> None:
    """Nothing that is not blank is lost, however the text is cut."""
    pieces = chunk(text, size=size, overlap=int(size * share))

    assert not inked(text) - inked("".join(pieces))


@given(texts, sizes)
@settings(max_examples=200, deadline=None)
def test_pieces_keep_the_order_of_the_text(text: str, size: int) -> None:
    """Without overlap and frames, the pieces one after another are the text, blanks aside."""
    plain = text.replace("`", "").replace("~", "").replace("|", "")

    pieces = chunk(plain, size=size, overlap=0)

    assert re.sub(r"\s", "", "".join(pieces)) == re.sub(r"\s", "", plain)


@given(texts)
@settings(max_examples=100, deadline=None)
def test_a_text_that_fits_is_one_piece(text: str) -> None:
    """Nothing is cut that need not be."""
    assert len(chunk(text, size=100_000, overlap=0)) == (1 if text.strip() else 0)


def test_sentences_are_not_torn() -> None:
    """A paragraph over the size is cut between sentences."""
    text = "Abrimos los lunes. Cerramos los martes. El miércoles es fiesta. El jueves no."

    assert chunk(text, size=42, overlap=0) == ["Abrimos los lunes. Cerramos los martes.", "El miércoles es fiesta. El jueves no."]


def test_the_end_of_a_piece_comes_again() -> None:
    """Overlap repeats whole sentences, and counts towards the size."""
    text = "Uno va. Dos va. Tres va. Cuatro va. Cinco va."

    pieces = chunk(text, size=26, overlap=8)

    assert pieces == ["Uno va. Dos va. Tres va.", "Tres va. Cuatro va.", "Cinco va."] or all(
        after.split(". ")[0] in before for before, after in pairwise(pieces)
    )


def test_a_fence_stays_whole_where_it_fits() -> None:
    """Code is not torn from its fence, and a paragraph before it goes into another piece instead."""
    fence = "```python\n" + "\n".join(f"print({n})" for n in range(8)) + "\n```"

    pieces = chunk(f"{'palabra ' * 15}\n\n{fence}\n\nFin.", size=150, overlap=20)

    assert any(fence in piece for piece in pieces)


def test_a_torn_fence_is_closed_and_opened_again() -> None:
    """Each part of code that does not fit is a fence of its own, with the language."""
    pieces = chunk("```sql\n" + "\n".join(f"SELECT {n};" for n in range(60)) + "\n```", size=200, overlap=50)

    assert len(pieces) > 1
    assert all(piece.startswith("```sql\n") and piece.endswith("\n```") for piece in pieces)


def test_a_torn_table_repeats_its_header() -> None:
    """Each part of a table says what its columns are."""
    rows = "\n".join(f"| {n} | valor {n} |" for n in range(40))

    pieces = chunk(f"| clave | valor |\n|---|---|\n{rows}", size=200, overlap=50)

    assert len(pieces) > 1
    assert all(piece.startswith("| clave | valor |\n|---|---|\n") for piece in pieces)


def test_a_text_without_spaces_is_bounded() -> None:
    """20 kB without a blank are cut by characters, and nothing is lost."""
    text = "ñ" * 20_000

    pieces = chunk(text, size=1000, overlap=150)

    assert "".join(pieces) == text
    assert max(map(len, pieces)) == 1000


def test_an_accent_stays_with_its_letter() -> None:
    """A cut through a word never parts a letter from a combining mark."""
    pieces = chunk("e\u0301" * 500, size=101, overlap=0)

    assert not any(piece.startswith("\u0301") for piece in pieces)


def test_inline_code_opens_no_fence() -> None:
    """Three backticks with a backtick behind them are inline code."""
    found = list(blocks("```a``` es código\n\nTexto normal"))

    assert [block.kind for block in found] == ["prose", "prose"]


def test_a_long_text_is_cut_in_linear_time() -> None:
    """A megabyte is cut well within a second or two: no step looks back over all that came before."""
    import time

    began = time.perf_counter()
    chunk("Una frase corta de prueba. " * 40_000, size=1000, overlap=150)

    assert time.perf_counter() - began < 5
