"""One update: who may do what, in which language, what was asked before, and what is kept of whom."""

import asyncio

import pytest

from bot import Context, Marked, Registry, StorageError, SubjectErased
from bot.errors import NotAllowed
from bot.fence import SubjectFence
from bot.personal_data import FORMAT
from bot.testing import TestBot
from tests.bot.world import opened, update
from tests.conftest import Clock
from tests.tables import everything

STRANGER_WORDS = "This bot answers only the people that it was set up for."


def plugin(registry: Registry) -> None:
    """Commands of each kind, a phrase, and a question."""

    async def say(ctx: Context) -> None:
        await ctx.reply(f"{ctx.command or 'text'} {ctx.args}".strip())

    registry.command("open")(say)
    registry.command("secret", who="admins")(say)
    registry.command("tidy", who="moderators")(say)

    @registry.text("qué sabes de mí")
    async def known(ctx: Context) -> None:
        await ctx.reply("known")

    @registry.command("language_is")
    async def language_is(ctx: Context) -> None:
        await ctx.reply(ctx.lang)

    @registry.command("choose")
    async def choose(ctx: Context) -> None:
        await ctx.user.choose_language(ctx.args or None)
        await ctx.reply("chosen")

    @registry.command("ask")
    async def ask(ctx: Context) -> None:
        await ctx.expect("colour", seconds=60)
        await ctx.reply("which colour?")

    @registry.answer("colour")
    async def colour(ctx: Context) -> None:
        if ctx.text == "again":
            await ctx.expect("colour", seconds=60)
        await ctx.reply(f"colour {ctx.text}")

    @registry.command("forget_me")
    async def forget_me(ctx: Context) -> None:
        await ctx.people.erase(ctx.sender)
        await ctx.reply("erased")

    @registry.command("keep")
    async def keep(ctx: Context) -> None:
        await ctx.user.set("plugin", "kept", ctx.args)
        await ctx.reply(str(await ctx.user.get("plugin", "kept")))


# ---------------------------------------------------------------------------------------------- rights


async def test_commands_of_administrators() -> None:
    """Those who are named may use them, and the person at the console; anyone else is refused in words."""
    async with opened(plugin, BOT_ADMINS="test:boss") as bot:
        boss = await bot.say("/secret now", user="test:boss")
        console = await bot.say("/secret", user="console:local")
        other = await bot.say("/secret", user="test:ana")

    assert (boss, console, other) == (["secret now"], ["secret"], [NotAllowed.message])


async def test_commands_of_moderators() -> None:
    """In a group, those who administer it, and the bot's administrators; alone, everybody."""
    async with opened(plugin, BOT_ADMINS="test:boss") as bot:
        alone = await bot.say("/tidy", user="test:ana")
        member = await bot.say("/tidy", user="test:ana", chat="room", group=True, lang="en")
        moderator = await bot.say("/tidy", user="test:bob", chat="room", group=True, may_moderate=True)
        boss = await bot.say("/tidy", user="test:boss", chat="room", group=True)

    assert (alone, moderator, boss) == (["tidy"], ["tidy"], ["tidy"])
    assert member == ["In a group, only its administrators may use that command."]


async def test_strangers() -> None:
    """Where the bot is for some people, others get no turn and no phrase; commands, and what these ask, stay open to them."""
    async with opened(plugin, BOT_ALLOWED_USERS="test:ana", BOT_ADMINS="test:boss") as bot:
        said = [
            await bot.say(text, user="test:eve", lang="en") for text in ("hello", "qué sabes de mí", "/open", "/nothing", "/ask", "red")
        ]
        allowed = [await bot.say("hello", user=user) for user in ("test:ana", "test:boss", "console:local")]

    assert [one[0].startswith(STRANGER_WORDS) for one in said] == [True, True, False, False, False, False]
    assert [said[2], said[4], said[5]] == [["open"], ["which colour?"], ["colour red"]]
    assert allowed == [["echo: hello"]] * 3


async def test_an_unknown_command() -> None:
    """It is named back, with where to look; a slash and no name is a message like any other."""
    async with opened(plugin) as bot:
        assert await bot.say("/nothing at all", lang="en") == ["I do not know the command /nothing. /help lists those there are."]
        assert await bot.say("/ hello") == ["echo: / hello"]


