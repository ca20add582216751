"""Telegram as people use it: the real process, over real HTTP, against a stand-in for the Bot API."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.e2e.telegram_world import World, world
from tests.standins.telegram_server import BOT, TOKEN

pytestmark = pytest.mark.asyncio(loop_scope="module")
GROUP = -1001
FORUM = -1000000000777


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """One bot for all tests of this page; each test has chats of its own."""
    async with world(tmp_path_factory.mktemp("telegram")) as made:
        yield made


# ---------------------------------------------------------------------------------------------- private chats


async def test_a_question_is_answered_with_its_sources(here: World) -> None:
    """The document is found, and named; in private there is no quotation of the question."""
    await here.telegram.say("cita: ¿cuánto tarda el envío a Canarias?", user=11)

    assert await here.telegram.answer(11) == "Tarda nueve días hábiles [1].\n\nFuentes: [1] docs/envios.md › Envíos › Plazos"
    assert "reply_parameters" not in here.telegram.sent(11)[0]


async def test_the_person_is_spoken_to_in_the_language_of_their_app(here: World) -> None:
    """An app in English is answered in English from the first word."""
    await here.telegram.say("/start", user=12, lang="en-GB")

    assert (await here.telegram.answer(12)).startswith("I am Sabio.")


async def test_quick_messages_are_answered_in_order(here: World) -> None:
    """Three at once: three answers, in their order, each once."""
    for n in range(3):
        await here.telegram.say(f"mensaje {n}", user=13)
    await here.telegram.answer(13, 3)

    assert [text.split("\n")[0] for text in here.telegram.texts(13)] == ["eco: mensaje 0", "eco: mensaje 1", "eco: mensaje 2"]


async def test_formatting_goes_as_entities(here: World) -> None:
    """Text and entities, and no parse mode."""
    await here.telegram.say("negrita", user=14)
    await here.telegram.answer(14)
    sent = here.telegram.sent(14)[0]

    assert sent["text"].startswith("Esto va en negrita y código.")
    assert [entity["type"] for entity in sent["entities"]] == ["bold", "code"]
    assert "parse_mode" not in sent


async def test_refused_entities_are_left_out_once(here: World) -> None:
    """The words arrive all the same."""
    await here.telegram.say("REFUSE", user=15)

    assert (await here.telegram.answer(15)).startswith("REFUSE esto")
    assert "entities" not in here.telegram.sent(15)[-1]


async def test_a_long_answer_comes_in_parts_that_fit(here: World) -> None:
    """Code stays code in each, a second apart; the sources do not stand alone."""
    await here.telegram.say("largo", user=16)
    await here.telegram.until(lambda: any("Eso es todo." in text for text in here.telegram.texts(16)))
    parts = here.telegram.sent(16)

    assert len(parts) > 1
    assert all(any(entity.get("language") == "python" for entity in part["entities"]) for part in parts)
    assert here.telegram.busiest(seconds=0.98, chat=16) == 1


async def test_an_answer_is_shown_while_it_is_written(here: World) -> None:
    """Drafts, never faster than one a second, then the whole as a message; a stop button on each."""
    await here.telegram.say("lento 150", user=17)
    await here.telegram.until(lambda: "palabra149" in "".join(here.telegram.texts(17)))
    drafts = here.telegram.sent(17, method="sendMessageDraft")

    assert len(drafts) >= 2
    assert all(draft["can_stop"] for draft in drafts)
    assert len({draft["draft_id"] for draft in drafts}) == 1
    assert len(here.telegram.texts(17)) == 1
    assert here.telegram.busiest(seconds=0.98, chat=17) == 1


async def test_stop_keeps_what_there_is(here: World) -> None:
    """The button passes the queue of its chat, ends the model's stream, and what was said stays."""
    await here.telegram.say("lento 1000", user=18)
    draft = await here.telegram.until(lambda: [d for d in here.telegram.sent(18, method="sendMessageDraft") if d.get("text")])
    left = here.model.left
    chat = {"id": 18, "type": "private"}
    await here.telegram.update(stopped_message_generation={"chat": chat, "draft_id": draft[0]["draft_id"]})
    text = await here.telegram.answer(18)

    assert text.startswith("palabra0 palabra1")
    assert "palabra999" not in text
    await here.telegram.until(lambda: here.model.left > left)


