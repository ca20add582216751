"""The wire to the Bot API: aiogram's session and forms, with every failure as one of ours and the token in none of them."""

import json
import logging
import math
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import PRODUCTION, TelegramAPIServer
from aiogram.methods import TelegramMethod
from aiogram.utils.token import TokenValidationError
from aiohttp import BytesPayload, ClientError, ClientTimeout, FormData
from yarl import URL

from bot.errors import BotError, ConfigurationError, TransportError, TransportUnavailable, Undeliverable
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


class Api:
    """Calls of the Bot API. `base` is the address of another server, without a slash at its end. Use it with `async with`.

    Raises ConfigurationError for a token that cannot be one.
    """

    def __init__(self, token: str, *, base: str | None = None) -> None:
        server = TelegramAPIServer.from_base(base.rstrip("/")) if base else PRODUCTION
        self._token = token
        try:
            self._session = AiohttpSession(api=server)
            self._bot = Bot(token, session=self._session)
        except TokenValidationError as error:
            raise ConfigurationError("TELEGRAM_TOKEN cannot work: it is no token; @BotFather gives one like 123456:ABC…") from error

    @property
    def id(self) -> int:
        """The bot's own id, which its token begins with."""
        return self._bot.id

    async def __aenter__(self) -> "Api":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._session.close()

    async def ask(self, name: str, *, seconds: float = CALL_SECONDS, **fields: Any) -> Any:
        """Make one call with plain fields, None for those that are not there; its result as plain JSON.

        For what is called for every message: aiogram's models take as long as the request itself.
        Raises a kind of TransportError, or Unauthorized.
        """
        return await self._post(name, _form(fields), seconds)

    async def call(self, method: TelegramMethod[Any]) -> Any:
        """Make one call, with files or without; the same result and the same errors."""
        return await self._post(method.__api_method__, self._session.build_form_data(self._bot, method), CALL_SECONDS)

    async def _post(self, name: str, data: FormData | BytesPayload, seconds: float) -> Any:
        try:
            session = await self._session.create_session()
            url = self._session.api.api_url(self._token, name)
            async with session.post(url, data=data, timeout=ClientTimeout(total=seconds)) as response:
                status, body = response.status, await response.read()
        except (OSError, ClientError) as error:
            raise self._away(error) from None  # its text has the address, which holds the token
        return self._result(status, body)

    async def send(self, name: str, **fields: Any) -> int:
        """Make a call whose result is a message; its number, 0 where it has none."""
        sent = await self.ask(name, **fields)
        number = sent.get("message_id") if isinstance(sent, Mapping) else None
        return number if isinstance(number, int) else 0

    async def updates(self, offset: int | None, *, seconds: int, allowed: Sequence[str]) -> list[Any]:
        """The updates that wait, undecoded; the call itself waits for the first up to `seconds`."""
        fields = {"offset": offset, "limit": 100, "timeout": seconds, "allowed_updates": allowed}
        result = await self.ask("getUpdates", seconds=seconds + 10, **fields)
        return result if isinstance(result, list) else []

    async def download(self, file_id: str, *, max_bytes: int) -> bytes | None:
        """The bytes of a file; None where it has more than `max_bytes`."""
        file = await self.ask("getFile", file_id=file_id)
        path, size = (file.get("file_path"), file.get("file_size")) if isinstance(file, Mapping) else (None, None)
        if not isinstance(path, str) or (isinstance(size, int) and size > max_bytes):
            return None
        url = self._session.api.file_url(self._token, path)
        data = bytearray()
        try:
            async for chunk in self._session.stream_content(url, timeout=CALL_SECONDS):
                data += chunk
                if len(data) > max_bytes:
                    return None
        except (OSError, ClientError) as error:
            raise self._away(error) from None
        return bytes(data)

    # ------------------------------------------------------------------------------------ what comes back

    def _result(self, status: int, body: bytes) -> Any:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, Mapping) or "ok" not in answer:
            raise TransportUnavailable("Telegram answered with something that is no JSON")
        if answer["ok"] is True and HTTPStatus.OK <= status <= HTTPStatus.IM_USED:
            return answer.get("result")
        said = self._hidden(str(answer.get("description") or f"HTTP {status}"))
        parameters = answer.get("parameters")
        raise _error(status, QUOTED.sub("…", said), parameters if isinstance(parameters, Mapping) else {})

    def _away(self, error: Exception) -> TransportUnavailable:
        said = getattr(error, "message", "") or str(error)
        return TransportUnavailable(f"Telegram cannot be reached ({self._hidden(f'{type(error).__name__}: {said}')})")

    def _hidden(self, said: str) -> str:
        return said.replace(self._token, HIDDEN)[:LONGEST_TEXT]


def _form(fields: Mapping[str, Any]) -> BytesPayload:
    """The body that aiogram makes of the same fields: what is not there is left out, and what is no text is JSON."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items() if value is not None}
    body = URL.build(query={name: text for name, text in texts.items() if text}).raw_query_string  # urlencode takes five times as long
    return BytesPayload(body.encode(), content_type="application/x-www-form-urlencoded")


def _error(status: int, said: str, parameters: Mapping[str, Any]) -> BotError:
    """What an answer that is no success comes to."""
    text = said.casefold()
    seconds = _whole(parameters.get("retry_after"))
    if seconds or status in TOO_MANY:
        seconds = seconds or _told_to_wait(said)
        return Pause(f"Telegram asks to wait {seconds} s", seconds=float(seconds))
    if moved := _whole(parameters.get("migrate_to_chat_id")):
        return ChatMoved(moved)
    match status:
        case HTTPStatus.UNAUTHORIZED:
            return Unauthorized(f"TELEGRAM_TOKEN is refused by Telegram: {said}; ask @BotFather for the right one")
        case HTTPStatus.FORBIDDEN:
            return Undeliverable(said)
        case HTTPStatus.CONFLICT:
            return Conflict(text)
        case HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return Refused("too large")
        case HTTPStatus.BAD_REQUEST | HTTPStatus.NOT_FOUND if any(word in text for word in GONE):
            return Undeliverable(said)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return TransportUnavailable(f"Telegram has an error of its own ({said})")
    return Refused(text)


def _told_to_wait(said: str) -> int:
    """The seconds that the text tells: the field for them is not always there."""
    told = WAIT.search(said)
    return int(told[1]) if told else UNTOLD_WAIT


def _whole(value: Any) -> int:
    """The whole number of a field, not less than what it says; 0 where it says none."""
    try:
        return math.ceil(float(value))
    except (ValueError, TypeError, OverflowError):
        return 0
