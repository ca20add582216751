"""What a person can say about what is held about them: /memory /remember /forget /my_data /forget_me."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime

from bot import BadRequest, Choice, Context, Fact, MemoryOptions, Recall, Registry, said
from bot import marked as _

BY_ID = "id:"
BUTTON_SECONDS = 86_400
MOST_BUTTONS = 20
NAMESPACE = "memory"  # where in the profile the last listing is kept
YES = (
    "sí",
    "s",
    "yes",
    "y",
    "ok",
    "vale",
    "claro",
    "confirmo",
    "confirm",
    "sí, por favor",
    "yes, please",
    "sí, borra todo",
    "sí, bórralo todo",
    "yes, erase all",
    "yes, erase everything",
)
_YES = frozenset(map(said, YES))


REFUSALS = {
    "EMPTY": _("There is nothing in that to remember. Write /remember and then what I should know, as in: /remember I live in Bogotá"),
    "TOO_LONG": _("That is too long to remember. Please say it in {max} characters or fewer."),
    "SECRET_PASSWORD": _("I did not keep that: it looks like a password or a PIN. Secrets have no place in my memory."),
    "SECRET_TOKEN": _("I did not keep that: it looks like a key or an access token. Secrets have no place in my memory."),
    "SECRET_PRIVATE_KEY": _("I did not keep that: it looks like a private key. Secrets have no place in my memory."),
    "SECRET_CARD": _("I did not keep that: it looks like a card number. Secrets have no place in my memory."),
    "SECRET_ACCOUNT": _("I did not keep that: it looks like a bank account. Secrets have no place in my memory."),
    "SECRET_ID_NUMBER": _("I did not keep that: it looks like the number of an identity document. Secrets have no place in my memory."),
}

PAUSED = _("Memory is paused, so I did not keep that. /memory resume ends the pause.")
NO_SUCH = _("I hold nothing like that about you. /memory in a private chat lists what there is.")
USAGE = _(
    "/memory lists what I remember. Also: /memory edit NUMBER TEXT, /memory pin NUMBER, /memory unpin NUMBER, /memory undo,"
    " /memory pause, /memory resume, /memory quiet, /memory tell."
)


def register(registry: Registry) -> None:
    """Add the commands about one's own data."""
    registry.command("memory", help=_("What I remember about you"))(memory)
    registry.command("remember", help=_("Remember something about you"), usage=_("/remember TEXT"))(remember)
    registry.command("forget", help=_("Forget one thing"), usage=_("/forget NUMBER or /forget TEXT"))(forget)
    registry.command("my_data", help=_("Everything I hold about you, as a file"))(my_data)
    registry.command("forget_me", help=_("Erase everything I hold about you"))(forget_me)
    registry.answer("forget_me")(forget_me_answer)


# ---------------------------------------------------------------------------------------------- /memory


async def memory(ctx: Context) -> None:
    """The facts held about a person, each with a way to forget it, and what can be done about them; in private only."""
    if ctx.is_group:
        await ctx.reply(ctx._("What I remember about you is between us: ask me with /memory in a private chat."))
        return
    word, _, rest = ctx.args.partition(" ")
    action = ACTIONS.get(said(word)) if word else _list
    if action is None:
        raise BadRequest(ctx._(USAGE))
    await action(ctx, _recall(ctx), rest.strip())


async def _list(ctx: Context, held: Recall, rest: str) -> None:
    facts, chosen = await held.facts(ctx.sender), await held.state(ctx.sender)
    await ctx.user.set(NAMESPACE, "listed", [fact.id for fact in facts] or None)
    lines = [ctx._("Memory is paused: I read and write nothing. /memory resume ends that."), ""] if chosen.paused else []
    if facts:
        head = ctx.ngettext("I remember {n} thing about you:", "I remember {n} things about you:", len(facts))
        lines += [head.format(n=len(facts)), *(_listed(ctx, number, fact) for number, fact in enumerate(facts, 1)), ""]
        lines += [ctx._("To forget one: /forget 1 (its number) or /forget and its text. To erase everything: /forget_me")]
    else:
        lines += [ctx._("I remember nothing about you yet. Tell me something with /remember TEXT.")]
    if replaced := await held.replaced(ctx.sender):
        until = ctx._("Replaced: {fact}. Until {date}, /memory undo takes back the last change.")
        lines += [until.format(fact=replaced[-1].text, date=_date(ctx, replaced[-1].until))]
    await ctx.reply("\n".join(lines), choices=_to_forget(ctx, facts))


def _to_forget(ctx: Context, facts: Sequence[Fact]) -> list[Choice]:
    """A button for each fact; it names the fact itself, so that a list from yesterday forgets nothing else."""
    label = ctx._("Forget {n}: {fact}")
    return [
        Choice(label.format(n=number, fact=fact.text[:40]), f"/forget {BY_ID}{fact.id}", BUTTON_SECONDS)
        for number, fact in enumerate(facts[:MOST_BUTTONS], 1)
    ]


