"""The frozen values that travel between the parts; they know nothing of storage, platforms or models."""

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # the options hold objects that satisfy these Protocols
    from bot.ports import Embedder, Retriever

Role = Literal["user", "assistant"]
LLMMessage = Mapping[str, Any]  # a message in the chat-completions form: {"role", "content", …}

# ---------------------------------------------------------------------------------------------- conversation


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat. `at` is UTC milliseconds; an assistant's bears the `user_id` of the person it answered."""

    role: Role
    content: str
    at: int
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that answers a question. `score` is 0 to 1; `citation` is the label a person reads."""

    text: str
    source: str | None = None
    citation: str | None = None
    score: float | None = None
    section: str | None = None
    id: str | None = None
    doc_id: str | None = None
    index: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Document:
    """A text to answer from. `source` is what its citations show; `metadata` can be filtered by."""

    id: str
    text: str
    source: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Fact:
    """Something held about a subject. Times are UTC milliseconds; `source` is "manual" or "auto"."""

    id: str
    subject: str
    kind: Literal["text", "keyed"]
    key: str
    value: str
    source: Literal["manual", "auto"]
    created_at: int
    updated_at: int
    expires_at: int | None = None
    pinned: bool = False

    @property
    def text(self) -> str:
        """As a person and the prompt read it."""
        return f"{self.key}: {self.value}" if self.kind == "keyed" else self.value


@dataclass(frozen=True, slots=True)
class Learned:
    """What became of facts that were stated: new, known already (and renewed), refused (with its code), and forgotten to make room.

    `paused`: the person's memory is paused, so nothing was written.
    """

    added: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    evicted: tuple[str, ...] = ()
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Replaced:
    """A fact that another took the place of. It can be brought back until `until` (UTC milliseconds)."""

    text: str
    replaced_at: int
    until: int


@dataclass(frozen=True, slots=True)
class MemoryState:
    """What a person chose about their memory: paused (nothing is read or written), quiet (no notices of what was learnt)."""

    paused: bool = False
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of a turn; the fields are those of the contract."""

    text: str
    answer: str
    citations: list[Passage] = field(default_factory=list)
    cited: list[tuple[int, Passage]] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)


# ---------------------------------------------------------------------------------------------- the model


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asks for; `arguments` is JSON as the model wrote it, so it may be broken."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that one call of the model took."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Prompt:
    """All that a provider needs for one call.

    `system` and `messages` are what a model reads; `question`, `passages` and `language` say the same in parts, for a provider that
    needs no model. `model` and `max_tokens` of None mean the provider's own. `schema` asks for strict JSON.
    """

    system: str
    messages: Sequence[LLMMessage]
    tools: Sequence[ToolSpec] = ()
    model: str | None = None
    max_tokens: int | None = None
    schema: Mapping[str, Any] | None = None
    question: str = ""
    passages: Sequence[Passage] = ()
    language: str = "es"


