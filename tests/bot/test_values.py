"""Values are frozen, equal by what they hold, and refuse what cannot work in words that name it."""

import dataclasses
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import (
    Attachment,
    EmbeddingOptions,
    ExtractOptions,
    Fact,
    MemoryOptions,
    Passage,
    RagOptions,
    Update,
    memory_options,
    rag_options,
    ttl_ms,
)
from bot.values import LONGEST_TTL_MS

DAY = 86_400_000


class Shipping:
    """A retriever."""

    async def retrieve(self, query: str, *, top_k: int | None = None, min_score: float | None = None) -> list[Passage]:
        """One passage."""
        return [Passage("3 días")]


@pytest.mark.parametrize(
    ("ttl", "milliseconds"),
    [
        (None, None),
        ("90d", 90 * DAY),
        ("12h", DAY // 2),
        ("30m", 1_800_000),
        ("45s", 45_000),
        (" 1 d ", DAY),
        (1, 1),
        (LONGEST_TTL_MS,) * 2,
    ],
)
def test_a_duration(ttl: str | int | None, milliseconds: int | None) -> None:
    """Days, hours, minutes, seconds or milliseconds; None is for ever."""
    assert ttl_ms(ttl) == milliseconds


@pytest.mark.parametrize(
    "ttl",
    [
        "",
        "90",
        "d",
        "90 days",
        "-1d",
        "1.5h",
        "0s",
        "１２h!",
        "9" * 15 + "d",
        "9" * 5000 + "d",
        0,
        -1,
        1.5,
        True,
        LONGEST_TTL_MS + 1,
        b"1d",
    ],
)
def test_a_duration_that_cannot_work(ttl: Any) -> None:
    """It is quoted, with what is allowed."""
    with pytest.raises(ValueError, match=r'^ttl=.*use "90d", "12h"') as caught:
        ttl_ms(ttl)

    assert repr(ttl) in str(caught.value)


@given(st.integers(min_value=1, max_value=36_500), st.sampled_from("dhms"))
def test_every_whole_duration_up_to_the_longest(n: int, unit: str) -> None:
    """A number and a unit mean that many of it."""
    assert ttl_ms(f"{n}{unit}") == n * {"d": DAY, "h": 3_600_000, "m": 60_000, "s": 1_000}[unit]


@pytest.mark.parametrize("name", ["max_facts", "max_fact_length"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "50", True, None])
def test_memory_options_that_cannot_work(name: str, value: Any) -> None:
    """The error names the field and the value, and says what is allowed."""
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r} is not allowed: it must be an integer above 0")):
        MemoryOptions(**{name: value})


@pytest.mark.parametrize("options", [{"ttl": "soon"}, {"type": "shared"}, {"namespace": ""}, {"auto_extract": "yes"}])
def test_other_memory_options_that_cannot_work(options: dict[str, Any]) -> None:
    """Likewise."""
    (name, value), *_ = options.items()
    with pytest.raises(ValueError, match=f"^{name}={value!r}"):
        MemoryOptions(**options)


def test_a_filter_is_a_function() -> None:
    """It is found out when the options are made, not when the first fact has come."""
    with pytest.raises(ValueError, match=r"^filter=3"):
        ExtractOptions(filter=3)  # type: ignore[arg-type]


def test_what_memory_may_be() -> None:
    """True is the defaults, False and None are off, and anything else is refused."""
    options = MemoryOptions(max_facts=3)

    assert memory_options(True) == MemoryOptions()
    assert memory_options(False) is memory_options(None) is None
    assert memory_options(options) is options
    with pytest.raises(ValueError, match=r"^memory='yes'"):
        memory_options("yes")  # type: ignore[arg-type]


def test_the_defaults_are_those_of_the_contract() -> None:
    """Fifty facts of up to 300 characters, kept for ever, in the prompt but not in groups, and none extracted by itself."""
    options = MemoryOptions()

    assert (options.max_facts, options.max_fact_length, options.ttl, options.namespace) == (50, 300, None, "ai.memory")
    assert (options.inject, options.inject_in_groups, options.auto_extract, options.extraction) == (True, False, False, None)
    assert MemoryOptions(auto_extract=True).extraction == ExtractOptions()
    assert ExtractOptions().max_facts_per_turn == 5


def test_a_retriever_alone_is_options_with_it() -> None:
    """And what cannot retrieve is refused."""
    shipping = Shipping()

    assert rag_options(shipping) == RagOptions(retriever=shipping)
    assert rag_options(None) is None
    with pytest.raises(ValueError, match=r"^retriever="):
        RagOptions(retriever="docs")  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"top_k": 0}, {"timeout_ms": -1}, {"timeout_ms": True}, {"min_score": "x"}, {"append_sources": "x"}])
def test_rag_options_that_cannot_work(options: dict[str, Any]) -> None:
    """The error names the field."""
    with pytest.raises(ValueError, match=f"^{next(iter(options))}="):
        RagOptions(retriever=Shipping(), **options)


def test_a_key_is_not_in_the_text_of_options() -> None:
    """Options are printed in errors; what is secret in them is not."""
    assert "s3cret" not in repr(EmbeddingOptions(provider="openai", api_key="s3cret"))


@given(
    st.text(),
    st.none() | st.text(),
    st.lists(st.builds(Attachment, st.text(), st.text(), st.text(), st.none() | st.integers()), max_size=3),
)
def test_an_update_survives_its_row(text: str, quoted: str | None, files: list[Attachment]) -> None:
    """What `to_json` writes `from_json` takes back, whatever characters it holds."""
    update = Update("u1", "test", "chat", "ana", text, quoted=quoted, attachments=tuple(files), is_group=True, kind="button")

    assert Update.from_json(update.to_json()) == update


def test_an_update_of_another_form() -> None:
    """One that a newer version wrote is a TypeError, which its worker sets aside."""
    with pytest.raises(TypeError):
        Update.from_json({"id": "u1", "transport": "test", "chat_key": "c", "new_field": 1})


def test_a_fact_as_it_is_read() -> None:
    """A keyed one shows its key."""
    values = {"source": "manual", "created_at": 0, "updated_at": 0}

    assert Fact("1", "ana", "text", "vive en bogota", "Vive en Bogotá", **values).text == "Vive en Bogotá"  # type: ignore[arg-type]
    assert Fact("1", "ana", "keyed", "city", "Bogotá", **values).text == "city: Bogotá"  # type: ignore[arg-type]


def test_values_are_frozen() -> None:
    """Two that hold the same are the same, and none can be changed."""
    passage = Passage("text", source="a")

    assert passage == Passage("text", source="a")
    assert hash(passage) == hash(Passage("text", source="a"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        passage.text = "other"  # type: ignore[misc]
