"""Updates become rows of the inbox: the parts of one message become one row, and an edit changes a row that nobody has answered yet."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from bot.inbox import NewRow, Queue
from bot.ports import Transaction
from bot.values import Update


class Joins(Protocol):
    """How a platform tells what belongs together. Pure."""

    def wait_ms(self, update: Update) -> int:
        """How long an update waits for what may belong to it; 0 where it is whole."""
        ...

    def joined(self, waiting: Update, update: Update) -> Update | None:
        """Both as one, under the id of the one that waits; None where they do not belong together."""
        ...


async def take(
    tx: Transaction, inbox: Queue, updates: Sequence[Update], *, joins: Joins | None = None, open_lines: set[str] | None = None
) -> None:
    """Put each into the inbox, once for its id; what is not said to the bot is only looked at as a part of something that is.

    `open_lines` has the chats where a part waits for others, and is kept up to date: elsewhere nothing is looked for.
    """
    lines = set() if open_lines is None else open_lines
    for update in updates:
        if update.kind == "edited" and await _corrected(tx, inbox, update):
            continue
        if joins is not None and update.kind == "message" and update.chat_key in lines:
            if await _joined(tx, inbox, update, joins):
                continue
            lines.discard(update.chat_key)
        if update.addressed:
            if joins is not None and joins.wait_ms(update):
                lines.add(update.chat_key)
            await inbox.put_soon(tx, update.id, **_row(update, wait_ms=joins.wait_ms(update) if joins is not None else 0))


def stands_alone(update: Update, *, joins: Joins | None, open_lines: set[str]) -> bool:
    """Whether an update concerns no row that is there: then it needs no transaction around it."""
    return update.addressed and update.kind != "edited" and update.chat_key not in open_lines and not (joins and joins.wait_ms(update))


async def put(tx: Transaction | None, inbox: Queue, update: Update) -> bool:
    """Put one update into the inbox; False where its id was there before."""
    return await inbox.put(tx, update.id, **_row(update))


def _row(update: Update, *, wait_ms: int = 0) -> NewRow:
    return {
        "kind": update.kind,
        "line": update.chat_key,
        "user_id": update.sender or "",
        "via": update.transport,
        "payload": update.to_json(),
        "wait_ms": wait_ms,
    }


async def _corrected(tx: Transaction, inbox: Queue, update: Update) -> bool:
    """Whether the message that was edited still waited for its answer, and now says what it says now."""
    for entry_id, payload in await inbox.unclaimed(tx, update.chat_key):
        waiting = Update.from_json(payload)
        if waiting.message == update.message and waiting.sender == update.sender and not waiting.part:
            new = replace(update, id=waiting.id, kind=waiting.kind)
            return await inbox.rewrite(tx, entry_id, new.to_json()) and await _over(tx, inbox, update)
    return False


async def _joined(tx: Transaction, inbox: Queue, update: Update, joins: Joins) -> bool:
    """Whether it was a part of the last that waits in its chat. A redelivered part finds its own id, and changes nothing."""
    for entry_id, payload in reversed(await inbox.unclaimed(tx, update.chat_key)):
        waiting = Update.from_json(payload)
        if not waiting.part:
            return False
        whole = joins.joined(waiting, update) if entry_id != update.id else None
        if whole is not None:
            if await _over(tx, inbox, update):
                await inbox.rewrite(tx, entry_id, whole.to_json(), wait_ms=joins.wait_ms(update))
            return True
    return False


async def _over(tx: Transaction, inbox: Queue, update: Update) -> bool:
    """Note an update as done that lives on in another row; False where it had come before."""
    new = await put(tx, inbox, update)
    if new:
        await inbox.done(update.id, tx=tx)
    return new
