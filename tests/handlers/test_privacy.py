"""What a person can say about what is held about them, said to the real bot."""

import json
from collections.abc import AsyncIterator

import pytest

from bot import MemoryOptions, Recall
from bot.testing import MockAIProvider, TestBot, create_test_bot

ANA, LEO, ROOM = "test:ana", "test:leo", "test:room"


@pytest.fixture
async def bot(each_engine: None) -> AsyncIterator[TestBot]:
    async with create_test_bot(provider=MockAIProvider(reply="Hola."), memory=True, language="en") as bot:
        yield bot


# ------------------------------------------------------------------------------------------ /remember and /memory


async def test_what_is_remembered_is_listed(bot: TestBot) -> None:
    """Each fact has its number, when it came, who gave it, and how to forget it."""
    said = await bot.say("/remember I live in Bogotá", user=ANA)
    [listing] = await bot.say("/memory", user=ANA)

    assert said == ["I will remember: I live in Bogotá"]
    assert listing.startswith("I remember 1 thing about you:\n1. I live in Bogotá (since ")
    assert "you told me" in listing
    assert "/forget 1" in listing


async def test_an_expiry_is_shown(bot: TestBot) -> None:
    """A fact with a life says until when."""
    await bot.ai.remember(ANA, "On holiday", ttl="2d")
    [listing] = await bot.say("/memory", user=ANA)

    assert ", until " in listing


async def test_nothing_is_remembered_yet(bot: TestBot) -> None:
    """An empty memory says so, and how to fill it."""
    [listing] = await bot.say("/memory", user=ANA)

    assert listing.startswith("I remember nothing about you yet.")


async def test_what_is_known_already_is_renewed(bot: TestBot) -> None:
    """A duplicate is no second fact."""
    await bot.say("/remember I live in Bogotá", user=ANA)
    said = await bot.say("/remember i live in BOGOTÁ!", user=ANA)

    assert said == ["I knew that already, and it stays."]
    assert await bot.ai.memory(ANA) == ["I live in Bogotá"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "There is nothing in that to remember."),
        ("x" * 301, "300 characters or fewer"),
        ("my password is hunter2", "a password or a PIN"),
        ("my card is 4111 1111 1111 1111", "a card number"),
        ("ES91 2100 0418 4502 0005 1332", "a bank account"),
        ("12345678Z", "an identity document"),
        ("AKIA" + "IOSFODNN7EXAMPLE", "a key or an access token"),
        ("-----BEGIN " + "PRIVATE KEY-----", "a private key"),
    ],
)
async def test_a_refusal_says_why_and_never_the_value(bot: TestBot, text: str, words: str) -> None:
    """The kind is told; the value is neither repeated nor kept."""
    [said] = await bot.say(f"/remember {text}", user=ANA, lang="en")

    assert words in said
    assert not text or text not in said
    assert await bot.ai.memory(ANA) == []


async def test_a_secret_is_in_no_log(bot: TestBot, caplog: pytest.LogCaptureFixture) -> None:
    """The log of a refusal holds its code."""
    caplog.set_level("DEBUG")
    await bot.say("/remember my password is hunter2", user=ANA)

    assert not [
        record
        for record in caplog.records
        if record.name.split(".")[0] in ("bot", "plugins", "handlers") and "hunter2" in record.getMessage()
    ]


async def test_at_the_cap_what_leaves_is_told() -> None:
    """A given fact that makes room for another does not leave silently."""
    async with create_test_bot(memory=MemoryOptions(max_facts=1), language="en") as bot:
        await bot.say("/remember I live in Bogotá", user=ANA)
        [said] = await bot.say("/remember I have a dog", user=ANA)

        assert said == "I will remember: I have a dog\nTo make room, I forgot: I live in Bogotá"


# ------------------------------------------------------------------------------------------ /forget


async def test_forget_by_text_and_by_number(bot: TestBot) -> None:
    """Either way the one that was meant leaves."""
    for fact in ("I live in Bogotá", "I have a dog", "I like tea"):
        await bot.say(f"/remember {fact}", user=ANA)
    await bot.say("/memory", user=ANA)

    assert await bot.say("/forget 2", user=ANA) == ["Forgotten: I have a dog"]
    assert await bot.say("/forget i like TEA", user=ANA) == ["Forgotten."]
    assert await bot.ai.memory(ANA) == ["I live in Bogotá"]


