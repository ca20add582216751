"""The retriever as whoever writes Python sees it: documents in, passages out, and every failure a RagError."""

import asyncio
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web

from plugins.rag import Document, EmbeddingOptions, HashingEmbedder, Passage, RagError, collection, create_rag, format_context
from tests.plugins.rag.loaders.pdfs import pdf
from tests.standins.embedding_server import embedding_server

FAQ = "# Preguntas\n\n## Pagos\n\nAceptamos tarjeta y Bizum.\n\n## Envíos\n\nEl envío a Canarias tarda siete días.\n"
HOURS = Document(id="horario", text="Abrimos los domingos de 10 a 14.", source="horario")
STORES = pytest.mark.parametrize("store", ["index.json", "index.db"])


class Counting(HashingEmbedder):
    """Counts what it is asked; fails while `down`; answers when `open`."""

    def __init__(self, dimensions: int = 64, name: str = "counting") -> None:
        super().__init__(dimensions)
        self.id = name
        self.texts: list[str] = []
        self.down = False
        self.asked, self.open = asyncio.Event(), asyncio.Event()
        self.open.set()

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        if self.down:
            raise OSError("down")
        self.texts += texts
        self.asked.set()
        await self.open.wait()
        return await super().embed(texts)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of documents."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/faq.md").write_text(FAQ)
    return tmp_path


def citations(hits: Sequence[Passage]) -> list[str | None]:
    return [hit.citation for hit in hits]


# ---------------------------------------------------------------------------------------------- asking


async def test_the_example_of_the_contract(docs: Path) -> None:
    """Files and texts together; a hit says where it stands."""
    rag = create_rag(documents=["docs", HOURS], embeddings="local", cwd=docs)

    (hit,) = await rag.retrieve("¿aceptáis Bizum?", top_k=1)

    assert (hit.text, hit.source, hit.section) == ("Aceptamos tarjeta y Bizum.", "docs/faq.md", "Preguntas › Pagos")
    assert (hit.citation, hit.doc_id, hit.index) == ("docs/faq.md › Preguntas › Pagos", "docs/faq.md", 0)
    assert citations(await rag.retrieve("horario")) == ["horario"]


async def test_nothing_is_found_for_what_has_nothing_to_do_with_it(docs: Path) -> None:
    """A greeting, or a question about something else, gets no passages; a question about it gets some."""
    rag = create_rag(documents=["docs", HOURS], cwd=docs)

    for question in ("hola", "¿quién ganó el mundial de 1986?", "what is the capital of Australia?", "¿qué es esto?", "", "???"):
        assert await rag.retrieve(question) == []
    assert await rag.retrieve("¿Cuánto tarda el envío a Canarias?")


async def test_a_min_score_that_is_given_decides_alone(docs: Path) -> None:
    """Not set, nothing may fit; a number, of the call before that of the retriever, is the only bar."""
    plain, low = (create_rag(documents=["docs"], cwd=docs, min_score=bar) for bar in (None, 0))
    question = "¿cuánto tarda en hacerse famosa una banda de guitarras eléctricas?"

    assert await plain.retrieve(question) == []
    assert await plain.retrieve(question, min_score=0) == await low.retrieve(question) != []
    assert await low.retrieve(question, min_score=0.9) == []


SHOP = [
    Document("envios", "El envío a Canarias tarda siete días y cuesta nueve euros.", "envios"),
    Document("pagos", "Se paga con tarjeta, con transferencia o contra reembolso.", "pagos"),
    Document("visitas", "Las visitas al almacén de Canarias son los martes.", "visitas"),
    Document("libros", "Los libros de texto cuestan veinte euros.", "libros"),
]


@pytest.mark.parametrize(
    ("question", "previous", "expected"),
    [
        ("¿y en Canarias?", ["¿cuánto tarda el envío?"], "envios"),
        ("¿y cuánto cuesta?", ["¿cuánto tarda el envío a Canarias?"], "envios"),
        ("¿y cuánto cuesta?", ["¿y en Canarias?", "¿cuánto tarda el envío?"], "envios"),
        ("¿por qué?", ["¿cuánto tarda el envío a Canarias?"], "envios"),
    ],
)
async def test_a_follow_up_is_understood_by_what_was_asked_before(question: str, previous: list[str], expected: str) -> None:
    """The questions before lend their words to one that leans on them."""
    rag = create_rag(documents=SHOP)

    hits = await rag.retrieve(question, previous=previous)

    assert hits
    assert hits[0].source == expected


