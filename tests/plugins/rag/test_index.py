"""The index answers from what is in it, whole or not at all."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from plugins.rag import lexical
from plugins.rag.index import MOST_DEAD, Chunk, Index


def chunk(document: str, text: str, *, index: int = 0, section: str = "", **metadata: object) -> Chunk:
    return Chunk(document, index, text, f"docs/{document}.md", section, digest=text, metadata=json.dumps(metadata))


def filled(*chunks: Chunk, vectors: dict[str, np.ndarray] | None = None) -> Index:
    index = Index()
    by_document: dict[str, list[Chunk]] = {}
    for one in chunks:
        by_document.setdefault(one.document, []).append(one)
    index.show(index.stage(by_document, vectors or {}))
    return index


def found(index: Index, question: str, **options: object) -> list[str]:
    hits = index.search(question, None, **{"top_k": 3, "min_score": None, **options})  # type: ignore[arg-type]
    return [hit.text for hit in hits]


PAGOS = chunk("faq", "Aceptamos tarjeta y Bizum.", section="FAQ › Pagos", language="es", tema="dinero")
ENVIOS = chunk("faq", "El envío tarda tres días.", index=1, section="FAQ › Envíos", language="es")
SHIPPING = chunk("shipping", "Shipping takes three days.", language="en")


def test_a_hit_says_all_that_is_known_of_it() -> None:
    """Text, score, source, section, citation, id, document and position."""
    (hit,) = filled(PAGOS, ENVIOS).search("¿Aceptan Bizum?", None, top_k=1, min_score=0)

    assert (hit.text, hit.source, hit.section) == ("Aceptamos tarjeta y Bizum.", "docs/faq.md", "FAQ › Pagos")
    assert (hit.citation, hit.id, hit.doc_id, hit.index) == ("docs/faq.md › FAQ › Pagos", "faq#0", "faq", 0)
    assert hit.score is not None
    assert 0 < hit.score <= 1


def test_headings_and_the_name_of_a_file_are_searched() -> None:
    """A piece is found by the headings above it and by what its file is called."""
    index = filled(PAGOS, ENVIOS, SHIPPING)

    assert found(index, "pagos") == ["Aceptamos tarjeta y Bizum."]
    assert found(index, "shipping")[0] == "Shipping takes three days."


def test_min_score_compares_with_the_score() -> None:
    """A passage below it is left out."""
    index = filled(PAGOS, ENVIOS)
    (hit,) = index.search("envío en días hábiles", None, top_k=1, min_score=0)
    assert hit.score is not None

    assert found(index, "envío en días hábiles", min_score=hit.score - 0.01) == [ENVIOS.text]
    assert found(index, "envío en días hábiles", min_score=hit.score + 0.01) == []


def test_a_min_score_stands_alone() -> None:
    """Not set, a question that hardly fits finds nothing; 0 or any number decides alone, whatever is calibrated."""
    index = filled(PAGOS, ENVIOS)
    question = "¿en qué envío viene la guitarra eléctrica de segunda mano?"

    assert found(index, question) == []
    assert found(index, question, min_score=0.0) == [ENVIOS.text]
    assert found(index, question, min_score=0.01) == [ENVIOS.text]


def test_filters_name_the_source_the_section_or_any_key() -> None:
    """Every named value must be the chunk's; a list means any of them."""
    es = chunk("faq", "Plazo: tres días.", section="Envíos", language="es")
    money = chunk("faq", "Plazo: un mes.", index=1, section="Pagos", language="es", tema="dinero")
    other = chunk("otro", "Plazo: un año.", language="es")
    index = filled(es, money, other)

    assert found(index, "plazo", where={"source": "docs/otro.md"}) == [other.text]
    assert found(index, "plazo", where={"section": "Envíos"}) == [es.text]
    assert found(index, "plazo", where={"language": "es", "tema": "dinero"}) == [money.text]
    assert set(found(index, "plazo", where={"doc_id": ["faq", "otro"]})) == {es.text, money.text, other.text}
    assert found(index, "plazo", where={"tema": "otro"}) == []


def test_what_is_staged_does_not_answer_yet() -> None:
    """A new version takes the place of the old one in one step."""
    index = filled(ENVIOS)
    staged = index.stage({"faq": [chunk("faq", "El envío tarda una semana.")]}, {})

    before = found(index, "¿cuánto tarda el envío?")
    index.show(staged)

    assert before == ["El envío tarda tres días."]
    assert found(index, "¿cuánto tarda el envío?") == ["El envío tarda una semana."]
    assert len(index) == 1


def test_a_dropped_document_answers_no_more() -> None:
    """Dropping is by document, and the others stay."""
    index = filled(PAGOS, SHIPPING)

    index.show(index.stage({}, {}), drop=["faq"])

    assert found(index, "Bizum") == []
    assert found(index, "shipping") == [SHIPPING.text]


def test_with_vectors_the_score_is_the_cosine() -> None:
    """And the order is of both legs."""
    vectors = {PAGOS.text: np.array([1, 0], np.float32), ENVIOS.text: np.array([0.6, 0.8], np.float32)}
    index = filled(PAGOS, ENVIOS, vectors=vectors)

    hits = index.search("otra cosa", np.array([0, 1], np.float32), top_k=2, min_score=0.5)

    assert [(hit.text, hit.score) for hit in hits] == [(ENVIOS.text, 0.8)]


def test_a_chunk_without_a_vector_is_found_by_its_words() -> None:
    """One text that could not be embedded is not lost."""
    index = filled(PAGOS, ENVIOS, vectors={PAGOS.text: np.array([1, 0], np.float32)})

    hits = index.search("¿cuánto tarda el envío?", np.array([0, 1], np.float32), top_k=1, min_score=0)

    assert [hit.text for hit in hits] == [ENVIOS.text]
    assert list(index.without_vectors().values()) == [ENVIOS.searched]


