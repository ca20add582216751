"""A platform as the dispatcher sees it, in small capabilities: each has those that it can."""

from typing import Protocol, runtime_checkable

from bot.ports.assistant import ReplyStream
from bot.values import Attachment, Letter, Update


class Sends(Protocol):
    """A platform. `send` returns when the platform took the text; raises TransportError where it did not."""

    @property
    def name(self) -> str: ...

    async def send(self, chat_key: str, text: str, *, reply_to: str | None = None) -> None: ...


@runtime_checkable
class Streams(Protocol):
    """A platform that shows an answer while it is written. The final text is shown whatever came before; returns it."""

    async def stream(self, chat_key: str, fragments: ReplyStream) -> None: ...


@runtime_checkable
class Delivers(Protocol):
    """A platform that takes whole letters, each once for its id, and shows an answer while it is written without ending it itself.

    What was shown is completed by `deliver`, which the outbox calls in the order of the chat, maybe before `show` has returned. Raises
    TransportUnavailable to be called again later, and Undeliverable where that is of no use.
    """

    async def deliver(self, letter: Letter) -> None: ...

    async def show(self, letter: Letter, fragments: ReplyStream) -> None:
        """Take all fragments and show them as they come; `letter` has no text yet. Raises only what the fragments raise."""
        ...


@runtime_checkable
class Moderated(Protocol):
    """A platform whose groups have administrators."""

    async def may_moderate(self, update: Update) -> bool:
        """Whether the sender administers the group; False where that cannot be found out."""
        ...


@runtime_checkable
class Revises(Protocol):
    """A platform where what was said can be changed afterwards."""

    async def may_revise(self, update: Update) -> bool:
        """Whether an edited message is the last that this person was answered in this chat."""
        ...


@runtime_checkable
class Edits(Protocol):
    """A platform that can change one line in place, for progress. The first call sends it."""

    async def progress(self, chat_key: str, key: str, text: str) -> None: ...


@runtime_checkable
class Files(Protocol):
    """A platform that carries files. `fetch` raises BadRequest for one over `max_bytes`."""

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes: ...

    async def send_file(self, chat_key: str, name: str, data: bytes) -> None: ...
