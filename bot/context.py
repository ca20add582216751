"""The one argument of a handler: who says what where, and what the handler may do about it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bot.log import Counters
from bot.ports import Assistant, Files, Library, Marks, Recall, ReplyStream
from bot.values import Attachment, Choice, Update

Gettext = Callable[[str], str]
NGettext = Callable[[str, str, int], str]


class User(Protocol):
    """A person's profile: small JSON values by namespace, kept until the person is erased."""

    @property
    def id(self) -> str: ...

    async def get(self, namespace: str, key: str, default: Any = None) -> Any: ...

    async def set(self, namespace: str, key: str, value: Any) -> None:
        """Keep a value; None takes it away."""
        ...

    async def language(self) -> str | None:
        """The language that the person chose, or None."""
        ...

    async def choose_language(self, language: str | None) -> None: ...


class People(Protocol):
    """What is held about people, across all that is registered with `registry.personal_data`."""

    async def export(self, user_id: str) -> dict[str, Any]: ...

    async def erase(self, user_id: str) -> Mapping[str, int]:
        """Erase everything in one transaction behind the fence; how many rows or files of each kind."""
        ...


class Outgoing(Protocol):
    """How words leave: through the outbox, so that a reply is a row before it is sent."""

    async def reply(self, text: str, *, choices: Sequence[Choice] = ()) -> None: ...

    async def answer(self, stream: ReplyStream) -> None: ...

    async def deliver(self, tx: Any, reply: Any) -> None: ...

    async def progress(self, text: str) -> None: ...


class Expected(Protocol):
    """A question put to a person, whose next message in this chat goes to the handler registered as `registry.answer(name)`."""

    async def __call__(self, name: str, *, seconds: int = 300) -> None: ...


@dataclass(frozen=True, slots=True)
class Context:
    """What a handler is called with. `text` is the whole message, `args` what follows the command.

    `recall` is the long-term memory behind `ai`; `marks` are the epochs of the sender and the chat when the update was taken up.
    """

    update: Update
    lang: str
    gettext: Gettext
    ngettext: NGettext
    ai: Assistant
    library: Library
    user: User
    people: People
    outgoing: Outgoing
    expect: Expected
    counters: Counters
    is_admin: bool = False
    args: str = ""
    command: str = ""
    languages: tuple[str, ...] = ("es", "en")
    files: Files | None = None
    bot: Any = field(default=None, repr=False)
    recall: Recall | None = None
    marks: Marks = field(default_factory=dict)

    @property
    def sender(self) -> str:
        """The canonical id of who wrote, `telegram:123`; empty where the platform gives no person."""
        return self.update.sender or ""

    @property
    def chat(self) -> str:
        """The key of this chat (of a topic within it)."""
        return chat_key_of(self)

    @property
    def text(self) -> str:
        """The whole message."""
        return self.update.text

    @property
    def evidence(self) -> str:
        """What counts as the person's own words in this message."""
        return self.update.text if self.update.evidence is None else self.update.evidence

    @property
    def is_group(self) -> bool:
        """Whether others read the answer too."""
        return self.update.is_group

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The files that came with it."""
        return self.update.attachments

    @property
    def _(self) -> Gettext:
        """Translates a message into the reader's language."""
        return self.gettext

    async def reply(self, text: str, *, choices: Sequence[Choice] = ()) -> None:
        """Say something in this chat. `choices` are answers by one press, where the platform has buttons; the text must do without."""
        if not isinstance(text, str):
            raise TypeError(f"a reply is a text, and {type(text).__name__} is none")
        await self.outgoing.reply(text, choices=choices)

    async def answer(self, stream: ReplyStream) -> None:
        """Show a turn's answer, as it comes where the platform can."""
        await self.outgoing.answer(stream)

    async def progress(self, text: str) -> None:
        """Say how far long work is; a platform that can edit shows one line that changes, others nothing."""
        await self.outgoing.progress(text)


Handler = Callable[[Context], Awaitable[None]]


def chat_key_of(ctx: Context) -> str:
    """The key of a chat, and of a forum topic within it: what `AIClient` calls `chat_key`."""
    return ctx.update.chat_key
