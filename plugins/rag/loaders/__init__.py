"""Files to sections of text: one reader for each format, chosen by the file's name; what cannot be read says why."""

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any, Literal

from bot import RagError

log = logging.getLogger(__name__)
Status = str  # ok, partly, or a key of ingest.REASONS
Format = Literal["markdown", "mdx", "text", "json", "jsonl", "pdf", "html", "docx"]
PdfParser = Callable[[bytes], list[str]]

FORMATS: dict[str, Format] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "mdx",
    ".txt": "text",
    ".text": "text",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".pdf": "pdf",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".docx": "docx",
}
LARGE = 128 << 10  # bytes of markup: what is larger is read in a process of its own, as its reader can be made slow


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document that stands under one heading, on one page or in one element. `path` is the headings above it."""

    text: str
    path: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file held: its sections, or the reason for none. `detail` goes with the reason: the pages without text, say."""

    sections: tuple[Section, ...] = ()
    status: Status = "ok"
    detail: str = ""


def format_of(name: str) -> Format | None:
    """The format that a file's name promises, or None where there is no reader for it."""
    return FORMATS.get(PurePath(name).suffix.casefold())


async def load(name: str, data: bytes, *, pdf: PdfParser | None = None) -> Loaded:
    """Read a file's bytes. Never raises for what the bytes hold: a file that cannot be read has a status that says why."""
    kind = format_of(name)
    if kind is None:
        return Loaded(status="unsupported", detail=PurePath(name).suffix)
    if not data:
        return Loaded(status="empty")
    if kind == "pdf":
        import plugins.rag.loaders.pdf as reader

        return await (reader.load(data) if pdf is None else asyncio.to_thread(reader.load_with, pdf, data))
    try:
        if kind in ("html", "docx"):
            return await _load_marked_up(kind, data)
        return await asyncio.to_thread(_load_text, kind, data)
    except RagError:
        raise
    except Exception as error:  # noqa: BLE001  what a parser chokes on is that file's outcome, and must not end the others' ingestion
        log.warning("the reader of %s failed: %s", kind, type(error).__name__)
        return Loaded(status="broken", detail=type(error).__name__)


async def _load_marked_up(kind: Format, data: bytes) -> Loaded:
    from plugins.rag.loaders import process, word

    if find_spec("lxml") is None:
        raise RagError("MISSING_DEPENDENCY", "reading HTML and Word files needs lxml: install it")
    large = len(data) > LARGE or (kind == "docx" and word.weight(data) > LARGE)
    if not large:
        return await asyncio.to_thread(read_marked_up, kind, data)
    said = await process.answer(Path(__file__).with_name("child.py"), kind, data)
    if said is None:
        return Loaded(status="timed_out")
    answer = json.loads(said)  # ValueError where it crashed: the file is broken
    return Loaded(tuple(Section(text, tuple(path)) for text, path in answer["sections"]), answer["status"], answer["detail"])


def read_marked_up(kind: str, data: bytes) -> Loaded:
    """Read HTML or DOCX, here and now."""
    if kind == "html":
        from plugins.rag.loaders import web

        return web.load(data)
    from plugins.rag.loaders import word

    return word.load(data)


def _load_text(kind: Format, data: bytes) -> Loaded:
    from plugins.rag.text import NotText, decode

    try:
        text = decode(data)
    except NotText:
        return Loaded(status="broken")
    if not text.strip():
        return Loaded(status="empty")
    if kind in ("json", "jsonl"):
        from plugins.rag.loaders import structured

        return structured.load(text, lines=kind == "jsonl")
    if kind == "text":
        return Loaded((Section(text),))
    from plugins.rag.loaders import markdown

    sections = markdown.sections(text, mdx=kind == "mdx")
    return Loaded(tuple(sections)) if sections else Loaded(status="empty")
