"""Everyone in a group reads what the bot says there: no personal fact reaches it, by whatever way."""

import json
from typing import Any

import pytest

from bot import ExtractOptions, MemoryOptions, ModelUnavailable, Recall, ToolCall
from bot.testing import MockAIProvider, TestBot, create_test_bot

ANA, LEO, ROOM = "test:ana", "test:leo", "test:room"
CANARY = "CANARIO8213"
OPTIONS = MemoryOptions(auto_extract=ExtractOptions(debounce_ms=600_000), resolve=True, notices=True)


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(f"call-{name}-{len(arguments)}", name, json.dumps(arguments))


class Indiscreet(MockAIProvider):
    """A model that repeats all that it is sent, and asks for every tool that could tell it more."""

    asking = (
        call("recall", subject="user"),
        call("recall", subject="user", key="city"),
        call("recall", subject="chat"),
        call("remember", subject="user", key="city", value="Bogotá"),
        call("forget", subject="user", key="city"),
    )

    async def _next(self, prompt: Any) -> tuple[str, list[ToolCall]]:
        self.calls.append(prompt)
        if prompt.schema is not None:
            return json.dumps({"facts": [f"Trabaja en {CANARY}"], "replacements": []}), []
        if prompt.messages[-1]["role"] == "tool":
            return f"{prompt.system} {[message['content'] for message in prompt.messages if message['role'] == 'tool']}", []
        return "", list(self.asking)


async def in_private(bot: TestBot) -> None:
    """Ana's facts: given, keyed, replaced, learnt from a private chat, and waiting to be learnt."""
    recall = bot.parts.find(Recall)
    await recall.remember(ANA, f"Vive en {CANARY}")
    await recall.remember_keyed(ANA, "city", f"{CANARY} uno")
    await recall.remember_keyed(ANA, "city", f"{CANARY} dos")
    await recall.extract(ANA, f"Trabajo en {CANARY}", "")


def seen_in(bot: TestBot, chat: str) -> str:
    return repr([(sent.text, sent.file) for sent in bot.transport.sent if sent.chat_key == chat])


async def test_no_personal_fact_reaches_a_group_by_any_way() -> None:
    """Prompt, tools, commands, answers to questions, notices, errors: the canary is in nothing that the group or the model saw there."""
    commands = [
        "/memory",
        "/memory undo",
        "/memory pause",
        "/memory edit 1 x",
        "/memory pin 1",
        "/my_data",
        "/remember Vivo en Bogotá",
        "/remember Mi pin es 1234",
        "/forget",
        "/forget 1",
        "/forget 99",
        "/forget nada",
        "/help",
        "/start",
        "/stats",
        "/reset",
        "/unknown",
        "/forget_me",
        "no",
    ]
    async with create_test_bot(provider=Indiscreet(), memory=OPTIONS, language="es") as bot:
        await in_private(bot)
        before = len(bot.provider.calls)
        for text in ["¿Dónde vivo?", "¿Qué sabes de mí?", *commands]:
            for who in (ANA, LEO):
                await bot.say(text, user=who, chat=ROOM, group=True, may_moderate=True)
        turns = [prompt for prompt in bot.provider.calls[before:] if prompt.schema is None]
        await bot.ai.idle()

        assert len(turns) >= 8
        assert CANARY not in repr([(prompt.system, prompt.messages) for prompt in turns])
        assert CANARY not in seen_in(bot, ROOM)


async def test_an_error_in_a_group_tells_nothing() -> None:
    """What is said of a failure is a sentence of the catalogs."""
    async with create_test_bot(provider=MockAIProvider(ModelUnavailable(f"{CANARY} is down")), memory=OPTIONS) as bot:
        await bot.ai.remember(ANA, f"Vive en {CANARY}")
        said = await bot.say("¿Dónde vivo?", user=ANA, chat=ROOM, group=True)

        assert len(said) == 1
        assert CANARY not in repr(said)


