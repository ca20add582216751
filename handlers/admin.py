"""What an administrator may see of the bot's work: counts, never contents."""

from bot import Context, Registry
from bot import marked as _


def register(registry: Registry) -> None:
    """Add /stats."""
    registry.command("stats", help=_("How much I hold and do, in numbers"), who="admins")(stats)


async def stats(ctx: Context) -> None:
    """List what is held, then what this process counted since it started; counters go by their codes, which the log uses too."""
    counts = await ctx.bot.statistics()
    held = [line_of(ctx, ctx._(name), counts[name]) for name in counts if name in ctx.bot.registry.statistics]
    counted = [line_of(ctx, f"`{name}`", counts[name]) for name in counts if name not in ctx.bot.registry.statistics]
    parts = [ctx._("In numbers:"), "\n".join(held or [ctx._("Nothing yet.")])]
    if counted:
        parts += [ctx._("Since I started:"), "\n".join(counted)]
    await ctx.reply("\n\n".join(parts))


def line_of(ctx: Context, name: str, count: int) -> str:
    """A count, written by the reader's custom."""
    from babel.numbers import format_decimal  # only this command writes numbers that may be long

    return f"- {name}: {format_decimal(count, locale=ctx.lang)}"
