"""The seams: what one part may ask of another. Each is small; its docstring says what is promised and what is raised."""

from bot.ports.assistant import Assistant, Deliver, Recall, ReplyStream
from bot.ports.models import Embedder, IngestOutcome, Library, Provider, Retriever, Said, Sight, Transcriber
from bot.ports.platforms import Delivers, Edits, Files, Moderated, Revises, Sends, Streams
from bot.ports.storage import Database, FactStore, Fence, Jobs, Marked, Marks, MessageStore, Params, Reader, Row, Transaction

__all__ = [
    "Assistant",
    "Database",
    "Deliver",
    "Delivers",
    "Edits",
    "Embedder",
    "FactStore",
    "Fence",
    "Files",
    "IngestOutcome",
    "Jobs",
    "Library",
    "Marked",
    "Marks",
    "MessageStore",
    "Moderated",
    "Params",
    "Provider",
    "Reader",
    "Recall",
    "ReplyStream",
    "Retriever",
    "Revises",
    "Row",
    "Said",
    "Sends",
    "Sight",
    "Streams",
    "Transaction",
    "Transcriber",
]
