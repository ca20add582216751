"""What an administrator can do with documents from the chat, and what nobody can."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.testing import MockAIProvider, TestBot, create_test_bot
from handlers.documents import _fetched, confined, looks_like_path, title_of

ADMIN = "test:admin"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A documents folder with a file in it, and a secret outside."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/faq.md").write_text("# FAQ\n\n## Pagos\n\nAceptamos Bizum.\n")
    (tmp_path / "secret.md").write_text("La clave es 1234.")
    return tmp_path


@pytest.fixture
async def bot(home: Path, each_engine: None) -> AsyncIterator[TestBot]:
    settings = {"BOT_ADMINS": ADMIN, "BOT_DOCUMENTS": str(home / "docs"), "BOT_DATA_DIR": str(home / "data")}
    async with create_test_bot(provider=MockAIProvider(reply="Sí."), settings=settings, language="en") as opened:
        yield opened


async def said(bot: TestBot, text: str, **more: object) -> str:
    (answer,) = await bot.say(text, user=ADMIN, lang="en", **more)  # type: ignore[arg-type]
    return answer


async def listed(bot: TestBot) -> list[str]:
    return [str(document["source"]) for document in await bot.library.listing()]


@pytest.mark.parametrize("command", ["/ingest hola", "/documents", "/remove x", "/reindex"])
async def test_they_are_for_administrators(bot: TestBot, command: str) -> None:
    """Anyone else is refused in words, and nothing changes."""
    before = await listed(bot)

    assert await bot.say(command, lang="en") == ["Only an administrator of this bot may use that command."]
    assert await listed(bot) == before


async def test_a_text_is_taken_in(bot: TestBot) -> None:
    """It is cited by how it begins, and answered from at once."""
    answer = await said(bot, "/ingest Abrimos los domingos de 10 a 14.")

    assert "Added 1 document." in answer
    (hit,) = await bot.library.retrieve("¿cuándo abrimos los domingos?", top_k=1)
    assert hit.citation == "Abrimos los domingos de 10 a 14"


async def test_files_are_taken_in_and_each_failure_is_named(bot: TestBot) -> None:
    """Several at once; the summary says what was added, and why each other was not."""
    files = {"precios.md": b"La caja cuesta 7 euros.", "roto.json": b"{", "vacio.txt": b"", "foto.png": b"\x89PNG"}

    answer = await said(bot, "/ingest", attachments=files)

    assert "Added 1 document." in answer
    assert "3 files could not be added:" in answer
    for line in ("roto.json: it is damaged", "vacio.txt: it is empty", "foto.png: I cannot read files of this kind"):
        assert line in answer
    assert "precios.md" in await listed(bot)


async def test_the_same_file_again_changes_nothing(bot: TestBot) -> None:
    """And a new version of it takes its place."""
    await said(bot, "/ingest", attachments={"precios.md": b"Siete euros."})

    assert "1 document had not changed." in await said(bot, "/ingest", attachments={"precios.md": b"Siete euros."})
    assert "Updated 1 document." in await said(bot, "/ingest", attachments={"precios.md": b"Ocho euros."})


@pytest.mark.parametrize("name", ["todo.zip", "todo.tar.gz", "TODO.RAR"])
async def test_an_archive_is_refused_clearly(bot: TestBot, name: str) -> None:
    """It is not unpacked here, and not even fetched; what came with it is taken in all the same."""
    answer = await said(bot, "/ingest", attachments={"uno.md": b"Uno.", name: b"PK", "dos.md": b"Dos."})

    assert "Added 2 documents." in answer
    assert f"• {name}: it is an archive: unpack it and send me the files in it" in answer
    assert {"uno.md", "dos.md"} <= set(await listed(bot))


async def test_an_archive_in_a_folder_is_told_too(bot: TestBot, home: Path) -> None:
    """In the same words."""
    (home / "docs/todo.zip").write_bytes(b"PK")

    assert "todo.zip: it is an archive" in await said(bot, "/ingest todo.zip")
    assert "todo.zip: it is an archive" in await said(bot, f"/ingest {home}/docs")


async def test_what_cannot_be_taken_is_refused_before_it_is_fetched(bot: TestBot) -> None:
    """By its name and by the size that the platform tells; nothing of it is there to fetch."""
    from bot import Attachment, Update

    files = (Attachment("x", "g.md", size=30 << 20), Attachment("y", "foto.png", size=3))
    await bot.accept(Update(id="big", transport="test", chat_key=ADMIN, sender=ADMIN, text="/ingest", lang="en", attachments=files))
    await bot.settled(ADMIN)

    answer = bot.transport.sent[-1].text
    assert "2 files could not be added:" in answer
    assert "• g.md: it is too big (30 MB > 20 MB)" in answer
    assert "• foto.png: I cannot read files of this kind; I read these (.md, " in answer


async def test_a_file_that_turns_out_too_big_keeps_no_other_out(bot: TestBot) -> None:
    """Where the platform does not tell the size, it shows while it is fetched."""
    answer = await said(bot, "/ingest", attachments={"a.md": b"Uno.", "b.md": b"x" * ((20 << 20) + 1), "c.md": b"Tres."})

    assert "Added 2 documents." in answer
    assert "• b.md: " in answer


async def test_the_platform_may_fail_to_give_a_file(bot: TestBot) -> None:
    """It is named, with what to do, and the others are taken in."""
    from bot import Attachment
    from bot.errors import TransportUnavailable

    class Flaky:
        async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
            raise TransportUnavailable("away", seconds=1)

    outcome = await _fetched(None, Flaky(), Attachment("x", "a.md"))  # type: ignore[arg-type]

    assert (outcome.failed, outcome.source, outcome.reason) == (True, "a.md", "it could not be fetched: send it once more")


async def test_progress_says_which_of_how_many(bot: TestBot) -> None:
    """While several files are read."""
    await said(bot, "/ingest", attachments={"a.md": b"Uno.", "b.md": b"Dos."})

    assert bot.transport.progressed[0] == "Reading 1/2 a.md"


async def test_a_path_under_the_documents_folder_is_read(bot: TestBot, home: Path) -> None:
    """Relative to it, or absolute; progress is told."""
    (home / "docs/nuevo.md").write_text("Hay wifi en la tienda.")

    answer = await said(bot, "/ingest nuevo.md")

    assert "Added 1 document." in answer
    assert bot.transport.progressed
    assert "had not changed" in await said(bot, f"/ingest {home}/docs")


@pytest.mark.parametrize("path", ["../secret.md", "{home}/secret.md", "link.md", ".hidden.md", "linked/secret.md", "/etc/passwd", "~/x.md"])
async def test_no_path_leads_out(bot: TestBot, home: Path, path: str) -> None:
    """Not by dots, not by links, not by hidden names: the answer says where it may look, and nothing is read."""
    (home / "docs/link.md").symlink_to(home / "secret.md")
    (home / "docs/linked").symlink_to(home)
    (home / "docs/.hidden.md").write_text("La clave es 1234.")

    answer = await said(bot, f"/ingest {path.format(home=home)}")

    assert "where I may look" in answer
    assert str(home / "docs") in answer
    assert await bot.library.retrieve("¿cuál es la clave?") == []


async def test_the_name_of_what_is_there_is_no_text(bot: TestBot, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder out of bounds is refused, and not answered from as the one word that its name is."""
    monkeypatch.chdir(home)
    (home / "cuentas").mkdir()

    answer = await said(bot, "/ingest cuentas")

    assert "where I may look" in answer
    assert "Added 1 document." in await said(bot, "/ingest Cuentas claras conservan amistades.")


