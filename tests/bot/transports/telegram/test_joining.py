"""What belongs together is one question, and nothing else is."""

from dataclasses import replace

from bot.transports.telegram.joining import joined, wait_ms
from bot.values import Attachment, Update

FIRST = Update("telegram:1:1", "telegram", "telegram:7", "telegram:7", text="a" * 4096, part="paste")
NEXT = Update("telegram:1:2", "telegram", "telegram:7", "telegram:7", text="fin")
PICTURE = Update("telegram:1:3", "telegram", "telegram:7", "telegram:7", part="album:5", attachments=(Attachment("x", "x.jpg"),))


def test_a_paste_goes_on() -> None:
    """In one text, under the first id; the cut was at a line end that the app has dropped."""
    whole = joined(FIRST, NEXT)

    assert whole == replace(FIRST, text=f"{'a' * 4096}\nfin")


def test_what_does_not_belong_to_it() -> None:
    """Another person, another chat, a command, a forwarded message, a picture."""
    assert joined(FIRST, replace(NEXT, sender="telegram:8")) is None
    assert joined(FIRST, replace(NEXT, chat_key="telegram:-5")) is None
    assert joined(FIRST, replace(NEXT, text="/help")) is None
    assert joined(FIRST, replace(NEXT, text="", quoted="x", evidence="")) is None
    assert joined(FIRST, PICTURE) is None
    assert joined(NEXT, NEXT) is None
    assert joined(replace(FIRST, addressed=False), NEXT) is None


def test_an_album_is_one_with_all_its_files_and_its_one_caption() -> None:
    """Whichever of them bears the caption, and each file once."""
    whole = joined(
        PICTURE, replace(PICTURE, id="telegram:1:4", text="mira", attachments=(Attachment("y", "y.jpg"), Attachment("x", "x.jpg")))
    )

    assert whole is not None
    assert (whole.id, whole.text, [file.file_id for file in whole.attachments]) == (PICTURE.id, "mira", ["x", "y"])
    assert joined(PICTURE, replace(PICTURE, part="album:6")) is None


def test_an_album_is_the_message_with_its_caption() -> None:
    """Whoever edits the caption edits the question."""
    first, second = replace(PICTURE, message="3"), replace(PICTURE, id="telegram:1:4", message="4", text="mira")

    assert [whole.message for whole in (joined(first, second), joined(second, first)) if whole] == ["4", "4"]


def test_only_what_may_have_parts_waits() -> None:
    """A plain message is answered at once."""
    assert wait_ms(NEXT) == 0
    assert wait_ms(FIRST) > 0
    assert wait_ms(PICTURE) > 0