async def test_an_edited_message_is_answered_anew_in_its_place(here: World) -> None:
    """The answer changes, no second one comes, and the model sees the new words alone; an older message and an edit of nothing are left."""
    old = await here.telegram.say("la primera", user=19)
    await here.telegram.answer(19)
    asked = await here.telegram.say("el envio", user=19)
    await here.telegram.answer(19, 2)
    await here.telegram.edit(old, "otra cosa")
    await here.telegram.edit(asked, "el envio")
    await here.telegram.edit(asked, "el reenvío")
    await here.telegram.until(lambda: any(text.startswith("eco: el reenvío") for text in here.telegram.texts(19)))

    asked_again = next(body for body in here.model.requests if body["messages"][-1]["content"] == "el reenvío")
    assert [text.split("\n")[0] for text in here.telegram.texts(19)] == ["eco: la primera", "eco: el reenvío"]
    assert [said["content"] for said in asked_again["messages"][1:-1]] == ["la primera", "eco: la primera"]


async def test_a_long_paste_is_one_question(here: World) -> None:
    """The app cuts it at 4096; the parts are put together again before they are answered."""
    before = len(here.model.requests)
    await here.telegram.at_once(here.telegram.message("a" * 4096, user=20), here.telegram.message("y el final", user=20))
    await here.telegram.answer(20)
    asked = [str(body["messages"][-1]["content"]) for body in here.model.requests[before:]]

    assert [text for text in asked if text.startswith("aaaa")] == ["a" * 4096 + "\ny el final"]


async def test_an_album_is_one_turn(here: World) -> None:
    """Several pictures with one caption are answered once."""
    album = []
    for n in range(3):
        photo = [{"file_id": f"p{n}", "file_unique_id": f"p{n}", "width": 1, "height": 1}]
        captions = {"caption": "hola album"} if n == 1 else {}
        album.append(here.telegram.message(user=21, photo=photo, media_group_id="g1", **captions))
    await here.telegram.at_once(*album)
    await here.telegram.answer(21)
    await asyncio.sleep(0.5)

    assert [text.split("\n")[0] for text in here.telegram.texts(21)] == ["eco: hola album"]


async def test_an_edited_caption_of_an_album_changes_its_answer(here: World) -> None:
    """Whichever picture bears it; also while the others are still waited for."""
    about = {"user": 67, "media_group_id": "g2", "photo": [{"file_id": "p", "file_unique_id": "u", "width": 1, "height": 1}]}
    captioned = here.telegram.message(caption="¿qué es esto?", **about)
    await here.telegram.at_once(here.telegram.message(**about), captioned)
    for caption in ("¿qué flor es esta?", "¿y esta otra?"):
        await here.telegram.update(edited_message={**captioned, "caption": caption})
        await here.telegram.until(lambda words=caption: any(words in text for text in here.telegram.texts(67)))

    assert [text.split("\n")[0] for text in here.telegram.texts(67)] == ["eco: ¿y esta otra?"]


async def test_a_reply_gives_the_quoted_text_as_data(here: World) -> None:
    """What is quoted stands in its block, not in the question."""
    quoted = here.telegram.message("el pedido 77 llegó roto", user=22)
    await here.telegram.say("¿qué hago?", user=22, reply_to_message=quoted)
    await here.telegram.answer(22)
    body = next(body for body in here.model.requests if body["messages"][-1]["content"] == "¿qué hago?")

    assert "el pedido 77 llegó roto" in body["messages"][0]["content"]


async def test_a_forwarded_message_is_quoted_and_runs_nothing(here: World) -> None:
    """A command in it is no command."""
    origin = {"type": "hidden_user", "sender_user_name": "X", "date": 1}
    await here.telegram.say("/forget_me", user=23, forward_origin=origin)
    await here.telegram.answer(23)

    assert "reply_markup" not in here.telegram.sent(23)[0]
    assert not here.telegram.texts(23)[0].startswith("Esto borra")


@pytest.mark.parametrize("kind", ["voice", "sticker", "location", "contact", "photo"])
async def test_what_cannot_be_read_gets_a_polite_sentence(here: World, kind: str) -> None:
    """Nobody is left without an answer."""
    user = 30 + ["voice", "sticker", "location", "contact", "photo"].index(kind)
    file = {"file_id": "x", "file_unique_id": "x", "width": 1, "height": 1, "duration": 1}
    await here.telegram.say(None, user=user, **{kind: [file] if kind == "photo" else file})
    text = await here.telegram.answer(user)

    assert text
    assert "eco:" not in text


