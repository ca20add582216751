"""What handlers and plugins add, and which of them takes an update; a plugin that cannot work stops the start by its name."""

import functools
import sys
import unicodedata
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from bot import ConfigurationError, Context, Registry, Section, Update, tool_of
from bot.context import Handler
from bot.errors import BotError, ModelError, RagError, StorageError
from bot.ports import Recall
from bot.registry import Parts, fault, load, parse_command, route, said
from bot.values import Attachment

if TYPE_CHECKING:
    from decimal import Decimal


async def handler(ctx: Context) -> None:
    """A handler."""


async def other(ctx: Context) -> None:
    """Another."""


def a_handler() -> Handler:
    """One that is like no other."""

    async def one(ctx: Context) -> None: ...

    return one


def update(text: str, **rest: Any) -> Update:
    """Something that was said."""
    return Update("u1", "test", "chat", "ana", text, **rest)


# ---------------------------------------------------------------------------------------------- routing


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("/help", ("help", "")),
        ("/Help", ("help", "")),
        ("/help@sabio_bot", ("help", "")),
        ("/remember Vivo en Bogotá", ("remember", "Vivo en Bogotá")),
        ("/remember@sabio_bot   two  spaces ", ("remember", "two  spaces")),
        ("/remember\nnext line\nand more", ("remember", "next line\nand more")),
        ("/remember\ttab", ("remember", "tab")),
        ("/forget_me", ("forget_me", "")),
        ("/", None),
        ("/ help", None),
        ("//", None),
        ("/etc/passwd", None),
        ("/@bot", None),
        ("", None),
        ("help", None),
        (" /help", None),
    ],
)
def test_a_command_is_told_from_a_message(text: str, parsed: tuple[str, str] | None) -> None:
    """A slash, a name of letters, digits and _, the bot's own name, then whatever follows."""
    assert parse_command(text) == parsed


