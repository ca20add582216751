"""The erasure fence: what is written after a wait is written only if its person and its chat were not erased meanwhile."""

import secrets
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from types import TracebackType

from bot.errors import SubjectErased
from bot.ports import Database, Marks, Transaction

_MAKE = (
    "INSERT INTO subjects (agent_id, subject, epoch, writes) VALUES (:agent_id, :subject, :epoch, 0)"
    " ON CONFLICT (agent_id, subject) DO UPDATE SET writes = subjects.writes RETURNING epoch"
)
_BUMP = "UPDATE subjects SET epoch = :epoch WHERE agent_id = :agent_id AND subject = :subject"


@cache
def _find(n: int) -> str:
    names = ", ".join(f":subject{i}" for i in range(n))
    return f"SELECT subject, epoch FROM subjects WHERE agent_id = :agent_id AND subject IN ({names})"


@cache
def _pass(n: int) -> str:
    # One statement checks and locks, so that this also holds on PostgreSQL at READ COMMITTED, where `INSERT … WHERE EXISTS` does not.
    each = " OR ".join(f"(subject = :subject{i} AND epoch = :epoch{i})" for i in range(n))
    return f"UPDATE subjects SET writes = writes + 1 WHERE agent_id = :agent_id AND ({each}) RETURNING subject"


def new_epoch() -> int:
    """Random, so that a row that was deleted and made again never has the number it had before."""
    return secrets.randbits(62)


async def epoch_of(tx: Transaction, subject: str) -> int:
    """The epoch of a subject inside a transaction, its row made where it has none."""
    row = await tx.one(_MAKE, {"subject": subject, "epoch": new_epoch()})
    assert row is not None
    return int(row["epoch"])


class SubjectFence:
    """The Fence over the `subjects` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def mark(self, *subjects: str) -> Marks:
        """The epoch of each subject, its row made where it has none."""
        wanted = list(dict.fromkeys(subjects))
        if not wanted:
            return {}
        rows = await self._database.all(_find(len(wanted)), _numbered("subject", wanted))
        marks = {str(row["subject"]): int(row["epoch"]) for row in rows}
        if len(marks) < len(wanted):
            async with self._database.transaction() as tx:
                marks |= {subject: await epoch_of(tx, subject) for subject in wanted if subject not in marks}
        return marks

    def transaction(self, marks: Marks) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that passes the fence first. Raises SubjectErased, with nothing written, where an epoch has changed."""
        inner = self._database.transaction()
        return _Fenced(inner, marks) if marks else inner

    async def bump(self, tx: Transaction, *subjects: str) -> None:
        """Change the epochs of these subjects inside a transaction; those without a row have nothing under way."""
        rows = [{"subject": subject, "epoch": new_epoch()} for subject in sorted(set(subjects))]
        if rows:
            await tx.many(_BUMP, rows)


class _Fenced(AbstractAsyncContextManager[Transaction]):
    """A transaction with the fence in front. A class, since every turn has one: a generator would cost as much as a short statement."""

    def __init__(self, inner: AbstractAsyncContextManager[Transaction], marks: Marks) -> None:
        self._inner = inner
        self._marks = marks

    async def __aenter__(self) -> Transaction:
        marks = self._marks
        params = _numbered("subject", list(marks)) | _numbered("epoch", list(marks.values()))
        tx = await self._inner.__aenter__()
        try:
            await tx.soon(_pass(len(marks)), params, least=len(marks), otherwise=SubjectErased("erased while this was under way"))
        except BaseException as error:  # a cancellation too: nobody else would end the transaction
            await self._inner.__aexit__(type(error), error, error.__traceback__)
            raise
        return tx

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


def _numbered(name: str, values: Sequence[object]) -> dict[str, object]:
    return {f"{name}{i}": value for i, value in enumerate(values)}
