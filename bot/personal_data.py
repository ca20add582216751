"""What the bot holds about a person, across all that is registered: profile, export, erasure."""

import json
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bot.errors import BotError, ConfigurationError, ErasureUnfinished, StorageError
from bot.fence import SubjectFence
from bot.inbox import Queue, now_ms
from bot.ports import Database, Marks, Reader, Row, Transaction
from bot.registry import PersonalData

log = logging.getLogger(__name__)

FORMAT = "sabio-export"
FORMAT_VERSION = 1

_FIND = "SELECT language, profile FROM users WHERE agent_id = :agent_id AND user_id = :user_id"
_SAVE = (
    "INSERT INTO users (agent_id, user_id, language, profile, created_at, updated_at)"
    " VALUES (:agent_id, :user_id, :language, :profile, :now, :now) ON CONFLICT (agent_id, user_id)"
    " DO UPDATE SET language = excluded.language, profile = excluded.profile, updated_at = excluded.updated_at"
)
_DELETE = "DELETE FROM users WHERE agent_id = :agent_id AND user_id = :user_id"
_UNCLEANED = (
    "INSERT INTO cleanings (agent_id, user_id, name) VALUES (:agent_id, :user_id, :name) ON CONFLICT (agent_id, user_id, name) DO NOTHING"
)
_TO_CLEAN = "SELECT user_id, name FROM cleanings WHERE agent_id = :agent_id ORDER BY user_id, name"
_CLEANED = "DELETE FROM cleanings WHERE agent_id = :agent_id AND user_id = :user_id AND name = :name"
_UNSCRUBBED = "INSERT INTO scrubs (agent_id, id) VALUES (:agent_id, :id)"
_TO_SCRUB = "SELECT id FROM scrubs WHERE agent_id = :agent_id"
_SCRUBBED = "DELETE FROM scrubs WHERE agent_id = :agent_id AND id = :id"


class Profile:
    """A person's profile. With `marks`, writes go behind the fence; without, they note the epochs themselves.

    Where the platform gives no person (an empty id) there is nothing to read, and nothing is kept.
    """

    def __init__(
        self, database: Database, fence: SubjectFence, user_id: str, *, clock: Callable[[], int], marks: Callable[[], Marks] | None = None
    ) -> None:
        self.id = user_id
        self._database = database
        self._fence = fence
        self._clock = clock
        self._marks = marks

    async def get(self, namespace: str, key: str, default: Any = None) -> Any:
        """The value kept under a name, or `default`."""
        return (await self.everything()).get(namespace, {}).get(key, default)

    async def set(self, namespace: str, key: str, value: Any) -> None:
        """Keep a JSON value; None takes it away. Raises SubjectErased where the person was erased meanwhile."""

        def change(language: str | None, profile: dict[str, Any]) -> str | None:
            names = {**profile.pop(namespace, {}), key: value}
            kept = {name: held for name, held in names.items() if held is not None}
            profile.update({namespace: kept} if kept else {})
            return language

        await self._change(change)

    async def language(self) -> str | None:
        """The language that the person chose, or None."""
        return (await self.load())[0]

    async def choose_language(self, language: str | None) -> None:
        """Keep the language that the person chose; None lets the bot find it out again."""
        await self._change(lambda _, __: language)

    async def everything(self) -> dict[str, Any]:
        """The whole profile: `{namespace: {key: value}}`."""
        return (await self.load())[1]

    async def load(self) -> tuple[str | None, dict[str, Any]]:
        """The language that the person chose, and the whole profile, in one look."""
        row = await self._row(self._database)
        return (row["language"] if row else None), _profile(row)

    async def _row(self, reader: Reader) -> Row | None:
        return await reader.one(_FIND, {"user_id": self.id}) if self.id else None

    async def _change(self, change: Callable[[str | None, dict[str, Any]], str | None]) -> None:
        if not self.id:
            return
        marks = self._marks() if self._marks else await self._fence.mark(self.id)
        async with self._fence.transaction(marks) as tx:
            row = await self._row(tx)
            profile = _profile(row)
            language = change(row["language"] if row else None, profile)
            held = json.dumps(profile, ensure_ascii=False)
            await tx.run(_SAVE, {"user_id": self.id, "language": language, "profile": held, "now": self._clock()})


