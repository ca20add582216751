"""What an update begins with, on every engine."""

import pytest

from bot import Database
from bot.beginning import Beginning, begin
from bot.fence import SubjectFence
from bot.inbox import Queue, now_ms
from bot.personal_data import Profile
from bot.values import Update

ANA, ROOM, TOPIC = "test:ana", "test:room", "test:room:7"


def message(chat: str, *, sender: str | None = ANA, room: str | None = None) -> Update:
    """Something that was said."""
    return Update("u1", "test", chat, sender, "hi", is_group=chat != ANA, room=room)


@pytest.fixture
def fence(db: Database) -> SubjectFence:
    """The fence of this test's database."""
    return SubjectFence(db)


async def start(db: Database, update: Update) -> Beginning:
    """How an update begins."""
    return await begin(db, SubjectFence(db), update, answer_id="u1:answer")


async def test_the_first_update_of_all(db: Database, fence: SubjectFence) -> None:
    """Nothing is known, and the person and the chat have epochs from then on."""
    first = await start(db, message(ROOM))
    again = await start(db, message(ROOM))

    assert first == again == Beginning(await fence.mark(ANA, ROOM), None, {}, None, answered=False)


@pytest.mark.parametrize(("chat", "sender", "subjects"), [(ANA, ANA, [ANA]), (ROOM, None, [ROOM]), (ROOM, ANA, [ANA, ROOM])])
async def test_whose_epochs(db: Database, chat: str, sender: str | None, subjects: list[str]) -> None:
    """Those of the chat and of who wrote, where somebody did; both are the same in private."""
    assert list((await start(db, message(chat, sender=sender))).marks) == subjects


async def test_what_was_chosen(db: Database, fence: SubjectFence) -> None:
    """The person's profile and language; the group's language, which a topic has too, and no other chat."""
    ana, room = (Profile(db, fence, subject, clock=now_ms) for subject in (ANA, ROOM))
    await ana.set("bot", "language", "en")
    await ana.choose_language("es")
    await room.choose_language("en")
    found = [await start(db, message(chat, room=in_room)) for chat, in_room in ((ANA, None), (ROOM, None), (TOPIC, ROOM), (TOPIC, None))]

    assert [one.language for one in found] == ["es"] * 4
    assert [one.profile for one in found] == [{"bot": {"language": "en"}}] * 4
    assert [one.room_language for one in found] == [None, "en", "en", None]


async def test_an_answer_of_an_earlier_run(db: Database) -> None:
    """It counts whether it waits or was sent, and that of another update does not."""
    outbox = Queue(db, "outbox")
    states = []
    for name in ("u2:answer", "u1:answer"):
        await outbox.put(None, name, kind="reply", line=ANA, payload={})
        states.append((await start(db, message(ANA))).answered)
    await outbox.done("u1:answer")
    states.append((await start(db, message(ANA))).answered)

    assert states == [False, True, True]
