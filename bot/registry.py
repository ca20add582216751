"""What handlers and plugins add to the bot. The built-in ones enter by this door too: a module with `register(registry)`.

A module is loaded by name: those of the bot first, then every installed package that has an entry point in the group `sabio.plugins`.
"""

import functools
import importlib
import inspect
import logging
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from bot.context import Context, Handler
from bot.errors import BotError, ConfigurationError, ModelError, StorageError
from bot.log import Counters
from bot.ports import Database, Embedder, Fence, Jobs, Provider, Reader, Retriever, Transaction
from bot.settings import Section, Settings
from bot.values import EmbeddingOptions, Job, MemoryOptions, RagOptions, ToolSpec, Update

log = logging.getLogger(__name__)

ENTRY_POINTS = "sabio.plugins"
BUILT_IN = (
    "plugins.memory",
    "plugins.rag",
    "plugins.ai",
    "plugins.ai.transcription",
    "plugins.ai.vision",
    "bot.transports.telegram",
    "handlers.basics",
    "handlers.privacy",
    "handlers.documents",
    "handlers.admin",
    "handlers.chat",
)

P = TypeVar("P")
F = TypeVar("F", bound=Callable[..., Any])
Who = Literal["all", "moderators", "admins"]


@dataclass(frozen=True, slots=True)
class Command:
    """A command: `help` is a message of the catalogs; `who` may use it (moderators: in a group, those who administer it)."""

    name: str
    handler: Handler
    help: str = ""
    usage: str = ""
    who: Who = "all"


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call, with the context of the turn and the arguments that its schema names."""

    spec: ToolSpec
    run: Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class PersonalData:
    """Who keeps a person's data, and how it is exported and erased.

    `tables` names every table of theirs that bears a person's id or chat key. `export` gives plain JSON values. `erase` runs in the one
    transaction of the erasure and returns how many rows left. `clean` runs after it, for what is no table: files, RAM. `chats` names the
    chats that hold words of theirs: their epochs change, so that what is under way there writes nothing and no window in RAM stays.
    `restore` takes back what `export` gave and returns how many rows came, or a mapping of several counts, as of what it left out and
    why (`refused: CODE`); what is held already stays. It raises ValueError, KeyError or TypeError for data of another form.
    """

    name: str
    tables: tuple[str, ...]
    export: Callable[[Reader, str], Awaitable[Any]]
    erase: Callable[[Transaction, str], Awaitable[int]]
    clean: Callable[[str], Awaitable[int]] | None = None
    chats: Callable[[Reader, str], Awaitable[Sequence[str]]] | None = None
    restore: Callable[[Transaction, str, Any], Awaitable[int | Mapping[str, int]]] | None = None


@dataclass(frozen=True, slots=True)
class Migrations:
    """The numbered SQL files of one owner: `NNNN_name.sql`, run once each, in order."""

    owner: str
    directory: Path


@dataclass(frozen=True, slots=True)
class Lifespan:
    """What is open while the process runs, and the plugin that it belongs to."""

    plugin: str
    open: Callable[["Parts"], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the factories of parts are given. `find(port)` builds, once, what another plugin provides for a port.

    `tell(tx, chat_key, user_id, text)` says something in a chat of its own accord, where its platform runs here.
    """

    settings: Settings
    sections: Mapping[type[Section], Section]
    database: Database
    registry: "Registry"
    fence: Fence
    jobs: Jobs
    counters: Counters
    translate: Callable[[str, str], str]
    erase: Callable[[str], Awaitable[Mapping[str, int]]]
    clock: Callable[[], int]
    find: Callable[[type[Any]], Any]
    tell: Callable[[Transaction, str, str, str], Awaitable[None]] | None = None