def test_vectors_can_come_later() -> None:
    """For chunks that are there already, and in place of those of another dimension."""
    index = filled(PAGOS, ENVIOS, vectors={PAGOS.text: np.array([1, 0], np.float32)})

    index.give_vectors({ENVIOS.text: np.array([0, 0, 1], np.float32)})

    assert index.dimension == 3
    assert list(index.without_vectors()) == [PAGOS.digest]


def test_a_rebuilt_index_answers_the_same() -> None:
    """Gaps are closed without a change to any answer."""
    index = filled(PAGOS, ENVIOS, SHIPPING, vectors={PAGOS.text: np.array([1, 0], np.float32)})
    for number in range(MOST_DEAD + 2):
        index.show(index.stage({"temp": [chunk("temp", f"texto {number}")]}, {}))
    index.show(index.stage({}, {}), drop=["temp"])
    assert index.worn

    fresh = index.rebuilt()

    assert not fresh.worn
    assert len(fresh) == 3
    for question in ("Bizum", "envío", "shipping days"):
        assert fresh.search(question, None, top_k=3, min_score=0) == index.search(question, None, top_k=3, min_score=0)
    assert fresh.without_vectors() == index.without_vectors()


def test_a_question_in_another_language_is_answered() -> None:
    """By meaning, with a bar for two languages; what means something else is left out all the same."""
    index = filled(SHIPPING, vectors={SHIPPING.text: np.array([1, 0], np.float32)})
    near, far = np.array([0.84, 0.543], np.float32), np.array([0.7, 0.714], np.float32)
    options = {"top_k": 1, "min_score": None, "bar": 0.88}

    assert index.search("¿cuánto tarda en llegar lo que compro?", near, **options)  # type: ignore[arg-type]
    assert not index.search("how long until what I bought arrives?", near, **options)  # type: ignore[arg-type]
    assert not index.search("¿cuánto tarda en llegar lo que compro?", far, **options)  # type: ignore[arg-type]


def test_of_pages_that_say_the_same_the_readers_own_comes_first() -> None:
    """Documents often stand there in two languages; one that says more of what was asked comes first all the same."""
    es = chunk("es", "Con /forget_me se borra y elimina todo lo guardado.", language="es")
    en = chunk("en", "Use /forget_me to erase all.", language="en")
    index = filled(en, es)

    assert found(index, "¿qué es lo que hace /forget_me?", top_k=1) == [es.text]
    assert found(index, "what is it that /forget_me does?", top_k=1) == [en.text]
    assert found(index, "¿para qué es lo de use y erase?", top_k=1) == [en.text]


def test_a_search_while_documents_are_added_sees_those_that_were_shown() -> None:
    """What is in the words' index already, and not in sight, neither answers nor stands in the way."""
    index = filled(PAGOS)
    shown = index._alive[:2].copy()
    index.stage({"otro": [chunk("otro", f"Bizum número {n}") for n in range(5)]}, {})
    index._alive = shown

    assert found(index, "¿Aceptan Bizum?", min_score=0.0) == [PAGOS.text]


def test_the_share_of_a_few_is_that_among_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a large index it is worked out for the best alone: no other number comes of that."""
    index = filled(PAGOS, ENVIOS, SHIPPING, *(chunk("más", f"Bizum, envío y tarjeta {n}.", index=n) for n in range(50)))
    index.show(index.stage({}, {}), drop=["shipping"])
    question = "¿Aceptan tarjeta o Bizum para el envío de tres cajas?"
    among_all = index.search(question, None, top_k=9, min_score=0.000001)
    monkeypatch.setattr(lexical, "MANY", 0)
    index.show(index.stage({}, {}))

    assert index.search(question, None, top_k=9, min_score=0) == among_all
    assert len(among_all) == 9


@pytest.mark.parametrize("before", [True, False])
def test_an_addition_that_fails_half_way_mixes_nothing_up(before: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after it is found by its own words, whether the failed one's are in the words' index or not."""
    index = filled(PAGOS)
    add = index._lexicon.add

    def fail(texts: Sequence[str]) -> None:
        if texts:
            if not before:
                add([*texts, "otro más"])
            raise MemoryError

    monkeypatch.setattr(index._lexicon, "add", fail)
    with pytest.raises(MemoryError):
        index.stage({"roto": [chunk("roto", "Hay wifi."), chunk("roto", "Hay aparcamiento.", index=1)]}, {})
    monkeypatch.undo()

    index.show(index.stage({"shipping": [SHIPPING], "faq2": [ENVIOS]}, {}))

    assert found(index, "shipping takes", top_k=1) == [SHIPPING.text]
    assert found(index, "¿cuánto tarda el envío?", top_k=1) == [ENVIOS.text]
    assert found(index, "¿Aceptan Bizum?", top_k=1) == [PAGOS.text]
    assert found(index, "wifi") == []


def test_two_threads_add_one_after_the_other() -> None:
    """One whose caller was cancelled goes on: what the next one adds does not get between."""
    index = Index()
    texts = {f"d{n}": [chunk(f"d{n}", f"El artículo {n} cuesta {n * 7} euros.")] for n in range(400)}
    with ThreadPoolExecutor(4) as pool:
        staged = list(pool.map(lambda name: index.stage({name: texts[name]}, {}), texts))
    for one in staged:
        index.show(one)

    for number in (0, 1, 199, 399):
        assert found(index, texts[f"d{number}"][0].text, top_k=1) == [texts[f"d{number}"][0].text]
