"""Anything that is no command: a turn. Read this file first; the others are like it."""

from dataclasses import replace

from bot import Attachment, BadRequest, Context, Files, Registry, Sight, Transcriber
from bot import marked as _

LONGEST_VOICE = 10 << 20  # bytes: about an hour as Telegram records it
LARGEST_PICTURE = 5 << 20  # bytes; a data URL makes a third more of it
MOST_PICTURES = 4  # of an album
PICTURES = (  # how files begin
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


WORDLESS = {  # by `ctx.update.other`
    "voice": _("I cannot listen to voice notes. Please write it to me."),
    "video_note": _("I cannot watch videos. Please write it to me."),
    "video": _("I cannot watch videos. Please write it to me."),
    "audio": _("I cannot listen to audio. Please write it to me."),
    "photo": _("I cannot look at pictures. Please tell me in words what it is about."),
    "sticker": _("Nice! But I only understand words: ask me something."),
    "location": _("I do not know what to do with a place on a map. Please ask me in words."),
    "contact": _("I keep no contacts, and forgot that one at once. Please ask me in words."),
}
OTHERWISE = _("I only understand words. Please write it to me.")


def register(registry: Registry) -> None:
    """Take every message that nothing else takes."""
    registry.chat(answer)
    registry.other(wordless)


async def answer(ctx: Context) -> None:
    """Answer a question from the documents and what is remembered, as the words come; a photo that it is about is looked at first."""
    if ctx.update.other == "photo" and ctx.attachments and ctx.files and ctx.bot.settings.vision:
        ctx = await _seen(ctx, ctx.files)
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
        message=ctx.update.message,
        revises=ctx.update.kind == "edited",
    )
    await ctx.answer(stream)


async def wordless(ctx: Context) -> None:
    """A voice note is written down, a photo looked at, where that is set up; for the rest, a sentence about what to do instead."""
    if ctx.update.other == "photo" and ctx.attachments and ctx.files and ctx.bot.settings.vision:
        await answer(ctx)
        return
    if ctx.update.other == "voice" and ctx.attachments and ctx.files and ctx.bot.settings.transcribe_model:
        await _heard(ctx, ctx.attachments[0], ctx.files)
        return
    await ctx.reply(ctx._(WORDLESS.get(ctx.update.other or "", OTHERWISE)))


async def _heard(ctx: Context, voice: Attachment, files: Files) -> None:
    data = await files.fetch(voice, max_bytes=LONGEST_VOICE)
    said = await ctx.bot.parts.find(Transcriber).transcribe(data, voice.name, lang=ctx.lang)
    if not said:
        raise BadRequest(ctx._("I could not make out a word of that. Please try again, or write it to me."))
    await answer(replace(ctx, update=replace(ctx.update, text=said, other=None)))


# ---------------------------------------------------------------------------------------------- photos


def picture_type(data: bytes) -> str | None:
    """The media type of a picture, by how it begins; None for one of another kind, and for what is no picture."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for mark, media_type in PICTURES if data.startswith(mark)), None)


async def _seen(ctx: Context, files: Files) -> Context:
    """The same with what is on its photos as quoted text: it is nobody's words, and no evidence for memory."""
    pictures = []
    for photo in ctx.attachments[:MOST_PICTURES]:
        data = await files.fetch(photo, max_bytes=LARGEST_PICTURE)
        media_type = picture_type(data)
        if media_type is None:
            raise BadRequest(ctx._("{name} is no picture that I can look at: send me a JPEG, PNG, WebP or GIF.").format(name=photo.name))
        pictures.append((media_type, data))
    said = await ctx.bot.parts.find(Sight).look(pictures, question=ctx.text, lang=ctx.lang)
    if not said:
        raise BadRequest(ctx._("I could not make anything out on that picture. Please tell me in words what it is about."))
    shown = ctx._("On the picture: {description}").format(description=said)
    quoted = "\n\n".join(filter(None, (ctx.update.quoted, shown)))
    return replace(ctx, update=replace(ctx.update, quoted=quoted, evidence=ctx.evidence))
