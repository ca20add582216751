"""Telegram's updates as the bot takes them: what was said, what was pressed, what became of a chat. Pure."""

import mimetypes
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Literal

from bot.transports.telegram.addressing import Me, addressed, entities_of, for_another, replied_to, without_call
from bot.transports.telegram.reading import Raw, Undecodable, mapping, number, objects, optional, rich_words, update_id, words
from bot.values import Attachment, Update

NAME = "telegram"
ANONYMOUS_ADMIN = 1087968824  # @GroupAnonymousBot: an admin who hides behind the group
CHANNEL_BOT = 136817688  # @Channel_Bot: somebody who speaks as a channel
SERVICE = 777000  # forwards of a linked channel
NOBODY = (ANONYMOUS_ADMIN, CHANNEL_BOT, SERVICE)
LONG = 3_900  # UTF-16 units: a longer text may be the first part of a paste that the app has cut at 4096
FILES = ("document", "audio", "video", "animation", "voice", "video_note")
OTHERS = (
    *FILES,
    "photo",
    "sticker",
    "location",
    "venue",
    "contact",
    "poll",
    "dice",
    "story",
    "checklist",
    "game",
    "paid_media",
    "live_photo",
    "giveaway",
    "giveaway_winners",
    "invoice",
)
KEPT_AS_FILES = ("document", "photo", "voice")
GONE = ("left", "kicked")
ADMINISTERS = ("administrator", "creator")


@dataclass(frozen=True, slots=True)
class Pressed:
    """A press on a button under a message of the bot."""

    query: str
    data: str
    update: Update


@dataclass(frozen=True, slots=True)
class Moved:
    """A group has become a supergroup, and has another id from now on."""

    old: int
    new: int


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether the bot may speak in a chat: False where it was blocked or removed. `update` is the number of the update that says it.

    `administers`: the bot is an administrator there, which sees every message whatever its privacy mode.
    """

    update: int
    chat: int
    is_group: bool
    present: bool
    was_present: bool
    lang: str | None = None
    administers: bool = False


@dataclass(frozen=True, slots=True)
class Nothing:
    """An update that asks nothing of the bot."""

    why: str


Arrival = Update | Pressed | Moved | Standing | Nothing


def chat_key(chat: int, thread: int | None = None) -> str:
    """The key of a chat, or of a topic in it."""
    return f"{NAME}:{chat}" if thread is None else f"{NAME}:{chat}:{thread}"


def address(key: str) -> tuple[int, int | None]:
    """The chat and the topic that a key means. Raises ValueError for a key that is none of ours."""
    platform, chat, *thread = key.split(":")
    if platform != NAME or len(thread) > 1:
        raise ValueError(f"{key!r} is no chat of Telegram")
    return int(chat), int(thread[0]) if thread else None


def read(raw: Any, me: Me, commands: Collection[str]) -> Arrival:
    """What one update says. `commands` are the names of those registered. Raises Undecodable."""
    if update_id(raw) is None:
        raise Undecodable("update_id is no whole number")
    if "message" in raw:
        return _message(raw, mapping(raw, "message"), me, commands, edited=False)
    if "edited_message" in raw:
        return _message(raw, mapping(raw, "edited_message"), me, commands, edited=True)
    if "callback_query" in raw:
        return _pressed(raw, mapping(raw, "callback_query"), me)
    if "stopped_message_generation" in raw:
        return _stopped(raw, mapping(raw, "stopped_message_generation"), me)
    if "my_chat_member" in raw:
        return _standing(raw, mapping(raw, "my_chat_member"))
    return Nothing("not asked for")


# ---------------------------------------------------------------------------------------------- what was said


def _message(raw: Raw, message: Raw, me: Me, commands: Collection[str], *, edited: bool) -> Arrival:
    chat = mapping(message, "chat")
    if "migrate_to_chat_id" in message:
        return Moved(number(chat, "id"), number(message, "migrate_to_chat_id"))
    if "migrate_from_chat_id" in message:
        return Moved(number(message, "migrate_from_chat_id"), number(chat, "id"))
    kind = words(chat, "type")
    if kind not in ("private", "group", "supergroup"):
        return Nothing("a channel")
    sender = sender_of(message)
    if sender is None and kind == "private":
        return Nothing("nobody")
    if optional(message, "from").get("is_bot") and optional(message, "from").get("id") not in NOBODY:
        return Nothing("a bot")
    text = _words_of(message)
    files, other = _attachments(message), _other(message)
    if not text.strip() and not files and other is None:
        return Nothing("a service message")
    if for_another(text, me):
        return Nothing("for another bot")
    is_group = kind != "private"
    ours = not is_group or addressed(text, entities_of(message), message, me, commands)
    said = without_call(text, entities_of(message), me) if is_group else text
    return _update(
        raw,
        message,
        me,
        sender=sender,
        is_group=is_group,
        addressed=ours,
        kind="edited" if edited else "message",
        part="" if edited else _part(message, text),
        **_told(message, said, files, other),
    )


def sender_of(message: Raw) -> str | None:
    """The canonical id of the person who wrote; None for those who hide behind a group or a channel."""
    person = optional(message, "from").get("id")
    if message.get("sender_chat") is not None or message.get("is_automatic_forward") or not isinstance(person, int) or person in NOBODY:
        return None
    return chat_key(person)


def _update(
    raw: Raw,
    message: Raw,
    me: Me,
    *,
    sender: str | None,
    is_group: bool,
    addressed: bool,
    kind: Literal["message", "edited", "button", "stop"],
    **told: Any,
) -> Update:
    """The update with what every message says of itself, and what else it `told`."""
    chat = number(mapping(message, "chat"), "id")
    thread = message.get("message_thread_id") if message.get("is_topic_message") else None
    return Update(
        id=f"{NAME}:{me.id}:{update_id(raw)}",
        transport=NAME,
        chat_key=chat_key(chat, thread if isinstance(thread, int) else None),
        sender=sender,
        kind=kind,
        is_group=is_group,
        addressed=addressed,
        may_moderate=is_group and optional(message, "sender_chat").get("id") == chat,  # an anonymous admin
        lang=words(optional(message, "from"), "language_code") or None if sender else None,
        message=str(number(message, "message_id")),
        room=chat_key(chat) if is_group else None,
        hears_all=me.hears_all or not is_group,
        **told,
    )


def _told(message: Raw, said: str, files: tuple[Attachment, ...], other: str | None) -> dict[str, Any]:
    """The fields of an update for what was said, what it refers to, and what of it is the person's own."""
    told = {"text": said, "attachments": files, "other": other}
    if "forward_origin" in message or "forward_from" in message or "forward_date" in message:
        return {**told, "text": "", "quoted": said or None, "evidence": ""}
    replied = replied_to(message)
    told["quoted"] = words(optional(message, "quote"), "text") or _words_of(replied) or None
    if files or not (said.startswith("/") or replied.get("photo")):
        return told
    other = other or ("photo" if replied.get("photo") and not said.startswith("/") else None)
    return {**told, "attachments": _attachments(replied), "other": other}