@given(st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    """Whatever people write, looking at it raises nothing, and a command's name is one."""
    parsed = parse_command(text)
    folded = unicodedata.normalize("NFKD", text.casefold())
    kept = ("" if unicodedata.combining(c) else c if c.isalnum() else " " for c in folded)

    assert said(text) == " ".join("".join(kept).split())
    assert parsed is None or parsed[0].replace("_", "").isalnum()


@pytest.mark.parametrize("text", ["Qué sabes de mí", "que sabes de mi", "¿QUÉ   sabes, de mí?", "qué\nsabes\tde mí!!"])
def test_a_phrase_however_it_is_written(text: str) -> None:
    """Case, accents, punctuation and repeated space aside."""
    registry = Registry()
    registry.text("¿Qué sabes de mí?")(handler)

    assert route(registry, update(text)) == (handler, None, text)
    assert route(registry, update(f"{text} y de ti")) == (None, None, f"{text} y de ti")


def test_who_takes_an_update() -> None:
    """A command, else an awaited answer, else a phrase, else a file, else the turn; an awaited answer that nobody takes is none."""
    registry = Registry()
    made = {name: a_handler() for name in ("command", "answer", "text", "document", "chat")}
    registry.command("go")(made["command"])
    registry.answer("sure")(made["answer"])
    registry.text("yes")(made["text"])
    registry.document(made["document"])
    registry.chat(made["chat"])
    file = {"attachments": (Attachment("1", "a.md"),)}

    assert route(registry, update("/go now", **file), "sure") == (made["command"], registry.commands["go"], "now")
    assert route(registry, update("/gone", **file), "sure")[:2] == (None, None)
    assert route(registry, update("yes", **file), "sure")[0] is made["answer"]
    assert route(registry, update("yes", **file), "unknown")[0] is made["text"]
    assert route(registry, update("look", **file))[0] is made["document"]
    assert route(registry, update("look"))[0] is made["chat"]


# ---------------------------------------------------------------------------------------------- adding


@pytest.mark.parametrize("name", ["", "/help", "Help", "two words", "a-b", "a@b", "\n"])
def test_a_command_that_nobody_can_type(name: str) -> None:
    """It would never be found."""
    with pytest.raises(ConfigurationError, match="cannot be typed"):
        Registry().command(name)


def test_a_phrase_of_nothing() -> None:
    """It would be any message without letters."""
    with pytest.raises(ConfigurationError, match="neither letters nor digits"):
        Registry().text("¿?")


def test_two_plugins_cannot_share_a_name() -> None:
    """The second is refused, and says what and which."""
    registry = Registry()
    registry.command("go")(handler)
    registry.text("Hola")(handler)
    registry.provider("p", lambda parts: parts)  # type: ignore[arg-type, return-value]

    with pytest.raises(ConfigurationError, match="the command 'go' is registered twice"):
        registry.command("go")(other)
    with pytest.raises(ConfigurationError, match="the text 'hola' is registered twice"):
        registry.text("¡hola!")(other)
    with pytest.raises(ConfigurationError, match="the provider 'p' is registered twice"):
        registry.provider("p", lambda parts: parts)  # type: ignore[arg-type, return-value]


def test_later_options_win() -> None:
    """Options of memory and documents are replaced by those of a later plugin, each by itself; so are parts."""
    registry = Registry()
    registry.ai(memory=True)
    registry.ai(rag=SimpleNamespace(retrieve=handler))  # type: ignore[arg-type]
    registry.ai(memory=False)

    assert registry.memory_options is False
    assert registry.rag_options is not None


def test_decorators_hand_back_what_they_were_given() -> None:
    """So that a handler can be called, and registered under several names."""
    registry = Registry()

    assert registry.command("a")(registry.text("a b")(registry.chat(handler))) is handler
    assert registry.tool(stock) is stock


# ---------------------------------------------------------------------------------------------- loading


def module(monkeypatch: pytest.MonkeyPatch, **attributes: Any) -> str:
    """A plugin's module by its name."""
    monkeypatch.setitem(sys.modules, "a_plugin", SimpleNamespace(**attributes))  # type: ignore[arg-type]
    return "a_plugin"


def test_a_module_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its function `register`."""
    name = module(monkeypatch, register=lambda registry: registry.command("go")(handler))

    assert load([name], installed=False).commands["go"].handler is handler


@pytest.mark.parametrize("register", [None, "text", 3])
def test_a_module_that_cannot_register(monkeypatch: pytest.MonkeyPatch, register: Any) -> None:
    """It is named."""
    with pytest.raises(ConfigurationError, match=r"^the plugin 'a_plugin' has no function register\(registry\)"):
        load([module(monkeypatch, register=register)], installed=False)


def test_a_plugin_that_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its code raises, the line names the plugin."""

    def breaks(registry: Registry) -> None:
        raise KeyError("oops")

    with pytest.raises(ConfigurationError, match=r"^the plugin 'a_plugin' cannot register: KeyError\('oops'\)"):
        load([module(monkeypatch, register=breaks)], installed=False)


def test_a_plugin_that_takes_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that came second is named."""
    name = module(monkeypatch, register=lambda registry: registry.command("go")(handler) and registry.command("go")(other))

    with pytest.raises(ConfigurationError, match=r"^the plugin 'a_plugin': the command 'go' is registered twice"):
        load([name], installed=False)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("async def chat(ctx): ...\ndef register(registry):\n    registry.chat(chat)\n", None),
        ("def oops(", r"^the plugin 'sabio_weather' cannot be imported: SyntaxError"),
        ("raise SystemExit('use me as a script')", r"^the plugin 'sabio_weather' cannot be imported: SystemExit\('use me as a script'\)"),
        ("async def register(registry): ...", r"^the plugin 'sabio_weather': register\(registry\) must not be async"),
        ("raise RuntimeError('at import')", r"^the plugin 'sabio_weather' cannot be imported: RuntimeError\('at import'\)"),
        ("import nothing_like_it", r"^the plugin 'sabio_weather' cannot be imported: ModuleNotFoundError"),
        ("x = 1", r"^the plugin 'sabio_weather' has no function register"),
    ],
)
def test_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str | None) -> None:
    """An entry point in the group `sabio.plugins` is all that a package needs; one that cannot work stops the start by its name."""
    (tmp_path / "sabio_weather.py").write_text(code)
    info = tmp_path / "sabio_weather-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sabio-weather\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[sabio.plugins]\nweather = sabio_weather\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "sabio_weather", raising=False)

    if said is None:
        assert load([]).fallback is sys.modules["sabio_weather"].chat
        assert load([], installed=False).fallback is None
    else:
        with pytest.raises(ConfigurationError, match=said):
            load([])
    sys.modules.pop("sabio_weather", None)


# ---------------------------------------------------------------------------------------------- what would fail when it is called


def at_once(*given: Any) -> None:
    """No async function."""


async def too_few() -> None:
    """Takes nothing."""


class Callable:
    """An object that can be called like an async function."""

    async def __call__(self, ctx: Context) -> None: ...


ADDING: dict[str, Any] = {
    "the command 'go'": lambda registry, wrong: registry.command("go")(wrong),
    "the text 'hola'": lambda registry, wrong: registry.text("hola")(wrong),
    "the answer 'sure'": lambda registry, wrong: registry.answer("sure")(wrong),
    "the handler of chat": lambda registry, wrong: registry.chat(wrong),
    "the handler of document": lambda registry, wrong: registry.document(wrong),
    "the handler of other": lambda registry, wrong: registry.other(wrong),
    "the job 'clean'": lambda registry, wrong: registry.job("clean", wrong),
    "the export of 'notes'": lambda registry, wrong: registry.personal_data("notes", tables=[], export=wrong, erase=two),
    "the erase of 'notes'": lambda registry, wrong: registry.personal_data("notes", tables=[], export=two, erase=wrong),
    "the clean of 'notes'": lambda registry, wrong: registry.personal_data("notes", tables=[], export=two, erase=two, clean=wrong),
    "the chats of 'notes'": lambda registry, wrong: registry.personal_data("notes", tables=[], export=two, erase=two, chats=wrong),
    "the restore of 'notes'": lambda registry, wrong: registry.personal_data("notes", tables=[], export=two, erase=two, restore=wrong),
    "the on_chat_moved": lambda registry, wrong: registry.on_chat_moved(wrong),
    "the statistic 'notes'": lambda registry, wrong: registry.statistic("notes", wrong),
}


async def two(one: Any, other: Any) -> Any:
    """Takes two."""


@pytest.mark.parametrize("what", ADDING)
def test_what_has_to_be_async(what: str) -> None:
    """What the bot waits for is refused when it is added where a call of it would fail, and says what it has to be."""
    with pytest.raises(ConfigurationError, match=f"^{what} must be an async function: write `async def at_once\\("):
        ADDING[what](Registry(), at_once)
    with pytest.raises(ConfigurationError, match=f"^{what}: 'too_few' is called with .*, and that fails: too many positional arguments"):
        ADDING[what](Registry(), too_few)
    with pytest.raises(ConfigurationError, match=f"^{what} must be an async function"):
        ADDING[what](Registry(), "no function")


def test_what_can_be_waited_for() -> None:
    """An async function counts as one behind a decorator too, partly applied, and as an object that can be called."""

    async def with_more(more: str, ctx: Context) -> None: ...

    @functools.wraps(handler)
    def around(ctx: Context) -> Any:
        return handler(ctx)

    registry = Registry()
    for name, fine in {"a": around, "b": functools.partial(with_more, "x"), "c": Callable()}.items():
        registry.command(name)(fine)

    assert sorted(registry.commands) == ["a", "b", "c"]


async def not_opened(parts: Parts) -> AsyncIterator[None]:
    """A lifespan without its decorator."""
    yield


class NoAlias(Section):
    """Its field names no variable."""

    city: str = "Madrid"


class Taken(Section):
    """Its field names a variable of the bot's own."""

    provider: str = Field("x", alias="BOT_PROVIDER", description="x")


@pytest.mark.parametrize(
    ("add", "said"),
    [
        (lambda registry: registry.settings(3), "settings are a subclass of Section, and 3 is none"),
        (lambda registry: registry.settings(int), "settings are a subclass of Section"),
        (lambda registry: registry.settings(NoAlias), "the setting NoAlias.city has no variable: give its field an alias"),
        (lambda registry: registry.settings(Taken), "the setting 'BOT_PROVIDER' is registered twice: Settings has it"),
        (lambda registry: registry.locales(Path("/nowhere")), "the catalogs are to be in '/nowhere', and that is no folder"),
    ],
)
def test_what_cannot_work(add: Any, said: str) -> None:
    """It is said when it is added."""
    with pytest.raises(ConfigurationError, match=said):
        add(Registry())


@pytest.mark.parametrize("wrong", [not_opened, handler])
def test_a_lifespan_without_its_decorator(wrong: Any) -> None:
    """It would open nothing."""
    with pytest.raises(ConfigurationError, match=rf"^the lifespan '{wrong.__name__}' opens nothing as it is: put @asynccontextmanager"):
        Registry().lifespan(wrong)


@pytest.mark.parametrize(
    ("add", "what"),
    [
        (lambda registry, build: registry.provider("echo", build), "provider 'echo'"),
        (lambda registry, build: registry.retriever("echo", build), "retriever 'echo'"),
        (lambda registry, build: registry.embedder("echo", build), "embedder 'echo'"),
        (lambda registry, build: registry.part(Recall, build), "Recall"),
    ],
)
def test_a_plugin_that_cannot_make_a_part(monkeypatch: pytest.MonkeyPatch, add: Any, what: str) -> None:
    """It is named when that is made, long after it was added; one that would have to be waited for is refused at once."""

    def breaks(given: Any) -> Any:
        raise OSError(2, "no such\ndevice")

    registry = load([module(monkeypatch, register=lambda registry: add(registry, breaks))], installed=False)
    (build,) = [*registry.providers.values(), *registry.retrievers.values(), *registry.embedders.values(), *registry.parts.values()]

    with pytest.raises(
        ConfigurationError, match=rf"^the plugin 'a_plugin' cannot make its {what}: FileNotFoundError\(2, 'no such.ndevice'\)$"
    ):
        build(None)
    nothing = load([module(monkeypatch, register=lambda registry: add(registry, lambda given: None))], installed=False)
    (build,) = [*nothing.providers.values(), *nothing.retrievers.values(), *nothing.embedders.values(), *nothing.parts.values()]
    with pytest.raises(ConfigurationError, match=f"^the plugin 'a_plugin' cannot make its {what}: it made None$"):
        build(None)
    with pytest.raises(ConfigurationError, match=f"^what makes the {what} must not be async"):
        add(Registry(), handler)


@pytest.mark.parametrize(
    ("raised", "kind"),
    [(StorageError("no table"), StorageError), (ModelError("asleep"), ModelError), (RagError("LOAD_FAILED", "bad"), ConfigurationError)],
)
def test_the_kind_of_a_fault(raised: BotError, kind: type[BotError]) -> None:
    """The exit code stays that of its kind, with the plugin named; what a part of the bot itself says stands as it is."""
    said = fault("guest", "cannot start", raised)

    assert type(said) is kind
    assert str(said) == f"the plugin 'guest' cannot start: {raised}"
    assert fault("plugins.rag", "cannot start", raised) is raised


# ---------------------------------------------------------------------------------------------- tools


async def stock(
    ctx: Context,
    product: str,
    n: int = 1,
    *,
    price: float | None = None,
    size: Literal["s", "m"] = "s",
    tags: list[str] | None = None,
    level: Literal[1, 2] = 1,
    sure: bool = False,
    others: Sequence[int] = (),
) -> str:
    """How many there are."""
    return product


def test_the_schema_of_a_tool() -> None:
    """It comes from the signature, its description from the docstring; a parameter with a default may be left out."""
    spec = tool_of(stock).spec

    assert (spec.name, spec.description) == ("stock", "How many there are.")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "product": {"type": "string"},
            "n": {"type": "integer"},
            "price": {"type": "number"},
            "size": {"type": "string", "enum": ["s", "m"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "level": {"type": "integer", "enum": [1, 2]},
            "sure": {"type": "boolean"},
            "others": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["product"],
        "additionalProperties": False,
    }


async def no_context() -> str:
    """Without a place for the context."""
    return ""


async def no_type(ctx: Context, product) -> str:  # type: ignore[no-untyped-def]
    """Without a type."""
    return ""


async def odd_type(ctx: Context, product: dict[str, str]) -> str:
    """With a type that has no plain word."""
    return ""


async def mixed(ctx: Context, product: str | int) -> str:
    """With two types."""
    return ""


async def rest(ctx: Context, **products: str) -> str:
    """With any names."""
    return ""


async def unseen(ctx: Context, product: "Decimal") -> str:
    """With a type that only type checkers see."""
    return ""


def not_async(ctx: Context) -> str:
    """Not async."""
    return ""


@pytest.mark.parametrize(
    "function", [no_context, no_type, odd_type, mixed, rest, unseen, not_async], ids=lambda function: function.__name__
)
def test_a_function_that_cannot_be_a_tool(function: Any) -> None:
    """It is named at the start, and not when the model first calls it."""
    with pytest.raises(ConfigurationError, match=f"the tool '{function.__name__}'"):
        Registry().tool(function)
