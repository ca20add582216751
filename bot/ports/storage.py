"""Storage as other parts see it: a database, the erasure fence, background work, and the stores of messages and facts."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from bot.values import Fact, Message

Row = Mapping[str, Any]
Params = Mapping[str, Any]


class Reader(Protocol):
    """Reads. SQL is in the subset that SQLite and PostgreSQL share, with named parameters (`:user_id`).

    `:agent_id` is always filled in (several bots can share one database). Every failure is a StorageError.
    """

    @property
    def agent_id(self) -> str: ...

    async def all(self, sql: str, params: Params = ...) -> list[Row]: ...

    async def one(self, sql: str, params: Params = ...) -> Row | None: ...


class Transaction(Reader, Protocol):
    """Reads and writes that happen together or not at all; its statements are awaited one after the other."""

    async def run(self, sql: str, params: Params = ...) -> int:
        """Execute one statement; returns how many rows it changed."""
        ...

    async def many(self, sql: str, rows: Sequence[Params]) -> None:
        """Execute one statement for each row of parameters."""
        ...

    async def together(self, statements: Sequence[tuple[str, Params]]) -> list[list[Row]]:
        """Execute several statements, none of which waits for another's outcome; the rows that each returns."""
        ...

    async def soon(self, sql: str, params: Params = ..., *, least: int = 0, otherwise: Exception | None = None) -> None:
        """Execute one statement at the latest with the next one, or with the commit: for what nobody waits for.

        Where it returns fewer rows than `least`, `otherwise` is raised, here or by what comes next, and nothing of the transaction is
        written.
        """
        ...


class Database(Reader, Protocol):
    """A database. NUL and lone surrogates never reach it."""

    async def tuples(self, sql: str, params: Params = ...) -> Sequence[Sequence[Any]]:
        """The rows of one SELECT, each the values of its columns in their order: for what is read in every turn."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """One writer at a time. An exception rolls back, and so does cancellation.

        After a statement that failed nothing of it is written. A transaction or a `write` inside one of the same task is a RuntimeError: it
        would wait for itself.
        """
        ...

    async def write(self, sql: str, params: Params = ...) -> list[Row]:
        """One statement that is a transaction of its own, and the rows that it returns: cheaper than `transaction` for one statement."""
        ...

    async def scrub(self) -> bool:
        """Overwrite what was deleted wherever the engine still holds it; False where that has to be tried again later."""
        ...


Marks = Mapping[str, int]
"""Subjects (a person, a chat) with the epoch that each had when it was noted."""


class Marked(Protocol):
    """What bears the marks of a piece of work, as the context of a turn does where a handler asks: whoever has it need not mark anew."""

    @property
    def marks(self) -> Marks:
        """Those noted when the work began: what goes behind them is not written after an erasure since."""
        ...


class Fence(Protocol):
    """Keeps what is written after a wait from coming back after an erasure."""

    async def mark(self, *subjects: str) -> Marks:
        """Note the epochs, at the start of a piece of work."""
        ...

    def transaction(self, marks: Marks) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that raises SubjectErased, with nothing written, where one of the epochs has changed."""
        ...

    async def bump(self, tx: Transaction, *subjects: str) -> None:
        """Change the epochs, so that whatever was noted before writes nothing any more."""
        ...


class Jobs(Protocol):
    """Background work that outlives the process."""

    async def put(self, tx: Transaction, kind: str, subject: str, payload: Mapping[str, Any], *, wait_ms: int = 0) -> None:
        """Queue a job inside a transaction. `subject` is the person it is about: erasing them takes it along."""
        ...

    async def idle(self, kind: str | None = None) -> None:
        """Run what waits, its delay ended, and return when no job (of this kind) is left to run."""
        ...


class MessageStore(Protocol):
    """Where the window is backed. `get_history` returns the newest `limit` messages, oldest first."""

    async def append_message(self, chat_key: str, message: Message) -> None: ...

    async def get_history(self, chat_key: str, limit: int) -> list[Message]: ...


class FactStore(Protocol):
    """Where facts are kept. `save_fact` returns True where the fact is new; `get_facts` returns live ones, oldest first."""

    async def save_fact(self, fact: Fact) -> bool: ...

    async def get_facts(self, subject: str) -> list[Fact]: ...
