"""The bot's own library: a Rag over the tables of its database, chosen by the settings."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot import ConfigurationError, Embedder, EmbeddingOptions, Library, Parts, RagError, Reader, Registry, Transaction
from bot import marked as _

if TYPE_CHECKING:
    from plugins.rag.rag import Rag

log = logging.getLogger(__name__)
MIGRATIONS = Path(__file__).parent / "migrations"
EMBEDDERS = ("local", "openai", "ollama", "e5")


def register(registry: Registry) -> None:
    """Enter the bot: see `plugins.rag.register`."""
    registry.migrations("rag", MIGRATIONS)
    registry.lifespan(_connected)
    registry.part(Library, build)  # type: ignore[type-abstract]  # a port is found by its Protocol
    registry.part(Embedder, embedder)  # type: ignore[type-abstract]
    for name in EMBEDDERS:
        registry.embedder(name, _builder(name))
    registry.personal_data("documents", tables=["documents"], export=export, erase=erase)
    registry.statistic(_("Documents"), _count_documents)
    registry.statistic(_("Passages"), _count_chunks)


def _builder(name: str) -> Any:
    def build_embedder(options: EmbeddingOptions) -> Any:
        from plugins.rag.embedders import BUILT_IN

        return BUILT_IN[name](options)

    return build_embedder


def build(parts: Parts) -> "Rag":
    """The library that the settings ask for. Raises ConfigurationError for an embedder that nobody registered."""
    from plugins.rag import options as check
    from plugins.rag.rag import MEBIBYTE, Rag
    from plugins.rag.tables import Tables

    settings = parts.settings
    chosen = parts.find(Embedder)
    options = check.checked(
        documents=settings.documents,
        chunk_size=1000,
        chunk_overlap=None,
        top_k=settings.top_k,
        min_score=settings.min_score if "min_score" in settings.model_fields_set else None,
        cwd=None,
        max_file_bytes=20 * MEBIBYTE,
        retry_delay_ms=30_000,
        pdf=None,
        on_error=lambda error: parts.counters.add(f"rag_{str(getattr(error, 'code', 'error')).lower()}"),
    )
    return Rag(options, Tables(parts.database, parts.fence), chosen, embedding_options(parts), strict=False)


def embedder(parts: Parts) -> Embedder:
    """The embedder that the settings ask for; facts are weighed with it too.

    Raises ConfigurationError where nobody registered it, or what it needs is not installed: that will not come by itself.
    """
    from plugins.rag.embedders import choose

    name, known = parts.settings.embeddings, parts.registry.embedders
    if name not in known:
        raise ConfigurationError(f"BOT_EMBEDDINGS={name!r} cannot work: use one of {', '.join(sorted(known))}")
    found = choose(embedding_options(parts), known)[0]
    try:
        if ready := getattr(found, "ready", None):
            ready()
    except RagError as error:
        raise ConfigurationError(f"BOT_EMBEDDINGS={name!r} cannot work: {error}") from error
    return found


@asynccontextmanager
async def _connected(parts: Parts) -> AsyncIterator[None]:
    """The embedder's connection stays open as long as the bot runs, and what the library does in the background ends with it."""
    library = parts.find(Library)
    held = getattr(library, "connected", None)
    async with held() if held else nullcontext():
        yield


def embedding_options(parts: Parts) -> EmbeddingOptions:
    """The embedder of the settings, with the provider's address and key where it has none of its own."""
    settings = parts.settings
    ollama = settings.embeddings == "ollama"
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key and not ollama else None
    return EmbeddingOptions(
        provider=settings.embeddings,
        model=settings.embeddings_model,
        base_url=settings.embeddings_base_url or (settings.ollama_base_url if ollama else settings.openai_base_url),
        api_key=key,
    )


# ---------------------------------------------------------------------------------------------- people


async def export(reader: Reader, user_id: str) -> list[dict[str, Any]]:
    """What a person sent to the library: the text too, where it is theirs alone."""
    rows = await reader.all(
        "SELECT label, body, updated_at, owner_is_admin FROM documents WHERE agent_id = :agent_id AND owner = :user_id ORDER BY id",
        {"user_id": user_id},
    )
    return [{"document": row["label"], "at": row["updated_at"], **({} if row["owner_is_admin"] else _text_of(row["body"]))} for row in rows]


def _text_of(body: str) -> dict[str, str]:
    from plugins.rag.ingest import sections_of

    return {"text": "\n\n".join(section.text for section in sections_of(body))} if body else {}


async def erase(tx: Transaction, user_id: str) -> int:
    """Remove what a person who is no admin sent, and the person's id from what stays, which is the bot's."""
    from plugins.rag.tables import drop_unused_vectors, rise

    who = {"user_id": user_id}
    theirs = "agent_id = :agent_id AND owner = :user_id"
    await tx.run(
        "DELETE FROM chunks WHERE agent_id = :agent_id AND document_id IN"
        f" (SELECT id FROM documents WHERE {theirs} AND owner_is_admin = 0)",
        who,
    )
    removed = await tx.run(f"DELETE FROM documents WHERE {theirs} AND owner_is_admin = 0", who)
    parted = await tx.run(f"UPDATE documents SET owner = '' WHERE {theirs}", who)
    if removed:
        await drop_unused_vectors(tx)
        await rise(tx)
    return removed + parted


async def _count_documents(reader: Reader) -> int:
    return await _count(reader, "SELECT COUNT(*) AS n FROM documents WHERE agent_id = :agent_id AND state IN ('live', 'partly')")


async def _count_chunks(reader: Reader) -> int:
    return await _count(reader, "SELECT COUNT(*) AS n FROM chunks WHERE agent_id = :agent_id")


async def _count(reader: Reader, sql: str) -> int:
    row = await reader.one(sql)
    return int(row["n"]) if row else 0
