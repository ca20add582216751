"""The erasure fence, on every engine: what comes after an erasure writes nothing, however the two race."""

import asyncio
import random

import pytest

from bot import Database, StorageError, SubjectErased
from bot.fence import SubjectFence
from bot.inbox import now_ms
from bot.personal_data import Everyone, Profile, own_data
from tests.conformance.conftest import PUT, ids

ANA, ROOM = "test:ana", "test:room"
EPOCH = "SELECT epoch FROM subjects WHERE agent_id = :agent_id AND subject = :subject"


@pytest.fixture
def fence(db: Database) -> SubjectFence:
    """The fence of this test's database."""
    return SubjectFence(db)


async def late(fence: SubjectFence, marks: dict[str, int], name: str = "late") -> None:
    """A write that comes after a wait."""
    async with fence.transaction(marks) as tx:
        await tx.run(PUT, {"id": name, "body": ""})


async def bumped(db: Database, fence: SubjectFence, *subjects: str) -> None:
    """What erasing does to the fence."""
    async with db.transaction() as tx:
        await fence.bump(tx, *subjects)


async def test_nothing_erased_everything_written(db: Database, fence: SubjectFence) -> None:
    """While no epoch changes, what was marked once may be written many times."""
    marks = await fence.mark(ANA, ROOM)
    await late(fence, marks, "a")
    await late(fence, marks, "b")

    assert await ids(db) == ["a", "b"]


async def test_marking_again_gives_the_same(fence: SubjectFence) -> None:
    """A mark is the epoch, and noting it changes nothing; a subject named twice has one."""
    first = await fence.mark(ANA, ROOM)

    assert await fence.mark(ROOM, ANA, ROOM) == first
    assert list(first) == [ANA, ROOM]


async def test_no_subjects_no_marks(db: Database, fence: SubjectFence) -> None:
    """Where nobody is concerned there is nothing to pass, and nothing to bump."""
    await late(fence, await fence.mark(), "a")
    await bumped(db, fence)

    assert await ids(db) == ["a"]


@pytest.mark.parametrize("erased", [ANA, ROOM])
async def test_one_epoch_changed_nothing_written(db: Database, fence: SubjectFence, erased: str) -> None:
    """One of several marks is enough to stop a write, and the others were not counted either."""
    marks = await fence.mark(ANA, ROOM)
    await bumped(db, fence, erased)
    with pytest.raises(SubjectErased):
        await late(fence, marks)

    assert await ids(db) == []
    assert await db.one("SELECT sum(writes) AS n FROM subjects") == {"n": 0}


async def test_a_row_that_was_deleted_and_made_again(db: Database, fence: SubjectFence) -> None:
    """A person who comes back after an erasure has another epoch: what was under way before does not count for them."""
    marks = await fence.mark(ANA)
    await db.write("DELETE FROM subjects WHERE agent_id = :agent_id")
    again = await fence.mark(ANA)
    with pytest.raises(SubjectErased):
        await late(fence, marks)
    await late(fence, again, "again")

    assert await ids(db) == ["again"]


async def test_a_subject_that_never_was(db: Database, fence: SubjectFence) -> None:
    """A mark of somebody of whom no row stays passes nothing."""
    with pytest.raises(SubjectErased):
        await late(fence, {ANA: 1})

    assert await ids(db) == []


async def test_an_erasure_between_the_fence_and_the_write_waits(db: Database, fence: SubjectFence) -> None:
    """Who has passed the fence writes before the erasure begins: it comes after, and takes the row along."""
    marks = await fence.mark(ANA)
    order: list[str] = []

    async def erase() -> None:
        async with db.transaction() as tx:
            await fence.bump(tx, ANA)
            order.append("erased")
            await tx.run("DELETE FROM notes WHERE agent_id = :agent_id")

    async with fence.transaction(marks) as tx:
        erasing = asyncio.create_task(erase())
        await asyncio.sleep(0.02)
        await tx.run(PUT, {"id": "late", "body": ""})
        order.append("written")
    await erasing

    assert order == ["written", "erased"]
    assert await ids(db) == []


@pytest.mark.parametrize("seed", range(3))
async def test_no_late_write_survives_an_erasure(db: Database, fence: SubjectFence, seed: int) -> None:
    """Writers that marked before an erasure, let loose around it in any order: not one row of theirs is left."""
    chance = random.Random(seed)
    people = Everyone(db, fence, {data.name: data for data in own_data([])}, clock=now_ms)
    for _ in range(25):
        marks = await fence.mark(ANA)

        async def write(n: int, marks: dict[str, int] = marks) -> bool:
            await asyncio.sleep(chance.random() * 0.002)
            profile = Profile(db, fence, ANA, clock=now_ms, marks=lambda: marks)
            try:
                await profile.set("plugin", str(n), n)
            except SubjectErased:
                return False
            return True

        async def erase() -> None:
            await asyncio.sleep(chance.random() * 0.002)
            await people.erase(ANA)

        await asyncio.gather(*(write(n) for n in range(6)), erase())

        assert await db.all("SELECT user_id FROM users WHERE agent_id = :agent_id") == []
        assert await db.one(EPOCH, {"subject": ANA}) is None


async def test_the_chats_of_a_person_change_too(db: Database, fence: SubjectFence) -> None:
    """A room that holds words of the person counts as changed, so nothing that is under way there writes, and a window in RAM goes."""
    other = own_data([])

    async def rooms(reader: object, user_id: str) -> list[str]:
        return [ROOM]

    registered = {data.name: data for data in other}
    registered["profile"] = type(other[0])("profile", other[0].tables, other[0].export, other[0].erase, chats=rooms)
    marks = await fence.mark(ROOM)
    await Everyone(db, fence, registered, clock=now_ms).erase(ANA)
    with pytest.raises(SubjectErased):
        await late(fence, marks)

    assert (await fence.mark(ROOM))[ROOM] != marks[ROOM]


async def test_an_error_inside_is_no_erasure(db: Database, fence: SubjectFence) -> None:
    """What fails behind the fence fails as itself, and rolls back what the fence counted."""
    marks = await fence.mark(ANA)
    with pytest.raises(StorageError):
        async with fence.transaction(marks) as tx:
            await tx.run(PUT, {"id": None, "body": ""})

    assert await db.one("SELECT writes FROM subjects") == {"writes": 0}
