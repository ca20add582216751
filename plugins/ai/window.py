"""Short-term memory: the last messages of a chat, and how many of them fit into a prompt."""

from collections.abc import Sequence
from dataclasses import dataclass

from bot import LLMMessage, Message

MAX_MESSAGES = 20
BYTES_PER_TOKEN = 3  # on the safe side: English takes about 4, Spanish 3.5, code and other scripts 3
PER_MESSAGE = 4  # tokens that the form of a message takes


@dataclass(frozen=True, slots=True)
class Window:
    """The newest messages of one chat, oldest first; never more than `max_size`."""

    chat_key: str
    messages: tuple[Message, ...] = ()
    max_size: int = MAX_MESSAGES

    def __post_init__(self) -> None:
        if not isinstance(self.max_size, int) or self.max_size < 1:
            raise ValueError(f"max_size={self.max_size!r} is not allowed: it must be an integer above 0")
        kept = tuple(self.messages)
        while len(kept) > self.max_size:
            kept = kept[_first_turn(kept) :] or kept[-self.max_size :]
        object.__setattr__(self, "messages", kept)

    def append(self, message: Message) -> "Window":
        """A window with one message more. Where that is one too many, the oldest turn leaves whole: the question and its answer."""
        return Window(self.chat_key, (*self.messages, message), self.max_size)

    def within(self, tokens: int) -> "Window":
        """A window that takes at most so many estimated tokens: the oldest turns leave first, each with its answer."""
        kept = self.messages
        spent = sum(estimate(message.content) for message in kept)
        while kept and spent > tokens:
            leaving = _first_turn(kept)
            spent -= sum(estimate(message.content) for message in kept[:leaving])
            kept = kept[leaving:]
        return Window(self.chat_key, kept, self.max_size)

    def to_llm_messages(self) -> list[LLMMessage]:
        """The messages in the form that a model's API takes."""
        return [{"role": message.role, "content": message.content} for message in self.messages]


def estimate(text: str) -> int:
    """About how many tokens a message takes; rather too many than too few."""
    return len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN + PER_MESSAGE


def _first_turn(messages: Sequence[Message]) -> int:
    """How many messages the oldest turn has: up to where the person writes again after an answer."""
    starts = (i for i in range(1, len(messages)) if (messages[i - 1].role, messages[i].role) == ("assistant", "user"))
    return next(starts, len(messages))