@pytest.mark.parametrize("question", ["¿se puede pagar con tarjeta?", "¿aceptan transferencia?"])
async def test_a_change_of_topic_leaves_the_old_one_behind(question: str) -> None:
    """A question that stands by itself gets its own passages, and none of what was asked before."""
    rag = create_rag(documents=SHOP)

    hits = await rag.retrieve(
        question, previous=["¿cuánto tarda y cuánto cuesta el envío a Canarias?", "¿cuándo son las visitas al almacén?"]
    )

    assert [hit.source for hit in hits] == ["pagos"]


@pytest.mark.parametrize("question", ["gracias", "hola", "¿cuál es la capital de Francia?", "what is the capital of Australia?"])
async def test_what_nothing_fits_gets_nothing_of_what_was_asked_before(question: str) -> None:
    """The last topic answers no question that does not lean on it."""
    rag = create_rag(documents=SHOP)

    assert await rag.retrieve(question, previous=["¿cuánto tarda el envío a Canarias?"]) == []


async def test_what_was_asked_before_is_a_list_of_texts() -> None:
    """Anything else is refused, a text by itself too."""
    rag = create_rag(documents=SHOP)

    for wrong in ("¿cuánto tarda?", [None]):
        with pytest.raises(RagError, match="previous"):
            await rag.retrieve("¿y en Canarias?", previous=wrong)  # type: ignore[arg-type,list-item]


async def test_filters_reach_the_index(docs: Path) -> None:
    """By source, and by the metadata of a document."""
    (docs / "docs/otro.md").write_text("El envío a Ceuta tarda nueve días.")
    rag = create_rag(documents=["docs", Document("x", "El envío a Melilla tarda ocho días.", metadata={"zona": "sur"})], cwd=docs)

    assert citations(await rag.retrieve("¿cuánto tarda el envío?", where={"source": "docs/otro.md"})) == ["docs/otro.md"]
    assert citations(await rag.retrieve("¿cuánto tarda el envío?", where={"zona": "sur"})) == ["x"]
    assert await rag.retrieve("¿cuánto tarda el envío?", where={"language": "en"}) == []


async def test_a_page_of_a_manual_is_cited_by_its_number(docs: Path) -> None:
    """`manual.pdf › p. 2`."""
    (docs / "docs/manual.pdf").write_bytes(pdf("Introducción.", "La garantía dura dos años."))
    rag = create_rag(documents=["docs"], cwd=docs)

    assert citations(await rag.retrieve("¿cuánto dura la garantía?")) == ["docs/manual.pdf › p. 2"]


async def test_questions_at_once_build_the_index_once(docs: Path) -> None:
    """And whoever is cancelled leaves the build to the others."""
    embedder = Counting()
    embedder.open.clear()
    rag = create_rag(documents=["docs"], cwd=docs, embeddings=embedder)
    impatient = asyncio.create_task(rag.retrieve("Bizum"))
    await embedder.asked.wait()
    impatient.cancel()
    embedder.open.set()

    hits = await asyncio.gather(*(rag.retrieve("Bizum", top_k=1) for _ in range(5)))

    assert len({hit.text for (hit,) in hits}) == 1
    assert sum("Aceptamos" in text for text in embedder.texts) == 1


async def test_nothing_goes_on_after_its_end(docs: Path) -> None:
    """A build that whoever asked left behind ends with the rest, and the next process builds anew."""
    embedder = Counting()
    embedder.open.clear()
    rag = create_rag(documents=["docs"], cwd=docs, embeddings=embedder, persist_path="index.db")
    before = asyncio.all_tasks()
    async with asyncio.timeout(20), rag.connected():
        impatient = asyncio.create_task(rag.warmup())
        await embedder.asked.wait()
        impatient.cancel()
        await asyncio.wait([impatient])
        left = asyncio.all_tasks() - before
    again = create_rag(documents=["docs"], cwd=docs, embeddings=Counting(), persist_path="index.db")

    assert left
    assert asyncio.all_tasks() == before
    assert len(await again.retrieve("Bizum", top_k=1)) == 1


# ---------------------------------------------------------------------------------------------- failing


async def test_a_named_file_that_cannot_be_read_is_an_error(docs: Path) -> None:
    """With the code for what is wrong and the file it is about."""
    (docs / "broken.json").write_text("{")
    for name, code in (("missing.md", "LOAD_FAILED"), ("broken.json", "LOAD_FAILED"), ("photo.png", "UNSUPPORTED_FORMAT")):
        if name.endswith("png"):
            (docs / name).write_bytes(b"\x89PNG")
        rag = create_rag(documents=[name], cwd=docs)

        with pytest.raises(RagError, match=name) as raised:
            await rag.warmup()
        assert (raised.value.code, raised.value.source) == (code, name)


