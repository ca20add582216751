"""plugins/ai/window.py"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import Message
from plugins.ai.window import Window, estimate


def said(*contents: str) -> tuple[Message, ...]:
    """Messages of a person and the bot in turn."""
    return tuple(Message("assistant" if n % 2 else "user", content, n) for n, content in enumerate(contents))


def test_the_newest_messages_stay() -> None:
    """One message too many, and the oldest turn leaves whole: the question and its answer."""
    window = Window("c", said("q1", "a1", "q2", "a2"), max_size=4)

    assert [m.content for m in window.append(Message("user", "q3", 5)).messages] == ["q2", "a2", "q3"]


def test_appending_makes_another_window() -> None:
    """A window is a value: the one there was is as it was."""
    window = Window("c")

    window.append(Message("user", "hola", 1))

    assert window == Window("c", (), 20)


def test_the_form_of_the_models_api() -> None:
    """Role and content, oldest first."""
    assert Window("c", said("q", "a")).to_llm_messages() == [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]


def test_a_window_smaller_than_a_turn() -> None:
    """With room for one message, the newest is kept."""
    window = Window("c", max_size=1).append(Message("user", "q", 1)).append(Message("assistant", "a", 2))

    assert [m.content for m in window.messages] == ["a"]


@pytest.mark.parametrize("size", [0, -1, 2.5])
def test_a_size_that_cannot_work(size: int) -> None:
    """A window holds at least one message."""
    with pytest.raises(ValueError, match="max_size"):
        Window("c", max_size=size)


def test_tokens_bound_it_too() -> None:
    """A long old turn leaves with its answer, although there is room for its answer alone."""
    window = Window("c", said("x" * 3000, "corta", "q2", "a2"))

    assert [m.content for m in window.within(100).messages] == ["q2", "a2"]


@given(st.lists(st.sampled_from(["user", "assistant"]), max_size=40), st.integers(1, 12), st.integers(0, 400))
def test_never_more_than_allowed_and_never_half_a_turn(roles: list[str], size: int, tokens: int) -> None:
    """However a chat went, a window keeps to both bounds, and what is left is its end, beginning where a turn does."""
    messages = tuple(Message(role, "x" * 10 * n, n) for n, role in enumerate(roles))  # type: ignore[arg-type]

    window = Window("c", messages, size).within(tokens)

    kept = window.messages
    assert len(kept) <= size
    assert sum(estimate(m.content) for m in kept) <= tokens
    assert messages[len(messages) - len(kept) :] == kept
    first = len(messages) - len(kept)
    if kept and first and len(kept) < size:
        assert (messages[first - 1].role, kept[0].role) == ("assistant", "user")


def test_estimates_are_rather_too_high() -> None:
    """Other scripts take more tokens than letters suggest."""
    assert estimate("hola") < estimate("你好你好") <= 10