async def test_a_number_means_the_list_that_was_shown(bot: TestBot) -> None:
    """What came or went since then shifts nothing, and a number whose fact is gone forgets no other."""
    await bot.ai.remember(ANA, ["one", "two", "three"])
    await bot.say("/memory", user=ANA)
    await bot.say("/forget 1", user=ANA)
    await bot.ai.remember(ANA, "one again")

    assert await bot.say("/forget 2", user=ANA) == ["Forgotten: two"]
    [said] = await bot.say("/forget 1", user=ANA)
    assert said.startswith("I hold nothing like that")
    assert await bot.ai.memory(ANA) == ["three", "one again"]


@pytest.mark.parametrize("text", ["/forget", "/forget 7", "/forget 0", "/forget nonsense"])
async def test_forgetting_what_is_not_there(bot: TestBot, text: str) -> None:
    """It is said in words, and nothing leaves."""
    await bot.ai.remember(ANA, "one")
    [said] = await bot.say(text, user=ANA)

    assert "/memory" in said
    assert await bot.ai.memory(ANA) == ["one"]


# ------------------------------------------------------------------------------------------ editing, pinning, pausing, undoing


async def test_a_fact_is_edited_by_its_number(bot: TestBot) -> None:
    """`/memory edit 1 TEXT`, in either language."""
    await bot.ai.remember(ANA, ["I live in Bogota", "I have a dog"])
    await bot.say("/memory", user=ANA)

    assert await bot.say("/memory edit 1 I live in Bogotá", user=ANA) == ["It now reads: I live in Bogotá"]
    assert await bot.say("/memory editar 2 my PIN is 1234", user=ANA) == [
        "I did not keep that: it looks like a password or a PIN. Secrets have no place in my memory."
    ]
    assert set(await bot.ai.memory(ANA)) == {"I live in Bogotá", "I have a dog"}


async def test_a_fact_is_pinned_by_its_number(bot: TestBot) -> None:
    """The list marks it."""
    await bot.ai.remember(ANA, ["one", "two"])

    assert await bot.say("/memory pin 2", user=ANA) == ["Pinned: two"]
    [listing] = await bot.say("/memory", user=ANA)
    assert "2. two (pinned, since" in listing
    assert await bot.say("/memory unpin 2", user=ANA) == ["No longer pinned: two"]


async def test_paused_nothing_is_kept_or_used(bot: TestBot) -> None:
    """Until it is resumed: no fact in the prompt, and /remember and an edit say why they keep nothing."""
    await bot.ai.remember(ANA, "I live in CANARY")
    await bot.say("/memory pause", user=ANA)
    [said] = await bot.say("/remember I have a dog", user=ANA)
    await bot.say("Where do I live?", user=ANA)

    assert "paused" in said
    assert "CANARY" not in repr(bot.provider.calls)
    [listing] = await bot.say("/memory", user=ANA)
    assert "paused" in listing
    [edited] = await bot.say("/memory edit 1 I live in Lima", user=ANA)
    assert edited == "Memory is paused, so I did not keep that. /memory resume ends the pause."
    assert await bot.ai.memory(ANA) == ["I live in CANARY"]
    await bot.say("/memory resume", user=ANA)
    await bot.say("Where do I live?", user=ANA)
    assert "CANARY" in bot.provider.calls[-1].system


async def test_what_was_replaced_can_be_brought_back(bot: TestBot) -> None:
    """The list shows it, with how; undone, it is back."""
    recall = bot.parts.find(Recall)
    await recall.remember_keyed(ANA, "city", "Bogotá")
    await recall.remember_keyed(ANA, "city", "Medellín")
    [listing] = await bot.say("/memory", user=ANA)

    assert "city: Bogotá" in listing
    assert "/memory undo" in listing
    assert await bot.say("/memory undo", user=ANA) == ["Forgotten: city: Medellín\nBack again: city: Bogotá"]
    assert await bot.ai.memory(ANA) == ["city: Bogotá"]


async def test_there_may_be_nothing_to_undo(bot: TestBot) -> None:
    """Then it says so."""
    assert await bot.say("/memory undo", user=ANA) == ["There is nothing to undo."]


async def test_a_word_that_is_none_is_answered_with_those_there_are(bot: TestBot) -> None:
    """An unknown word after /memory lists the known ones."""
    [said] = await bot.say("/memory frobnicate", user=ANA)

    assert "/memory pause" in said


# ------------------------------------------------------------------------------------------ groups


