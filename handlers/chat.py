"""Anything that is no command: a turn. Read this file first; the others are like it."""

from bot import Context, Registry


def register(registry: Registry) -> None:
    """Take every message that nothing else takes."""
    registry.chat(answer)


async def answer(ctx: Context) -> None:
    """Answer a question from the documents and what is remembered, as the words come."""
    stream = ctx.ai.reply_in_chat_stream(
        ctx.chat,
        ctx.text,
        user_id=ctx.sender or None,
        is_group=ctx.is_group,
        lang=ctx.lang,
        quoted=ctx.update.quoted,
        evidence=ctx.evidence,
        turn_id=ctx.update.id,  # an update that comes again gets the same reply
        deliver=ctx.outgoing.deliver,  # the reply is in the outbox when the turn is stored
        context=ctx,
    )
    await ctx.answer(stream)
