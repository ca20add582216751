"""Settings are read once, the environment over `.env` over `bot.toml`; what cannot work stops the start in one line that names it."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import Field, SecretStr, model_validator

from bot import ConfigurationError, Registry, Section, Settings
from bot.app import configure
from bot.settings import environment, from_toml, over, read, refuse_unknown


class Weather(Section):
    """Settings of a plugin."""

    key: SecretStr | None = Field(None, alias="WEATHER_KEY", description="key of the weather service", min_length=8)
    days: int = Field(3, alias="BOT_WEATHER_DAYS", description="days ahead", ge=1)
    city: str = Field("", alias="BOT_WEATHER_CITY", description="where", json_schema_extra={"section": "weather"})

    @model_validator(mode="after")
    def _both(self) -> "Weather":
        if self.days > 10 and not self.city:
            raise ValueError("a long forecast needs a city")
        return self


def fault(values: dict[str, Any], section: type[Section] = Settings) -> str:
    """The line that these values stop the start with."""
    with pytest.raises(ConfigurationError) as caught:
        read(section, values)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BOT_MODEL_TIMEOUT", "soon"),
        ("BOT_MODEL_TIMEOUT", "0"),
        ("BOT_MODEL_TIMEOUT", "nan"),
        ("BOT_MODEL_TIMEOUT", "inf"),
        ("BOT_MAX_CONTEXT_TOKENS", "10"),
        ("BOT_MAX_CONTEXT_MESSAGES", "2.5"),
        ("BOT_MAX_CONTEXT_MESSAGES", "-1"),
        ("BOT_TOP_K", "0"),
        ("BOT_MIN_SCORE", "1.1"),
        ("BOT_MIN_SCORE", "nan"),
        ("BOT_MEMORY", "perhaps"),
        ("BOT_MEMORY_TTL", "forever"),
        ("BOT_MEMORY_MAX_FACTS", "0"),
        ("BOT_ADMINS", "ana"),
        ("BOT_ADMINS", "telegram:1, :2"),
        ("BOT_ALLOWED_USERS", "telegram:"),
        ("BOT_AGENT_ID", "a b"),
        ("BOT_DEFAULT_LANGUAGE", "Spanish"),
        ("BOT_LOG_LEVEL", "LOUD"),
        ("BOT_HTTP_PORT", "70000"),
        ("OPENAI_BASE_URL", "localhost:8000"),
        ("BOT_SYSTEM_PROMPT", ["a", "b"]),
    ],
)
def test_a_value_that_cannot_work(name: str, value: Any) -> None:
    """One line has the variable, the value, what is wrong and what it is for."""
    said = fault({name: value})

    assert said.startswith(f"{name}={value!r} cannot work: ")
    assert said.endswith(")")


@pytest.mark.parametrize("value", [12345678, "short", ["s3cret-s3cret"]])
def test_the_value_of_a_secret_is_not_shown(value: Any) -> None:
    """Neither in the line nor in what is behind it."""
    with pytest.raises(ConfigurationError) as caught:
        read(Weather, {"WEATHER_KEY": value})

    assert "WEATHER_KEY cannot work" in str(caught.value)
    assert str(value) not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_password_inside_a_url_is_not_shown() -> None:
    """The value is quoted, without who logs in."""
    said = fault({"OPENAI_BASE_URL": "ftp://ana:s3cret@host/v1"})

    assert "OPENAI_BASE_URL" in said
    assert "s3cret" not in said


def test_a_long_value_is_cut() -> None:
    """One line stays one line that can be read, whatever was pasted."""
    assert len(fault({"BOT_TOP_K": "x\n" * 10_000})) < 500


def test_a_rule_over_several_settings() -> None:
    """It is said with the names of those that were set."""
    assert fault({"BOT_WEATHER_DAYS": "20"}, Weather) == "BOT_WEATHER_DAYS cannot work together: a long forecast needs a city"


@pytest.mark.parametrize("empty", ["BOT_PROVIDER", "BOT_TOP_K", "BOT_ADMINS", "OPENAI_API_KEY", "BOT_MEMORY_TTL"])
def test_an_empty_value_counts_as_not_set(empty: str) -> None:
    """As a variable that compose.yaml hands on without a value."""
    assert read(Settings, {empty: ""}) == Settings()


def test_no_documents_can_be_said() -> None:
    """Documents have a default, and none at all is a choice."""
    assert read(Settings, {"BOT_DOCUMENTS": ""}).documents == ()
    assert len(read(Settings, {}).documents) == 2


def test_values_are_read() -> None:
    """Lists by commas, switches by their usual words, durations as they are written."""
    settings = read(
        Settings,
        {
            "BOT_ADMINS": " telegram:1 ,,whatsapp:2 ",
            "BOT_MEMORY": "off",
            "BOT_MEMORY_TTL": "90d",
            "BOT_TOP_K": " 7 ",
            "OPENAI_API_KEY": "k",
        },
    )

    assert settings.admins == ("telegram:1", "whatsapp:2")
    assert (settings.memory, settings.memory_ttl, settings.top_k) == (False, "90d", 7)
    assert settings.openai_api_key is not None
    assert "'k'" not in repr(settings)


# ---------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "near"), [("BOT_TOPK", "BOT_TOP_K"), ("BOT_ADMIN", "BOT_ADMINS"), ("BOT_MEMORY_MAXFACTS", "BOT_MEMORY_MAX_FACTS")]
)
def test_a_variable_that_is_not_one(name: str, near: str) -> None:
    """It stops the start, with the name that was meant."""
    with pytest.raises(ConfigurationError, match=f"^{name} is not a setting; did you mean {near}\\?$"):
        refuse_unknown({name: "3"}, [Settings])


@pytest.mark.parametrize(("life", "read_as"), [("90d", "90d"), ("5000", 5000), (5000, 5000)])
def test_a_life_in_milliseconds(life: Any, read_as: Any) -> None:
    """A variable is text, and a number in a file is none: both are milliseconds."""
    assert read(Settings, {"BOT_MEMORY_TTL": life}).memory_ttl == read_as


def test_case_is_no_mistake() -> None:
    """Where a value is one of a few words."""
    settings = read(Settings, {"BOT_LOG_LEVEL": "debug", "BOT_DEFAULT_LANGUAGE": "EN"})

    assert (settings.log_level, settings.default_language) == ("DEBUG", "en")


def test_a_variable_like_none() -> None:
    """Then it says where to look."""
    with pytest.raises(ConfigurationError, match=r"^BOT_XYZZY is not a setting; see \.env\.example"):
        refuse_unknown({"BOT_XYZZY": "3", "PATH": "/bin", "bot_lower": ""}, [Settings])


def test_a_plugins_variables_are_known() -> None:
    """A class of settings that is registered is read and checked like the bot's own."""
    registry = Registry()
    registry.settings(Weather)
    read_in = configure({"BOT_WEATHER_DAYS": "5", "WEATHER_KEY": "s3cret-s3cret"}, registry=registry, toml=Path("none"))

    weather = read_in.sections[Weather]
    assert isinstance(weather, Weather)
    assert weather.days == 5
    assert read_in.secrets == ["s3cret-s3cret"]
    with pytest.raises(ConfigurationError, match="BOT_WEATHER_DAYS"):
        configure({"BOT_WEATHER_DAYS": "0"}, registry=registry, toml=Path("none"))
    with pytest.raises(ConfigurationError, match="did you mean BOT_WEATHER_DAYS"):
        configure({"BOT_WEATHER_DAY": "5"}, registry=registry, toml=Path("none"))


