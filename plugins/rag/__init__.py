"""Documents to answer from: reads, cuts, indexes and finds them. `from plugins.rag import Document, Passage, create_rag`."""

import importlib
from typing import TYPE_CHECKING, Any

from bot import Document, EmbeddingOptions, Passage, RagError, Registry

if TYPE_CHECKING:
    from plugins.rag.embedders import HashingEmbedder
    from plugins.rag.rag import Rag, create_rag, format_context

_LAZY = {
    "HashingEmbedder": "plugins.rag.embedders",
    "Rag": "plugins.rag.rag",
    "create_rag": "plugins.rag.rag",
    "format_context": "plugins.rag.rag",
}


def __getattr__(name: str) -> Any:
    """Names that bring numpy along are imported when they are used."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def register(registry: Registry) -> None:
    """Enter the bot: its library, the embedders, the tables, and what they hold of people."""
    from plugins.rag.library import register as add

    add(registry)


__all__ = [
    "Document",
    "EmbeddingOptions",
    "HashingEmbedder",
    "Passage",
    "Rag",
    "RagError",
    "create_rag",
    "format_context",
    "register",
]