def _profile(row: Row | None) -> dict[str, Any]:
    return dict(json.loads(row["profile"])) if row else {}


class Everyone:
    """Export and erasure: both walk what is registered with `registry.personal_data`."""

    def __init__(
        self, database: Database, fence: SubjectFence, registered: Mapping[str, PersonalData], *, clock: Callable[[], int]
    ) -> None:
        self._database = database
        self._fence = fence
        self._registered = registered
        self._clock = clock

    async def export(self, user_id: str) -> dict[str, Any]:
        """All that is held about a person, as plain JSON values, a key for each kind."""
        held = {name: await data.export(self._database, user_id) for name, data in sorted(self._registered.items())}
        return {"format": FORMAT, "version": FORMAT_VERSION, "user_id": user_id, "exported_at": self._clock(), **held}

    async def erase(self, user_id: str) -> dict[str, int]:
        """Erase a person in one transaction behind the fence, then what is no table; how many of each kind left.

        What is under way for them, or in a chat that holds words of theirs, writes nothing any more. Deleted content is overwritten on
        disk; where that has to wait, `finish` does it, at the next start too. Raises ErasureUnfinished where the rows are gone and
        something that is no table could not be removed: `finish` tries that again as well.
        """
        counts: dict[str, int] = {}
        registered = sorted(self._registered.items())
        async with self._database.transaction() as tx:
            await self._fence.bump(tx, user_id)  # the person's row first: a turn that holds it has written before their chats are looked up
            chats = [chat for _, data in registered if data.chats for chat in await data.chats(tx, user_id)]
            await self._fence.bump(tx, *chats)
            for name, data in registered:
                counts[name] = await data.erase(tx, user_id) or 0  # a plugin's may not count
            cleaned = [name for name, data in registered if data.clean is not None]
            await tx.many(_UNCLEANED, [{"user_id": user_id, "name": name} for name in cleaned])
            await tx.run(_UNSCRUBBED, {"id": uuid.uuid4().hex})
        failed: dict[str, Exception] = {}
        for name in cleaned:
            try:
                counts[name] += await self._clean(user_id, name)
            except Exception as error:  # noqa: BLE001 - whatever one kind of data raises, the others are cleaned, and it is raised below
                failed[name] = error
        await self.scrub()
        if failed:
            reasons = ", ".join(f"{name} ({_reason(error)})" for name, error in failed.items())
            raise ErasureUnfinished(f"could not be removed yet, and is tried again: {reasons}") from next(iter(failed.values()))
        return counts

    async def _clean(self, user_id: str, name: str) -> int:
        """Remove what is no table, of one kind; it is noted as done only then."""
        data = self._registered.get(name)
        if data is None or data.clean is None:  # of a plugin that is not here now
            return 0
        removed = await data.clean(user_id) or 0
        await self._database.write(_CLEANED, {"user_id": user_id, "name": name})
        return removed

    async def finish(self) -> None:
        """Do what erasures have left to do, after a failure or a crash; what fails again is logged, and tried again."""
        for row in await self._database.all(_TO_CLEAN):
            try:
                await self._clean(row["user_id"], row["name"])
                await self._database.write(_UNSCRUBBED, {"id": uuid.uuid4().hex})  # the row that was just deleted named a person
            except Exception as error:  # noqa: BLE001 - whatever one kind of data raises, the start and the others go on
                log.warning("what was erased is not removed everywhere yet, and that is tried again: %s (%s)", row["name"], _reason(error))
        await self.scrub()

    async def restore(self, exported: Any) -> dict[str, int]:
        """Take back what `export` gave, in one transaction; how many rows of each kind came, and what was refused. What is held stays.

        Raises ConfigurationError, with nothing written, for data that is no export of this version.
        """
        if not isinstance(exported, dict) or exported.get("format") != FORMAT or exported.get("version") != FORMAT_VERSION:
            raise ConfigurationError(
                f"this is no export of a person: it has to be JSON with format {FORMAT!r} and version {FORMAT_VERSION}"
            )
        user_id = exported.get("user_id")
        if not isinstance(user_id, str) or not user_id or not user_id.isprintable():
            raise ConfigurationError("this export names no person: user_id has to be a canonical id, as in telegram:123")
        counts: Counter[str] = Counter()
        async with self._database.transaction() as tx:
            for name, data in sorted(self._registered.items()):
                if data.restore is not None and name in exported:
                    try:
                        came = await data.restore(tx, user_id, exported[name])
                    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
                        raise ConfigurationError(f"this export cannot be taken back: {name!r} has another form ({error!r})") from error
                    counts.update(Counter({name: came} if isinstance(came, int) else came))
        return dict(counts)

    async def scrub(self) -> None:
        """Overwrite what erasures left in the database's file and log, if there is any; what fails is tried again."""
        try:
            waiting = await self._database.all(_TO_SCRUB)
            if not waiting:
                return
            if await self._database.scrub():
                async with self._database.transaction() as tx:
                    await tx.many(_SCRUBBED, [{"id": row["id"]} for row in waiting])
                return
            reason = "a reader holds it up"
        except StorageError as error:
            reason = str(error)
        log.warning("erased content is not overwritten on disk yet, and that is tried again: %s", reason)