@dataclass(slots=True)
class Registry:
    """All that was added; `plugin` is the one that adds. Adding a name twice is a ConfigurationError, but for options: the later one wins.

    What would fail when it is first called, a handler without `async` say, is a ConfigurationError when it is added.
    """

    plugin: str = ""
    commands: dict[str, Command] = field(default_factory=dict)
    texts: dict[str, Handler] = field(default_factory=dict)
    answers: dict[str, Handler] = field(default_factory=dict)
    tools: dict[str, Tool] = field(default_factory=dict)
    providers: dict[str, Callable[[Parts], Provider]] = field(default_factory=dict)
    embedders: dict[str, Callable[[EmbeddingOptions], Embedder]] = field(default_factory=dict)
    retrievers: dict[str, Callable[[Parts], Retriever]] = field(default_factory=dict)
    jobs: dict[str, Callable[[Parts, Job], Awaitable[None]]] = field(default_factory=dict)
    lifespans: list[Lifespan] = field(default_factory=list)
    sections: list[type[Section]] = field(default_factory=lambda: [Settings])
    migration_sets: list[Migrations] = field(default_factory=list)
    locale_directories: list[Path] = field(default_factory=list)
    personal: dict[str, PersonalData] = field(default_factory=dict)
    chat_moves: list[Callable[[Transaction, str, str], Awaitable[None]]] = field(default_factory=list)
    statistics: dict[str, Callable[[Reader], Awaitable[int]]] = field(default_factory=dict)
    parts: dict[type[Any], Callable[[Parts], Any]] = field(default_factory=dict)
    fallback: Handler | None = None
    on_document: Handler | None = None
    on_other: Handler | None = None
    memory_options: MemoryOptions | bool | None = None
    rag_options: "RagOptions | Retriever | None" = None

    # ------------------------------------------------------------------------------------ what a person says

    def command(self, name: str, *, help: str = "", usage: str = "", who: Who = "all") -> Callable[[F], F]:
        """`/name`: `help` and `usage` are messages of the catalogs. Raises ConfigurationError for a name that nobody can type."""
        if parse_command(f"/{name}") != (name, ""):
            raise ConfigurationError(f"the command {name!r} cannot be typed: use small letters, digits and _, without the /")

        def add(handler: F) -> F:
            _waits(handler, f"command {name!r}", "ctx")
            _once(self.commands, name, Command(name, handler, help, usage, who), "command")
            return handler

        return add

    def text(self, phrase: str) -> Callable[[F], F]:
        """A message that is this phrase, case, accents, punctuation and surrounding space aside; before the turn."""
        if not said(phrase):
            raise ConfigurationError(f"the text {phrase!r} holds neither letters nor digits: no message can be told from it")

        def add(handler: F) -> F:
            _waits(handler, f"text {phrase!r}", "ctx")
            _once(self.texts, said(phrase), handler, "text")
            return handler

        return add

    def answer(self, name: str) -> Callable[[F], F]:
        """What a person says after `ctx.expect(name)`."""

        def add(handler: F) -> F:
            _waits(handler, f"answer {name!r}", "ctx")
            _once(self.answers, name, handler, "answer")
            return handler

        return add

    def chat(self, handler: F) -> F:
        """Anything that nothing else takes."""
        _waits(handler, "handler of chat", "ctx")
        self.fallback = handler
        return handler

    def document(self, handler: F) -> F:
        """A file that came without a command."""
        _waits(handler, "handler of document", "ctx")
        self.on_document = handler
        return handler

    def other(self, handler: F) -> F:
        """What came without words and is no file: `ctx.update.other` says what, a voice note or a sticker say."""
        _waits(handler, "handler of other", "ctx")
        self.on_other = handler
        return handler

    # ------------------------------------------------------------------------------------ what the model can do

    def tool(self, function: F) -> F:
        """Offer `async def name(ctx, …)` to the model; its schema comes from the signature, its description from the docstring."""
        tool = tool_of(function)
        _once(self.tools, tool.spec.name, tool, "tool")
        return function

    def ai(self, *, memory: MemoryOptions | bool | None = None, rag: "RagOptions | Retriever | None" = None) -> None:
        """Options that replace those of the settings; a retriever given here replaces the bot's own documents."""
        if memory is not None:
            self.memory_options = memory
        if rag is not None:
            self.rag_options = rag

    def provider(self, name: str, build: Callable[[Parts], Provider]) -> None:
        """A language model, chosen by `BOT_PROVIDER=name`."""
        _once(self.providers, name, self._building(build, f"provider {name!r}"), "provider")

    def embedder(self, name: str, build: Callable[[EmbeddingOptions], Embedder]) -> None:
        """An embedder, chosen by `BOT_EMBEDDINGS=name` or `create_rag(embeddings=name)`."""
        _once(self.embedders, name, self._building(build, f"embedder {name!r}"), "embedder")

    def retriever(self, name: str, build: Callable[[Parts], Retriever]) -> None:
        """A retriever that is asked beside the bot's own documents, in every turn."""
        _once(self.retrievers, name, self._building(build, f"retriever {name!r}"), "retriever")

    # ------------------------------------------------------------------------------------ what the process runs

    def part(self, port: type[P], build: Callable[[Parts], P]) -> None:
        """What fills a port of the bot (`Assistant`, `Recall`, `Library`); the later one wins, so a plugin can replace a built-in."""
        self.parts[port] = self._building(build, port.__name__)

    def job(self, kind: str, run: Callable[[Parts, Job], Awaitable[None]]) -> None:
        """Background work: called with each job of this kind; an exception puts it back, a few times."""
        _waits(run, f"job {kind!r}", "parts", "job")
        _once(self.jobs, kind, run, "job")

    def lifespan(self, open: Callable[[Parts], AbstractAsyncContextManager[None]]) -> None:
        """Entered when the process starts, left when it stops."""
        if _is_async(open) or inspect.isasyncgenfunction(open):
            raise ConfigurationError(f"the lifespan {_name(open)!r} opens nothing as it is: put @asynccontextmanager above it")
        self.lifespans.append(Lifespan(self.plugin or _name(open), open))

    def settings(self, section: type[Section]) -> None:
        """Variables of a plugin's own: a subclass of Section whose fields name theirs by `alias`, each of which only one class may have."""
        if not (isinstance(section, type) and issubclass(section, Section)):
            raise ConfigurationError(f"settings are a subclass of Section, and {section!r} is none")
        taken = {field.alias: cls.__name__ for cls in self.sections for field in cls.model_fields.values()}
        for name, field_ in section.model_fields.items():
            if field_.alias is None:
                raise ConfigurationError(f"the setting {section.__name__}.{name} has no variable: give its field an alias")
            if field_.alias in taken:
                raise ConfigurationError(f"the setting {field_.alias!r} is registered twice: {taken[field_.alias]} has it")
        self.sections.append(section)

    def migrations(self, owner: str, directory: Path) -> None:
        """Tables of a plugin's own: `NNNN_name.sql` files, in the SQL that SQLite and PostgreSQL share.

        Columns are TEXT, BIGINT, DOUBLE PRECISION or BLOB, the first one is `agent_id`, and it is the first of the primary key too.
        """
        self.migration_sets.append(Migrations(owner, directory))

    def locales(self, directory: Path) -> None:
        """Catalogs of a plugin's own, `<lang>/LC_MESSAGES/messages.po`; they win over those before."""
        if not directory.is_dir():
            raise ConfigurationError(f"the catalogs are to be in {str(directory)!r}, and that is no folder")
        self.locale_directories.append(directory)

    def personal_data(
        self,
        name: str,
        *,
        tables: Sequence[str],
        export: Callable[[Reader, str], Awaitable[Any]],
        erase: Callable[[Transaction, str], Awaitable[int]],
        clean: Callable[[str], Awaitable[int]] | None = None,
        chats: Callable[[Reader, str], Awaitable[Sequence[str]]] | None = None,
        restore: Callable[[Transaction, str, Any], Awaitable[int | Mapping[str, int]]] | None = None,
    ) -> None:
        """Say that a plugin keeps data of people; see PersonalData."""
        _waits(export, f"export of {name!r}", "reader", "user_id")
        _waits(erase, f"erase of {name!r}", "tx", "user_id")
        for optional, what, given in (
            (clean, "clean", ("user_id",)),
            (chats, "chats", ("reader", "user_id")),
            (restore, "restore", ("tx", "user_id", "exported")),
        ):
            if optional is not None:
                _waits(optional, f"{what} of {name!r}", *given)
        _once(self.personal, name, PersonalData(name, tuple(tables), export, erase, clean, chats, restore), "personal data")

    def on_chat_moved(self, move: Callable[[Transaction, str, str], Awaitable[None]]) -> None:
        """Called with `(tx, old_key, new_key)` when a group's id changes."""
        _waits(move, "on_chat_moved", "tx", "old_key", "new_key")
        self.chat_moves.append(move)

    def statistic(self, name: str, count: Callable[[Reader], Awaitable[int]]) -> None:
        """A number for `/stats`; `name` is a message of the catalogs."""
        _waits(count, f"statistic {name!r}", "reader")
        _once(self.statistics, name, count, "statistic")

    def _building(self, build: Callable[[P], Any], what: str) -> Callable[[P], Any]:
        """`build`, with the plugin named where it fails: it is called long after it was added."""
        if _is_async(build):
            raise ConfigurationError(f"what makes the {what} must not be async: open in a lifespan what has to be waited for")
        plugin = self.plugin or _name(build)

        def named(given: P) -> Any:
            try:
                if (made := build(given)) is None:
                    raise ConfigurationError("it made None")
                return made
            except Exception as error:  # a plugin's own code can raise anything
                raise fault(plugin, f"cannot make its {what}", error) from error

        return named