async def test_in_a_folder_one_bad_file_is_reported_and_the_rest_is_taken(docs: Path) -> None:
    """The outcome of each file is a word with a reason."""
    (docs / "docs/roto.json").write_text("{")
    (docs / "docs/vacio.txt").write_text("")
    (docs / "docs/foto.png").write_bytes(b"\x89PNG")
    rag = create_rag(cwd=docs)

    outcomes = {outcome.source: outcome for outcome in await rag.add_files(["docs"])}

    assert {name: outcome.status for name, outcome in outcomes.items()} == {
        "docs/faq.md": "added",
        "docs/foto.png": "unsupported",
        "docs/roto.json": "broken",
        "docs/vacio.txt": "empty",
    }
    assert outcomes["docs/faq.md"].chunks == 2
    assert all(bool(outcome.reason) == outcome.failed for outcome in outcomes.values())
    assert await rag.retrieve("Bizum")


async def test_a_file_over_the_limit_is_too_big(docs: Path) -> None:
    """`max_file_bytes` is per file."""
    rag = create_rag(cwd=docs, max_file_bytes=50)
    (docs / "docs/small.txt").write_text("breve")

    outcomes = await rag.add_files(["docs"])

    assert [outcome.status for outcome in outcomes] == ["too_big", "added"]


async def test_after_a_failure_the_same_error_comes_at_once(docs: Path) -> None:
    """For `retry_delay_ms`, without asking anybody again; then it is tried again."""
    async with embedding_server() as server:
        server.act = lambda texts: web.Response(status=401)
        options = EmbeddingOptions(provider="openai", base_url=server.url, api_key="k")
        rag = create_rag(documents=["docs"], cwd=docs, embeddings=options, retry_delay_ms=200)
        with pytest.raises(RagError) as first:
            await rag.retrieve("Bizum")
        asked = server.requests
        with pytest.raises(RagError) as second:
            await rag.retrieve("Bizum")

        assert first.value is second.value
        assert first.value.code == "EMBEDDING_FAILED"
        assert server.requests == asked
        server.act = None
        await asyncio.sleep(0.21)
        assert await rag.retrieve("Bizum")


async def test_words_alone_answer_while_the_embedder_is_down(docs: Path) -> None:
    """Once documents are in, a question whose vector is not to be had is answered by the lexical leg, and the owner is told."""
    told: list[Exception] = []
    embedder = Counting()
    rag = create_rag(documents=["docs"], cwd=docs, embeddings=embedder, on_error=told.append)
    await rag.warmup()
    embedder.down = True

    hits = await rag.retrieve("¿Cuánto tarda el envío a Canarias?", top_k=1)

    assert citations(hits) == ["docs/faq.md › Preguntas › Envíos"]
    assert [getattr(error, "code", None) for error in told] == ["EMBEDDING_FAILED"]


async def test_a_failed_addition_leaves_the_old_version_answering(docs: Path) -> None:
    """Neither a broken file nor an embedder that is down takes away what was there."""
    embedder = Counting()
    rag = create_rag(documents=["docs"], cwd=docs, embeddings=embedder)
    await rag.add_text("Cerramos en agosto.", source="agosto")
    embedder.down = True

    with pytest.raises(RagError) as raised:
        await rag.add_text("Abrimos en agosto.", source="agosto")
    embedder.down = False

    assert raised.value.code == "EMBEDDING_FAILED"
    assert [hit.text for hit in await rag.retrieve("agosto", top_k=1)] == ["Cerramos en agosto."]


@pytest.mark.parametrize("broken", ["{", "", "\0" * 100], ids=["no json", "empty", "binary"])
async def test_a_file_that_broke_leaves_its_old_version_answering(docs: Path, broken: str) -> None:
    """Until it is whole again."""
    file = docs / "docs/datos.json"
    file.write_text('{"garantía": "La garantía dura dos años."}')
    rag = create_rag(documents=["docs"], cwd=docs)
    await rag.warmup()
    file.write_text(broken)

    outcomes = await rag.reindex()
    hits = await rag.retrieve("¿cuánto dura la garantía?")
    file.write_text('{"garantía": "La garantía dura tres años."}')
    await rag.reindex()

    assert [outcome.failed for outcome in outcomes if outcome.source == "docs/datos.json"] == [True]
    assert "dos años" in hits[0].text
    assert "tres años" in (await rag.retrieve("¿cuánto dura la garantía?"))[0].text