def _reason(error: Exception) -> str:
    """An error as a log may have it: its text could quote what a person wrote."""
    return error.code if isinstance(error, BotError) else type(error).__name__


async def move_profile(tx: Transaction, old: str, new: str) -> None:
    """A group has another id: what it chose goes along, unless it has chosen anew under that one."""
    params = {"old": old, "new": new}
    there = "SELECT 1 FROM users there WHERE there.agent_id = :agent_id AND there.user_id = :new"
    await tx.run(f"UPDATE users SET user_id = :new WHERE agent_id = :agent_id AND user_id = :old AND NOT EXISTS ({there})", params)
    await tx.run("DELETE FROM users WHERE agent_id = :agent_id AND user_id = :old", params)


def own_data(queues: Sequence[Queue], *, clock: Callable[[], int] = now_ms) -> list[PersonalData]:
    """What the process itself keeps about a person: the profile, what waits in the queues, and the fence."""

    async def export_profile(reader: Reader, user_id: str) -> Any:
        row = await reader.one(_FIND, {"user_id": user_id})
        return {"language": row["language"], **_profile(row)} if row else {}

    async def erase_profile(tx: Transaction, user_id: str) -> int:
        return await tx.run(_DELETE, {"user_id": user_id})

    async def restore_profile(tx: Transaction, user_id: str, exported: Any) -> int:
        profile = {name: dict(held) for name, held in exported.items() if name != "language"}
        language = exported.get("language")
        if language is not None and not isinstance(language, str):
            raise TypeError("a language is a code, or none")
        if not exported or await tx.one(_FIND, {"user_id": user_id}) is not None:
            return 0
        held = {"language": language, "profile": json.dumps(profile, ensure_ascii=False), "now": clock()}
        return await tx.run(_SAVE, {"user_id": user_id, **held})

    async def export_queued(reader: Reader, user_id: str) -> Any:
        return [entry for queue in queues for entry in await queue.said_by(reader, user_id)]

    async def erase_queued(tx: Transaction, user_id: str) -> int:
        return sum([await queue.forget(tx, user_id) for queue in queues])

    async def no_export(reader: Reader, user_id: str) -> Any:
        return []

    async def erase_epoch(tx: Transaction, user_id: str) -> int:
        await tx.run("DELETE FROM subjects WHERE agent_id = :agent_id AND subject = :user_id", {"user_id": user_id})
        return 0

    return [
        PersonalData("profile", ("users",), export_profile, erase_profile, restore=restore_profile),
        PersonalData("queued", ("inbox", "outbox", "jobs"), export_queued, erase_queued),
        PersonalData("subjects", ("subjects", "cleanings"), no_export, erase_epoch),
    ]