async def test_where_the_operator_chose_it_facts_are_used_in_groups() -> None:
    """With `inject_in_groups` the prompt holds them: the test above fails for the right reason."""
    options = MemoryOptions(inject_in_groups=True)
    async with create_test_bot(provider=MockAIProvider(reply="Hola."), memory=options) as bot:
        await bot.ai.remember(ANA, f"Vive en {CANARY}")
        await bot.say("¿Dónde vivo?", user=ANA, chat=ROOM, group=True)

        assert CANARY in bot.provider.calls[0].system


async def test_a_rooms_own_facts_are_told_there() -> None:
    """They are the room's, and of no other room."""
    async with create_test_bot(provider=MockAIProvider(reply="Hola."), memory=OPTIONS) as bot:
        await bot.ai.remember(ROOM, "Se reúnen los jueves")
        await bot.say("¿Cuándo?", user=ANA, chat=ROOM, group=True)
        await bot.say("¿Cuándo?", user=ANA, chat="test:elsewhere", group=True)

        assert "Se reúnen los jueves" in bot.provider.calls[0].system
        assert "Se reúnen los jueves" not in bot.provider.calls[1].system


# ------------------------------------------------------------------------------------------ notices


def learning(*facts: str) -> MockAIProvider:
    return MockAIProvider(reply=lambda prompt: json.dumps({"facts": facts}) if prompt.schema else "Hola.")


@pytest.mark.parametrize(("lang", "words"), [("en", "/memory undo"), ("es", "/memory deshacer")])
async def test_what_was_learnt_is_told_in_private(lang: str, words: str) -> None:
    """In the person's language, with a way to take it back; and then it is taken back."""
    async with create_test_bot(provider=learning("Vive en Bogotá"), memory=OPTIONS, language=lang) as bot:
        await bot.say(f"/language {lang}", user=ANA)
        await bot.say("Vivo en Bogotá", user=ANA)
        await bot.ai.idle()
        await bot.settled(ANA)

        assert "Vive en Bogotá" in bot.transport.sent[-1].text
        assert words in bot.transport.sent[-1].text
        await bot.say(words, user=ANA)
        assert await bot.ai.memory(ANA) == []


async def test_nothing_learnt_is_no_notice() -> None:
    """Where there was nothing new there is nothing to tell."""
    async with create_test_bot(provider=learning(), memory=OPTIONS) as bot:
        await bot.say("Hola", user=ANA)
        await bot.ai.idle()
        await bot.settled(ANA)

        assert [sent.text for sent in bot.transport.sent] == ["Hola."]


@pytest.mark.parametrize("options", [OPTIONS, MemoryOptions(auto_extract=ExtractOptions(debounce_ms=600_000))])
async def test_notices_can_be_turned_off(options: MemoryOptions) -> None:
    """By the person, or by whoever runs the bot: it is remembered all the same."""
    async with create_test_bot(provider=learning("Vive en Bogotá"), memory=options) as bot:
        if options.notices:
            await bot.say("/memory quiet", user=ANA)
        before = len(bot.transport.sent)
        await bot.say("Vivo en Bogotá", user=ANA)
        await bot.ai.idle()
        await bot.settled(ANA)

        assert [sent.text for sent in bot.transport.sent[before:]] == ["Hola."]
        assert await bot.ai.memory(ANA) == ["Vive en Bogotá"]


async def test_what_was_said_in_a_group_is_told_nowhere() -> None:
    """The group would read it, and in private it would come out of nowhere."""
    async with create_test_bot(provider=learning("Vive en Bogotá"), memory=OPTIONS) as bot:
        await bot.say("Vivo en Bogotá", user=ANA, chat=ROOM, group=True)
        await bot.ai.idle()
        await bot.settled(ROOM)

        assert [sent.text for sent in bot.transport.sent] == ["Hola."]
        assert await bot.ai.memory(ANA) == ["Vive en Bogotá"]
