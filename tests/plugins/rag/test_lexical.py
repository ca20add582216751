"""The lexical leg finds by words, their beginnings and their pieces, and knows how much of a question a chunk holds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.rag import lexical
from plugins.rag.lexical import MOST_ASKED, MOST_REMEMBERED, Lexicon, Scores, Vocabulary, fold, words

DOCUMENTS = [
    "El envío a Canarias tarda siete días.",
    "Aceptamos tarjeta, transferencia y Bizum como medios de pago.",
    "Las devoluciones se hacen en la tienda, con el recibo.",
    "Shipping to the islands takes seven days.",
]


def scores(texts: list[str], question: str, *, dead: tuple[int, ...] = ()) -> Scores:
    lexicon = Lexicon()
    lexicon.add(texts)
    alive = np.ones(len(texts), dtype=bool)
    alive[list(dead)] = False
    return lexicon.score(question, alive)


def test_the_words_of_a_question_find_their_chunk() -> None:
    """The chunk with the question's words comes first."""
    assert int(np.argmax(scores(DOCUMENTS, "¿Cuánto tarda el envío a Canarias?").bm25)) == 0


def test_accents_and_case_do_not_count() -> None:
    """A question typed without accents scores exactly as one with them."""
    with_accents, without = scores(DOCUMENTS, "¿ENVÍO en días?"), scores(DOCUMENTS, "envio en dias")

    np.testing.assert_array_equal(with_accents.bm25, without.bm25)
    np.testing.assert_array_equal(with_accents.share, without.share)


def test_an_inflected_word_meets_its_kin() -> None:
    """Another form of a word is found by what the two have in common, with no stemmer."""
    found = scores(DOCUMENTS, "devolución")

    assert int(np.argmax(found.bm25)) == 2
    assert 0 < found.share[2] < 1


def test_stop_words_weigh_nothing() -> None:
    """A question of nothing but stop words finds nothing, in Spanish and in English."""
    for question in ("¿qué es lo que hay de eso?", "what is it that we were?"):
        found = scores(DOCUMENTS, question)

        assert not found.bm25.any()
        assert not found.share.any()


def test_the_words_of_a_name_all_count() -> None:
    """`/forget_me` is not `/forget`, though "me" says nothing elsewhere; nor does a line between emphasised words make a name."""
    texts = ["Con /forget se olvida un dato, que me digas cuál.", "Con /forget_me se olvida todo lo que hay, y nada de ello vuelve más."]

    assert int(np.argmax(scores(texts, "¿qué hace /forget_me?").bm25)) == 1
    assert int(np.argmax(scores(texts, "FORGET_ME").bm25)) == 1
    assert not scores(texts, "_me_ __que__ _").bm25.any()


def test_the_share_is_one_for_a_chunk_that_holds_the_whole_question() -> None:
    """All of the question's weight in the chunk is 1; a word that no chunk has takes its part away."""
    whole, half = scores(DOCUMENTS, "medios de pago").share[1], scores(DOCUMENTS, "medios de zanahorias").share[1]

    assert np.isclose(whole, 1)
    assert 0.1 < half < 0.9


def test_a_rare_word_weighs_more_in_the_share() -> None:
    """Of two words, the chunk with the rarer one holds more of the question."""
    texts = ["gato común"] * 50 + ["perro raro", "nada"]

    share = scores(texts, "gato perro").share

    assert share[50] > share[0]


def test_a_removed_chunk_counts_for_nothing() -> None:
    """Scores are those of an index in which the removed chunk never was."""
    dead = scores([*DOCUMENTS, "envío envío envío"], "envío a Canarias", dead=(4,))

    np.testing.assert_allclose(dead.bm25[:4], scores(DOCUMENTS, "envío a Canarias").bm25, rtol=1e-6)
    assert dead.bm25[4] == 0