async def test_what_is_told_of_cannot_break_it(docs: Path) -> None:
    """An exception in `on_error` is not one of the retriever."""
    embedder = Counting()
    rag = create_rag(documents=["docs"], cwd=docs, embeddings=embedder, on_error=lambda error: 1 // 0)
    await rag.warmup()
    embedder.down = True

    assert await rag.retrieve("Bizum", top_k=1)


async def test_a_parser_that_is_not_installed_is_a_missing_dependency(docs: Path) -> None:
    """The parser's own ImportError names the package."""

    def parser(data: bytes) -> list[str]:
        raise ModuleNotFoundError("No module named 'fitz'", name="fitz")

    (docs / "a.pdf").write_bytes(pdf("x"))

    with pytest.raises(RagError, match="fitz") as raised:
        await create_rag(documents=["a.pdf"], cwd=docs, pdf=parser).warmup()
    assert raised.value.code == "MISSING_DEPENDENCY"


# ---------------------------------------------------------------------------------------------- adding and removing


async def test_a_text_is_added_and_undone_by_its_source() -> None:
    """Its id defaults to the source; the same source again replaces it."""
    rag = create_rag()

    added = await rag.add_text("Abrimos los domingos.", source="horario")
    changed = await rag.add_text("Abrimos los lunes.", source="horario")
    same = await rag.add_text("Abrimos los lunes.", source="horario")

    assert [outcome.status for outcome in (added, changed, same)] == ["added", "changed", "unchanged"]
    assert [hit.text for hit in await rag.retrieve("¿cuándo abrimos?")] == ["Abrimos los lunes."]
    assert await rag.remove_document("horario") is True
    assert await rag.remove_document("horario") is False
    assert await rag.retrieve("¿cuándo abrimos?") == []


async def test_two_files_with_one_text_are_both_kept(docs: Path) -> None:
    """Each with its own label."""
    (docs / "docs/copia.md").write_text(FAQ)
    rag = create_rag(documents=["docs"], cwd=docs)

    assert {hit.source for hit in await rag.retrieve("Bizum", top_k=2)} == {"docs/faq.md", "docs/copia.md"}


async def test_the_listing_says_what_is_in_it(docs: Path) -> None:
    """Id, source, chunks, characters and when."""
    rag = create_rag(documents=["docs", HOURS], cwd=docs)

    listing = await rag.listing()

    assert [(one["id"], one["source"], one["chunks"]) for one in listing] == [("docs/faq.md", "docs/faq.md", 2), ("horario", "horario", 1)]
    assert all(one["characters"] > 0 and abs(one["updated_at"] / 1000 - time.time()) < 60 for one in listing)


async def test_progress_is_told_of_each_file(docs: Path) -> None:
    """One line a file: how many of how many, and which."""
    (docs / "docs/otro.md").write_text("x")
    said: list[str] = []

    async def say(line: str) -> None:
        said.append(line)

    await create_rag(cwd=docs).add_files(["docs"], progress=say)

    assert said == ["1/2 docs/faq.md", "2/2 docs/otro.md"]


# ---------------------------------------------------------------------------------------------- coming back


@STORES
async def test_after_a_restart_nothing_is_embedded_again(docs: Path, store: str) -> None:
    """What was added stays; an edit costs its own chunks; a deleted file stops answering."""
    (docs / "docs/otro.md").write_text("La tienda está en la calle Mayor.")
    first = Counting()
    rag = create_rag(documents=["docs"], cwd=docs, embeddings=first, persist_path=store)
    await rag.warmup()
    await rag.add_text("Abrimos los domingos.", source="horario")
    await rag.save()
    second, third = Counting(), Counting()

    again = create_rag(documents=["docs"], cwd=docs, embeddings=second, persist_path=store)
    await again.warmup()
    (docs / "docs/faq.md").write_text(FAQ.replace("siete", "ocho"))
    (docs / "docs/otro.md").unlink()
    edited = create_rag(documents=["docs"], cwd=docs, embeddings=third, persist_path=store)
    await edited.warmup()

    assert len(first.texts) == 4
    assert second.texts == []
    assert third.texts == ["Preguntas › Envíos\nEl envío a Canarias tarda ocho días."]
    assert [one["id"] for one in await edited.listing()] == ["docs/faq.md", "horario"]


@STORES
async def test_many_documents_come_back_in_groups(docs: Path, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, each with its own vector, whatever the size of the groups that they are read in."""
    monkeypatch.setattr(collection, "GROUP_CHUNKS", 16)
    texts = [Document(f"d{n}", f"El artículo {n} cuesta {n * 7} euros.", f"d{n}") for n in range(250)]
    await create_rag(documents=texts, embeddings=Counting(), persist_path=store, cwd=docs).warmup()
    counting = Counting()
    rag = create_rag(documents=texts, embeddings=counting, persist_path=store, cwd=docs)

    await rag.warmup()

    assert not counting.texts
    assert len(await rag.listing()) == 250
    for number in (0, 17, 249):
        (hit,) = await rag.retrieve(texts[number].text, top_k=1)
        assert (hit.text, hit.score) == (texts[number].text, 1)


@STORES
async def test_a_change_of_embedder_or_dimension_is_noticed(docs: Path, store: str) -> None:
    """All is embedded again, and answers are those of the new embedder."""
    await create_rag(documents=["docs"], cwd=docs, embeddings=Counting(64), persist_path=store).warmup()
    other, wider = Counting(64, name="other"), Counting(128, name="other")

    await create_rag(documents=["docs"], cwd=docs, embeddings=other, persist_path=store).warmup()
    rag = create_rag(documents=["docs"], cwd=docs, embeddings=wider, persist_path=store)
    hits = await rag.retrieve("Bizum", top_k=1)

    assert len(other.texts) == 2
    assert citations(hits) == ["docs/faq.md › Preguntas › Pagos"]
    assert sum("Aceptamos" in text for text in wider.texts) == 1
    assert hits == await create_rag(documents=["docs"], cwd=docs, embeddings=wider, persist_path=store).retrieve("Bizum", top_k=1)


@STORES
async def test_a_change_of_size_cuts_everything_again(docs: Path, store: str) -> None:
    """Texts that have no file too."""
    rag = create_rag(documents=["docs"], cwd=docs, persist_path=store)
    await rag.add_text("Una frase corta aquí. Otra frase corta allí.", source="texto")

    smaller = create_rag(documents=["docs"], cwd=docs, persist_path=store, chunk_size=24)
    await smaller.warmup()

    assert {one["id"]: one["chunks"] for one in await smaller.listing()}["texto"] == 2


@STORES
async def test_what_was_removed_stays_away(docs: Path, store: str) -> None:
    """A file that stays in its folder does not come back by itself; a new version of it does, and so does adding it by name."""
    rag = create_rag(documents=["docs"], cwd=docs, persist_path=store)
    await rag.warmup()
    assert await rag.remove_document("docs/faq.md")

    again = create_rag(documents=["docs"], cwd=docs, persist_path=store)
    gone = await again.retrieve("Bizum")
    await again.add_files(["docs/faq.md"])

    assert gone == []
    assert await again.retrieve("Bizum")


@STORES
async def test_a_folder_that_vanishes_goes_on_answering_and_is_said(docs: Path, store: str) -> None:
    """It may be a volume that is not mounted. When it is back, what was deleted in it meanwhile answers no more."""
    (docs / "docs/otro.md").write_text("Hay wifi en la tienda.")
    (docs / "suelto.md").write_text("El aparcamiento es gratis.")
    told: list[Exception] = []
    options = {"documents": ["docs", "suelto.md"], "persist_path": store, "cwd": docs, "on_error": told.append}
    await create_rag(**options).warmup()  # type: ignore[arg-type]
    (docs / "docs").rename(docs / "away")

    rag = create_rag(**options)  # type: ignore[arg-type]
    await rag.warmup()

    assert [hit.text for hit in await rag.retrieve("¿hay wifi en la tienda?")] == ["Hay wifi en la tienda."]
    assert [document["source"] for document in await rag.listing()] == ["docs/faq.md", "docs/otro.md", "suelto.md"]
    (error,) = told
    assert isinstance(error, RagError)
    assert (error.code, "'docs'" in str(error)) == ("LOAD_FAILED", True)

    (docs / "away").rename(docs / "docs")
    (docs / "docs/otro.md").unlink()
    await rag.warmup()

    assert [document["source"] for document in await rag.listing()] == ["docs/faq.md", "suelto.md"]
    assert len(told) == 1


async def test_a_file_that_was_named_and_is_deleted_answers_no_more(docs: Path) -> None:
    """Its folder is there, so it was deleted; a folder that was emptied likewise."""
    rag = create_rag(documents=["docs/faq.md"], persist_path="index.db", cwd=docs)
    await rag.warmup()
    (docs / "docs/faq.md").unlink()

    with pytest.raises(RagError, match="there is no such file"):
        await rag.warmup()

    assert not await rag.listing()


@STORES
async def test_damage_anywhere_is_found(docs: Path, store: str) -> None:
    """A flipped bit or a cut: the file is set aside, the index built anew, `on_error` told; the answer is never wrong."""
    for number in range(40):
        (docs / f"docs/{number}.md").write_text(f"# Nota {number}\n\nEl número secreto de la nota {number} es {number * 7919}.\n")
    pristine = docs / "whole"
    rag = create_rag(documents=["docs"], cwd=docs, persist_path=pristine / store)
    wanted = await rag.retrieve("¿cuál es el número secreto de la nota 17?", top_k=1)
    whole = (pristine / store).read_bytes()
    size = len(whole)
    damages = [whole[: size // 2], whole[:-1], b""]
    for place in range(7, size, max(size // 24, 1)):
        flipped = bytearray(whole)
        flipped[place] ^= 0x10
        damages.append(bytes(flipped))

    for number, damage in enumerate(damages):
        folder = docs / f"damaged{number}"
        folder.mkdir()
        (folder / store).write_bytes(damage)
        told: list[Exception] = []
        hurt = create_rag(documents=["docs"], cwd=docs, persist_path=folder / store, on_error=told.append)

        assert await hurt.retrieve("¿cuál es el número secreto de la nota 17?", top_k=1) == wanted
        if any(".damaged-" in name for name in os.listdir(folder)):
            assert [getattr(error, "code", None) for error in told] == ["INVALID_INDEX"]


@STORES
async def test_a_text_is_never_lost_in_silence(docs: Path, store: str) -> None:
    """Where damage takes texts that are in no file, `on_error` is told; what is left is as it was."""
    rag = create_rag(cwd=docs, persist_path=store, embeddings=Counting())
    for number in range(12):
        await rag.add_text(f"El número de la nota {number} es {number * 7919}. " * 20, source=f"nota {number}")
    whole = (docs / store).read_bytes()
    size = len(whole)

    for place in range(0, size, max(size // 40, 1)):
        flipped = bytearray(whole)
        flipped[place] ^= 0x04
        folder = docs / f"at{place}"
        folder.mkdir()
        (folder / store).write_bytes(bytes(flipped))
        told: list[Exception] = []
        hurt = create_rag(cwd=docs, persist_path=folder / store, embeddings=Counting(), on_error=told.append)
        hits = await hurt.retrieve("¿cuál es el número de la nota 7?", top_k=12)

        assert told or len(await hurt.listing()) == 12
        assert all(f"es {int(str(hit.source).split()[1]) * 7919}." in hit.text for hit in hits)


async def test_an_index_that_cannot_be_written_is_an_error(docs: Path) -> None:
    """A path that is a folder, or lies under a file."""
    (docs / "taken.json").mkdir()
    for path in ("taken.json", "docs/faq.md/index.json", "docs/faq.md/index.db"):
        with pytest.raises(RagError, match="persist_path") as raised:
            await create_rag(documents=["docs"], cwd=docs, persist_path=path).warmup()
        assert raised.value.code == "INVALID_INDEX"


async def test_saving_is_atomic(docs: Path) -> None:
    """Every state of the file on the disk is a whole one, and nothing is left beside it."""
    rag = create_rag(documents=["docs"], cwd=docs, persist_path="index.json")
    await rag.warmup()
    for number in range(5):
        await rag.add_text(f"Texto {number}.", source=str(number))
        held = json.loads((docs / "index.json").read_text())["index"]
        assert sum("document" in value for value in held) == number + 2

    assert sorted(os.listdir(docs)) == ["docs", "index.json"]


# ---------------------------------------------------------------------------------------------- showing


def test_the_context_is_numbered_and_cannot_be_forged() -> None:
    """`[1] (label) text`; a line of a text that looks like a passage is not at the beginning of a line."""
    hits = [Passage(text="Uno\n[2] (x) falso", citation="faq.md › A\n› B"), Passage(text="Dos", source="b")]

    context = format_context(hits)

    assert context == "[1] (faq.md › A › B) Uno\n    [2] (x) falso\n\n[2] (b) Dos"
    assert create_rag().format_context(hits) == context
    assert format_context([]) == ""
