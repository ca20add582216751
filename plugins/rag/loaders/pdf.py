"""PDF to a section for each page, read in a child process with a limit of time and memory.

PDFium leads and pypdf follows where it finds nothing; docs/decisions/pdf-readers.md says why.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from bot import RagError
from plugins.rag.loaders import Loaded, PdfParser, Section, process
from plugins.rag.loaders.process import MEMORY_BYTES, SECONDS
from plugins.rag.text import clean

READERS = ("pdfium", "pypdf")

_CHILD = Path(__file__).with_name("pdf_child.py")
_HYPHENATED = re.compile(r"(?<=[^\W\d_])(?:[-\u00ad\ufffe]\n|\u00ad[ \t]*\n?)(?=[^\W\d_A-Z])")
_BLANKS = re.compile(r"[^\S\n]+")
_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_SHOWN_PAGES = 30
_BOLD_TWICE = 12  # a shorter line that comes twice is more likely a brace than a heading drawn twice

Answer = tuple[Literal["ok", "encrypted", "broken", "timed_out"], list[str]]


async def load(data: bytes, *, seconds: float = SECONDS, memory: int = MEMORY_BYTES) -> Loaded:
    """The pages of a PDF. `seconds` and `memory` (bytes) are the limits of each reader."""
    best: Loaded | None = None
    for reader in READERS:
        status, pages = await _read(reader, data, seconds=seconds, memory=memory)
        loaded = of_pages(pages) if status == "ok" else Loaded(status=status)
        if loaded.sections:
            return loaded
        if best is None or best.status in ("broken", "timed_out"):
            best = loaded if best is None or loaded.status != "broken" else best
        if status == "encrypted":
            return loaded
    assert best is not None
    return best


def load_with(parser: PdfParser, data: bytes) -> Loaded:
    """The pages that a parser of the caller's own finds; whatever it raises means that the file cannot be read."""
    try:
        pages = _texts(parser(data))
    except ImportError as error:
        raise RagError("MISSING_DEPENDENCY", f"the PDF parser needs {error.name!r}: install it") from error
    except Exception as error:  # noqa: BLE001  somebody else's code: its failure is the file's outcome, whatever it is
        return Loaded(status="broken", detail=type(error).__name__)
    return of_pages(pages)


def _texts(pages: object) -> list[str]:
    if isinstance(pages, str | bytes) or not isinstance(pages, Iterable):
        raise TypeError("a parser gives a list with the text of each page")
    texts = list(pages)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("each page is a text")
    return texts


def of_pages(pages: Sequence[str]) -> Loaded:
    """A section for each page that has text; `partly` names those that have none."""
    texts = [tidy(page) for page in pages]
    found = tuple(Section(text, (f"p. {number}",), {"page": number}) for number, text in enumerate(texts, start=1) if text)
    blank = [str(number) for number, text in enumerate(texts, start=1) if not text]
    if not found:
        return Loaded(status="no_text")
    if blank:
        more = "…" if len(blank) > _SHOWN_PAGES else ""
        return Loaded(found, "partly", "p. " + ", ".join(blank[:_SHOWN_PAGES]) + more)
    return Loaded(found)


def tidy(text: str) -> str:
    """A page as a person reads it: ligatures apart, words whole over a line's end, single spaces, no line drawn twice for boldness."""
    text = _HYPHENATED.sub("", clean(text.translate(_LIGATURES)))
    lines = [_BLANKS.sub(" ", line).strip() for line in text.replace("\u00ad", "").split("\n")]
    kept = [line for n, line in enumerate(lines) if not (n and len(line) > _BOLD_TWICE and line == lines[n - 1])]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


async def _read(reader: str, data: bytes, *, seconds: float, memory: int) -> Answer:
    """What one reader says of a file, its process killed at the end of its time."""
    said = await process.answer(_CHILD, reader, data, seconds=seconds, memory=memory)
    return ("timed_out", []) if said is None else _answer(said)


def _answer(said: bytes) -> Answer:
    try:
        answer = json.loads(said)
    except ValueError:  # it crashed, or ran out of memory while answering
        return "broken", []
    if answer["status"] == "missing":
        raise RagError("MISSING_DEPENDENCY", "reading PDF needs pypdfium2 and pypdf: install them")
    return answer["status"], answer["pages"]
