"""Sabio's process, and the names that handlers and plugins build on: `from bot import Context, Registry, …`."""

import importlib
from typing import TYPE_CHECKING, Any

from bot.context import Context, Handler, People, User, chat_key_of
from bot.errors import (
    BadRequest,
    BotError,
    CannotSee,
    ConfigurationError,
    ContextTooLong,
    ErasureUnfinished,
    ModelError,
    ModelMisconfigured,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    NotAllowed,
    RagCode,
    RagError,
    StorageError,
    SubjectErased,
    TransportError,
)
from bot.followups import is_follow_up
from bot.log import Counters
from bot.ports import (
    Assistant,
    Database,
    Deliver,
    Embedder,
    FactStore,
    Fence,
    Files,
    IngestOutcome,
    Jobs,
    Library,
    Marked,
    Marks,
    MessageStore,
    Provider,
    Reader,
    Recall,
    ReplyStream,
    Retriever,
    Row,
    Said,
    Sight,
    Transaction,
    Transcriber,
)
from bot.registry import Command, Migrations, Parts, Registry, Tool, said, tool_of
from bot.settings import Section, Settings
from bot.values import (
    Attachment,
    Choice,
    Completion,
    Document,
    EmbeddingOptions,
    ExtractOptions,
    Fact,
    Job,
    Learned,
    LLMMessage,
    MemoryOptions,
    MemoryState,
    Message,
    Passage,
    Prompt,
    RagOptions,
    Replaced,
    Reply,
    ToolCall,
    ToolSpec,
    Update,
    Usage,
    memory_options,
    new_row_id,
    rag_options,
    ttl_ms,
)
from bot.words import marked

if TYPE_CHECKING:
    from bot.database import open_database
    from bot.i18n import Catalogs, detect

    create_memory: Any

_LAZY = {
    "Catalogs": "bot.i18n",
    "create_memory": "plugins.memory",  # by name, as all plugins are loaded: the bot knows none of them
    "detect": "bot.i18n",
    "open_database": "bot.database",
}


def __getattr__(name: str) -> Any:
    """Names that bring an engine along are imported when they are used."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Assistant",
    "Attachment",
    "BadRequest",
    "BotError",
    "CannotSee",
    "Catalogs",
    "Choice",
    "Command",
    "Completion",
    "ConfigurationError",
    "Context",
    "ContextTooLong",
    "Counters",
    "Database",
    "Deliver",
    "Document",
    "Embedder",
    "EmbeddingOptions",
    "ErasureUnfinished",
    "ExtractOptions",
    "Fact",
    "FactStore",
    "Fence",
    "Files",
    "Handler",
    "IngestOutcome",
    "Job",
    "Jobs",
    "LLMMessage",
    "Learned",
    "Library",
    "Marked",
    "Marks",
    "MemoryOptions",
    "MemoryState",
    "Message",
    "MessageStore",
    "Migrations",
    "ModelError",
    "ModelMisconfigured",
    "ModelRefused",
    "ModelTimeout",
    "ModelUnavailable",
    "NotAllowed",
    "Parts",
    "Passage",
    "People",
    "Prompt",
    "Provider",
    "RagCode",
    "RagError",
    "RagOptions",
    "Reader",
    "Recall",
    "Registry",
    "Replaced",
    "Reply",
    "ReplyStream",
    "Retriever",
    "Row",
    "Said",
    "Section",
    "Settings",
    "Sight",
    "StorageError",
    "SubjectErased",
    "Tool",
    "ToolCall",
    "ToolSpec",
    "Transaction",
    "Transcriber",
    "TransportError",
    "Update",
    "Usage",
    "User",
    "chat_key_of",
    "create_memory",
    "detect",
    "is_follow_up",
    "marked",
    "memory_options",
    "new_row_id",
    "open_database",
    "rag_options",
    "said",
    "tool_of",
    "ttl_ms",
]
