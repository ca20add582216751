"""The options of `create_rag`, checked before anything is read: each error names the option, its value and what is allowed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot import Document, RagError
from plugins.rag.intake import Cutting

DEFAULT_OVERLAP = 150


@dataclass(frozen=True, slots=True)
class Options:
    """What a retriever was created with. `cwd` is absolute; `retry_delay` is in seconds."""

    paths: tuple[str | Path, ...]
    given: tuple[Document, ...]
    cutting: Cutting
    top_k: int
    min_score: float | None
    cwd: Path
    retry_delay: float
    on_error: Callable[[Exception], None] | None


def checked(
    *,
    documents: Sequence[Any],
    chunk_size: Any,
    chunk_overlap: Any,
    top_k: Any,
    min_score: Any,
    cwd: Any,
    max_file_bytes: Any,
    retry_delay_ms: Any,
    pdf: Any,
    on_error: Any,
) -> Options:
    """The options, or RagError INVALID_OPTIONS."""
    whole("chunk_size", chunk_size, least=16)
    overlap = min(DEFAULT_OVERLAP, chunk_size // 4) if chunk_overlap is None else chunk_overlap
    whole("chunk_overlap", overlap, least=0)
    if overlap * 4 > chunk_size:
        raise wrong("chunk_overlap", overlap, f"at most a quarter of chunk_size, {chunk_size // 4}")
    whole("max_file_bytes", max_file_bytes, least=1)
    whole("retry_delay_ms", retry_delay_ms, least=0)
    whole("top_k", top_k, least=1)
    if min_score is not None:
        share("min_score", min_score)
    if cwd is not None and not isinstance(cwd, str | Path):
        raise wrong("cwd", cwd, "a folder")
    for name, value in (("pdf", pdf), ("on_error", on_error)):
        if value is not None and not callable(value):
            raise wrong(name, value, "a function")
    paths, given = _sorted(documents)
    return Options(
        paths=paths,
        given=given,
        cutting=Cutting(chunk_size, overlap, max_file_bytes, pdf),
        top_k=top_k,
        min_score=None if min_score is None else float(min_score),
        cwd=Path(cwd).absolute() if cwd is not None else Path.cwd(),
        retry_delay=retry_delay_ms / 1000,
        on_error=on_error,
    )


def _sorted(documents: Any) -> tuple[tuple[str | Path, ...], tuple[Document, ...]]:
    if isinstance(documents, str | bytes | Path | Document) or not isinstance(documents, Sequence):
        raise wrong("documents", documents, "a list of paths and Document(...)")
    paths = tuple(one for one in documents if isinstance(one, str | Path))
    given = tuple(one for one in documents if isinstance(one, Document))
    for one in documents:
        if not isinstance(one, str | Path | Document) or one == "":
            raise wrong("documents", one, "a path or Document(id, text, source)")
    names = [one.id for one in given]
    for one in given:
        if not isinstance(one.id, str) or not one.id or not isinstance(one.text, str):
            raise wrong("documents", one.id, "a Document with an id and a text")
        if names.count(one.id) > 1:
            raise wrong("documents", one.id, "an id that no other Document has")
    return paths, given


def whole(name: str, value: Any, *, least: int) -> None:
    """Raise RagError INVALID_OPTIONS for what is no integer, or below `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise wrong(name, value, f"an integer, {least} or more")


def share(name: str, value: Any) -> None:
    """Raise RagError INVALID_OPTIONS for what is no number from 0 to 1."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise wrong(name, value, "a number from 0 to 1")


def wrong(name: str, value: Any, allowed: str) -> RagError:
    """The error for an option that cannot work."""
    return RagError("INVALID_OPTIONS", f"{name}={value!r} is not allowed: use {allowed}")