async def test_nothing_takes_it() -> None:
    """Where no plugin takes messages, one that is no command is left unanswered."""

    def none(registry: Registry) -> None:
        registry.fallback = None

    async with opened(none) as bot:
        assert await bot.say("hello") == []


async def test_a_phrase_comes_before_the_turn() -> None:
    """However it is written."""
    async with opened(plugin) as bot:
        assert await bot.say("¿Que  SABES de mi?") == ["known"]


async def test_nobody_at_all() -> None:
    """A sender that the platform does not name gets answers, and nothing is kept under no name."""
    async with opened(plugin) as bot:
        said = [await bot.say(text, user="", chat="room", group=True) for text in ("/keep this", "/ask", "/choose es", "¿qué hora es?")]

        assert said == [["None"], ["which colour?"], ["chosen"], ["echo: ¿qué hora es?"]]
        assert await bot.database.all("SELECT user_id FROM users") == []


# ---------------------------------------------------------------------------------------------- language


async def spoken(bot: TestBot, **said: str) -> str:
    """The language that a command is answered in."""
    return (await bot.say("/language_is", **said))[0]  # type: ignore[arg-type]


async def test_which_language() -> None:
    """The person's choice, else the platform's word, else that of the message, else the last that was seen, else the default."""
    async with opened(plugin) as bot:
        steps = [await spoken(bot)]
        await bot.say("¿dónde está la biblioteca?")
        steps.append(await spoken(bot))
        steps.append(await spoken(bot, lang="en-GB"))
        steps.append(await spoken(bot, lang="xx"))
        await bot.say("/choose es")
        steps.append(await spoken(bot, lang="en"))
        await bot.say("/choose")
        steps.append(await spoken(bot, lang="en"))

    assert steps == ["en", "es", "en", "es", "es", "en"]


async def test_the_words_of_a_command_tell_too() -> None:
    """`/remember Vivo en Bogotá` is Spanish; an option such as `en` is in no language."""
    async with opened(plugin) as bot:
        said = [
            await bot.say(text) for text in ("/language_is vivo en la ciudad", "/language_is", "/language_is en", "/language_is the answer")
        ]

    assert said == [["es"], ["es"], ["es"], ["en"]]


@pytest.mark.parametrize(
    ("tag", "language"), [("es-MX", "es"), ("es_ES.UTF-8", "es"), ("ES", "es"), ("en-US", "en"), ("fr", "en"), ("", "en")]
)
async def test_a_platforms_tag(tag: str, language: str) -> None:
    """It may name a region; one that there is no catalog for tells nothing."""
    async with opened(plugin) as bot:
        assert await spoken(bot, lang=tag) == language


async def test_one_persons_language_is_their_own() -> None:
    """What one writes changes nothing for another in the same chat."""
    async with opened(plugin) as bot:
        await bot.say("¿dónde está la biblioteca?", user="test:ana", chat="room")

        assert await spoken(bot, user="test:bob", chat="room") == "en"


# ---------------------------------------------------------------------------------------------- what was asked


async def answers(bot: TestBot, *texts: str, chat: str = "test:ana") -> list[str]:
    """What Ana is told for each."""
    return [said for text in texts for said in await bot.say(text, user="test:ana", chat=chat)]


async def test_the_next_message_answers() -> None:
    """It goes to who asked, once; the one after it is a message like any other."""
    async with opened(plugin) as bot:
        assert await answers(bot, "/ask", "red", "blue") == ["which colour?", "colour red", "echo: blue"]


async def test_an_answer_may_ask_again() -> None:
    """A question put from within an answer is open for the message after it."""
    async with opened(plugin) as bot:
        assert await answers(bot, "/ask", "again", "red", "blue") == ["which colour?", "colour again", "colour red", "echo: blue"]


async def test_an_answer_that_comes_too_late(clock: Clock) -> None:
    """It is a message like any other."""
    async with opened(plugin, clock=clock) as bot:
        await answers(bot, "/ask")
        clock.advance(seconds=61)

        assert await answers(bot, "red") == ["echo: red"]


