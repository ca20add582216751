"""Messages that are one: the parts of a long paste, the pictures of an album. Pure."""

from dataclasses import replace

from bot.values import Update

PASTE = "paste"
ALBUM = "album:"
PASTE_MS = 1_200  # how long the next part of a paste is waited for
ALBUM_MS = 1_000


def wait_ms(update: Update) -> int:
    """How long to wait for what may belong to this before it is answered."""
    return PASTE_MS if update.part == PASTE else ALBUM_MS if update.part.startswith(ALBUM) else 0


def joined(waiting: Update, update: Update) -> Update | None:
    """The update that waits and what has come as one; None where they do not belong together.

    The parts of a paste follow each other, from one person in one chat; those of an album bear its id. An album is the message that has
    its caption: that is the one which can be edited.
    """
    same = (waiting.chat_key, waiting.sender, waiting.kind) == (update.chat_key, update.sender, update.kind) and waiting.sender is not None
    if not same or not waiting.addressed:
        return None
    if waiting.part.startswith(ALBUM) and update.part == waiting.part:
        files = waiting.attachments + tuple(file for file in update.attachments if file not in waiting.attachments)
        message = update.message if update.text and not waiting.text else waiting.message
        return replace(waiting, text="\n".join(filter(None, (waiting.text, update.text))), attachments=files, message=message)
    if waiting.part == PASTE and not update.part.startswith(ALBUM) and _continues(waiting, update):
        return replace(waiting, text=f"{waiting.text}{_seam(waiting.text)}{update.text}")
    return None


def _continues(waiting: Update, update: Update) -> bool:
    return bool(update.text) and not update.text.startswith("/") and update.evidence == waiting.evidence is None


def _seam(text: str) -> str:
    """The app cuts a paste at a space or a line end where there is one, and drops it."""
    return "" if text.endswith(("\n", " ")) else "\n"
