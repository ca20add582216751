"""What an administrator says about documents: /ingest, /documents, /remove, /reindex."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot import Attachment, BadRequest, Choice, Context, Files, IngestOutcome, Registry, Said, TransportError
from bot import marked as _

MAX_BYTES = 20 << 20
LISTED = 50  # on a page
PAGE_SECONDS = 3_600
SHOWN_FAILURES = 100
LONGEST_PATH = 400
LONGEST_TITLE = 48
SECONDS_BETWEEN = 1.0
UPLOADS = "documents"  # the folder in the data folder that /ingest may read beside the configured ones
READABLE = (".md", ".markdown", ".mdx", ".txt", ".text", ".json", ".jsonl", ".ndjson", ".pdf", ".html", ".htm", ".xhtml", ".docx")
ARCHIVES = (".zip", ".rar", ".7z", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst")


ARCHIVE = _("it is an archive: unpack it and send me the files in it")
UNREADABLE = _("I cannot read files of this kind; I read these")
TOO_BIG = _("it is too big")
NOT_FETCHED = _("it could not be fetched: send it once more")


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that was not taken in at all; it goes into the summary as an outcome like any other."""

    source: str
    reason: str
    status: str
    detail: str = ""
    chunks: int = 0
    failed: bool = True


def register(registry: Registry) -> None:
    """Add the commands."""
    registry.command(
        "ingest",
        help=_("Add a file, a text or a path to what I answer from"),
        usage=_("/ingest TEXT, /ingest PATH, or a file with /ingest as its caption"),
        who="admins",
    )(ingest)
    registry.command("documents", help=_("List what I answer from"), who="admins")(documents)
    registry.command("remove", help=_("Stop answering from a document"), usage=_("/remove ID"), who="admins")(remove)
    registry.command("reindex", help=_("Read all documents again"), who="admins")(reindex)
    registry.document(unasked)


# ---------------------------------------------------------------------------------------------- commands


async def ingest(ctx: Context) -> None:
    """Take in the files that came along, else the path, else the text after the command."""
    if ctx.attachments:
        await ctx.reply(summary(ctx, await _attached(ctx)))
        return
    if not ctx.args.strip():
        formats = ", ".join(READABLE)
        raise BadRequest(
            ctx._(
                "Send me a file with /ingest as its caption, or write /ingest and a text, or /ingest and a path under the documents "
                "folders. I read {formats}."
            ).format(formats=formats)
        )
    path = await asyncio.to_thread(_path, ctx)
    if path is not None:
        outcomes = await ctx.library.add_files([path], owner=ctx.sender, progress=_progress(ctx))
        await ctx.reply(summary(ctx, outcomes))
        return
    outcome = await ctx.library.add_text(ctx.args.strip(), title_of(ctx.args), owner=ctx.sender)
    await ctx.reply(summary(ctx, [outcome]))


async def documents(ctx: Context) -> None:
    """What is in the index, with the id that /remove takes."""
    listing = await ctx.library.listing()
    if not listing:
        await ctx.reply(ctx._("I have no documents yet. Send me one with /ingest."))
        return
    count, page = len(listing), _page(ctx, len(listing))
    shown = listing[(page - 1) * LISTED : page * LISTED]
    lines = [ctx.ngettext("I answer from {n} document:", "I answer from {n} documents:", count).format(n=count)]
    for document in shown:
        passages = ctx.ngettext("{n} passage", "{n} passages", document["chunks"]).format(n=document["chunks"])
        name = "" if document["id"] == document["source"] else f" ({document['id']})"
        lines.append(f"• {document['source']}{name}: {passages}")
    if rest := count - (page - 1) * LISTED - len(shown):
        lines.append(ctx.ngettext("… and {n} more", "… and {n} more", rest).format(n=rest))
        lines.append(ctx._("The next page: /documents {n}").format(n=page + 1))
    lines.append(ctx._("To take one away, write /remove and its name."))
    pages = [Choice(ctx._("Previous page"), f"/documents {page - 1}", PAGE_SECONDS)] if page > 1 else []
    pages += [Choice(ctx._("Next page"), f"/documents {page + 1}", PAGE_SECONDS)] if rest else []
    await ctx.reply("\n".join(lines), choices=pages)


