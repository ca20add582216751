"""What a person sees before the first word: the menu of commands and the descriptions, in each language, set only when they changed."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from aiogram.methods import SetMyCommands, SetMyDescription, SetMyShortDescription, TelegramMethod
from aiogram.types import BotCommand, BotCommandScopeAllGroupChats, BotCommandScopeAllPrivateChats, BotCommandScopeChat

from bot.errors import TransportError, Undeliverable
from bot.registry import Command
from bot.transports.telegram.api import Api, Refused
from bot.transports.telegram.receiving import Back
from bot.transports.telegram.store import Store
from bot.transports.telegram.updates import address
from bot.words import marked as _

log = logging.getLogger(__name__)

IN_GROUPS = ("help", "language", "reset")
MOST_COMMANDS = 100
LONGEST_HELP = 256
Translate = Callable[[str, str], str]


DESCRIPTION = _("Ask me what you want to know: I answer from documents, say where each answer comes from, and remember what you tell me.")
SHORT = _("I answer from documents, citing them, and I remember you.")


@dataclass(frozen=True, slots=True)
class Menus:
    """All that is needed to write them."""

    commands: Sequence[Command]
    languages: Sequence[str]
    default: str
    admins: Sequence[str]
    translate: Translate


def methods(menus: Menus) -> Iterator[TelegramMethod[Any]]:
    """The calls that set everything; an empty language code is for every language that has none of its own."""
    for code in ("", *menus.languages):
        lang = code or menus.default
        yield SetMyDescription(description=menus.translate(lang, DESCRIPTION)[:512], language_code=code or None)
        yield SetMyShortDescription(short_description=menus.translate(lang, SHORT)[:120], language_code=code or None)
        everyone = [command for command in menus.commands if command.who != "admins"]
        yield _menu(menus, everyone, code, BotCommandScopeAllPrivateChats())
        yield _menu(menus, [command for command in everyone if command.name in IN_GROUPS], code, BotCommandScopeAllGroupChats())
        for admin in menus.admins:
            yield _menu(menus, menus.commands, code, BotCommandScopeChat(chat_id=address(admin)[0]))


def _menu(menus: Menus, commands: Sequence[Command], code: str, scope: Any) -> SetMyCommands:
    lang = code or menus.default
    shown = [command for command in commands if command.help and command.name.isascii() and len(command.name) <= 32][:MOST_COMMANDS]
    lines = [BotCommand(command=command.name, description=menus.translate(lang, command.help)[:LONGEST_HELP]) for command in shown]
    return SetMyCommands(commands=lines, scope=scope, language_code=code or None)


async def bring_up_to_date(api: Api, store: Store, menus: Menus) -> int:
    """Set what is not yet set as it should be; how many calls that took. A server that is away is waited for; what it refuses is left."""
    made, back = 0, Back()
    for method in methods(menus):
        body = method.model_dump_json(exclude_none=True, exclude_defaults=False, warnings=False)
        about = method.model_dump_json(include={"scope", "language_code"}, exclude_none=True, warnings=False)
        name, digest = f"{api.id}:{type(method).__name__}:{about}", hashlib.sha256(body.encode()).hexdigest()
        if await store.setting(name) == digest:
            continue
        if await _set(api, method, back):
            made += 1
            await store.keep_setting(name, digest)
    return made


async def _set(api: Api, method: TelegramMethod[Any], back: Back) -> bool:
    """Whether Telegram took it, once it says so or not."""
    while True:
        try:
            await api.call(method)
        except (Refused, Undeliverable) as error:  # an admin who never wrote to the bot has no chat for a menu
            log.info("telegram: %s was refused: %s", type(method).__name__, error)
            return False
        except TransportError as error:
            wait = back.after(error)
            log.warning("telegram: %s did not work, tried again in %.0f s: %s", type(method).__name__, wait, error)
            await asyncio.sleep(wait)
        else:
            back.well()
            return True