@given(st.lists(st.text(alphabet="abcñ ", min_size=1, max_size=20), min_size=1, max_size=12), st.text(alphabet="abcñ ", max_size=12))
@settings(max_examples=60, deadline=None)
def test_adding_one_by_one_is_adding_all(texts: list[str], question: str) -> None:
    """However the chunks came, in one run or singly, the scores are the same: segments are no part of the answer."""
    together, singly = Lexicon(), Lexicon()
    together.add(texts)
    for text in texts:
        singly.add([text])
    alive = np.ones(len(texts), dtype=bool)

    np.testing.assert_allclose(together.score(question, alive).bm25, singly.score(question, alive).bm25, rtol=1e-5, atol=1e-9)
    assert together.size == singly.size == len(texts)


def test_joined_segments_stay_few() -> None:
    """Adding many texts one by one leaves a handful of segments, not one each."""
    lexicon = Lexicon()
    for number in range(300):
        lexicon.add([f"texto número {number}"])

    assert len(lexicon._segments) < 12


def test_of_a_very_long_question_both_ends_ask() -> None:
    """A page that is pasted costs no more than a long question, wherever in it the question stands."""
    padding = " ".join(f"relleno{n}" for n in range(2 * MOST_ASKED))

    for question in (f"envío a Canarias {padding}", f"{padding} envío a Canarias"):
        assert int(np.argmax(scores(DOCUMENTS, question).bm25)) == 0
    assert not scores(DOCUMENTS, f"{padding} envío a Canarias {padding.upper().replace('RELLENO', 'ripio')}").bm25.any()


def test_an_empty_index_answers_nothing() -> None:
    """Asking before anything is there is no error."""
    found = Lexicon().score("hola", np.zeros(0, dtype=bool))

    assert found.bm25.size == found.share.size == 0


def test_forms_of_one_word_have_its_features() -> None:
    """Forms that differ in case, accent or what stands around them alone are one word; one form may be several words, or none."""
    found, sizes, lengths = Vocabulary().read(["Año", "«ANO»,", "ano/2024", "— de", ""])

    assert list(lengths) == [1, 1, 2, 0, 0]
    np.testing.assert_array_equal(found[: sizes[0]], found[sizes[0] : 2 * sizes[0]])
    assert sizes[2] > sizes[0]
    assert list(sizes[3:]) == [0, 0]
    assert fold("ÑANDÚ") == "nandu"
    assert words("24/7, v2.0; snake_case") == ["24", "7", "v2", "0", "snake", "case"]


def test_forms_may_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no text can fill the memory with words of its own; what they are found by keeps its number."""
    monkeypatch.setattr(lexical, "MOST_FORMS", 3)
    lexicon = Lexicon()
    for text in (*DOCUMENTS, "x" * 20_000):
        lexicon.add([text])

    assert len(lexicon._vocabulary) < 12
    np.testing.assert_allclose(lexicon.score("envío a Canarias", np.ones(5, dtype=bool)).bm25[:4], _scores_of_five("envío a Canarias")[:4])


def _scores_of_five(question: str) -> np.ndarray:
    return scores([*DOCUMENTS, "x" * 20_000], question).bm25


def test_a_question_asked_again_is_answered_from_what_there_is_now() -> None:
    """What was worked out for a question is kept, a bounded number of times, and only as long as nothing is added or removed."""
    lexicon = Lexicon()
    lexicon.add(DOCUMENTS)
    alive = np.ones(4, dtype=bool)
    first = lexicon.score("envío", alive)
    for number in range(2 * MOST_REMEMBERED):
        lexicon.score(f"envío {number}", alive)

    assert len(lexicon._standing._scores) == MOST_REMEMBERED
    np.testing.assert_array_equal(lexicon.score("envío", alive).bm25, first.bm25)
    assert lexicon.score("envío", alive) is lexicon.score("envío", alive)
    assert not lexicon.score("envío", np.zeros(4, dtype=bool)).bm25.any()
    lexicon.add(["otro envío"])
    assert lexicon.score("envío", np.ones(5, dtype=bool)).bm25[4] > 0