@dataclass(frozen=True, slots=True)
class Completion:
    """What one call of the model gave: text, or calls of tools, or both."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()


# ---------------------------------------------------------------------------------------------- updates


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with an update. `file_id` is the transport's; `size` is in bytes where the platform tells."""

    file_id: str
    name: str
    media_type: str = "application/octet-stream"
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """One thing that happened on a platform, as the dispatcher takes it.

    `id` is unique for ever (it names the platform), `chat_key` and `sender` are canonical (`telegram:123`), `lang` is the platform's
    word on the person's language. `quoted` is text that is not the sender's own; `evidence` is what counts as their own words (None: the
    text). A `stop` or `button` update passes the queue of its chat. `may_moderate`: the sender administers this group.

    `message` is the platform's own id of the message, which a reply can name; an `edited` update bears that of the message it changes.
    `room` is the key of the group that a topic belongs to (None: the chat itself). `other` is what came in place of text: `voice`,
    `photo`, `sticker` … `hears_all`: False where the platform shows the bot only what is addressed to it. `part` names what it may be a
    part of: an album, a long text that was cut.
    """

    id: str
    transport: str
    chat_key: str
    sender: str | None = None
    text: str = ""
    kind: Literal["message", "edited", "button", "stop"] = "message"
    is_group: bool = False
    addressed: bool = True
    may_moderate: bool = False
    lang: str | None = None
    quoted: str | None = None
    evidence: str | None = None
    attachments: tuple[Attachment, ...] = ()
    message: str | None = None
    room: str | None = None
    other: str | None = None
    hears_all: bool = True
    part: str = ""

    @property
    def digest(self) -> str:
        """What was asked, so that the same can be known again and nothing can be read from it; short."""
        return hashlib.sha256("\0".join((self.text, self.quoted or "")).encode("utf-8", "replace")).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """A plain form that `from_json` takes back without loss."""
        return {name: getattr(self, name) for name in self.__slots__} | {"attachments": [asdict(file) for file in self.attachments]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Update":
        """The update that `to_json` wrote. Raises TypeError or KeyError where it is of another form."""
        files = tuple(Attachment(**item) for item in data.get("attachments", ()))
        return cls(**{**data, "attachments": files})


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer by one press, where a platform has buttons: `label` is shown, and a press is as if its person had said `says`.

    It works for `seconds`, and only for the person whom it was shown to.
    """

    label: str
    says: str
    seconds: int = 300


@dataclass(frozen=True, slots=True)
class Letter:
    """What leaves, from the outbox: `id` is the row's, unique for ever; a letter that comes again is the same one.

    `question` is the platform's id of the message that it answers; `quotes`: show it as a reply to that message. `revises`: the message
    was edited, so this takes the place of the answer it had. `markdown`: the text is Markdown; else it is shown as it stands.
    `asked` is a digest of the question, by which an edit that changed no word is known.
    """

    id: str
    chat_key: str
    text: str = ""
    user_id: str = ""
    question: str | None = None
    quotes: bool = False
    revises: bool = False
    markdown: bool = False
    asked: str = ""
    choices: tuple[Choice, ...] = ()

    @classmethod
    def from_payload(cls, entry_id: str, chat_key: str, user_id: str, payload: Mapping[str, Any]) -> "Letter":
        """The letter that a row of the outbox is."""
        return cls(
            entry_id,
            chat_key,
            payload["text"],
            user_id,
            payload.get("question"),
            bool(payload.get("reply_to")),
            bool(payload.get("revises")),
            bool(payload.get("markdown")),
            payload.get("asked", ""),
            tuple(Choice(*choice) for choice in payload.get("choices", ())),
        )


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of background work. `marks` are the epochs of its subject when it was queued: what it writes goes behind them."""

    id: str
    kind: str
    subject: str
    payload: Mapping[str, Any]
    marks: Mapping[str, int]
    attempts: int = 1


# ---------------------------------------------------------------------------------------------- options


_TTL = re.compile(r"\s*(\d+)\s*([dhms])\s*")
_UNIT_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
LONGEST_TTL_MS = 100 * 365 * _UNIT_MS["d"]


def ttl_ms(ttl: str | int | None) -> int | None:
    """The life of a fact in milliseconds, or None for permanent.

    `ttl` is `"90d"`, `"12h"`, `"30m"`, `"45s"` or milliseconds. Raises ValueError for anything else, for zero and below, and for more than
    100 years.
    """
    if ttl is None:
        return None
    allowed = 'use "90d", "12h", "30m", "45s" or milliseconds, above 0 and up to 100 years'
    if isinstance(ttl, str) and (match := _TTL.fullmatch(ttl)) and len(match[1]) < 16:
        value = int(match[1]) * _UNIT_MS[match[2]]
    elif isinstance(ttl, int) and not isinstance(ttl, bool):
        value = ttl
    else:
        raise ValueError(f"ttl={ttl!r} is not a duration: {allowed}")
    if not 0 < value <= LONGEST_TTL_MS:
        raise ValueError(f"ttl={ttl!r} cannot work: {allowed}")
    return value


def _positive(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name}={value!r} is not allowed: it must be an integer above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractOptions:
    """How facts are extracted from what a person writes. `filter` returns False to drop a candidate.

    `debounce_ms`: messages that follow each other this closely make one call. The bounds are for each person and day (UTC).
    """

    model: str | None = None
    max_tokens: int | None = None
    max_facts_per_turn: int = 5
    instructions: str | None = None
    filter: Callable[[str], bool] | None = None
    debounce_ms: int = 3_000
    max_calls_per_day: int = 200
    max_tokens_per_day: int = 400_000

    def __post_init__(self) -> None:
        for name in ("max_facts_per_turn", "max_calls_per_day", "max_tokens_per_day"):
            _positive(name, getattr(self, name))
        if not isinstance(self.debounce_ms, int) or isinstance(self.debounce_ms, bool) or self.debounce_ms < 0:
            raise ValueError(f"debounce_ms={self.debounce_ms!r} is not allowed: milliseconds, 0 or more")
        if self.max_tokens is not None:
            _positive("max_tokens", self.max_tokens)
        if self.filter is not None and not callable(self.filter):
            raise ValueError(f"filter={self.filter!r} is not allowed: it must be a function of a fact")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOptions:
    """Long-term memory; the defaults are those of the contract. Raises ValueError with the field, its value and what is allowed.

    `prompt_tokens` bounds the facts in a prompt: past it, the pinned and the most relevant go in. `resolve` lets extraction replace a fact
    that what was said contradicts; `notices` says in private what was learnt.
    """

    type: Literal["per-user"] = "per-user"
    max_facts: int = 50
    ttl: str | int | None = None
    max_fact_length: int = 300
    inject: bool = True
    inject_in_groups: bool = False
    auto_extract: bool | ExtractOptions = False
    namespace: str = "ai.memory"
    prompt_tokens: int = 600
    resolve: bool = False
    notices: bool = False

    def __post_init__(self) -> None:
        if self.type != "per-user":
            raise ValueError(f'type={self.type!r} is not allowed: "per-user" is the one kind there is')
        _positive("max_facts", self.max_facts)
        _positive("max_fact_length", self.max_fact_length)
        _positive("prompt_tokens", self.prompt_tokens)
        if not self.namespace or not isinstance(self.namespace, str):
            raise ValueError(f"namespace={self.namespace!r} is not allowed: it must be a name")
        if not isinstance(self.auto_extract, bool | ExtractOptions):
            raise ValueError(f"auto_extract={self.auto_extract!r} is not allowed: use True, False or ExtractOptions(...)")
        ttl_ms(self.ttl)

    @property
    def extraction(self) -> ExtractOptions | None:
        """The options of extraction, or None where it is off."""
        if isinstance(self.auto_extract, ExtractOptions):
            return self.auto_extract
        return ExtractOptions() if self.auto_extract else None


def memory_options(value: "MemoryOptions | bool | None") -> MemoryOptions | None:
    """`True` means the defaults; `None` and `False` mean that memory is off."""
    if value is True:
        return MemoryOptions()
    if value is None or value is False:
        return None
    if isinstance(value, MemoryOptions):
        return value
    raise ValueError(f"memory={value!r} is not allowed: use True, False or MemoryOptions(...)")


Rewriting = Literal["auto", "always", "never"]
SourcesLine = Callable[[Sequence[Passage], Sequence[tuple[int, Passage]]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RagOptions:
    """How the turn uses a retriever. `top_k` and `min_score` of None are not passed to it; `timeout_ms=0` means no limit.

    `rewrite` lets the model say a question whole before it is looked up: `auto` where it leans on what came before, `always`, or `never`.
    """

    retriever: "Retriever"
    top_k: int | None = None
    min_score: float | None = None
    append_sources: bool | SourcesLine = False
    instructions: str | None = None
    timeout_ms: int = 10_000
    rewrite: Rewriting = "never"

    def __post_init__(self) -> None:
        if not callable(getattr(self.retriever, "retrieve", None)):
            raise ValueError(f"retriever={self.retriever!r} is not allowed: it needs a method `retrieve(query, ...)`")
        if self.top_k is not None:
            _positive("top_k", self.top_k)
        if not isinstance(self.timeout_ms, int) or isinstance(self.timeout_ms, bool) or self.timeout_ms < 0:
            raise ValueError(f"timeout_ms={self.timeout_ms!r} is not allowed: milliseconds, or 0 for no limit")
        if self.min_score is not None and (isinstance(self.min_score, bool) or not isinstance(self.min_score, int | float)):
            raise ValueError(f"min_score={self.min_score!r} is not allowed: it must be a number")
        if not isinstance(self.append_sources, bool) and not callable(self.append_sources):
            raise ValueError(f"append_sources={self.append_sources!r} is not allowed: use True, False or a function")
        if self.rewrite not in ("auto", "always", "never"):
            raise ValueError(f"rewrite={self.rewrite!r} is not allowed: use 'auto', 'always' or 'never'")


def rag_options(value: "RagOptions | Retriever | None") -> RagOptions | None:
    """A retriever alone equals `RagOptions(retriever=retriever)`."""
    if value is None or isinstance(value, RagOptions):
        return value
    return RagOptions(retriever=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingOptions:
    """Which embedder, and how it is reached; None means the embedder's own default. `batch_size` is in texts, `timeout` in seconds."""

    provider: "str | Embedder" = "local"
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    dimensions: int | None = None
    batch_size: int = 64
    timeout: float = 30.0

    def __post_init__(self) -> None:
        _positive("batch_size", self.batch_size)
        if self.dimensions is not None:
            _positive("dimensions", self.dimensions)
        if not self.timeout > 0:
            raise ValueError(f"timeout={self.timeout!r} is not allowed: seconds, above 0")


def new_row_id() -> str:
    """32 hexadecimal digits that begin with the time: random ones would touch another page of the database for each row."""
    return f"{time.time_ns():016x}{secrets.token_hex(8)}"