async def test_an_update_that_cannot_be_read_stops_nothing(here: World) -> None:
    """It is set aside, named in the log by its number, and the next is answered."""
    number = await here.telegram.update(message={"message_id": "x", "chat": None})
    await here.telegram.say("sigo aquí", user=40)
    await here.telegram.answer(40)

    assert f"update {number} cannot be read" in here.bot.said
    await here.telegram.until(lambda: max(here.telegram.offsets) > number)


async def test_a_person_who_blocked_the_bot_is_left_alone(here: World) -> None:
    """Marked at the first 403; written to again once they write."""
    here.telegram.blocked.add(41)
    await here.telegram.say("hola", user=41)
    await here.bot.logged("blocked by the user")
    here.telegram.blocked.discard(41)
    await here.telegram.say("ya estoy", user=41)

    assert (await here.telegram.answer(41)).startswith("eco: ya estoy")


async def test_a_429_is_waited_out_and_nothing_is_lost(here: World) -> None:
    """`retry_after` is honoured for that chat; the message comes once."""
    here.telegram.faults["sendMessage"].append("429 Too Many Requests: retry after 1")
    await here.telegram.say("despacio", user=42)
    await here.telegram.answer(42)

    assert [text.split("\n")[0] for text in here.telegram.texts(42)] == ["eco: despacio"]


@pytest.mark.parametrize(("fault", "user"), [("html", 43), ("drop_before", 44), ("500 Internal Server Error", 45)])
async def test_a_failure_of_the_server_loses_nothing(here: World, fault: str, user: int) -> None:
    """A 502 with HTML, a connection that drops, a 500: tried again, and it comes once."""
    here.telegram.faults["sendMessage"].append(fault)
    await here.telegram.say("insiste", user=user)
    await here.telegram.answer(user)

    assert [text.split("\n")[0] for text in here.telegram.texts(user)] == ["eco: insiste"]


async def test_polling_survives_what_the_server_does(here: World) -> None:
    """429, HTML and a dropped connection at getUpdates; then updates come again."""
    here.telegram.faults["getUpdates"].extend(["html", "drop_before", "429 Too Many Requests: retry after 1"])
    await here.telegram.say("primero", user=46)
    await here.telegram.answer(46)
    await here.telegram.say("segundo", user=46)

    assert (await here.telegram.answer(46, 2, seconds=30)).startswith("eco: segundo")


async def test_my_data_is_a_file(here: World) -> None:
    """Everything held, as JSON, in private."""
    await here.telegram.say("/my_data", user=47)
    await here.telegram.answer(47, 2)  # the file, and what it is
    name, data = here.telegram.sent(47, method="sendDocument")[0]["document"]

    assert name == "telegram-47.json"
    assert json.loads(data)["user_id"] == "telegram:47"


async def test_an_admin_adds_a_document_and_it_is_answered_from(here: World) -> None:
    """A file with /ingest as its caption, fetched from Telegram; the line about its progress becomes the reply."""
    before = len(here.telegram.texts(98))
    here.telegram.files["doc1"] = "El código del almacén azul es LUNA-7.".encode()
    document = {"file_id": "doc1", "file_unique_id": "d", "file_name": "almacen.txt", "mime_type": "text/plain", "file_size": 40}
    await here.telegram.say(None, user=98, document=document, caption="/ingest")
    await here.telegram.until(lambda: any("1 documento" in text for text in here.telegram.texts(98)))
    await here.telegram.say("cita: ¿cuál es el código del almacén azul?", user=48)

    assert "almacen.txt" in await here.telegram.answer(48)
    assert len(here.telegram.texts(98)) == before + 1
    assert "1/1" in here.telegram.sent(98)[-1]["text"]


async def test_a_file_over_twenty_megabytes_is_not_fetched(here: World) -> None:
    """Its size is looked at first."""
    document = {"file_id": "huge", "file_unique_id": "h", "file_name": "huge.pdf", "file_size": 21 << 20}
    before = len(here.telegram.texts(99))
    await here.telegram.say(None, user=99, document=document, caption="/ingest")
    await here.telegram.answer(99, before + 1)

    assert not [call for call in here.telegram.calls if call.method == "getFile" and call.args["file_id"] == "huge"]


async def test_the_token_is_in_no_log(here: World) -> None:
    """Not at DEBUG either, whatever has failed."""
    here.telegram.faults["sendMessage"].append("drop_before")
    await here.telegram.say("hola token", user=49)
    await here.telegram.answer(49)

    assert TOKEN not in here.bot.said
    assert "hola token" not in here.bot.said