@pytest.mark.parametrize(
    "text",
    [
        "/memory",
        "/my_data",
        "/remember I live in CANARY",
        "/forget 1",
        "/forget I live in CANARY",
        "/forget_me",
        "/memory pause",
        "/memory undo",
        "/memory edit 1 CANARY",
    ],
)
async def test_no_fact_is_told_in_a_group(bot: TestBot, text: str) -> None:
    """Whatever is asked there, nothing personal is answered."""
    await bot.ai.remember(ANA, "I live in CANARY")
    said = await bot.say(text, user=ANA, chat=ROOM, group=True)

    assert said
    assert not [sent for sent in bot.transport.sent if sent.chat_key == ROOM and ("CANARY" in sent.text or sent.file)]


# ------------------------------------------------------------------------------------------ /my_data and /forget_me


async def test_my_data_is_a_file_of_json(bot: TestBot) -> None:
    """All that is held, as JSON, to the person's own chat."""
    await bot.ai.remember(ANA, "I live in Bogotá")
    await bot.say("Hello there", user=ANA)
    await bot.say("/my_data", user=ANA)

    [(name, data)] = [sent.file for sent in bot.transport.sent if sent.file]
    held = json.loads(data)
    assert name == "test-ana.json"
    assert held["user_id"] == ANA
    assert [fact["value"] for fact in held["facts"]] == ["I live in Bogotá"]
    assert "Hello there" in data.decode()


async def test_an_edit_that_makes_a_secret_with_its_key_is_refused(bot: TestBot) -> None:
    """What kind it looks like is told, and the fact stays as it was."""
    await bot.parts.find(Recall).remember_keyed(ANA, "pin", "blue")
    [said] = await bot.say("/memory edit 1 4432", user=ANA)

    assert said == "I did not keep that: it looks like a password or a PIN. Secrets have no place in my memory."
    assert await bot.ai.memory(ANA) == ["pin: blue"]


async def test_erasure_is_asked_for_once_and_counted(bot: TestBot) -> None:
    """A clear yes erases everything, and says how much; the other person's facts stay."""
    await bot.ai.remember(LEO, "I live in Lima")
    await bot.ai.remember(ANA, ["one", "two"])
    await bot.say("Hello there", user=ANA)
    [asked] = await bot.say("/forget_me", user=ANA)
    [done] = await bot.say("Yes!", user=ANA)

    assert "cannot be undone" in asked
    assert done.startswith("Done, everything is erased: 2 facts, 2 messages")
    assert await bot.ai.memory(ANA) == []
    assert await bot.ai.memory(LEO) == ["I live in Lima"]


@pytest.mark.parametrize(
    "yes", ["sí", "si", "SÍ, por favor", "yes", "y", "Confirmo.", "vale", "ok", "Sí, bórralo todo", "Yes, erase everything"]
)
async def test_a_yes_in_either_language(bot: TestBot, yes: str) -> None:
    """Whatever the language of the question, a yes in Spanish or English is a yes."""
    await bot.ai.remember(ANA, "one")
    await bot.say("/forget_me", user=ANA)
    await bot.say(yes, user=ANA)

    assert await bot.ai.memory(ANA) == []


@pytest.mark.parametrize("no", ["no", "wait", "si no queda otra", "What would you erase?", "yes and no"])
async def test_anything_else_erases_nothing(bot: TestBot, no: str) -> None:
    """Only a clear yes erases; what came instead is said to have left everything as it is."""
    await bot.ai.remember(ANA, "one")
    await bot.say("/forget_me", user=ANA)
    said = await bot.say(no, user=ANA)

    assert said in (["Nothing was erased."], ["No se borró nada."])  # in the language of the answer
    assert await bot.ai.memory(ANA) == ["one"]


async def test_a_yes_without_the_question_is_a_message(bot: TestBot) -> None:
    """The question is asked once: a second yes is a turn like any other."""
    await bot.say("/forget_me", user=ANA)
    await bot.say("no", user=ANA)
    await bot.ai.remember(ANA, "one")

    assert await bot.say("yes", user=ANA) == ["Hola."]
    assert await bot.ai.memory(ANA) == ["one"]


async def test_nobody_answers_for_another(bot: TestBot) -> None:
    """In a group the yes of someone else erases nobody."""
    await bot.ai.remember(ANA, "one")
    await bot.ai.remember(LEO, "two")
    await bot.say("/forget_me", user=ANA, chat=ROOM, group=True)
    await bot.say("yes", user=LEO, chat=ROOM, group=True)

    assert await bot.ai.memory(ANA) == ["one"]
    assert await bot.ai.memory(LEO) == ["two"]