# ---------------------------------------------------------------------------------------------- files


def toml(tmp_path: Path, text: str) -> Path:
    """A bot.toml."""
    path = tmp_path / "bot.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_sections_of_a_file(tmp_path: Path) -> None:
    """Each setting stands in its section by its short name, in TOML's own types; a plugin's in its own."""
    path = toml(
        tmp_path,
        '\ufeff[storage]\nmax_context_messages = 30\n[people]\nadmins = ["telegram:1"]\n[memory]\nmemory = false\n'
        '[plugins]\ndays = 9\n[weather]\ncity = "Bogotá"\n',
    )
    values = from_toml(path, [Settings, Weather])
    settings, weather = read(Settings, values), read(Weather, values)

    assert (settings.max_context_messages, settings.admins, settings.memory) == (30, ("telegram:1",), False)
    assert (weather.days, weather.city) == (9, "Bogotá")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[storage]\nmax_context_message = 3",
            "[storage] max_context_message is not a setting; did you mean storage.max_context_messages?",
        ),
        ("[xyzzy]\nplugh = 3", "[xyzzy] plugh is not a setting; see .env.example"),
        ("top_k = 3", "'top_k' stands outside of a section"),
        ("[storage\n", "cannot be read"),
        ("[storage]\nmax_context_messages = 30\nmax_context_messages = 31", "cannot be read"),
    ],
)
def test_a_file_that_cannot_work(tmp_path: Path, text: str, said: str) -> None:
    """One line names the file and what is wrong in it."""
    with pytest.raises(ConfigurationError) as caught:
        from_toml(toml(tmp_path, text), [Settings])

    assert str(caught.value).startswith("bot.toml")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A folder in a file's place, and bytes that are no text."""
    (tmp_path / "bot.toml").mkdir()
    (tmp_path / ".env").write_bytes(b"BOT_MODEL=\xff\xfe")

    with pytest.raises(ConfigurationError, match=r"^bot\.toml cannot be read"):
        from_toml(tmp_path / "bot.toml", [Settings])
    with pytest.raises(ConfigurationError, match=r"^\.env cannot be read"):
        environment(tmp_path)


