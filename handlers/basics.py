"""The first things a person says to it: what it does and keeps, in which language, and from a clean page."""

from collections.abc import Sequence
from dataclasses import replace

from bot import BadRequest, Command, Context, Registry, said
from bot import marked as _

LONGEST_SHOWN = 40  # characters of a language that is not known


def register(registry: Registry) -> None:
    """Add /start, /help, /language and /reset."""
    registry.command("start", help=_("What I am and what I do"))(start)
    registry.command("help", help=_("What I do, what I keep, and every command"))(show_help)
    registry.command("language", help=_("Show or set the language I speak with you"), usage=_("[es|en]"))(language)
    registry.command("reset", help=_("Forget this conversation; what I know about you stays"), who="moderators")(reset)


async def start(ctx: Context) -> None:
    """Introduce the bot. A link can bring the language along: `/start es`."""
    if ctx.args in ctx.languages and not ctx.is_group:
        await ctx.user.choose_language(ctx.args)
        ctx = replace(ctx, lang=ctx.args, gettext=ctx.bot.catalogs.gettext(ctx.args))
    invitation = ctx._("Ask me something, or write /help for all that I can do.")
    await ctx.reply(f"{about(ctx)}\n\n{invitation}")


async def show_help(ctx: Context) -> None:
    """Say what the bot does and keeps, and list the commands that this person may use."""
    commands = [line_of(ctx, command) for command in ctx.bot.registry.commands.values() if may_use(ctx, command)]
    await ctx.reply("\n\n".join([about(ctx), ctx._("Commands:"), "\n".join(commands)]))


async def language(ctx: Context) -> None:
    """Show the language that the person is spoken to in, or set it."""
    names = {code: name_of(code) for code in ctx.languages}
    choices = ", ".join(f"{code} ({name})" for code, name in names.items())
    wanted = ctx.args.strip().casefold()
    if not wanted:
        shown = ctx._("I speak {name} with you. To change it, write /language and one of these: {choices}.")
        await ctx.reply(shown.format(name=names.get(ctx.lang, ctx.lang), choices=choices))
        return
    code = ctx.bot.catalogs.match(wanted) or next((code for code in names if said(wanted) in names_of(code, ctx.languages)), None)
    if code is None:
        unknown = ctx._("I do not speak {language!r}. Write /language and one of these: {choices}.")
        raise BadRequest(unknown.format(language=wanted[:LONGEST_SHOWN], choices=choices))
    if ctx.is_group and not (ctx.is_admin or ctx.update.may_moderate):
        raise BadRequest(ctx._("In a group, its administrators set the language. Yours you set in a private chat with me."))
    await (ctx.bot.user(ctx.update.room or ctx.chat) if ctx.is_group else ctx.user).choose_language(code)
    translate = ctx.bot.catalogs.gettext(code)  # the answer is already in the language that was chosen
    await ctx.reply(translate(_("From now on I speak {name} with you.")).format(name=names[code]))


async def reset(ctx: Context) -> None:
    """Forget what was said in this chat; facts stay."""
    count = await ctx.ai.reset(ctx.chat)
    if not count:
        await ctx.reply(ctx._("There was nothing to forget: this conversation is empty."))
        return
    done = ctx.ngettext(
        "I forgot this conversation: {n} message. What I know about you stays; /memory shows it.",
        "I forgot this conversation: {n} messages. What I know about you stays; /memory shows it.",
        count,
    )
    await ctx.reply(done.format(n=count))


# ---------------------------------------------------------------------------------------------- words


def about(ctx: Context) -> str:
    """What the bot does, what it keeps and how that is erased, in the reader's language."""
    paragraphs = [
        ctx._("I am Sabio. Ask me what you want to know: I answer from my documents and say where each answer comes from."),
        ctx._(
            "What I keep: the latest messages of this chat, the language you chose and short facts about you. "
            "/memory shows the facts, and /my_data gives you everything as a file."
        ),
        ctx._("To erase it: /forget takes one fact away, /reset this conversation, and /forget_me everything about you, for good."),
    ]
    if ctx.is_group:
        paragraphs.append(
            ctx._("In a group I answer when you mention me, reply to me or use a command, and I keep personal facts to myself.")
        )
        if not ctx.update.hears_all:
            paragraphs.append(
                ctx._("Here I am shown only commands and replies to me: privacy mode is on, so a plain mention may not reach me.")
            )
    return "\n\n".join(paragraphs)


def may_use(ctx: Context, command: Command) -> bool:
    """Whether the help of this person lists a command."""
    if ctx.is_admin or command.who == "all":
        return True
    return command.who == "moderators" and (not ctx.is_group or ctx.update.may_moderate)


def line_of(ctx: Context, command: Command) -> str:
    """A command as the help shows it."""
    usage = ctx._(command.usage) if command.usage else ""
    written = usage if usage.startswith("/") else f"/{command.name} {usage}".rstrip()
    return f"- {written}: {ctx._(command.help)}" if command.help else f"- {written}"


def name_of(code: str, language: str | None = None) -> str:
    """What speakers of a language call it, or those of another one; the code where nobody told us."""
    from babel import Locale, UnknownLocaleError  # only this command needs names, and they are read from files

    try:
        return Locale.parse(code).get_display_name(language) or code
    except (UnknownLocaleError, ValueError):
        return code


def names_of(code: str, languages: Sequence[str]) -> set[str]:
    """What a language is called by its own speakers and in each of `languages`, accents aside: español, espanol, Spanish."""
    return {said(name_of(code, language)) for language in (None, *languages)}
