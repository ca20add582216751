"""The wire to the Bot API: aiogram's methods and session, with every failure as one of ours and the token in none of them."""

import logging
import re
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import PRODUCTION, TelegramAPIServer
from aiogram.exceptions import (
    AiogramError,
    ClientDecodeError,
    TelegramAPIError,
    TelegramBadRequest,
    TelegramConflictError,
    TelegramEntityTooLarge,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from aiogram.methods import GetFile, GetUpdates, Response, TelegramMethod
from aiogram.utils.token import TokenValidationError
from aiohttp import ClientError

from bot.errors import ConfigurationError, TransportError, TransportUnavailable, Undeliverable
from bot.log import HIDDEN

log = logging.getLogger(__name__)

CALL_SECONDS = 30
LONGEST_TEXT = 200  # characters of what Telegram says of an error
QUOTED = re.compile(r"(?<!\w)[\"'`«“].*", re.DOTALL)  # what a server quotes in an error may be somebody's words, and errors are logged
TOO_MANY = (420, 429)
WAIT = re.compile(r"(?:retry after|FLOOD_WAIT_)\s*(\d+)", re.IGNORECASE)
UNTOLD_WAIT = 3  # seconds, where Telegram asks to wait and does not say how long
GONE = (
    "chat not found",
    "user is deactivated",
    "bot was kicked",
    "not enough rights to send",
    "have no rights to send",
    "chat_write_forbidden",
)


class Refused(TransportError):
    """Telegram does not take it as it is (400); the text is what it says, in small letters."""

    code = "TELEGRAM_REFUSED"


class Pause(TransportUnavailable):
    """Telegram asks to wait for `seconds` (429)."""


class ChatMoved(TransportError):
    """The group has become a supergroup; `new` is its id from now on."""

    code = "TELEGRAM_CHAT_MOVED"

    def __init__(self, new: int) -> None:
        super().__init__("the group has become a supergroup")
        self.new = new


class Conflict(TransportError):
    """Somebody else takes the updates: another process with this token, or a webhook."""

    code = "TELEGRAM_CONFLICT"


class Unauthorized(ConfigurationError):
    """Telegram does not know the token."""

    code = "TELEGRAM_TOKEN"


class _AsItComes(TelegramMethod[Any]):
    """Stands for any method where a response is read: nothing of its result is decoded, so that nothing odd in it can hurt."""

    __returning__ = Any
    __api_method__ = ""


_AS_IT_COMES = _AsItComes()


class _Session(AiohttpSession):
    """aiogram's session with results as plain JSON. Its errors bear no method, and so no words of anybody."""

    def check_response(self, bot: Bot, method: TelegramMethod[Any], status_code: int, content: str) -> Response[Any]:
        try:
            return super().check_response(bot, _AS_IT_COMES, status_code, content)
        except TelegramAPIError as error:  # aiogram knows a 429 only by a field that is not always there
            if status_code not in TOO_MANY or isinstance(error, TelegramRetryAfter):
                raise
            told = WAIT.search(str(error.message or ""))
            seconds = int(told[1]) if told else UNTOLD_WAIT
            raise TelegramRetryAfter(_AS_IT_COMES, str(error.message or ""), seconds) from error


class Api:
    """Calls of the Bot API. `base` is the address of another server, without a slash at its end. Use it with `async with`.

    Raises ConfigurationError for a token that cannot be one.
    """

    def __init__(self, token: str, *, base: str | None = None) -> None:
        server = TelegramAPIServer.from_base(base.rstrip("/")) if base else PRODUCTION
        self._token = token
        try:
            self._bot = Bot(token, session=_Session(api=server, timeout=CALL_SECONDS))
        except TokenValidationError as error:
            raise ConfigurationError("TELEGRAM_TOKEN cannot work: it is no token; @BotFather gives one like 123456:ABC…") from error

    @property
    def id(self) -> int:
        """The bot's own id, which its token begins with."""
        return self._bot.id

    async def __aenter__(self) -> "Api":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._bot.session.close()

    async def call(self, method: TelegramMethod[Any], *, seconds: float = CALL_SECONDS) -> Any:
        """Make one call; its result as plain JSON. Raises a kind of TransportError, or Unauthorized."""
        try:
            return await self._bot.session(self._bot, method, timeout=seconds)  # type: ignore[arg-type]  # aiohttp takes fractions too
        except (AiogramError, OSError, ClientError) as error:
            raise self._ours(error) from None  # what aiogram raises holds the message that was to be sent

    async def send(self, method: TelegramMethod[Any], *, seconds: float = CALL_SECONDS) -> int:
        """Make a call whose result is a message; its number, 0 where it has none."""
        sent = await self.call(method, seconds=seconds)
        number = sent.get("message_id") if isinstance(sent, Mapping) else None
        return number if isinstance(number, int) else 0

    async def updates(self, offset: int | None, *, seconds: int, allowed: Sequence[str]) -> list[Any]:
        """The updates that wait, undecoded; the call itself waits for the first up to `seconds`."""
        method = GetUpdates(offset=offset, limit=100, timeout=seconds, allowed_updates=list(allowed))
        result = await self.call(method, seconds=seconds + 10)
        return result if isinstance(result, list) else []

    async def download(self, file_id: str, *, max_bytes: int) -> bytes | None:
        """The bytes of a file; None where it has more than `max_bytes`."""
        file = await self.call(GetFile(file_id=file_id))
        path, size = (file.get("file_path"), file.get("file_size")) if isinstance(file, Mapping) else (None, None)
        if not isinstance(path, str) or (isinstance(size, int) and size > max_bytes):
            return None
        url = self._bot.session.api.file_url(self._token, path)
        data = bytearray()
        try:
            async for chunk in self._bot.session.stream_content(url, timeout=CALL_SECONDS):
                data += chunk
                if len(data) > max_bytes:
                    return None
        except (AiogramError, OSError, ClientError, TimeoutError) as error:
            raise self._ours(error) from None  # the address of a file holds the token
        return bytes(data)

    def _ours(self, error: BaseException) -> TransportError | ConfigurationError:
        said = str(getattr(error, "message", "") or type(error).__name__).replace(self._token, HIDDEN)[:LONGEST_TEXT]
        if not isinstance(error, TelegramNetworkError):
            said = QUOTED.sub("…", said)
        text = said.casefold()
        match error:
            case TelegramRetryAfter():
                return Pause(f"Telegram asks to wait {error.retry_after} s", seconds=float(error.retry_after))
            case TelegramMigrateToChat():
                return ChatMoved(error.migrate_to_chat_id)
            case TelegramEntityTooLarge():
                return Refused("too large")
            case TelegramNetworkError() | OSError() | ClientError() | TimeoutError():
                return TransportUnavailable(f"Telegram cannot be reached ({said})")
            case ClientDecodeError():
                return TransportUnavailable("Telegram answered with something that is no JSON")
            case TelegramServerError():
                return TransportUnavailable(f"Telegram has an error of its own ({said})")
            case TelegramUnauthorizedError():
                return Unauthorized(f"TELEGRAM_TOKEN is refused by Telegram: {said}; ask @BotFather for the right one")
            case TelegramConflictError():
                return Conflict(text)
            case TelegramForbiddenError():
                return Undeliverable(said)
            case TelegramBadRequest() | TelegramNotFound():
                return Undeliverable(said) if any(word in text for word in GONE) else Refused(text)
        return Refused(text)
