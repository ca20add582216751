"""The erasure fence: what is written after a wait is written only if its person and its chat were not erased meanwhile."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.errors import SubjectErased
from bot.ports import Database, Marks, Transaction

# One statement checks and locks, so that this also holds on PostgreSQL at READ COMMITTED, where `INSERT … WHERE EXISTS` does not.
_PASS = "UPDATE subjects SET writes = writes + 1 WHERE agent_id = :agent_id AND subject = :subject AND epoch = :epoch RETURNING subject"
_FIND = "SELECT epoch FROM subjects WHERE agent_id = :agent_id AND subject = :subject"
_MAKE = (
    "INSERT INTO subjects (agent_id, subject, epoch, writes) VALUES (:agent_id, :subject, :epoch, 0)"
    " ON CONFLICT (agent_id, subject) DO UPDATE SET writes = subjects.writes RETURNING epoch"
)
_BUMP = "UPDATE subjects SET epoch = :epoch WHERE agent_id = :agent_id AND subject = :subject"


def new_epoch() -> int:
    """Random, so that a row that was deleted and made again never has the number it had before."""
    return secrets.randbits(62)


class SubjectFence:
    """The Fence over the `subjects` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def mark(self, *subjects: str) -> Marks:
        """The epoch of each subject, its row made where it has none."""
        return {subject: await self._epoch(subject) for subject in sorted(set(subjects))}

    async def _epoch(self, subject: str) -> int:
        row = await self._database.one(_FIND, {"subject": subject})
        if row is None:
            async with self._database.transaction() as tx:
                row = await tx.one(_MAKE, {"subject": subject, "epoch": new_epoch()})
        return int(row["epoch"]) if row else 0

    @asynccontextmanager
    async def transaction(self, marks: Marks) -> AsyncIterator[Transaction]:
        """A transaction that passes the fence first. Raises SubjectErased, with nothing written, where an epoch has changed."""
        async with self._database.transaction() as tx:
            for subject, epoch in marks.items():
                if await tx.one(_PASS, {"subject": subject, "epoch": epoch}) is None:
                    raise SubjectErased("erased while this was under way")
            yield tx

    async def bump(self, tx: Transaction, *subjects: str) -> None:
        """Change the epochs of these subjects inside a transaction; those without a row have nothing under way."""
        for subject in sorted(set(subjects)):
            await tx.run(_BUMP, {"subject": subject, "epoch": new_epoch()})