async def test_a_command_in_between_closes_the_question() -> None:
    """Who turns to something else has not answered."""
    async with opened(plugin) as bot:
        assert await answers(bot, "/ask", "/open", "red") == ["which colour?", "open", "echo: red"]


async def test_a_question_belongs_to_its_chat() -> None:
    """What the person says elsewhere does not answer it, and does not close it; what others say there does not either."""
    async with opened(plugin) as bot:
        said = await answers(bot, "/ask")
        said += await answers(bot, "elsewhere", chat="room")
        said += await bot.say("hers", user="test:bob", chat="test:ana")
        said += await answers(bot, "red")

    assert said == ["which colour?", "echo: elsewhere", "echo: hers", "colour red"]


async def test_an_answer_that_runs_again_is_still_one(clock: Clock) -> None:
    """Where storage fails under an answer and the update is tried again, it is the answer to the same question."""
    tries = 0

    def flaky(registry: Registry) -> None:
        plugin(registry)

        async def once(ctx: Context) -> None:
            nonlocal tries
            tries += 1
            if tries == 1:
                raise StorageError("full")
            await ctx.reply(f"colour {ctx.text}")

        registry.answers["colour"] = once

    async with opened(flaky, clock=clock) as bot:
        await answers(bot, "/ask")
        await bot.accept(update("red", id="a1"))
        await _until_tried(bot)
        clock.advance(seconds=5)
        await bot.settled("test:ana")

        assert [sent.text for sent in bot.transport.sent] == ["which colour?", "colour red"]


async def _until_tried(bot: TestBot) -> None:
    async with asyncio.timeout(5):
        while True:
            row = await bot.database.one("SELECT state, attempts FROM inbox WHERE agent_id = :agent_id AND id = 'a1'")
            if row and row["state"] == "new" and row["attempts"] == 1:
                return
            await asyncio.sleep(0.002)


# ---------------------------------------------------------------------------------------------- personal data


async def test_a_handler_bears_the_epochs_of_its_update() -> None:
    """Those of the sender and of the chat when it was taken up: what is written behind them after an erasure is not written."""
    seen: list[Marked] = []

    def marked(registry: Registry) -> None:
        @registry.command("late")
        async def late(ctx: Context) -> None:
            seen.append(ctx)
            await ctx.people.erase(ctx.sender)
            with pytest.raises(SubjectErased):
                async with SubjectFence(ctx.bot.database).transaction(ctx.marks):
                    pass
            await ctx.reply("late")

    async with opened(marked) as bot:
        fence = SubjectFence(bot.database)
        before = await fence.mark("test:ana", "room")
        said = await bot.say("/late", user="test:ana", chat="room", group=True)

    assert said == ["late"]
    assert [ctx.marks for ctx in seen] == [before]


async def test_nothing_stays_of_who_is_erased(engine_url: str) -> None:
    """From within a command: the words about it arrive, and no row of any table names the person or says what they said."""
    async with opened(plugin, url=engine_url) as bot:
        await bot.say("/keep canary", user="test:ana")
        await bot.say("canary", user="test:ana")
        said = await bot.say("/forget_me", user="test:ana")
        dump = str(await everything(bot.database))

    assert said == ["erased"]
    assert "canary" not in dump
    assert "test:ana" not in dump


async def test_an_erasure_in_a_group() -> None:
    """The room is told, though its epoch changed; the person is gone."""
    async with opened(plugin) as bot:
        await bot.say("/keep canary", user="test:ana", chat="room", group=True)
        said = await bot.say("/forget_me", user="test:ana", chat="room", group=True)

        assert said == ["erased"]
        assert await bot.database.all("SELECT user_id FROM users") == []


async def test_an_export_names_its_form() -> None:
    """A person's file says what it is, of which version, and holds their profile."""
    async with opened(plugin) as bot:
        await bot.say("/keep canary", user="test:ana")
        held = await bot.export("test:ana")

    assert (held["format"], held["version"], held["user_id"]) == (FORMAT, 1, "test:ana")
    assert held["profile"]["plugin"] == {"kept": "canary"}
