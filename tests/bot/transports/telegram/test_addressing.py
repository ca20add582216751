"""In a group it answers what is said to it, and nothing else."""

from typing import Any

import pytest

from bot.transports.telegram.addressing import Me, addressed, for_another, without_call

ME = Me(1000, "sabio_bot", "Sabio")
COMMANDS = ("help",)


def _entity(kind: str, text: str, words: str, **more: Any) -> dict[str, Any]:
    offset = len(text[: text.index(words)].encode("utf-16-le")) // 2
    return {"type": kind, "offset": offset, "length": len(words.encode("utf-16-le")) // 2, **more}


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("hola a todos", False),
        ("Sabio, ¿qué hora es?", True),
        ("sabio ¿qué hora es?", True),
        ("Sabios del mundo", False),
        ("le pregunté a Sabio", False),
        ("/help", True),
        ("/help@sabio_bot", True),
        ("/HELP@SABIO_BOT", True),
        ("/help@other_bot", False),
        ("/unknown", False),
        ("/unknown@sabio_bot", True),
        ("una dirección: a@sabio_bot.com", False),
    ],
)
def test_name_and_commands(text: str, ours: bool) -> None:
    """The name at the start, a command of ours or for us; not one of others, not one that nobody here knows."""
    assert addressed(text, [], {}, ME, COMMANDS) is ours


def test_mentions() -> None:
    """By name, also behind an emoji (offsets are in UTF-16 units), and by a link to the person."""
    text = "😀 oye @Sabio_Bot ¿qué tal?"

    assert addressed(text, [_entity("mention", text, "@Sabio_Bot")], {}, ME, COMMANDS)
    assert not addressed("oye @otro", [_entity("mention", "oye @otro", "@otro")], {}, ME, COMMANDS)
    assert addressed("oye tú", [_entity("text_mention", "oye tú", "tú", user={"id": 1000})], {}, ME, COMMANDS)
    assert not addressed("oye tú", [_entity("text_mention", "oye tú", "tú", user={"id": 5})], {}, ME, COMMANDS)


def test_replies() -> None:
    """To a message of the bot; in a topic, not to the topic's root that the bot may have made."""
    mine = {"message_id": 9, "from": {"id": 1000}, "text": "hola"}

    assert addressed("¿y?", [], {"reply_to_message": mine}, ME, COMMANDS)
    assert not addressed("¿y?", [], {"reply_to_message": {**mine, "from": {"id": 5}}}, ME, COMMANDS)
    assert not addressed("¿y?", [], {"reply_to_message": mine, "is_topic_message": True, "message_thread_id": 9}, ME, COMMANDS)
    assert addressed("¿y?", [], {"reply_to_message": mine, "is_topic_message": True, "message_thread_id": 4}, ME, COMMANDS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@sabio_bot ¿qué hora es?", "¿qué hora es?"),
        ("@sabio_bot, hola", "hola"),
        ("Sabio: hola", "hola"),
        ("¿qué hora es @sabio_bot", "¿qué hora es"),
        ("dile a @sabio_bot que venga", "dile a @sabio_bot que venga"),
        ("@sabio_bot", "@sabio_bot"),
        ("/help@sabio_bot", "/help@sabio_bot"),
    ],
)
def test_the_call_is_no_part_of_the_question(text: str, said: str) -> None:
    """What is searched for and answered is what was asked."""
    assert without_call(text, [], ME) == said


def test_a_command_for_another_bot() -> None:
    """Not for us anywhere."""
    assert for_another("/start@other_bot x", ME)
    assert not for_another("/start@sabio_bot", ME)
    assert not for_another("/start", ME)