def test_no_file_is_no_setting(tmp_path: Path) -> None:
    """Neither file has to be there."""
    assert from_toml(tmp_path / "bot.toml", [Settings]) == {}
    assert environment(tmp_path).keys() >= {"PATH"}


def test_a_broken_line_in_the_file_of_variables(tmp_path: Path) -> None:
    """It stops the start with its number, and is not skipped in silence; what stands in it is not shown."""
    (tmp_path / ".env").write_text("BOT_TOP_K=5\nOPENAI_API_KEY 's3cret'\n", encoding="utf-8")

    with pytest.raises(ConfigurationError, match=r"^\.env cannot be read: line 2 is not NAME=value$"):
        environment(tmp_path)


def test_a_file_of_variables(tmp_path: Path) -> None:
    """With comments, quotes, `export` and the mark that some editors put first."""
    (tmp_path / ".env").write_text('\ufeffBOT_TOP_K=5 # five\nexport BOT_MODEL="a b"\n# BOT_MEMORY=false\nBOT_ADMINS=\n', encoding="utf-8")

    values = environment(tmp_path)
    assert (values["BOT_TOP_K"], values["BOT_MODEL"], values["BOT_ADMINS"]) == ("5", "a b", "")
    assert "BOT_MEMORY" not in values


def test_which_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment, then `.env`, then `bot.toml`, then the default; an empty value wins over nothing."""
    (tmp_path / ".env").write_text("BOT_MODEL=from-env-file\nBOT_MAX_CONTEXT_TOKENS=3000\n", encoding="utf-8")
    for name, value in {"BOT_TOP_K": "9", "BOT_MODEL": "", "BOT_MAX_CONTEXT_MESSAGES": ""}.items():
        monkeypatch.setenv(name, value)
    path = toml(
        tmp_path,
        "[documents]\ntop_k = 4\nmin_score = 0.5\n[storage]\nmax_context_messages = 30\n"
        '[model]\nmodel = "from-toml"\nmax_context_tokens = 2000\n',
    )
    settings = configure(environment(tmp_path), registry=Registry(), toml=path).settings

    assert settings.top_k == 9
    assert settings.model == "from-env-file"
    assert settings.max_context_tokens == 3000
    assert settings.max_context_messages == 30
    assert settings.min_score == 0.5
    assert settings.memory_max_facts == 50


def test_over_is_pure() -> None:
    """Laying values over others changes neither; documents can be emptied."""
    base, winning = {"A": 1, "B": 2, "BOT_DOCUMENTS": "docs"}, {"A": "", "B": 3, "C": "", "BOT_DOCUMENTS": ""}

    assert over(base, winning) == {"A": 1, "B": 3, "C": "", "BOT_DOCUMENTS": ""}
    assert base["B"] == 2


def test_settings_cannot_be_changed() -> None:
    """They are read once."""
    with pytest.raises(ValueError, match="frozen"):
        Settings().top_k = 9  # type: ignore[misc]
