"""Telegram's updates as the bot takes them: who, where, what, and what of it is their own."""

from typing import Any

import pytest

from bot.transports.telegram.addressing import Me
from bot.transports.telegram.reading import Undecodable
from bot.transports.telegram.updates import Moved, Nothing, Pressed, Standing, address, chat_key, read
from bot.values import Update

ME = Me(1000, "sabio_bot", "Sabio")
COMMANDS = ("help", "ingest")
PRIVATE = {"id": 7, "type": "private"}
GROUP = {"id": -5, "type": "group"}
FORUM = {"id": -100123, "type": "supergroup", "is_forum": True}
ANA = {"id": 7, "is_bot": False, "first_name": "Ana", "language_code": "es-CO"}


def arrived(message: dict[str, Any], **update: Any) -> Any:
    """What a message is read as; from Ana, unless it says otherwise."""
    return read({"update_id": 1, "message": {"message_id": 3, "date": 1, "from": ANA, **message}, **update}, ME, COMMANDS)


def test_a_private_message() -> None:
    """The chat's key is the person; the id is unique over bots; the language is that of the app."""
    update = arrived({"chat": PRIVATE, "text": "hola"})

    assert (update.id, update.chat_key, update.sender, update.text, update.lang) == (
        "telegram:1000:1",
        "telegram:7",
        "telegram:7",
        "hola",
        "es-CO",
    )
    assert (update.message, update.is_group, update.addressed, update.room) == ("3", False, True, None)


def test_a_topic_is_a_chat_of_its_own() -> None:
    """Only where `is_topic_message` says so: General has no thread, and nor has a plain reply."""
    topic = arrived({"chat": FORUM, "text": "hola", "message_thread_id": 9, "is_topic_message": True})
    reply = arrived({"chat": FORUM, "text": "hola", "message_thread_id": 9})

    assert (topic.chat_key, topic.room) == ("telegram:-100123:9", "telegram:-100123")
    assert reply.chat_key == "telegram:-100123"
    assert address(topic.chat_key) == (-100123, 9)


@pytest.mark.parametrize(
    "who",
    [
        {"from": {"id": 1087968824, "is_bot": True, "first_name": "Group"}, "sender_chat": GROUP},
        {"from": {"id": 136817688, "is_bot": True, "first_name": "Channel"}, "sender_chat": {"id": -100, "type": "channel"}},
        {"from": {"id": 777000, "is_bot": False, "first_name": "Telegram"}, "is_automatic_forward": True},
        {"from": {"id": 1087968824, "is_bot": True, "first_name": "Group"}},
        {"from": None},
    ],
)
def test_who_hides_behind_a_group_or_a_channel_is_nobody(who: dict[str, Any]) -> None:
    """No personal memory for an anonymous admin, a channel or a linked channel; no language of theirs either."""
    update = arrived({"chat": GROUP, "text": "Sabio, hola", **who})

    assert update.sender is None
    assert update.lang is None
    assert update.addressed


def test_an_anonymous_admin_may_moderate() -> None:
    """Who speaks as the group administers it."""
    sender = {"from": {"id": 1087968824, "is_bot": True, "first_name": "Group"}, "sender_chat": GROUP}

    assert arrived({"chat": GROUP, "text": "/help", **sender}).may_moderate
    assert not arrived({"chat": GROUP, "text": "/help"}).may_moderate


def test_bots_and_channels_and_service_messages_are_left_alone() -> None:
    """Two bots would talk for ever."""
    bot = {"from": {"id": 8, "is_bot": True, "first_name": "Other"}}

    assert isinstance(arrived({"chat": GROUP, "text": "Sabio, hola", **bot}), Nothing)
    assert isinstance(arrived({"chat": {"id": -100, "type": "channel"}, "text": "x"}), Nothing)
    assert isinstance(arrived({"chat": GROUP, "new_chat_title": "x"}), Nothing)
    assert isinstance(read({"update_id": 2, "channel_post": {"message_id": 1}}, ME, COMMANDS), Nothing)
    assert isinstance(read({"update_id": 2, "something_new": {}}, ME, COMMANDS), Nothing)


def test_a_caption_is_text() -> None:
    """What stands under a picture or a file is what is said."""
    update = arrived({"chat": PRIVATE, "photo": [{"file_id": "s"}, {"file_id": "l"}], "caption": "¿qué es?"})

    assert (update.text, update.other, update.attachments[0].file_id) == ("¿qué es?", "photo", "l")