async def test_a_fact_is_forgotten_by_its_button(here: World) -> None:
    """A press of another person does nothing but say so; that of its owner is as if they had said it, ahead of their queue."""
    await here.telegram.say("/remember Prefiero el tren", user=60)
    await here.telegram.answer(60)
    await here.telegram.say("/memory", user=60)
    await here.telegram.answer(60, 2)
    listing = list(here.telegram.messages[60].values())[1]
    await here.telegram.press(listing, "Prefiero el tren", user=61)
    await here.telegram.until(lambda: [c for c in here.telegram.calls if c.method == "answerCallbackQuery" and c.args.get("text")])
    await here.telegram.press(listing, "Prefiero el tren", user=60)

    assert "Prefiero el tren" in await here.telegram.answer(60, 3)
    assert len(here.telegram.texts(60)) == 3


async def test_erasure_is_confirmed_by_a_button(here: World) -> None:
    """It erases once, and the buttons go with the press; a second press is told that it is too late."""
    await here.telegram.say("/remember Vivo en Quito", user=62)
    await here.telegram.answer(62)
    await here.telegram.say("/forget_me", user=62)
    await here.telegram.answer(62, 2)
    question = dict(list(here.telegram.messages[62].values())[1])
    await here.telegram.press(question, question["reply_markup"]["inline_keyboard"][0][0]["text"], user=62)
    text = await here.telegram.answer(62, 3)
    await here.telegram.until(lambda: "reply_markup" not in list(here.telegram.messages[62].values())[1])
    await here.telegram.press(question, question["reply_markup"]["inline_keyboard"][0][0]["text"], user=62)
    await here.telegram.answer(62, 4)

    assert "1 dato" in text
    assert "borrado" not in here.telegram.texts(62)[3]


async def test_a_link_can_bring_the_language_along(here: World) -> None:
    """`/start en` from a link speaks English to an app in Spanish; another payload is no error."""
    await here.telegram.say("/start en", user=63)
    await here.telegram.say("/start campaign-7", user=64)

    assert (await here.telegram.answer(63)).startswith("I am Sabio.")
    assert (await here.telegram.answer(64)).startswith("Soy Sabio.")


async def test_a_groups_admin_sets_its_language(here: World) -> None:
    """For everyone there; others may not, and are told where to set their own."""
    chat = GROUP - 20
    here.telegram.admins[chat] = [66]
    await here.telegram.say("/language@sabio_test_bot en", user=65, chat=chat)
    await here.telegram.answer(chat)
    await here.telegram.say("/language@sabio_test_bot en", user=66, chat=chat)
    await here.telegram.answer(chat, 2)
    await here.telegram.say("/help@sabio_test_bot", user=65, chat=chat)

    assert (await here.telegram.answer(chat, 3)).startswith("I am Sabio.")


async def test_menus_and_descriptions_are_set(here: World) -> None:
    """Per language and per scope: an admin sees the admin's commands, a group those that make sense there."""
    calls = await here.telegram.until(
        lambda: (
            [c.args for c in here.telegram.calls if c.method == "setMyCommands"]
            if len([c for c in here.telegram.calls if c.method == "setMyCommands"]) >= 12
            else []
        )
    )
    menus = {(c["scope"]["type"], c.get("language_code", "")): {one["command"] for one in c["commands"]} for c in calls}

    assert menus["all_group_chats", "es"] == {"help", "language", "reset"}
    assert "forget_me" in menus["all_private_chats", "en"]
    assert "ingest" not in menus["all_private_chats", ""]
    assert "ingest" in menus["chat", ""]


async def test_readyz_names_telegram(here: World) -> None:
    """Whoever runs it sees how it stands."""
    status, said = await here.get("/readyz")

    assert status == 200
    assert said["checks"]["telegram"] == "ok"


# ---------------------------------------------------------------------------------------------- groups