def _once(table: dict[str, Any], name: str, value: Any, what: str) -> None:
    if name in table:
        raise ConfigurationError(f"the {what} {name!r} is registered twice: two plugins cannot share a name")
    table[name] = value


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _is_async(function: Any) -> bool:
    """Whether a call has to be awaited: of a function, of one that a decorator stands around, or of an object that can be called."""
    inner = inspect.unwrap(function)
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(inspect.getattr_static(type(inner), "__call__", None))


def _waits(function: Any, what: str, *given: str) -> None:
    if not callable(function) or not _is_async(function):
        raise ConfigurationError(f"the {what} must be an async function: write `async def {_name(function)}({', '.join(given)})`")
    try:
        inspect.signature(function).bind(*given)
    except TypeError as error:
        raise ConfigurationError(f"the {what}: {_name(function)!r} is called with ({', '.join(given)}), and that fails: {error}") from error


def fault(plugin: str, what: str, error: Exception) -> BotError:
    """An error of a plugin in one line that names it, with the exit code of its kind. What a built-in one says in words stands as it is."""
    if isinstance(error, BotError) and plugin in BUILT_IN:
        return error
    log.debug("the plugin %r %s", plugin, what, exc_info=error)
    said = " ".join((str(error) if isinstance(error, BotError) else repr(error)).split())
    kind = next((kind for kind in (StorageError, ModelError) if isinstance(error, kind)), ConfigurationError)
    return kind(f"the plugin {plugin!r} {what}: {said}")