def _listed(ctx: Context, number: int, fact: Fact) -> str:
    details = [ctx._("pinned")] if fact.pinned else []
    details.append(ctx._("since {date}").format(date=_date(ctx, fact.updated_at)))
    details.append(ctx._("you told me") if fact.source == "manual" else ctx._("from our chats"))
    if fact.expires_at is not None:
        details.append(ctx._("until {date}").format(date=_date(ctx, fact.expires_at)))
    return f"{number}. {fact.text} ({', '.join(details)})"


def _date(ctx: Context, at_ms: int) -> str:
    """A moment in UTC as a date in the reader's language."""
    from babel.dates import format_date

    return format_date(datetime.fromtimestamp(at_ms / 1000, UTC).date(), format="medium", locale=ctx.lang)


async def _edit(ctx: Context, held: Recall, rest: str) -> None:
    number, _, text = rest.partition(" ")
    fact = await _by_number(ctx, held, number)
    if (await held.state(ctx.sender)).paused:
        raise BadRequest(ctx._(PAUSED))
    if reason := held.why_not(text) or (held.why_not_keyed(fact.key, text) if fact.kind == "keyed" else None):
        raise BadRequest(_refusal(ctx, held, reason))
    if not await held.edit(ctx.sender, fact.id, text):
        raise BadRequest(ctx._(NO_SUCH))
    now = next((one.text for one in await held.facts(ctx.sender) if one.id == fact.id), text)
    await ctx.reply(ctx._("It now reads: {fact}").format(fact=now))


async def _pin(ctx: Context, held: Recall, rest: str) -> None:
    fact = await _by_number(ctx, held, rest)
    await held.pin(ctx.sender, fact.id, True)
    await ctx.reply(ctx._("Pinned: {fact}").format(fact=fact.text))


async def _unpin(ctx: Context, held: Recall, rest: str) -> None:
    fact = await _by_number(ctx, held, rest)
    await held.pin(ctx.sender, fact.id, False)
    await ctx.reply(ctx._("No longer pinned: {fact}").format(fact=fact.text))


async def _undo(ctx: Context, held: Recall, rest: str) -> None:
    left, back = await held.undo(ctx.sender)
    lines = [ctx._("Forgotten: {fact}").format(fact=fact) for fact in left]
    lines += [ctx._("Back again: {fact}").format(fact=fact) for fact in back]
    await ctx.reply("\n".join(lines) or ctx._("There is nothing to undo."))


async def _pause(ctx: Context, held: Recall, rest: str) -> None:
    await held.choose(ctx.sender, paused=True)
    await ctx.reply(ctx._("Memory is paused: I read and write nothing. /memory resume ends that."))


async def _resume(ctx: Context, held: Recall, rest: str) -> None:
    await held.choose(ctx.sender, paused=False)
    await ctx.reply(ctx._("I remember again. What I knew is still here: /memory lists it."))


async def _quiet(ctx: Context, held: Recall, rest: str) -> None:
    await held.choose(ctx.sender, quiet=True)
    await ctx.reply(ctx._("I will learn quietly. /memory tell makes me say what I learn."))


async def _tell(ctx: Context, held: Recall, rest: str) -> None:
    await held.choose(ctx.sender, quiet=False)
    await ctx.reply(ctx._("I will tell you when I learn something about you. /memory quiet ends that."))


ACTIONS: Mapping[str, Callable[[Context, Recall, str], Awaitable[None]]] = {
    **dict.fromkeys(("edit", "editar", "edita"), _edit),
    **dict.fromkeys(("pin", "fija", "fijar"), _pin),
    **dict.fromkeys(("unpin", "suelta", "soltar"), _unpin),
    **dict.fromkeys(("undo", "deshacer", "deshaz"), _undo),
    **dict.fromkeys(("pause", "pausa", "pausar", "incognito"), _pause),
    **dict.fromkeys(("resume", "reanuda", "reanudar", "sigue"), _resume),
    **dict.fromkeys(("quiet", "silencio", "calla"), _quiet),
    **dict.fromkeys(("tell", "avisa", "avisar"), _tell),
}


# ---------------------------------------------------------------------------------------------- /remember and /forget


async def remember(ctx: Context) -> None:
    """Keeps one fact, and says whether it was new, known, or refused and why; in a group the fact is not repeated."""
    held = _recall(ctx)
    if not ctx.sender:
        raise BadRequest(ctx._("I cannot tell who you are here, so I remember nothing. Write to me in a private chat."))
    if reason := held.why_not(ctx.args):
        raise BadRequest(_refusal(ctx, held, reason))
    learned = await held.learn(ctx.sender, ctx.args)
    if learned.paused:
        await ctx.reply(ctx._(PAUSED))
    elif ctx.is_group:
        await ctx.reply(ctx._("Noted. What I remember about you, I tell you in private only."))
    elif learned.added:
        lines = [ctx._("I will remember: {fact}").format(fact=learned.added[0])]
        lines += [ctx._("To make room, I forgot: {fact}").format(fact=fact) for fact in learned.evicted]
        await ctx.reply("\n".join(lines))
    else:
        await ctx.reply(ctx._("I knew that already, and it stays."))