async def test_documents_lists_and_remove_takes_away(bot: TestBot, home: Path) -> None:
    """By the name that the list shows."""
    await said(bot, "/ingest Abrimos los domingos.")

    listing = await said(bot, "/documents")
    removed = await said(bot, "/remove Abrimos los domingos")

    assert "I answer from 2 documents:" in listing
    assert "• Abrimos los domingos: 1 passage" in listing
    assert "I no longer answer from Abrimos los domingos." in removed
    assert await bot.library.retrieve("domingos") == []
    assert "/documents lists them" in await said(bot, "/remove nada")
    assert "name of a document" in await said(bot, "/remove")


async def test_an_uploaded_file_is_removed_by_its_name(bot: TestBot) -> None:
    """As it was sent, whatever its id is."""
    await said(bot, "/ingest", attachments={"precios.md": b"Siete euros."})

    assert "I no longer answer from precios.md." in await said(bot, "/remove precios.md")


async def test_reindex_reads_all_again(bot: TestBot, home: Path) -> None:
    """And says what changed."""
    (home / "docs/faq.md").write_text("# FAQ\n\nAceptamos efectivo.\n")

    assert "Updated 1 document." in await said(bot, "/reindex")


async def test_ingest_alone_says_how(bot: TestBot) -> None:
    """With the formats it reads."""
    assert ".pdf" in await said(bot, "/ingest")


async def test_a_file_without_a_command_is_not_kept(bot: TestBot) -> None:
    """An administrator is told how to; anyone else that it is not looked at."""
    before = await listed(bot)

    assert "/ingest" in await said(bot, "", attachments={"a.md": b"Hola."})
    (other,) = await bot.say("mira esto", lang="en", attachments={"a.md": b"Hola."})
    assert "Ask me in words" in other
    assert await listed(bot) == before


def test_a_text_is_told_from_a_path() -> None:
    """A sentence with a slash in it is a sentence."""
    assert looks_like_path("docs/faq.md")
    assert looks_like_path("../x y.md")
    assert looks_like_path("docs/es/../../LICENSE")
    assert not looks_like_path("Abrimos 24/7 y los domingos.")
    assert not looks_like_path("entrada y/o salida")


def test_a_text_is_called_by_how_it_begins() -> None:
    """The first line with words, cut at a word."""
    assert title_of("\n# Horario de verano\n\nAbrimos.") == "Horario de verano"
    assert (
        title_of("Una frase muy larga que no cabe entera en la etiqueta de ninguna manera")
        == "Una frase muy larga que no cabe entera en la…"
    )


def test_confinement_follows_links_first(home: Path) -> None:
    """A link to a file inside is that file; a root itself is allowed."""
    (home / "docs/alias.md").symlink_to(home / "docs/faq.md")

    assert confined("alias.md", [home / "docs"]) == home / "docs/faq.md"
    assert confined(str(home / "docs"), [home / "docs"]) == home / "docs"
    assert confined("a\0b", [home / "docs"]) is None
