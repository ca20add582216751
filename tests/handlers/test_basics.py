"""What a person says to it first."""

from collections.abc import AsyncIterator

import pytest

from bot import Context, Registry
from bot.testing import MockAIProvider, TestBot, create_test_bot

ADMIN = "test:admin"


@pytest.fixture
async def bot() -> AsyncIterator[TestBot]:
    async with create_test_bot(provider=MockAIProvider(reply="Sí."), memory=True, language="es", settings={"BOT_ADMINS": ADMIN}) as opened:
        yield opened


class TestStartAndHelp:
    @pytest.mark.parametrize("command", ["/start", "/help", "/START", "/start payload", "/help@sabio_bot"])
    async def test_it_says_what_it_does_keeps_and_how_that_is_erased(self, bot: TestBot, command: str) -> None:
        """Both introduce the bot; neither hides what is kept."""
        (said,) = await bot.say(command, lang="es")

        for word in ("documentos", "guardo", "/memory", "/my_data", "/forget_me"):
            assert word in said

    async def test_in_the_readers_language(self, bot: TestBot) -> None:
        """The platform's word on the language is enough."""
        (said,) = await bot.say("/help", lang="en-GB")

        assert "What I keep" in said
        assert "/language [es|en]: " in said
        assert "guardo" not in said

    async def test_help_lists_every_command_that_this_person_may_use(self, bot: TestBot) -> None:
        """Each with its help, and none of an administrator's."""
        (said,) = await bot.say("/help", lang="es")
        listed = {line.split()[1].rstrip(":") for line in said.splitlines() if line.startswith("- /")}

        assert listed == {f"/{name}" for name, command in bot.registry.commands.items() if command.who != "admins"}
        assert all(": " in line for line in said.splitlines() if line.startswith("- /"))

    async def test_help_lists_an_administrators_commands_to_an_administrator(self, bot: TestBot) -> None:
        """They see all there are."""
        (said,) = await bot.say("/help", user=ADMIN)

        assert all(f"- /{name}" in said for name in bot.registry.commands)

    async def test_in_a_group_help_leaves_out_what_only_its_administrators_may(self, bot: TestBot) -> None:
        """`/reset` is theirs there, and everyone's in private."""
        (member,) = await bot.say("/help", chat="group-1", group=True)
        (moderator,) = await bot.say("/help", chat="group-1", group=True, may_moderate=True)

        assert "- /reset" not in member
        assert "- /reset" in moderator

    async def test_a_plugins_command_is_listed_too(self) -> None:
        """With its usage, and without a colon where it says nothing about itself."""

        def register(registry: Registry) -> None:
            async def nothing(ctx: Context) -> None: ...

            registry.command("weather", help="says the weather", usage="CITY")(nothing)
            registry.command("plain")(nothing)

        async with create_test_bot(plugins=[register], language="en") as bot:
            (said,) = await bot.say("/help")

            assert "- /weather CITY: says the weather" in said.splitlines()
            assert "- /plain" in said.splitlines()


class TestLanguage:
    async def test_it_shows_the_language_and_the_choices(self, bot: TestBot) -> None:
        """By the names that their speakers use."""
        (said,) = await bot.say("/language", lang="en")

        assert "English" in said
        assert "es (español), en (English)" in said

    @pytest.mark.parametrize("written", ["en", "EN", " english ", "English", "inglés", "ingles", "en-GB", "en_US"])
    async def test_it_sets_the_language_and_answers_in_it(self, bot: TestBot, written: str) -> None:
        """A code or a name, in either language, will do; from then on it wins over the platform's word and the message's language."""
        said = await bot.say(f"/language {written}", lang="es")

        assert said == ["From now on I speak English with you."]
        assert await bot.user("user-1").language() == "en"
        assert "What I keep" in (await bot.say("/help", lang="es"))[0]

    async def test_a_language_that_it_does_not_speak(self, bot: TestBot) -> None:
        """The refusal names those there are, and nothing changes."""
        (said,) = await bot.say(f"/language klingon{'n' * 5_000}", lang="en")

        assert "klingon" in said
        assert len(said) < 200
        assert "es (español), en (English)" in said
        assert await bot.user("user-1").language() is None

    async def test_each_person_has_their_own(self, bot: TestBot) -> None:
        """In one group, two people read two languages."""
        await bot.say("/language en", user="ann")
        await bot.say("/language es", user="ana")
        (ann,) = await bot.say("/language", user="ann", chat="group-1", group=True)
        (ana,) = await bot.say("/language", user="ana", chat="group-1", group=True)

        assert ann.startswith("I speak English")
        assert "español" in ana.split(".")[0]

    async def test_in_a_group_its_administrators_set_it(self, bot: TestBot) -> None:
        """A member is told so and nothing changes; what an administrator sets is the group's, and their own stays."""
        (refused,) = await bot.say("/language en", user="ana", chat="group-1", group=True, lang="es")
        (done,) = await bot.say("/language en", user="eva", chat="group-1", group=True, lang="es", may_moderate=True)

        assert "administradores" in refused
        assert await bot.user("ana").language() is None
        assert done == "From now on I speak English with you."
        assert await bot.user("eva").language() is None
        assert await bot.user("group-1").language() == "en"

    async def test_a_link_can_bring_it_along(self, bot: TestBot) -> None:
        """`/start en` is what a link of the form `?start=en` sends: it sets the language and greets in it."""
        (said,) = await bot.say("/start en", lang="es")

        assert "What I keep" in said
        assert await bot.user("user-1").language() == "en"


class TestReset:
    async def test_it_empties_the_conversation_and_leaves_the_facts(self, bot: TestBot) -> None:
        """The next turn has no history; what is known about the person is still there."""
        await bot.ai.remember("user-1", "Vive en Bogotá")
        await bot.say("¿Me oyes?", lang="es")
        (said,) = await bot.say("/reset", lang="es")
        await bot.say("¿Y ahora?", lang="es")

        assert "2" in said
        assert [message["content"] for message in bot.provider.calls[-1].messages] == ["¿Y ahora?"]
        assert await bot.ai.memory("user-1") == ["Vive en Bogotá"]

    async def test_an_empty_conversation(self, bot: TestBot) -> None:
        """Nothing to forget is said as such, not as zero messages."""
        (said,) = await bot.say("/reset", lang="en")

        assert said == "There was nothing to forget: this conversation is empty."

    async def test_other_chats_keep_theirs(self, bot: TestBot) -> None:
        """Only the chat that it is said in is emptied."""
        await bot.say("uno", user="ana", lang="es")
        await bot.say("dos", user="eva", lang="es")
        await bot.say("/reset", user="ana", lang="es")
        await bot.say("tres", user="eva", lang="es")

        assert [m["content"] for m in bot.provider.calls[-1].messages if m["role"] == "user"] == ["dos", "tres"]

    async def test_in_a_group_a_member_is_refused(self, bot: TestBot) -> None:
        """In words, and the conversation stays; a moderator may."""
        await bot.say("Hola, Sabio", chat="group-1", group=True, lang="en")
        refused = await bot.say("/reset", chat="group-1", group=True, lang="en")
        (done,) = await bot.say("/reset", chat="group-1", group=True, lang="en", may_moderate=True)

        assert refused == ["In a group, only its administrators may use that command."]
        assert done.startswith("I forgot this conversation: 2 messages.")