def test_a_document_with_its_size() -> None:
    """So that one that is too large is refused before it is fetched."""
    document = {"file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf", "file_size": 30 << 20}
    [file] = arrived({"chat": PRIVATE, "document": document, "caption": "/ingest"}).attachments

    assert (file.file_id, file.name, file.media_type, file.size) == ("d", "a.pdf", "application/pdf", 30 << 20)


def test_ingest_as_a_reply_takes_the_file_replied_to() -> None:
    """A question in reply to a file takes none."""
    replied = {"message_id": 2, "from": ANA, "chat": PRIVATE, "document": {"file_id": "d", "file_name": "a.txt"}}

    assert [file.name for file in arrived({"chat": PRIVATE, "text": "/ingest", "reply_to_message": replied}).attachments] == ["a.txt"]
    assert arrived({"chat": PRIVATE, "text": "¿qué dice?", "reply_to_message": replied}).attachments == ()


def test_a_question_in_reply_to_a_photo_is_about_it() -> None:
    """Its caption is quoted; a command takes it as a file and nothing more."""
    photo = [{"file_id": "p", "file_unique_id": "p", "width": 1, "height": 1}]
    replied = {"message_id": 2, "date": 1, "chat": PRIVATE, "photo": photo, "caption": "mi gato"}
    question = arrived({"chat": PRIVATE, "text": "¿de qué color es?", "reply_to_message": replied})
    command = arrived({"chat": PRIVATE, "text": "/help", "reply_to_message": replied})

    assert (question.text, question.quoted, question.other) == ("¿de qué color es?", "mi gato", "photo")
    assert [file.file_id for file in question.attachments] == ["p"]
    assert command.other is None


def test_a_reply_and_a_quote_are_quoted() -> None:
    """The part that was marked, else the whole message; it is no evidence, the text is."""
    replied = {"message_id": 2, "from": {"id": 8}, "chat": GROUP, "text": "todo el mensaje"}
    reply = arrived({"chat": PRIVATE, "text": "¿y eso?", "reply_to_message": replied})
    quote = arrived({"chat": PRIVATE, "text": "¿y eso?", "reply_to_message": replied, "quote": {"text": "el", "position": 5}})

    assert (reply.quoted, reply.evidence, quote.quoted) == ("todo el mensaje", None, "el")


def test_a_forwarded_message_is_data_and_no_evidence() -> None:
    """Nor does a command in it run."""
    update = arrived({"chat": PRIVATE, "text": "/forget_me", "forward_origin": {"type": "user"}})

    assert (update.text, update.quoted, update.evidence) == ("", "/forget_me", "")


@pytest.mark.parametrize("kind", ["voice", "sticker", "location", "contact", "poll", "video_note", "dice"])
def test_what_came_instead_of_text_is_named(kind: str) -> None:
    """So that a sentence can be said about it."""
    assert arrived({"chat": PRIVATE, kind: {"file_id": "x"}}).other == kind


def test_an_edit_bears_the_message_that_it_changes() -> None:
    """It is a kind of its own, with an id of its own."""
    body = {"message_id": 3, "date": 1, "from": ANA, "chat": PRIVATE, "text": "hola2", "edit_date": 2}
    update = read({"update_id": 9, "edited_message": body}, ME, COMMANDS)

    assert isinstance(update, Update)
    assert (update.kind, update.message, update.text, update.id) == ("edited", "3", "hola2", "telegram:1000:9")


def test_a_long_text_may_be_a_part_and_an_album_is_one() -> None:
    """In UTF-16 units, as the app counts."""
    assert arrived({"chat": PRIVATE, "text": "😀" * 2000}).part == "paste"
    assert arrived({"chat": PRIVATE, "text": "corto"}).part == ""
    assert arrived({"chat": PRIVATE, "photo": [{"file_id": "x"}], "media_group_id": "77"}).part == "album:77"


def test_a_stop_and_a_press() -> None:
    """Both pass the queue of their chat; a press is its presser's, whoever the message was for."""
    stop = read({"update_id": 4, "stopped_message_generation": {"chat": PRIVATE, "draft_id": 5}}, ME, COMMANDS)
    message = {"message_id": 8, "date": 1, "chat": GROUP, "from": {"id": 1000}}
    press = read({"update_id": 5, "callback_query": {"id": "q", "from": ANA, "data": "d", "message": message}}, ME, COMMANDS)

    assert isinstance(stop, Update)
    assert (stop.kind, stop.chat_key) == ("stop", "telegram:7")
    assert isinstance(press, Pressed)
    assert (press.update.kind, press.update.sender, press.update.message, press.update.is_group) == ("button", "telegram:7", "8", True)


