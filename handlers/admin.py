"""What an administrator may see of the bot's work: counts, never contents."""

from bot import Context, Registry


def _(message: str) -> str:
    """Mark a message for the catalogs; it is translated when the reader's language is known."""
    return message


def register(registry: Registry) -> None:
    """Add /stats."""
    registry.command("stats", help=_("How much I hold and do, in numbers"), who="admins")(stats)


async def stats(ctx: Context) -> None:
    """List the counts."""
    from babel.numbers import format_decimal  # only this command writes numbers by the reader's custom

    counts = await ctx.bot.statistics()
    lines = [f"- {ctx._(name)}: {format_decimal(count, locale=ctx.lang)}" for name, count in counts.items()]
    await ctx.reply("\n".join([ctx._("In numbers:"), "", *(lines or [ctx._("Nothing yet.")])]))