async def test_in_a_group_it_answers_what_is_said_to_it(here: World) -> None:
    """A mention, the name, a reply to it, a command of its own; as a reply to the message. The rest is left alone."""
    for n, text in enumerate(["@sabio_test_bot hola uno", "Sabio, hola dos", "/help@sabio_test_bot"]):
        entities = [{"type": "mention", "offset": 0, "length": 15}] if text.startswith("@") else []
        asked = await here.telegram.say(text, user=50, chat=GROUP - n, entities=entities)
        await here.telegram.answer(GROUP - n)
        assert here.telegram.sent(GROUP - n)[0]["reply_parameters"]["message_id"] == asked["message_id"]
    await here.telegram.say("ah, otro", user=50, chat=GROUP - 3, reply_to_message={**here.telegram.message("x"), "from": BOT})
    await here.telegram.answer(GROUP - 3)
    for text in ("hola a todos", "/help@other_bot", "/desconocido"):
        await here.telegram.say(text, user=50, chat=GROUP - 4)
    await here.telegram.say("Sabio: fin", user=50, chat=GROUP - 4)
    await here.telegram.answer(GROUP - 4)

    assert here.telegram.texts(GROUP)[0].startswith("eco: hola uno")
    assert [text.split("\n")[0] for text in here.telegram.texts(GROUP - 4)] == ["eco: fin"]


async def test_topics_are_chats_of_their_own(here: World) -> None:
    """The answer goes to the topic; General has no thread; a message there is no reply to its root."""
    root = {**here.telegram.message(None, chat=FORUM), "message_id": 5, "from": BOT, "forum_topic_created": {"name": "t", "icon_color": 1}}
    topic = {"message_thread_id": 5, "is_topic_message": True, "reply_to_message": root}
    await here.telegram.say("nadie me llama", user=51, chat=FORUM, **topic)
    await here.telegram.say("Sabio, en el tema", user=51, chat=FORUM, **topic)
    await here.telegram.answer(FORUM)
    await here.telegram.say("Sabio, en general", user=51, chat=FORUM, message_thread_id=9)
    await here.telegram.answer(FORUM, 2)
    sent = here.telegram.sent(FORUM)

    assert [(one["text"].split("\n")[0], one.get("message_thread_id")) for one in sent] == [
        ("eco: en el tema", 5),
        ("eco: en general", None),
    ]


async def test_the_groups_admins_may_reset_and_others_may_not(here: World) -> None:
    """Telegram is asked who they are, once in a few minutes."""
    chat = GROUP - 10
    here.telegram.admins[chat] = [53]
    await here.telegram.say("/reset@sabio_test_bot", user=52, chat=chat)
    await here.telegram.answer(chat)
    await here.telegram.say("/reset@sabio_test_bot", user=53, chat=chat)
    await here.telegram.answer(chat, 2)

    assert "administradores" in here.telegram.texts(chat)[0]
    assert "administradores" not in here.telegram.texts(chat)[1]
    assert len([call for call in here.telegram.calls if call.method == "getChatAdministrators" and call.args["chat_id"] == chat]) == 1


async def test_an_anonymous_admin_has_no_personal_memory(here: World) -> None:
    """Nor has a channel; they are answered all the same."""
    chat = GROUP - 11
    anonymous = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
    body = {**here.telegram.message("/remember@sabio_test_bot Me gusta el té", chat=chat), "from": anonymous}
    await here.telegram.update(message={**body, "sender_chat": {"id": chat, "type": "group"}})

    assert "no recuerdo nada" in await here.telegram.answer(chat)


async def test_in_a_group_an_answer_grows_by_edits(here: World) -> None:
    """One message, edited a few times, a second apart, the final text in it; a 429 for the sign of typing hurts nothing."""
    chat = GROUP - 12
    here.telegram.faults["sendChatAction"].append("429 Too Many Requests: retry after 5")
    await here.telegram.say("Sabio, lento 340", user=54, chat=chat)
    await here.telegram.until(lambda: "palabra339" in "".join(here.telegram.texts(chat)))

    assert len(here.telegram.texts(chat)) == 1
    assert len(here.telegram.sent(chat, method="editMessageText")) >= 2
    assert here.telegram.busiest(seconds=0.98, chat=chat) == 1


async def test_a_group_that_becomes_a_supergroup_keeps_its_window(here: World) -> None:
    """Said twice, in both chats; the model sees what was said before."""
    old, new = GROUP - 13, -1000000000913
    await here.telegram.say("Sabio, recuerda la palabra jirafa", user=55, chat=old)
    await here.telegram.answer(old)
    here.telegram.migrated[old] = new
    await here.telegram.say(None, user=55, chat=old, migrate_to_chat_id=new)
    await here.telegram.say(None, user=55, chat=new, migrate_from_chat_id=old)
    await here.telegram.say("Sabio, ¿qué palabra?", user=55, chat=new)
    await here.telegram.answer(new)
    body = next(body for body in here.model.requests if body["messages"][-1]["content"] == "¿qué palabra?")

    assert [message["content"] for message in body["messages"][1:-1]] == ["recuerda la palabra jirafa", "eco: recuerda la palabra jirafa"]


