"""A PDF gives its pages or one reason, and only its own process pays for it."""

import asyncio
import time

import pytest

from bot import RagError
from plugins.rag.loaders import pdf as reader
from tests.plugins.rag.loaders.pdfs import locked, pdf


async def test_each_page_is_a_section() -> None:
    """Pages are named by their number and can be filtered by it."""
    loaded = await reader.load(pdf("El plazo es de 30 días.", "Abrimos los domingos."))

    assert [(s.text, s.path, s.metadata) for s in loaded.sections] == [
        ("El plazo es de 30 días.", ("p. 1",), {"page": 1}),
        ("Abrimos los domingos.", ("p. 2",), {"page": 2}),
    ]
    assert loaded.status == "ok"


async def test_pages_without_text_are_named() -> None:
    """What could be read is there, and which pages could not is said."""
    loaded = await reader.load(pdf("Uno.", "", "Tres.", ""))

    assert (loaded.status, loaded.detail, len(loaded.sections)) == ("partly", "p. 2, 4", 2)


async def test_a_scan_says_that_it_has_no_text() -> None:
    """No text is an outcome of its own, after both readers were asked."""
    assert (await reader.load(pdf("", ""))).status == "no_text"


async def test_a_password_is_asked_for_only_where_there_is_one() -> None:
    """A file that asks for a password says so; one that only forbids printing is read."""
    plain = pdf("Texto protegido.")

    assert (await reader.load(locked(plain, user="clave"))).status == "encrypted"
    assert (await reader.load(locked(plain))).sections[0].text == "Texto protegido."


@pytest.mark.parametrize("data", [b"PK\x03\x04 no pdf", b"%PDF-1.4\n", b"\0" * 1000], ids=["archive", "header", "zeros"])
async def test_what_is_no_pdf_is_broken(data: bytes) -> None:
    """Whatever the bytes are, the outcome is a word."""
    assert (await reader.load(data)).status == "broken"


async def test_a_file_without_an_end_is_read() -> None:
    """A download that broke off after the last page still has its text."""
    whole = pdf("Se cortó al final.")

    assert (await reader.load(whole[: whole.rindex(b"startxref")])).sections[0].text == "Se cortó al final."


async def test_a_reader_that_takes_too_long_is_killed() -> None:
    """The time limit holds, and the process is gone when it has passed."""
    began = time.perf_counter()

    loaded = await reader.load(pdf("Uno."), seconds=0.01)

    assert loaded.status == "timed_out"
    assert time.perf_counter() - began < 5


async def test_a_reader_that_takes_too_much_memory_is_stopped() -> None:
    """Past the limit of memory the file is broken, and we are not."""
    assert (await reader.load(pdf("Uno."), memory=16 << 20)).status == "broken"


async def test_a_cancelled_reading_leaves_no_process() -> None:
    """Cancelling is prompt: the child is killed, not waited for."""
    task = asyncio.create_task(reader.load(pdf(*["Texto."] * 200)))
    await asyncio.sleep(0.02)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_page_is_tidied() -> None:
    """Tabs for blanks, ligatures, words cut at the end of a line and headings drawn twice read as they look."""
    assert reader.tidy("la\tinfor-\nmación de\x00\x07 la o\ufb01cina") == "la información de la oficina"
    assert reader.tidy("Título en negrita\nTítulo en negrita\ntexto\n}\n}") == "Título en negrita\ntexto\n}\n}"
    assert reader.tidy("Costa-\nRica") == "Costa-\nRica"


def test_a_parser_of_the_callers_own() -> None:
    """It gives a text for each page; what it raises is the file's outcome, a missing package is an error that names it."""

    def missing(data: bytes) -> list[str]:
        raise ModuleNotFoundError("No module named 'fitz'", name="fitz")

    assert [s.path for s in reader.load_with(lambda data: ["a", "b"], b"x").sections] == [("p. 1",), ("p. 2",)]
    for odd in (lambda data: [][0], lambda data: "one text", lambda data: [5], lambda data: None):
        assert reader.load_with(odd, b"x").status == "broken"
    with pytest.raises(RagError, match="fitz") as raised:
        reader.load_with(missing, b"x")
    assert raised.value.code == "MISSING_DEPENDENCY"