def _refusal(ctx: Context, held: Recall, reason: str) -> str:
    return ctx._(REFUSALS[reason]).format(max=(held.options or MemoryOptions()).max_fact_length)


async def forget(ctx: Context) -> None:
    """Forgets one fact, by its number in the last list or by its text."""
    held = _recall(ctx)
    if not ctx.args:
        raise BadRequest(ctx._("Which one? Write /forget and its number or its text; /memory lists what there is. /forget_me erases all."))
    numbered = await _find(ctx, held, ctx.args)
    gone = await held.forget(ctx.sender, numbered.text if numbered else ctx.args)
    if gone and numbered and not ctx.is_group:
        await ctx.reply(ctx._("Forgotten: {fact}").format(fact=numbered.text))
    elif gone:
        await ctx.reply(ctx._("Forgotten."))
    else:
        await ctx.reply(ctx._(NO_SUCH))


async def _find(ctx: Context, held: Recall, number: str) -> Fact | None:
    """The fact that a number means: that of the last list, so that what came or went since then shifts nothing. A button names its id."""
    if number.startswith(BY_ID):
        return next((fact for fact in await held.facts(ctx.sender) if fact.id == number.removeprefix(BY_ID)), None)
    if not (number.isascii() and number.isdigit() and len(number) < 6):
        return None
    live = {fact.id: fact for fact in await held.facts(ctx.sender)}
    listed = await ctx.user.get(NAMESPACE, "listed") or list(live)
    return live.get(listed[int(number) - 1]) if 0 < int(number) <= len(listed) else None


async def _by_number(ctx: Context, held: Recall, number: str) -> Fact:
    fact = await _find(ctx, held, number.strip())
    if fact is None:
        raise BadRequest(ctx._(NO_SUCH))
    return fact


def _recall(ctx: Context) -> Recall:
    if ctx.recall is None:
        raise BadRequest(ctx._("I have no memory here."))
    return ctx.recall


# ---------------------------------------------------------------------------------------------- /my_data and /forget_me


async def my_data(ctx: Context) -> None:
    """Everything held about a person, as a JSON file, in private only."""
    if ctx.is_group:
        await ctx.reply(ctx._("Your data is between us: ask me with /my_data in a private chat."))
        return
    if ctx.files is None:
        await ctx.reply(ctx._("I cannot send files here. Whoever runs this bot can export your data for you."))
        return
    data = json.dumps(await ctx.people.export(ctx.sender), ensure_ascii=False, indent=2)
    name = f"{''.join(c if c.isalnum() else '-' for c in ctx.sender)}.json"
    await ctx.files.send_file(ctx.chat, name, data.encode("utf-8"))
    await ctx.reply(ctx._("That is everything I hold about you. /forget_me erases it."))


async def forget_me(ctx: Context) -> None:
    """Asks once; the next message of this person in this chat is the answer."""
    await ctx.expect("forget_me")
    await ctx.reply(
        ctx._(
            "This erases everything I hold about you: what I remember, our messages, your settings and what you sent me."
            " It cannot be undone. Shall I? Answer yes or no."
        ),
        choices=[Choice(ctx._("Yes, erase everything"), "yes"), Choice(ctx._("No"), "no")],
    )


async def forget_me_answer(ctx: Context) -> None:
    """Erases on a clear yes, and says how much; anything else leaves all as it is."""
    if said(ctx.text) not in _YES:
        await ctx.reply(ctx._("Nothing was erased."))
        return
    counts = await ctx.people.erase(ctx.sender)
    if ctx.is_group:
        await ctx.reply(ctx._("Done: I have erased everything I held about you."))
    else:
        await ctx.reply(_erased(ctx, counts))


def _erased(ctx: Context, counts: Mapping[str, int]) -> str:
    words = {
        "facts": lambda n: ctx.ngettext("{n} fact", "{n} facts", n),
        "messages": lambda n: ctx.ngettext("{n} message", "{n} messages", n),
        "documents": lambda n: ctx.ngettext("{n} document", "{n} documents", n),
        "files": lambda n: ctx.ngettext("{n} file", "{n} files", n),
        "profile": lambda n: ctx.ngettext("{n} profile", "{n} profiles", n),
    }
    shown = [words[name](counts[name]).format(n=counts[name]) for name in words if counts.get(name)]
    rest = sum(n for name, n in counts.items() if name not in words)
    if rest:
        shown.append(ctx.ngettext("{n} other record", "{n} other records", rest).format(n=rest))
    if not shown:
        return ctx._("I held nothing about you, and nothing is left.")
    return ctx._("Done, everything is erased: {counts}.").format(counts=", ".join(shown))
