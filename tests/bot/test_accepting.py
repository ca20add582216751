"""Updates become rows: parts become one row, an edit changes a row that waits, and what comes twice is known."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from bot.accepting import stands_alone, take
from bot.database import open_database
from bot.inbox import Queue
from bot.ports import Database
from bot.transports.telegram import joining
from bot.values import Update

PASTE = Update("telegram:1:1", "telegram", "telegram:7", "telegram:7", text="a" * 4096, part="paste", message="1")
REST = Update("telegram:1:2", "telegram", "telegram:7", "telegram:7", text="fin", message="2")


@pytest.fixture
async def database() -> AsyncIterator[Database]:
    """A database in memory."""
    async with open_database("sqlite:///:memory:") as opened:
        yield opened


async def _taken(database: Database, *batches: Sequence[Update]) -> list[Update]:
    """What waits in the inbox after these were taken, batch by batch."""
    inbox, lines = Queue(database, "inbox", clock=lambda: 0), set[str]()
    for batch in batches:
        async with database.transaction() as tx:
            await take(tx, inbox, batch, joins=joining, open_lines=lines)
    async with database.transaction() as tx:
        return [Update.from_json(payload) for _, payload in await inbox.unclaimed(tx, "telegram:7")]


async def test_parts_become_one_row_whichever_way_they_come(database: Database) -> None:
    """In one batch or in two, and a part that is delivered again changes nothing."""
    [whole] = await _taken(database, [PASTE], [REST], [REST], [PASTE])

    assert whole.text == "a" * 4096 + "\nfin"
    assert whole.id == PASTE.id


async def test_an_edit_changes_what_waits(database: Database) -> None:
    """It is answered once, as it reads now; the edit itself is no second question."""
    edit = replace(REST, id="telegram:1:3", kind="edited", text="fin de verdad")
    [update] = await _taken(database, [REST], [edit], [edit])

    assert (update.text, update.kind, update.id) == ("fin de verdad", "message", REST.id)


async def test_an_edit_of_what_was_answered_is_a_row_of_its_own(database: Database) -> None:
    """Whoever answers it finds out whether it is the last."""
    edit = replace(REST, id="telegram:1:3", kind="edited", text="fin de verdad")

    assert await _taken(database, [edit]) == [edit]


async def test_what_is_not_said_to_the_bot_is_not_stored(database: Database) -> None:
    """But for a part of something that is."""
    stray = replace(REST, addressed=False)

    assert await _taken(database, [stray]) == []
    [whole] = await _taken(database, [PASTE, stray])
    assert whole.text.endswith("fin")


@pytest.mark.parametrize(
    ("update", "waits", "alone"),
    [
        (REST, False, True),
        (REST, True, False),  # what waits there may be what it belongs to
        (PASTE, False, False),
        (replace(REST, kind="edited"), False, False),
        (replace(REST, addressed=False), False, False),
        (replace(REST, kind="button"), False, True),
    ],
)
def test_what_needs_no_look_at_other_rows(update: Update, waits: bool, alone: bool) -> None:
    """A message that is whole, in a chat where no part waits for others."""
    assert stands_alone(update, joins=joining, open_lines={update.chat_key} if waits else set()) is alone
