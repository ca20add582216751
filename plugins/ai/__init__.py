"""The turn: a question, what is remembered, what is found, an answer that says where it comes from."""

from bot import ExtractOptions, MemoryOptions, Message, RagOptions, Reply, chat_key_of
from plugins.ai.client import AIClient
from plugins.ai.registration import register
from plugins.ai.window import Window

__all__ = ["AIClient", "ExtractOptions", "MemoryOptions", "Message", "RagOptions", "Reply", "Window", "chat_key_of", "register"]
