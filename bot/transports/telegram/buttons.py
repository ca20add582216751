"""What a button carries: what its press says, until when, signed for the one person who may press it. Nothing is stored. Pure."""

import base64
import hashlib
import hmac

from bot.values import Choice

MOST_BYTES = 64  # of what a button may carry
MINUTE_MS = 60_000
ONCE, STAYS = "!", "."
SIGNATURE = 8  # characters of base64: 48 bits, for minutes
ONCE_SECONDS = 300  # a choice that lives no longer is a question, and its buttons go with the first press


def key_of(token: str) -> bytes:
    """The key that signs, from the token that only this bot has."""
    return hashlib.sha256(b"buttons:" + token.encode()).digest()


def data_of(key: bytes, choice: Choice, *, owner: str, chat_key: str, now_ms: int) -> str | None:
    """What the button of a choice carries; None where it does not fit."""
    until = -(-(now_ms + choice.seconds * 1000) // MINUTE_MS)
    head = f"{ONCE if choice.seconds <= ONCE_SECONDS else STAYS}{_base36(until)}:"
    data = f"{_signed(key, head, choice.says, owner, chat_key)}{head}{choice.says}"
    return data if len(data.encode()) <= MOST_BYTES else None


def said_by(key: bytes, data: str, *, presser: str, chat_key: str, now_ms: int) -> tuple[str, bool] | None:
    """What a press says, and whether its buttons go with it; None where it is forged, another person's, or too late."""
    signature, head, colon, says = data[:SIGNATURE], *data[SIGNATURE:].partition(":")
    if not colon or not hmac.compare_digest(signature.encode(), _signed(key, head + colon, says, presser, chat_key).encode()):
        return None
    try:
        until = int(head[1:], 36) * MINUTE_MS
    except ValueError:
        return None
    return (says, head[:1] == ONCE) if now_ms <= until else None


def _signed(key: bytes, head: str, says: str, owner: str, chat_key: str) -> str:
    message = "\0".join((head, says, owner, chat_key)).encode()
    return base64.urlsafe_b64encode(hmac.digest(key, message, "sha256")[: SIGNATURE * 6 // 8]).decode()


def _base36(value: int) -> str:
    digits = ""
    while value:
        value, rest = divmod(value, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits or "0"