def _page(ctx: Context, count: int) -> int:
    """The page that was asked for, if there is such a one; else the first."""
    wanted = ctx.args.strip()
    page = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 6 else 1
    return page if 0 < page <= -(-count // LISTED) else 1


async def remove(ctx: Context) -> None:
    """Stop answering from one document, named by its id or its label."""
    wanted = ctx.args.strip()
    if not wanted:
        raise BadRequest(ctx._("Write /remove and the name of a document, as /documents shows it."))
    if not await ctx.library.remove_document(wanted):
        named = [str(document["id"]) for document in await ctx.library.listing() if document["source"] == wanted]
        if len(named) != 1 or not await ctx.library.remove_document(named[0]):
            raise BadRequest(ctx._("I have no document of that name. /documents lists them."))
    await ctx.reply(ctx._("I no longer answer from {name}.").format(name=wanted))


async def reindex(ctx: Context) -> None:
    """Read everything anew."""
    await ctx.reply(summary(ctx, await ctx.library.reindex(progress=_progress(ctx))))


async def unasked(ctx: Context) -> None:
    """A file that came without a command: nothing is kept of it."""
    if ctx.is_admin:
        await ctx.reply(ctx._("I kept nothing of that file. To let me answer from it, send it with /ingest as its caption."))
    else:
        await ctx.reply(ctx._("I cannot look at files in a conversation, and kept nothing of that one. Ask me in words."))


# ---------------------------------------------------------------------------------------------- what is taken in


async def _attached(ctx: Context) -> list[IngestOutcome]:
    """Take in each file that can be; one that cannot does not keep the others out."""
    if ctx.files is None:
        raise BadRequest(ctx._("Files cannot be sent to me here."))
    outcomes: list[IngestOutcome] = []
    say = _progress(ctx)
    for number, attachment in enumerate(ctx.attachments, start=1):
        await say(f"{number}/{len(ctx.attachments)} {attachment.name}")
        outcomes.append(refused(attachment) or await _fetched(ctx, ctx.files, attachment))
    return outcomes


def refused(attachment: Attachment) -> Refused | None:
    """Why a file is not even fetched, by what the platform tells of it: its name, its size."""
    name = attachment.name.casefold()
    if name.endswith(ARCHIVES):
        return Refused(attachment.name, ARCHIVE, "unsupported")
    if not name.endswith(READABLE):
        return Refused(attachment.name, UNREADABLE, "unsupported", ", ".join(READABLE))
    if attachment.size is not None and attachment.size > MAX_BYTES:
        return Refused(attachment.name, TOO_BIG, "too_big", f"{attachment.size >> 20} MB > {MAX_BYTES >> 20} MB")
    return None


async def _fetched(ctx: Context, files: Files, attachment: Attachment) -> IngestOutcome:
    try:
        data = await files.fetch(attachment, max_bytes=MAX_BYTES)
    except BadRequest as refusal:
        return Refused(attachment.name, str(refusal), "too_big")
    except TransportError:
        return Refused(attachment.name, NOT_FETCHED, "unreadable")
    return await ctx.library.add_bytes(attachment.name, data, owner=ctx.sender, owner_is_admin=ctx.is_admin)


def title_of(text: str) -> str:
    """How a text is cited that has no name: the beginning of its first line."""
    line = next(line for line in text.splitlines() if line.strip()).strip().lstrip("#").strip() or text.strip()
    if len(line) <= LONGEST_TITLE:
        return line.rstrip(".:,;")
    return line[:LONGEST_TITLE].rsplit(" ", 1)[0].rstrip(".:,;") + "…"


def _path(ctx: Context) -> Path | None:
    """The file or folder that was named, or None where it is a text. Raises BadRequest for a path outside the documents folders."""
    settings = ctx.bot.settings
    roots = [Path(root) for root in settings.documents] + [Path(settings.data_dir) / UPLOADS]
    said = ctx.args.strip()
    if "\n" in said or len(said) > LONGEST_PATH:
        return None
    if (found := confined(said, roots)) is not None:
        return found
    if not (looks_like_path(said) or _names_something(said)):
        return None
    folders = ", ".join(map(str, roots))
    raise BadRequest(
        ctx._(
            "I find no such file or folder where I may look: {folders}. Whoever runs me can add any path with: python -m bot ingest PATH"
        ).format(folders=folders)
    )


def looks_like_path(said: str) -> bool:
    """Whether one word or more can only be meant as a path: no text is one word with a slash in it."""
    one_word = len(said.split()) == 1
    begun = said.startswith(("/", "./", "../", "~", ".\\", "..\\"))
    return begun or (one_word and ("/" in said or "\\" in said or said.casefold().endswith((*READABLE, *ARCHIVES))))


def _names_something(said: str) -> bool:
    """Whether one word is the name of what is there, if out of bounds: no admin means the word itself then."""
    try:
        return len(said.split()) == 1 and Path(said).exists()
    except (OSError, ValueError):
        return False


def confined(said: str, roots: Iterable[Path]) -> Path | None:
    """The existing path that is meant, where it is one of the roots or under one; links are followed before that is decided.

    Hidden files and folders are out of bounds.
    """
    for root in roots:
        home = root.resolve()
        for candidate in (Path(said), root / said):
            try:
                target = candidate.resolve(strict=True)
            except (OSError, RuntimeError, ValueError):
                continue
            if target == home or (target.is_relative_to(home) and not _hidden(target.relative_to(home))):
                return target
    return None


def _hidden(relative: Path) -> bool:
    return any(part.startswith(".") for part in relative.parts)


# ---------------------------------------------------------------------------------------------- what is said about it


def _progress(ctx: Context) -> Said:
    """Tells how far it is, at most once a second."""
    last = 0.0

    async def say(line: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN:
            last = now
            await ctx.progress(ctx._("Reading {what}").format(what=line))

    return say


def summary(ctx: Context, outcomes: Sequence[IngestOutcome]) -> str:
    """What was added, changed and left as it was, and each file that cannot be answered from with its reason."""
    counts = {status: sum(outcome.status == status for outcome in outcomes) for status in ("added", "changed", "unchanged")}
    counts["added"] += sum(outcome.status == "partly" for outcome in outcomes)
    n = counts["added"]
    lines = [ctx.ngettext("Added {n} document.", "Added {n} documents.", n).format(n=n)] if n else []
    if n := counts["changed"]:
        lines.append(ctx.ngettext("Updated {n} document.", "Updated {n} documents.", n).format(n=n))
    if n := counts["unchanged"]:
        lines.append(ctx.ngettext("{n} document had not changed.", "{n} documents had not changed.", n).format(n=n))
    noted = [outcome for outcome in outcomes if outcome.reason]
    failed = sum(outcome.failed for outcome in noted)
    if failed:
        lines.append(ctx.ngettext("{n} file could not be added:", "{n} files could not be added:", failed).format(n=failed))
    for outcome in sorted(noted, key=lambda outcome: not outcome.failed)[:SHOWN_FAILURES]:
        archive = outcome.status == "unsupported" and outcome.source.casefold().endswith(ARCHIVES)
        reason, detail = (ARCHIVE, "") if archive else (outcome.reason, outcome.detail)
        lines.append(f"• {outcome.source}: {ctx._(reason)}" + (f" ({detail})" if detail else ""))
    if (rest := len(noted) - SHOWN_FAILURES) > 0:
        lines.append(ctx.ngettext("… and {n} more", "… and {n} more", rest).format(n=rest))
    return "\n".join(lines) or ctx._("There was nothing to read.")
