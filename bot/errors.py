"""The one error tree: what can go wrong, and the words a person reads about it.

    BotError                     a sentence for the person, a stable code for the log
    ├── ConfigurationError       a setting, a catalog or a plugin cannot work: the start stops with one line
    ├── StorageError             the database cannot be opened, read or written
    │   └── SchemaTooNew         the database was made by a newer version
    ├── SubjectErased            a write came after its person (or chat) was erased: it is dropped
    ├── ErasureUnfinished        a person's rows are erased, and something of theirs that is no table is not yet
    ├── NotAllowed               a command by someone who may not use it
    ├── BadRequest               what a person asked for cannot be done as asked
    ├── ModelError               the model gave no answer
    │   ├── ModelUnavailable     it cannot be reached, or is overloaded
    │   ├── ModelTimeout         it did not answer within its deadline
    │   ├── ModelRefused         it would not answer
    │   ├── CannotSee            it takes no pictures
    │   ├── ModelMisconfigured   the key, the address or the model's name is wrong
    │   └── ContextTooLong       the prompt is longer than the model takes
    ├── TransportError           a platform did not take what was sent
    │   ├── TransportUnavailable it cannot be reached, or asks to wait: nothing is lost, it is tried again
    │   └── Undeliverable        it never will: the person blocked the bot, the chat is gone
    └── RagError                 documents and retrieval; its `code` is one of RagCode

Every class has a `code` that never changes, for logs, metrics and tests. `str(error)` is for the log and for whoever runs the bot; it
quotes values with `!r` and says what to do next. `error.words(gettext)` is for the person and holds nothing of theirs.
"""

from collections.abc import Callable
from typing import ClassVar, Literal

from bot.words import marked as _

Gettext = Callable[[str], str]

RagCode = Literal[
    "INVALID_OPTIONS",
    "UNSUPPORTED_FORMAT",
    "LOAD_FAILED",
    "MISSING_DEPENDENCY",
    "EMBEDDING_FAILED",
    "INVALID_INDEX",
]


class BotError(Exception):
    """Anything that the bot can say in words."""

    code: str = "BOT_ERROR"
    message: ClassVar[str] = _("Something went wrong on my side. Please try again in a moment.")

    def words(self, gettext: Gettext) -> str:
        """The sentence for the person, by the catalog of the reader's language."""
        return gettext(self.message)


class ConfigurationError(BotError):
    """A setting, a catalog or a plugin cannot work; the text names it and what is allowed."""

    code = "CONFIGURATION"


class StorageError(BotError):
    """The database cannot be opened, read or written."""

    code = "STORAGE"
    message = _("I cannot reach my storage right now, so I did not answer. Please try again in a moment.")


class SchemaTooNew(StorageError):
    """The database was made by a newer version of the bot."""

    code = "SCHEMA_TOO_NEW"


class SubjectErased(BotError):
    """The person or the chat was erased while this was under way; nothing was written."""

    code = "SUBJECT_ERASED"


class ErasureUnfinished(BotError):
    """A person's rows are erased, and something of theirs that is no table could not be removed; it is tried again until it is."""

    code = "ERASURE_UNFINISHED"
    message = _("What I held about you in my database is erased, but a file could not be removed yet. I keep trying until it is gone.")


class NotAllowed(BotError):
    """A command by someone who may not use it."""

    code = "NOT_ALLOWED"
    message = _("Only an administrator of this bot may use that command.")


class BadRequest(BotError):
    """What a person asked for cannot be done as asked; it is made with the sentence they read, already translated."""

    code = "BAD_REQUEST"

    def words(self, gettext: Gettext) -> str:
        """The sentence it was made with."""
        return str(self)


class ModelError(BotError):
    """The model gave no answer."""

    code = "MODEL"
    message = _("The language model did not give an answer. Please try again.")


class ModelUnavailable(ModelError):
    """The model's server cannot be reached, or is overloaded."""

    code = "MODEL_UNAVAILABLE"
    message = _("I cannot reach the language model right now. Please try again in a few minutes.")


class ModelTimeout(ModelError):
    """The model did not answer within its deadline."""

    code = "MODEL_TIMEOUT"
    message = _("The language model took too long to answer. Please try again, or ask something shorter.")


class ModelRefused(ModelError):
    """The model, or the filter before it, would not answer."""

    code = "MODEL_REFUSED"
    message = _("The language model declined to answer that.")


class CannotSee(ModelError):
    """The model, or its server, takes no pictures, or not this one."""

    code = "MODEL_CANNOT_SEE"
    message = _("The language model cannot look at that picture. Please tell me in words what it is about.")


class ModelMisconfigured(ModelError):
    """The key, the address or the model's name is wrong: whoever runs the bot has to act."""

    code = "MODEL_MISCONFIGURED"
    message = _("The language model is not set up properly. Please tell whoever runs this bot.")


class ContextTooLong(ModelError):
    """The prompt is longer than the model takes, also after it was trimmed; `limit` and `used` are in tokens, where the server tells."""

    code = "CONTEXT_TOO_LONG"
    limit: int | None = None
    used: int | None = None
    message = _("That is too long for the language model. Please send something shorter, or use /reset.")


class TransportError(BotError):
    """A platform did not take what was sent."""

    code = "TRANSPORT"


class TransportUnavailable(TransportError):
    """A platform cannot be reached, or asks to wait for `seconds`; what was to be sent is kept and tried again then."""

    code = "TRANSPORT_UNAVAILABLE"

    def __init__(self, text: str, *, seconds: float = 5.0) -> None:
        super().__init__(text)
        self.seconds = seconds


class Undeliverable(TransportError):
    """A platform will never take this: the person blocked the bot, or the chat is gone."""

    code = "UNDELIVERABLE"


class RagError(BotError):
    """A failure of documents or retrieval. `code` says which kind, `source` which file where it is about one."""

    message = _("I could not search the documents.")

    def __init__(self, code: RagCode, text: str, *, source: str | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.source = source
