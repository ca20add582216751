"""What becomes of one document: the outcome that is reported, and the pieces that it is cut into. Pure."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot import marked as _
from plugins.rag.chunking import VERSION, chunk
from plugins.rag.lexical import fold, words
from plugins.rag.loaders import Section
from plugins.rag.stopwords import language_of
from plugins.rag.storage import StoredChunk

LONGEST_HEADING = 120
_SEEN_FOR_LANGUAGE = 3_000


REASONS: Mapping[str, str] = {
    "partly": _("some of it has no text or cannot be read"),
    "no_text": _("it has no text: is it a scan?"),
    "empty": _("it is empty"),
    "encrypted": _("it asks for a password"),
    "broken": _("it is damaged, or not what its name says"),
    "too_big": _("it is too big"),
    "timed_out": _("reading it took too long"),
    "unsupported": _("files of this kind cannot be read; use Markdown, text, HTML, Word (.docx), JSON or PDF"),
    "not_found": _("there is no such file"),
    "vanished": _("it is not there any more; what was read from it before goes on answering"),
    "unreadable": _("it may not be read"),
    "special": _("it is no ordinary file"),
    "missing": _("a package that reads this kind of file is not installed"),
    "waiting": _("it is found by its words alone until the embedder answers again"),
}
ANSWERING = frozenset({"added", "changed", "unchanged", "removed", "partly"})


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of one document.

    `status` is added, changed, unchanged, removed, partly, or a key of REASONS. `reason` is a message of the catalogs; `detail` goes with
    it and needs no translation (page numbers, a line). `chunks` is how many pieces of it are in the index.
    """

    source: str
    status: str
    chunks: int = 0
    id: str = ""
    detail: str = ""
    note: str = ""
    named: bool = False

    @property
    def reason(self) -> str:
        """Why it is not simply added: a message of the catalogs, or nothing."""
        return REASONS.get(self.note or self.status, "")

    @property
    def failed(self) -> bool:
        """Whether it cannot be answered from."""
        return self.status not in ANSWERING


def recipe(size: int, overlap: int) -> str:
    """How documents are cut: what was cut another way is cut again."""
    return f"{VERSION}/{size}/{overlap}"


def digest_of(data: bytes | str) -> str:
    """What tells one content from another."""
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()


def cut(
    document_id: str, sections: Sequence[Section], *, size: int, overlap: int, metadata: Mapping[str, Any] | None = None
) -> list[StoredChunk]:
    """The pieces of a document, in order, each with its headings and what it can be filtered by."""
    beginning = " ".join(section.text[:_SEEN_FOR_LANGUAGE] for section in sections[:50])[:_SEEN_FOR_LANGUAGE]
    language = language_of([fold(word) for word in words(beginning)])
    common = {**({"language": language} if language else {}), **(metadata or {})}
    pieces: list[StoredChunk] = []
    for section in sections:
        heading = " › ".join(_short(part) for part in section.path)
        known = json.dumps({**common, **section.metadata}, ensure_ascii=False, sort_keys=True)
        for text in chunk(section.text, size=size, overlap=overlap):
            digest = digest_of(searched(heading, text))
            pieces.append(StoredChunk(document_id, len(pieces), heading, text, known, digest))
    return pieces


def searched(heading: str, text: str) -> str:
    """What is embedded of a piece: its headings belong to it."""
    return f"{heading}\n{text}" if heading else text


def _short(part: str) -> str:
    return part if len(part) <= LONGEST_HEADING else part[: LONGEST_HEADING - 1].rstrip() + "…"


def body_of(sections: Sequence[Section]) -> str:
    """Sections as they are kept for what has no file to be read again."""
    return json.dumps([[section.text, list(section.path), section.metadata] for section in sections], ensure_ascii=False)


def sections_of(body: str) -> list[Section]:
    """The sections that `body_of` wrote."""
    return [Section(text, tuple(path), metadata) for text, path, metadata in json.loads(body)]