def test_a_migration_is_read_from_either_side() -> None:
    """The old group says where it went, the new one where it came from."""
    assert arrived({"chat": GROUP, "migrate_to_chat_id": -100}) == Moved(-5, -100)
    assert arrived({"chat": {"id": -100, "type": "supergroup"}, "migrate_from_chat_id": -5}) == Moved(-5, -100)


def test_blocked_and_removed() -> None:
    """Whether it may speak there, and whether it could before."""
    member = {"chat": PRIVATE, "from": ANA, "old_chat_member": {"status": "member"}, "new_chat_member": {"status": "kicked"}}

    assert read({"update_id": 1, "my_chat_member": member}, ME, COMMANDS) == Standing(1, 7, False, False, True, "es-CO")


@pytest.mark.parametrize(
    "raw",
    [
        7,
        [],
        {},
        {"update_id": "x"},
        {"update_id": True},
        {"update_id": 1, "message": 7},
        {"update_id": 1, "message": {"message_id": 1, "text": "x"}},
        {"update_id": 1, "message": {"message_id": "1", "chat": PRIVATE, "from": ANA, "text": "x"}},
        {"update_id": 1, "message": {"message_id": 1, "chat": PRIVATE, "from": ANA, "text": 5}},
        {"update_id": 1, "callback_query": {"id": "q", "data": "d", "message": {"chat": 5}}},
    ],
)
def test_what_cannot_be_read_says_so(raw: Any) -> None:
    """One error, that names the field and holds no content."""
    with pytest.raises(Undecodable):
        read(raw, ME, COMMANDS)


def test_the_words_of_a_rich_message_are_read() -> None:
    """Said, or replied to: the bot's own answers with tables are such."""
    bold = {"type": "bold", "text": ["Envío", {"type": "custom_emoji", "custom_emoji_id": "1", "alternative_text": "📦"}]}
    rich = {
        "blocks": [
            {"type": "heading", "text": bold, "size": 1},
            {"type": "divider"},
            {"type": "list", "items": [{"label": "•", "blocks": [{"type": "paragraph", "text": ["cinco ", "euros"]}]}]},
            {"type": "table", "cells": [[{"align": "left", "text": "a"}, {"align": "left"}], 7]},
            {"type": "mathematical_expression", "expression": "x^2"},
            {"type": "novel", "text": 5, "cells": 5},
        ]
    }
    said = arrived({"chat": PRIVATE, "rich_message": rich})
    replying = arrived({"chat": PRIVATE, "text": "¿y?", "reply_to_message": {"message_id": 3, "rich_message": rich}})

    assert said.text == replying.quoted == "Envío📦\ncinco euros\na | \nx^2"


@pytest.mark.parametrize(
    ("new", "present", "administers"),
    [
        ({"status": "member"}, True, False),
        ({"status": "administrator"}, True, True),
        ({"status": "restricted", "is_member": True}, True, False),
        ({"status": "restricted", "is_member": False}, False, False),
        ({"status": "kicked"}, False, False),
        ({"status": "new"}, True, False),
    ],
)
def test_where_the_bot_stands(new: dict[str, Any], present: bool, administers: bool) -> None:
    """Who is restricted may have left; an administrator hears everything."""
    raw = {"update_id": 1, "my_chat_member": {"chat": GROUP, "new_chat_member": new, "old_chat_member": {"status": "left"}}}
    standing = read(raw, ME, COMMANDS)

    assert isinstance(standing, Standing)
    assert (standing.present, standing.administers) == (present, administers)


def test_odd_entities_and_characters_hurt_nothing() -> None:
    """Offsets out of range, NUL, lone surrogates."""
    update = arrived({"chat": GROUP, "text": "Sabio, a\0b\ud800", "entities": [{"type": "mention", "offset": 90, "length": -1}, 7]})

    assert update.text == "ab?"


def test_keys_of_other_platforms_are_refused() -> None:
    """A key is written and read in one place."""
    assert chat_key(5, 7) == "telegram:5:7"
    with pytest.raises(ValueError, match="no chat of Telegram"):
        address("console:local")
