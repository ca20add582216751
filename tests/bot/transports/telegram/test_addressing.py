"""In a group it answers what is said to it, and nothing else."""

from dataclasses import replace
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


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("Sofía Núñez 🤖", "Sofía Núñez 🤖, ¿qué hora es?", "¿qué hora es?"),
        ("Sofía Núñez 🤖", "sofia nunez, ¿qué hora es?", "¿qué hora es?"),
        ("Sofía Núñez 🤖", "SOFI\u0301A NU\u0301N\u0303EZ: hola", "hola"),
        ("Sofi\u0301a", "Sofía hola", "hola"),
        ("Sabio", "¡Sábio! hola", "hola"),
        ("Sabio", "\u200f¿Sabio, estás?", "estás?"),
        ("Großer", "GROSSER, hola", "hola"),
        ("🤖", "🤖 hola", "hola"),
        ("Sofía Núñez", "Sofía, hola", None),
        ("Sofía", "Sofías del mundo", None),
        ("Sabio", "Sabiő del mundo", "del mundo"),
        ("Sabio", "Sabi", None),
        ("", "hola", None),
        ("…", "… hola", "hola"),
    ],
)
def test_a_name_is_known_however_it_is_written(name: str, text: str, said: str | None) -> None:
    """Without accents, composed or decomposed, without its emoji, after an opening mark."""
    me = replace(ME, name=name)

    assert addressed(text, [], {}, me, ()) is (said is not None)
    assert without_call(text, [], me) == (said if said is not None else text)


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