async def test_a_reply_follows_a_group_that_moved_unheard(here: World) -> None:
    """Telegram says it when the bot writes to the old id; the answer goes to the new one."""
    old, new = GROUP - 15, -1000000000915
    here.telegram.migrated[old] = new
    await here.telegram.say("Sabio, ¿sigues ahí?", user=57, chat=old)

    assert (await here.telegram.answer(new)).startswith("eco: ¿sigues ahí?")


async def test_help_in_a_group_says_what_does_not_arrive(here: World) -> None:
    """With privacy mode on; so does the log at the start."""
    await here.telegram.say("/help@sabio_test_bot", user=58, chat=GROUP - 16)

    assert "modo de privacidad" in await here.telegram.answer(GROUP - 16)
    assert "privacy mode is on" in here.bot.said


async def test_a_group_is_greeted_once_and_told_of_privacy_mode(here: World) -> None:
    """Added, removed, added again: one greeting, which says that plain mentions do not arrive."""
    chat = {"id": GROUP - 14, "type": "group", "title": "Amigos"}
    person = {"id": 56, "is_bot": False, "first_name": "Ana", "language_code": "es"}
    for old, new in (("left", "member"), ("member", "kicked"), ("left", "member")):
        states = {"old_chat_member": {"status": old, "user": BOT}, "new_chat_member": {"status": new, "user": BOT}}
        await here.telegram.update(my_chat_member={"chat": chat, "from": person, "date": 1, **states})
    text = await here.telegram.answer(GROUP - 14)
    await here.telegram.say("Sabio, hola", user=56, chat=GROUP - 14)
    await here.telegram.answer(GROUP - 14, 2)

    assert "/help@sabio_test_bot" in text
    assert len(here.telegram.texts(GROUP - 14)) == 2


async def test_a_group_that_was_left_before_the_greeting_is_greeted_later(here: World) -> None:
    """The greeting finds the bot removed and is given up; added again, it is said."""
    chat = {"id": GROUP - 17, "type": "group", "title": "Amigos"}
    person = {"id": 59, "is_bot": False, "first_name": "Ana", "language_code": "es"}
    joined = {"old_chat_member": {"status": "left", "user": BOT}, "new_chat_member": {"status": "member", "user": BOT}}
    here.telegram.faults["sendMessage"].append("403 Forbidden: bot was kicked from the group chat")
    update = await here.telegram.update(my_chat_member={"chat": chat, "from": person, "date": 1, **joined})
    await here.bot.logged(f"hello:{update} cannot be delivered", seconds=20)
    await here.telegram.update(my_chat_member={"chat": chat, "from": person, "date": 2, **joined})

    assert "modo de privacidad" in await here.telegram.answer(GROUP - 17)


# ---------------------------------------------------------------------------------------------- many at once


async def test_a_flood_is_answered_in_order_within_the_limits(here: World) -> None:
    """Twenty private chats and three groups at once, with a server that answers 429 above the limits: each once, in order, none refused."""
    groups, people = [-11, -12, -13], range(1_001, 1_021)
    before = len(here.bot.said)
    here.telegram.enforce = True
    for chat in [*people, *groups]:
        for text in ("¿hola?", "Sabio, hola", "Sabio, lento 40") if chat < 0 else ("uno", "lento 40", "tres"):
            await here.telegram.say(text, user=abs(chat), chat=chat)
    await here.telegram.until(lambda: all(len(here.telegram.texts(chat)) >= 3 for chat in people), seconds=60)
    await here.telegram.until(lambda: all("palabra39" in "".join(here.telegram.texts(chat)) for chat in groups), seconds=60)
    here.telegram.enforce = False

    for chat in people:
        assert ["".join(text.split()[:2]) for text in here.telegram.texts(chat)] == ["eco:uno", "palabra0palabra1", "eco:tres"]
    assert all(len(here.telegram.texts(chat)) == 2 for chat in groups)
    assert here.telegram.busiest(seconds=1.0) <= 30
    assert here.telegram.busiest(seconds=60.0, chat=-11) <= 20
    assert "asks to wait" not in here.bot.said[before:]