def _words_of(message: Raw) -> str:
    return words(message, "text") or words(message, "caption") or rich_words(optional(message, "rich_message"))


def _attachments(message: Raw) -> tuple[Attachment, ...]:
    """The files that the bot can look at; their size is what Telegram says of them."""
    for kind in KEPT_AS_FILES:
        sizes = objects(message, kind) if kind == "photo" else []
        file = sizes[-1] if sizes else {} if kind == "photo" else optional(message, kind)
        if kind == "document" and "animation" in message:
            continue  # Telegram says both of an animation
        if file_id := words(file, "file_id"):
            media = words(file, "mime_type") or {"photo": "image/jpeg", "voice": "audio/ogg"}.get(kind, "application/octet-stream")
            name = words(file, "file_name") or f"{kind}{mimetypes.guess_extension(media) or ''}"
            size = file.get("file_size")
            return (Attachment(file_id, name, media, size if isinstance(size, int) else None),)
    return ()


def _other(message: Raw) -> str | None:
    """What a message is beside text; None for text alone and for a document."""
    found = next((kind for kind in OTHERS if message.get(kind) is not None), None)
    if found == "document" and message.get("animation") is not None:
        return "animation"
    return None if found == "document" else found


def _part(message: Raw, text: str) -> str:
    """What it may be a part of: an album (`album:ID`), a long paste (`paste`), or nothing."""
    if album := words(message, "media_group_id"):
        return f"album:{album}"
    if len(text.encode("utf-16-le", "replace")) // 2 >= LONG and message.get("text") is not None:
        return "paste"
    return ""


# ---------------------------------------------------------------------------------------------- presses, stops, standing


def _pressed(raw: Raw, query: Raw, me: Me) -> Arrival:
    message = optional(query, "message")
    if not message or not words(query, "data"):
        return Nothing("a button of nobody")
    person = mapping(query, "from")
    is_group = words(mapping(message, "chat"), "type") != "private"
    update = _update(raw, message, me, sender=chat_key(number(person, "id")), is_group=is_group, addressed=True, kind="button")
    update = replace(update, lang=words(person, "language_code") or None, may_moderate=False)
    return Pressed(words(query, "id"), words(query, "data"), update)


def _stopped(raw: Raw, stopped: Raw, me: Me) -> Arrival:
    chat, thread = number(mapping(stopped, "chat"), "id"), stopped.get("message_thread_id")
    key = chat_key(chat, thread if isinstance(thread, int) else None)
    return Update(id=f"{NAME}:{me.id}:{update_id(raw)}", transport=NAME, chat_key=key, sender=chat_key(chat), kind="stop")


def _standing(raw: Raw, member: Raw) -> Arrival:
    chat, person = mapping(member, "chat"), optional(member, "from")
    new, old = (optional(member, name) for name in ("new_chat_member", "old_chat_member"))
    kind = words(chat, "type")
    if kind not in ("private", "group", "supergroup"):
        return Nothing("a channel")
    lang = words(person, "language_code") or None
    administers = words(new, "status") in ADMINISTERS
    return Standing(number(raw, "update_id"), number(chat, "id"), kind != "private", _present(new), _present(old), lang, administers)


def _present(member: Raw) -> bool:
    """Whether a member is in the chat; who is restricted may be so after leaving."""
    status = words(member, "status")
    return status not in GONE and not (status == "restricted" and member.get("is_member") is False)