# ---------------------------------------------------------------------------------------------- loading


def load(modules: Iterable[str] = BUILT_IN, *, installed: bool = True) -> Registry:
    """A registry with every named module, and every installed plugin, registered. Raises ConfigurationError that names the module."""
    registry = Registry()
    for name in modules:
        _register(registry, name, functools.partial(importlib.import_module, name))
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda e: e.name) if installed else ():
        _register(registry, entry.value, entry.load)
    return registry


def _register(registry: Registry, name: str, load: Callable[[], Any]) -> None:
    try:
        plugin = load()
    except (Exception, SystemExit) as error:  # a plugin's import can raise anything, and a script's ends the process
        raise ConfigurationError(f"the plugin {name!r} cannot be imported: {error!r}") from error
    register = getattr(plugin, "register", plugin if callable(plugin) else None)
    if not callable(register):
        raise ConfigurationError(f"the plugin {name!r} has no function register(registry)")
    if _is_async(register):
        raise ConfigurationError(f"the plugin {name!r}: register(registry) must not be async: open in a lifespan what has to be waited for")
    registry.plugin = name
    try:
        register(registry)
    except ConfigurationError as error:
        raise ConfigurationError(f"the plugin {name!r}: {error}") from error
    except (Exception, SystemExit) as error:  # a plugin's own code can raise anything
        raise ConfigurationError(f"the plugin {name!r} cannot register: {error!r}") from error
    finally:
        registry.plugin = ""


