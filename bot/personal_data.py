"""What the bot holds about a person, across all that is registered: profile, export, erasure."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bot.fence import SubjectFence
from bot.inbox import Queue
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


class Profile:
    """A person's profile. With `marks`, writes go behind the fence; without, they note the epochs themselves."""

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
        row = await self._row(self._database)
        return row["language"] if row else None

    async def choose_language(self, language: str | None) -> None:
        """Keep the language that the person chose; None lets the bot find it out again."""
        await self._change(lambda _, __: language)

    async def everything(self) -> dict[str, Any]:
        """The whole profile: `{namespace: {key: value}}`."""
        return _profile(await self._row(self._database))

    async def _row(self, reader: Reader) -> Row | None:
        return await reader.one(_FIND, {"user_id": self.id})

    async def _change(self, change: Callable[[str | None, dict[str, Any]], str | None]) -> None:
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
        self.unscrubbed = False

    async def export(self, user_id: str) -> dict[str, Any]:
        """All that is held about a person, as plain JSON values, a key for each kind."""
        held = {name: await data.export(self._database, user_id) for name, data in sorted(self._registered.items())}
        return {"format": FORMAT, "version": FORMAT_VERSION, "user_id": user_id, "exported_at": self._clock(), **held}

    async def erase(self, user_id: str) -> dict[str, int]:
        """Erase a person in one transaction behind the fence, then what is no table; how many of each kind left.

        What is under way for them, or in a chat that holds words of theirs, writes nothing any more. Deleted content is overwritten on
        disk; where a reader holds that up, `unscrubbed` stays true and `scrub` finishes it.
        """
        counts: dict[str, int] = {}
        async with self._database.transaction() as tx:
            chats = [chat for data in self._registered.values() if data.chats for chat in await data.chats(tx, user_id)]
            await self._fence.bump(tx, user_id, *chats)
            for name, data in sorted(self._registered.items()):
                counts[name] = await data.erase(tx, user_id)
        for name, data in sorted(self._registered.items()):
            if data.clean is not None:
                counts[name] += await data.clean(user_id)
        self.unscrubbed = True
        await self.scrub()
        return counts

    async def scrub(self) -> None:
        """Overwrite what an erasure left in the engine's log, if there is any."""
        if self.unscrubbed and await self._database.scrub():
            self.unscrubbed = False
        elif self.unscrubbed:
            log.warning("erased content is still in the database's log: a reader holds it up, and it is tried again")


def own_data(queues: Sequence[Queue]) -> list[PersonalData]:
    """What the process itself keeps about a person: the profile, what waits in the queues, and the fence."""

    async def export_profile(reader: Reader, user_id: str) -> Any:
        row = await reader.one(_FIND, {"user_id": user_id})
        return {"language": row["language"], **_profile(row)} if row else {}

    async def erase_profile(tx: Transaction, user_id: str) -> int:
        return await tx.run(_DELETE, {"user_id": user_id})

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
        PersonalData("profile", ("users",), export_profile, erase_profile),
        PersonalData("queued", ("inbox", "outbox", "jobs"), export_queued, erase_queued),
        PersonalData("subjects", ("subjects",), no_export, erase_epoch),
    ]
