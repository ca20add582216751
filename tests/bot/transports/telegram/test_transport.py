"""The transport with the whole bot behind it, over a stand-in: what a person sees of errors, pages, files and groups that move."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from bot import Context, Registry
from bot.testing import TestBot, create_test_bot
from bot.transports.telegram.transport import Telegram
from tests.standins import telegram_server as standin

ADMIN = {"BOT_ADMINS": "telegram:99", "BOT_APPEND_SOURCES": "false"}


def breaking(registry: Registry) -> None:
    """A plugin with a fault that nobody foresaw."""

    @registry.command("broken", help="Break")
    async def broken(ctx: Context) -> None:
        raise ZeroDivisionError(f"the secret of {ctx.text}")


@dataclass
class Place:
    """The stand-in and the bot that is connected to it."""

    server: standin.Telegram
    bot: TestBot


@pytest.fixture
async def place(each_engine: None) -> AsyncIterator[Place]:
    """A bot that polls."""
    async with (
        standin.telegram_server(enforce=False) as server,
        create_test_bot(memory=True, plugins=[breaking], settings=ADMIN) as bot,
        Telegram(bot, token=standin.TOKEN, base=server.url).open() as transport,
    ):
        bot.attach(transport)
        running = asyncio.create_task(transport.run())
        try:
            yield Place(server, bot)
        finally:
            running.cancel()
            await asyncio.wait([running])


async def test_an_error_has_an_id_that_the_log_has_too(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """A sentence in the person's language; no traceback and none of its words."""
    await place.server.say("/broken please", user=1, lang="en")
    await place.server.say("/broken por favor", user=2)
    said, dicho = await place.server.answer(1), await place.server.answer(2)
    ids = [found[1] for text in (said, dicho) if (found := re.search(r"error (\w{6})\)", text))]

    assert said.startswith("Something went wrong")
    assert dicho.startswith("Algo")
    assert len(set(ids)) == 2
    assert all(one in caplog.text for one in ids)
    assert "secret" not in said + dicho
    assert "ZeroDivisionError" not in said + dicho


async def test_documents_are_turned_by_buttons(place: Place) -> None:
    """The next page, and back; each press is a message of its own."""
    for n in range(55):
        await place.bot.core.library.add_text(f"La nota {n} habla de otra cosa.", f"nota-{n:02}.txt")
    await place.server.say("/documents", user=99)
    first = await place.server.answer(99)
    await _press(place, 0, "siguiente")
    second = await place.server.answer(99, 2)
    await _press(place, 1, "anterior")

    assert "55 documentos" in first
    assert "nota-00.txt" in first
    assert "nota-00.txt" not in second
    assert await place.server.answer(99, 3) == first


async def _press(place: Place, n: int, label: str) -> None:
    await place.server.press(list(place.server.messages[99].values())[n], label, user=99)


async def test_ingest_in_reply_to_a_file_takes_it_in(place: Place) -> None:
    """From an admin; the file is fetched, and answered from."""
    place.server.files["f1"] = b"El horario de la biblioteca es de nueve a dos."
    document = {"file_id": "f1", "file_unique_id": "f", "file_name": "horario.txt", "mime_type": "text/plain", "file_size": 50}
    sent = await place.server.say(None, user=99, document=document)
    kept_nothing = await place.server.answer(99)
    await place.server.say("/ingest", user=99, reply_to_message=sent)
    await place.server.until(lambda: "1 documento" in place.server.texts(99)[-1])
    await place.server.say("¿Cuál es el horario de la biblioteca?", user=1)

    assert "/ingest" in kept_nothing
    assert "de nueve a dos" in await place.server.answer(1)


async def test_another_may_not_take_in_a_file_of_an_admins(place: Place) -> None:
    """Nor is it fetched."""
    document = {"file_id": "f2", "file_unique_id": "f", "file_name": "a.txt", "mime_type": "text/plain", "file_size": 5}
    await place.server.say("/ingest", user=3, reply_to_message=place.server.message(None, user=99, document=document))
    await place.server.answer(3)

    assert not [call for call in place.server.calls if call.method == "getFile"]


async def test_what_is_remembered_of_a_group_moves_with_it(place: Place) -> None:
    """Said in both chats, and again: the facts are there once, and in the new one alone."""
    old, new = -4242, -1004242
    await place.bot.ai.remember(f"telegram:{old}", "El grupo se reúne los martes")
    for _ in range(2):
        await place.server.say(None, user=1, chat=old, migrate_to_chat_id=new)
        await place.server.say(None, user=1, chat=new, migrate_from_chat_id=old)
    await place.server.say("hola", user=1)
    await place.server.answer(1)

    assert await place.bot.ai.memory(f"telegram:{new}") == ["El grupo se reúne los martes"]
    assert await place.bot.ai.memory(f"telegram:{old}") == []


async def test_who_writes_in_a_topic_of_a_private_chat_has_not_blocked_the_bot(place: Place) -> None:
    """The chat around the topic is the one that was marked."""
    place.server.faults["sendMessage"].append("403 Forbidden: bot was blocked by the user")
    await place.server.say("hola", user=1)
    marked = "SELECT chat_key FROM telegram_chats WHERE agent_id = :agent_id AND present = 0"
    for _ in range(1000):
        if await place.bot.core.database.all(marked):
            break
        await asyncio.sleep(0.02)
    await place.server.say("/help", user=1, message_thread_id=7, is_topic_message=True)

    assert "Soy Sabio" in await place.server.answer(1)


async def test_where_it_is_an_administrator_it_hears_everything(place: Place) -> None:
    """So nobody is told of privacy mode."""
    for chat, status in ((-71, "member"), (-72, "administrator")):
        group = {"id": chat, "type": "group", "title": "G"}
        person = {"id": 1, "is_bot": False, "first_name": "Ana", "language_code": "en"}
        await place.server.update(
            my_chat_member={"chat": group, "from": person, "old_chat_member": {"status": "left"}, "new_chat_member": {"status": status}}
        )
    as_member, as_administrator = await place.server.answer(-71), await place.server.answer(-72)

    assert "Privacy mode" in as_member
    assert "Privacy mode" not in as_administrator
