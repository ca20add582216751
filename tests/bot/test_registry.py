"""What handlers and plugins add, and which of them takes an update; a plugin that cannot work stops the start by its name."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import ConfigurationError, Context, Registry, Update, tool_of
from bot.registry import load, parse_command, route, said
from bot.values import Attachment

if TYPE_CHECKING:
    from decimal import Decimal


async def handler(ctx: Context) -> None:
    """A handler."""


async def other(ctx: Context) -> None:
    """Another."""


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
    said(text)

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
    made: dict[str, Any] = {name: object() for name in ("command", "answer", "text", "document", "chat")}
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
        ("def register(registry):\n    registry.chat(len)\n", None),
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
        assert load([]).fallback is len
        assert load([], installed=False).fallback is None
    else:
        with pytest.raises(ConfigurationError, match=said):
            load([])
    sys.modules.pop("sabio_weather", None)


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
