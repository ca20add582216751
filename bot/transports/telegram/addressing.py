"""Whether a message in a group is for the bot, and what it says without the call."""

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bot.transports.telegram.reading import Raw, covered, objects, optional

COMMAND = re.compile(r"/([A-Za-z0-9_]+)(?:@([A-Za-z0-9_]+))?(?=\s|$)")
BEFORE_NAME = " \t\n¡¿\u200b\u200e\u200f"
AROUND_NAME = re.compile(r"^\W+|\W+$")
AFTER_NAME = re.compile(r"^[\s,.:;!?–—-]+")


@dataclass(frozen=True, slots=True)
class Me:
    """The bot as Telegram knows it. `hears_all`: privacy mode is off, so it sees every message of a group."""

    id: int
    username: str
    name: str
    hears_all: bool = False


def for_another(text: str, me: Me) -> bool:
    """Whether a text is a command that names another bot."""
    match = COMMAND.match(text)
    return bool(match and match[2] and match[2].casefold() != me.username.casefold())


def addressed(text: str, entities: Sequence[Raw], message: Raw, me: Me, commands: Collection[str]) -> bool:
    """Whether a message of a group is for the bot: a command of ours, a mention, our name at its start, or a reply to us."""
    if match := COMMAND.match(text):
        if match[2]:
            return match[2].casefold() == me.username.casefold()
        if match[1].casefold() in commands:
            return True
    if any(_mentions(text, entity, me) for entity in entities):
        return True
    return begins_with_name(text, me) or replies_to_me(message, me)


def _mentions(text: str, entity: Raw, me: Me) -> bool:
    if entity.get("type") == "mention":
        return covered(text, entity).casefold() == f"@{me.username}".casefold()
    return entity.get("type") == "text_mention" and optional(entity, "user").get("id") == me.id


def begins_with_name(text: str, me: Me) -> bool:
    """Whether a text begins with the bot's name and goes on after a pause: `Sabio, …`."""
    return _after_name(text, me) is not None


def _after_name(text: str, me: Me) -> int | None:
    """Where a text goes on after the bot's name, with or without its accents and the emoji around it; None where it begins otherwise."""
    start = len(text) - len(text.lstrip(BEFORE_NAME))
    for name in (me.name.strip(), AROUND_NAME.sub("", me.name)):
        wanted, read, at = _folded(name), "", start
        while at < len(text) and (len(read) < len(wanted) or not _folded(text[at])):
            read += _folded(text[at])
            at += 1
        if wanted and read == wanted and not text[at : at + 1].isalnum():
            return at
    return None


def _folded(text: str) -> str:
    """Without case, accents and what shows nothing."""
    return "".join(one for one in unicodedata.normalize("NFD", text.casefold()) if unicodedata.category(one) not in ("Mn", "Cf"))


def replies_to_me(message: Raw, me: Me) -> bool:
    """Whether a message replies to one of the bot's; in a topic every message looks like a reply to the topic's root."""
    replied = replied_to(message)
    return optional(replied, "from").get("id") == me.id


def replied_to(message: Raw) -> Raw:
    """The message that this one replies to, if it really does; else an empty object."""
    replied = optional(message, "reply_to_message")
    is_root = message.get("is_topic_message") and replied.get("message_id") == message.get("message_thread_id")
    return {} if is_root or "forum_topic_created" in replied else replied


def without_call(text: str, entities: Sequence[Raw], me: Me) -> str:
    """The text without a mention or the name at its start, and without a mention at its end; all of it where nothing is left."""
    said = text
    mention = re.compile(rf"^\s*@{re.escape(me.username)}\b", re.IGNORECASE)
    if match := mention.match(said):
        said = AFTER_NAME.sub("", said[match.end() :])
    elif (end := _after_name(said, me)) is not None:
        said = AFTER_NAME.sub("", said[end:])
    elif first := next(
        (one for one in entities if one.get("type") == "text_mention" and one.get("offset") == 0 and _mentions(text, one, me)), None
    ):
        said = AFTER_NAME.sub("", said[len(covered(text, first)) :])
    said = re.sub(rf"\s+@{re.escape(me.username)}\s*$", "", said, flags=re.IGNORECASE)
    return said.strip() or text.strip()


def entities_of(message: Raw) -> Sequence[Raw]:
    """The entities of the text or of the caption."""
    return objects(message, "entities") if message.get("text") is not None else objects(message, "caption_entities")