# ---------------------------------------------------------------------------------------------- routing


def said(text: str) -> str:
    """How two phrases are held to be the same: case, accents, punctuation and repeated space aside."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    return " ".join("".join(c if c.isalnum() else " " for c in folded if not unicodedata.combining(c)).split())


def parse_command(text: str) -> tuple[str, str] | None:
    """`/name@bot args` as `(name, args)`, or None where the text is no command."""
    if not text.startswith("/") or text[1:2].isspace():
        return None
    head, *rest = text[1:].split(maxsplit=1) or [""]
    name = head.split("@", 1)[0].casefold()
    return (name, "".join(rest).strip()) if name.replace("_", "").isalnum() else None


def route(registry: Registry, update: Update, awaited: str | None = None) -> tuple[Handler | None, Command | None, str]:
    """Who takes an update: `(handler, command, args)`. A command wins, then an awaited answer, then a text, a document, the turn.

    The handler is None for a command that nobody registered.
    """
    if parsed := parse_command(update.text):
        name, args = parsed
        command = registry.commands.get(name)
        return (command.handler if command else None), command, args
    if awaited and (handler := registry.answers.get(awaited)):
        return handler, None, update.text
    if handler := registry.texts.get(said(update.text)):
        return handler, None, update.text
    if update.other and not update.text and registry.on_other and update.quoted is None:
        return registry.on_other, None, ""
    if update.attachments and not update.other and registry.on_document:
        return registry.on_document, None, update.text
    return registry.fallback, None, update.text


# ---------------------------------------------------------------------------------------------- tools

_JSON_TYPES: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def tool_of(function: Callable[..., Any]) -> Tool:
    """The tool that a function is: `async def name(ctx, product: str, n: int = 1) -> str`.

    Raises ConfigurationError for one without a place for the context, or a parameter of a type that JSON schema has no plain word for.
    """
    name = function.__name__
    if not inspect.iscoroutinefunction(function):
        raise ConfigurationError(f"the tool {name!r} must be an async function")
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters:
        raise ConfigurationError(f"the tool {name!r} needs a first parameter for the context, as in `async def {name}(ctx, ...)`")
    try:
        hints = get_type_hints(function)
    except NameError as error:  # a name that is imported for type checkers alone
        raise ConfigurationError(f"the tool {name!r}: {error}, so its types cannot be read: import it, or leave that type out") from error
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in parameters[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ConfigurationError(f"the tool {name!r}: the model gives arguments by name, so {parameter.name!r} needs one of its own")
        properties[parameter.name] = _schema_of(name, parameter.name, hints.get(parameter.name))
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Tool(ToolSpec(name, inspect.getdoc(function) or name, schema), function)


def _schema_of(tool: str, parameter: str, hint: Any) -> dict[str, Any]:
    if (schema := _schema(hint)) is None:
        raise ConfigurationError(f"the tool {tool!r}: give {parameter!r} a type, one of str, int, float, bool, list, Literal")
    return schema


def _schema(hint: Any) -> dict[str, Any] | None:
    """The JSON schema of a type; of `T | None` that of T, since what may be None may be left out."""
    if (word := _JSON_TYPES.get(hint) if isinstance(hint, type) else None) is not None:
        return {"type": word}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        words = {_JSON_TYPES.get(type(value)) for value in arguments}
        return {"type": words.pop(), "enum": list(arguments)} if len(words) == 1 and None not in words else None
    if origin in (Union, UnionType) and len(plain := [a for a in arguments if a is not type(None)]) == 1:
        return _schema(plain[0])
    if origin in (list, Sequence) and (items := _schema(arguments[0])) is not None:
        return {"type": "array", "items": items}
    return None


__all__ = [
    "Command",
    "Context",
    "Handler",
    "Lifespan",
    "Parts",
    "PersonalData",
    "Registry",
    "Tool",
    "fault",
    "load",
    "route",
    "tool_of",
]
