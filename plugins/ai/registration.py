"""How the turn enters the bot: the Assistant and the Provider, the table of messages, and what is done with a person's words."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from bot import Assistant, ConfigurationError, Library, Parts, Provider, RagOptions, Recall, Registry, Retriever, Settings, rag_options
from bot import marked as _
from plugins.ai import store
from plugins.ai.client import AIClient
from plugins.ai.history import Windows
from plugins.ai.providers.extractive import ExtractiveProvider
from plugins.ai.providers.openai import OpenAIProvider, ollama
from plugins.ai.retrieval import Several

_LANGUAGE = "SELECT language, profile FROM users WHERE agent_id = :agent_id AND user_id = :user_id"


def register(registry: Registry) -> None:
    """Add the turn: its parts, its providers and its table."""
    windows = Windows()

    async def drop_windows(user_id: str) -> int:
        windows.drop_person(user_id)
        return 0  # the same messages as the rows that left

    registry.part(cast(type[Any], Provider), provider)
    registry.part(cast(type[Any], Assistant), lambda parts: assistant(parts, windows))
    registry.provider("openai", _openai)
    registry.provider("ollama", _ollama)
    registry.provider("extractive", lambda parts: ExtractiveProvider(parts.translate))
    registry.migrations("ai", Path(__file__).parent / "migrations")
    registry.personal_data(
        "messages",
        tables=("messages",),
        export=store.export,
        erase=store.erase,
        clean=drop_windows,
        chats=store.chats,
        restore=store.restore,
    )
    registry.on_chat_moved(store.move)
    registry.statistic(_("Messages"), store.count_messages)
    registry.statistic(_("Chats"), store.count_chats)
    registry.lifespan(_closing)


def assistant(parts: Parts, windows: Windows) -> AIClient:
    """The AIClient of the bot."""
    settings = parts.settings

    async def language_of(user_id: str) -> str | None:
        row = await parts.database.one(_LANGUAGE, {"user_id": user_id})
        return (row["language"] or json.loads(row["profile"]).get("bot", {}).get("language")) if row else None

    return AIClient(
        cast(Provider, parts.find(cast(type[Any], Provider))),
        window=settings.max_context_messages,
        memory=cast(Recall, parts.find(cast(type[Any], Recall))),
        rag=_rag(parts),
        tools=parts.registry.tools.values(),
        persona=settings.system_prompt,
        language=settings.default_language,
        max_context_tokens=settings.max_context_tokens,
        answer_seconds=settings.model_timeout,
        database=parts.database,
        fence=parts.fence,
        windows=windows,
        counters=parts.counters,
        clock=parts.clock,
        translate=parts.translate,
        language_of=language_of,
        erase=parts.erase,
    )


def _rag(parts: Parts) -> RagOptions:
    """What a plugin gave with `registry.ai(rag=…)`, else the bot's documents with the retrievers that plugins add."""
    settings, given = parts.settings, parts.registry.rag_options
    if given is not None:
        options = rag_options(given)
        assert options is not None
        return options
    added = {name: build(parts) for name, build in parts.registry.retrievers.items()}
    library = cast(Retriever, parts.find(cast(type[Any], Library)))
    retriever = Several({"documents": library, **added}, parts.counters) if added else library
    bar = settings.min_score if "min_score" in settings.model_fields_set else None  # unset: each retriever's own way to tell what fits
    return RagOptions(
        retriever=retriever,
        top_k=settings.top_k,
        min_score=bar,
        append_sources=settings.append_sources,
        rewrite=settings.rag_rewrite,
    )


# ---------------------------------------------------------------------------------------------- providers


def chosen(settings: Settings) -> str:
    """The name of the provider: `auto` means a model where a key or an address is set, else none."""
    if settings.provider != "auto":
        return settings.provider
    return "openai" if settings.openai_api_key or settings.openai_base_url else "extractive"


def provider(parts: Parts) -> Provider:
    """The provider that the settings name. Raises ConfigurationError for a name that nobody registered."""
    name = chosen(parts.settings)
    build = parts.registry.providers.get(name)
    if build is None:
        known = ", ".join(["auto", *sorted(parts.registry.providers)])
        raise ConfigurationError(f"BOT_PROVIDER={name!r} is not there: use one of {known}")
    return build(parts)


def _openai(parts: Parts) -> Provider:
    settings = parts.settings
    key = settings.openai_api_key
    if key is None and settings.openai_base_url is None:
        raise ConfigurationError("BOT_PROVIDER='openai' needs OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own")
    return OpenAIProvider(
        model=settings.model,
        api_key=key.get_secret_value() if key else None,
        base_url=settings.openai_base_url,
        timeout=settings.model_timeout,
    )


def _ollama(parts: Parts) -> Provider:
    return ollama(parts.settings.ollama_base_url, model=parts.settings.model, timeout=parts.settings.model_timeout)


@asynccontextmanager
async def _closing(parts: Parts) -> AsyncIterator[None]:
    """Closes the connections of the provider at the end."""
    try:
        yield
    finally:
        for part in (parts.find(cast(type[Any], Assistant)), parts.find(cast(type[Any], Provider))):
            if isinstance(part, AIClient | OpenAIProvider):
                await part.aclose()
