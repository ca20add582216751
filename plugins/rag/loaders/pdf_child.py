"""Runs by itself, in a process that can be killed: a PDF on standard input, its pages as JSON on standard output.

    python pdf_child.py READER MEMORY_BYTES CPU_SECONDS

Whatever the library does with a hostile file (a loop, gigabytes, a crash), only this process pays for it. The answer is
`{"status": "ok" | "encrypted" | "broken", "pages": [...]}`; no answer means that it was killed or crashed.
"""

import json
import sys
from collections.abc import Iterable
from typing import Any

MOST_PAGES = 20_000
MOST_CHARACTERS = 20_000_000


def limit(memory: int, seconds: int) -> None:
    """Let this process have no more than so many bytes and seconds."""
    try:
        import resource
    except ImportError:  # not on Windows: the parent's time-out is all there is
        return
    for kind, limit in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (limit, limit))


def _with_pdfium(data: bytes) -> dict[str, object]:
    import pypdfium2  # type: ignore[import-untyped]

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        return {"status": "encrypted" if "password" in str(error).casefold() else "broken", "pages": []}
    return {"status": "ok", "pages": _capped(_pdfium_page(document, n) for n in range(min(len(document), MOST_PAGES)))}


def _pdfium_page(document: Any, number: int) -> str:
    import pypdfium2

    try:
        page = document[number]
        words = page.get_textpage()
        text = str(words.get_text_bounded())
    except pypdfium2.PdfiumError:
        return ""
    words.close()
    page.close()
    return text


def _with_pypdf(data: bytes) -> dict[str, object]:
    import io
    import logging

    import pypdf

    logging.disable(logging.CRITICAL)
    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        return {"status": "encrypted", "pages": []}
    return {"status": "ok", "pages": _capped(_pypdf_page(reader, n) for n in range(min(len(reader.pages), MOST_PAGES)))}


def _pypdf_page(reader: Any, number: int) -> str:
    try:
        return str(reader.pages[number].extract_text())
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  the library raises a dozen kinds of its own and of Python's; the other pages may be whole
        return ""


def _capped(pages: Iterable[str]) -> list[str]:
    kept, room = [], MOST_CHARACTERS
    for text in pages:
        kept.append(text[:room])
        room -= len(kept[-1])
        if room <= 0:
            break
    return kept


READERS = {"pdfium": _with_pdfium, "pypdf": _with_pypdf}


def main() -> None:
    """Read, answer, leave."""
    reader, memory, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    data = sys.stdin.buffer.read()
    limit(memory, seconds)
    sys.setrecursionlimit(3000)
    try:
        answer = READERS[reader](data)
    except ModuleNotFoundError:
        answer = {"status": "missing", "pages": []}
    except Exception:  # noqa: BLE001  whatever a reader raises says one thing: it cannot read this file
        answer = {"status": "broken", "pages": []}
    sys.stdout.buffer.write(json.dumps(answer).encode("ascii"))


if __name__ == "__main__":
    main()
