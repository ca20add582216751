"""A stand-in for the Bot API on loopback: real HTTP, long polling with offsets, webhooks, the real limits and error texts, faults."""

import asyncio
import contextlib
import itertools
import json
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

TOKEN = "123456789:AAF-stand_in_token_0123456789abcdefghi"
BOT = {"id": 123456789, "is_bot": True, "first_name": "Sabio", "username": "sabio_test_bot"}
COUNTED = (
    "sendMessage",
    "editMessageText",
    "sendMessageDraft",
    "sendDocument",
    "sendRichMessage",
    "deleteMessage",
    "editMessageReplyMarkup",
)
JSON_FIELDS = (
    "entities",
    "reply_parameters",
    "reply_markup",
    "link_preview_options",
    "commands",
    "scope",
    "allowed_updates",
    "rich_message",
)


class ApiError(Exception):
    """An answer of the Bot API that is no success."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.parameters = parameters


@dataclass
class Call:
    """A call that was made: when, which, with what, and the number of the message that came of it."""

    at: float
    method: str
    args: dict[str, Any]
    message_id: int = 0


@dataclass
class Telegram:
    """The server. `say` and its like make updates; `calls` is what the bot did; `messages[chat]` is what stands in a chat."""

    hears_all: bool = False
    enforce: bool = False  # answer 429 above the limits
    url: str = ""
    calls: list[Call] = field(default_factory=list)
    messages: dict[int, dict[int, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    drafts: dict[int, str] = field(default_factory=dict)
    admins: dict[int, list[int]] = field(default_factory=dict)
    blocked: set[int] = field(default_factory=set)
    migrated: dict[int, int] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    webhook: dict[str, Any] = field(default_factory=dict)
    webhook_answers: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    faults: dict[str, deque[str]] = field(default_factory=lambda: defaultdict(deque))
    _updates: deque[dict[str, Any]] = field(default_factory=deque)
    _update_ids: Iterable[int] = field(default_factory=lambda: itertools.count(700_000))
    _message_ids: Iterable[int] = field(default_factory=lambda: itertools.count(1))
    _more: asyncio.Condition = field(default_factory=asyncio.Condition)
    _poller: asyncio.Future[None] | None = None
    _did: asyncio.Condition = field(default_factory=asyncio.Condition)

    # ------------------------------------------------------------------------------------ what people do

    async def update(self, **content: Any) -> int:
        """Queue an update as it is; its number."""
        number = next(self._update_ids)  # type: ignore[call-overload]
        async with self._more:
            self._updates.append({"update_id": number, **content})
            self._more.notify_all()
        return int(number)

    async def at_once(self, *messages: Mapping[str, Any]) -> None:
        """Queue messages that are fetched together, as those of an album are."""
        async with self._more:
            self._updates.extend({"update_id": next(self._update_ids), "message": one} for one in messages)  # type: ignore[call-overload]
            self._more.notify_all()

    def message(self, text: str | None = None, *, user: int = 1, chat: int | None = None, lang: str = "es", **more: Any) -> dict[str, Any]:
        """A message as the API describes one. A negative chat is a group (a supergroup from -100… on)."""
        chat_id = user if chat is None else chat
        kind = "private" if chat_id > 0 else "supergroup" if chat_id < -(10**9) else "group"
        body: dict[str, Any] = {
            "message_id": next(self._message_ids),  # type: ignore[call-overload]
            "date": int(time.time()),
            "chat": {"id": chat_id, "type": kind, **({"first_name": "Ana"} if kind == "private" else {"title": "Amigos"})},
            "from": {"id": user, "is_bot": False, "first_name": f"User{user}", "language_code": lang},
        }
        if text is not None:
            body["text"] = text
            if text.startswith("/"):
                body["entities"] = [{"type": "bot_command", "offset": 0, "length": len(text.split()[0])}]
        return {**body, **more}

    async def say(self, text: str | None = None, **about: Any) -> dict[str, Any]:
        """Somebody writes; the message."""
        body = self.message(text, **about)
        await self.update(message=body)
        return body

    async def edit(self, message: Mapping[str, Any], text: str) -> None:
        """Somebody edits what they wrote."""
        await self.update(edited_message={**message, "text": text, "edit_date": int(time.time())})

    async def press(self, message: Mapping[str, Any], label: str, *, user: int = 1, lang: str = "es") -> None:
        """Somebody presses a button under a message of the bot."""
        rows = message["reply_markup"]["inline_keyboard"]
        data = next(button["callback_data"] for row in rows for button in row if label in button["text"])
        person = {"id": user, "is_bot": False, "first_name": "Ana", "language_code": lang}
        await self.update(
            callback_query={"id": str(time.time_ns()), "from": person, "chat_instance": "1", "message": dict(message), "data": data}
        )

    # ------------------------------------------------------------------------------------ what the bot did

    def sent(self, chat: int, *, method: str = "sendMessage") -> list[dict[str, Any]]:
        """The arguments of the calls to a chat, in order."""
        return [call.args for call in self.calls if call.method == method and call.args.get("chat_id") == chat]

    def texts(self, chat: int) -> list[str]:
        """What stands in a chat from the bot now."""
        return [message["text"] for message in self.messages[chat].values()]

    async def until(self, true: Callable[[], Any], *, seconds: float = 20.0) -> Any:
        """Wait until something is so; fails with what was done where it does not come to be."""
        end = time.monotonic() + seconds
        while not (value := true()):
            left = end - time.monotonic()
            if left <= 0:
                raise AssertionError(f"it did not come to be: {[(call.method, call.args) for call in self.calls[-6:]]}")
            async with self._did:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._did.wait(), min(left, 0.2))
        return value

    async def answer(self, chat: int, n: int = 1, *, seconds: float = 20.0) -> str:
        """The n-th text that stands in a chat, once it is there."""
        await self.until(lambda: len(self.texts(chat)) >= n, seconds=seconds)
        return self.texts(chat)[n - 1]

    def busiest(self, *, seconds: float, chat: int | None = None) -> int:
        """The most messages, edits and drafts in any window of so many seconds, to one chat or to all."""
        times = [c.at for c in self.calls if c.method in COUNTED and (chat is None or c.args.get("chat_id") == chat)]
        window: deque[float] = deque()
        most = 0
        for at in times:
            window.append(at)
            while window[0] <= at - seconds:
                window.popleft()
            most = max(most, len(window))
        return most

    # ------------------------------------------------------------------------------------ the API

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One call of a method."""
        method, args = request.match_info["method"], await _arguments(request)
        if request.match_info["token"] != TOKEN:
            return _error(ApiError(401, "Unauthorized"))
        fault = self.faults[method].popleft() if self.faults[method] else ""
        if fault == "drop_before":
            return _dropped(request)
        if fault == "html":
            return web.Response(status=502, text="<html><body><h1>502 Bad Gateway</h1></body></html>", content_type="text/html")
        try:
            if fault:
                code, _, rest = fault.partition(" ")
                raise ApiError(
                    int(code), rest, **({"retry_after": int(rest.split()[-1])} if code == "429" and rest.split()[-1].isdigit() else {})
                )
            result = await self._run(method, args)
        except ApiError as error:
            return _error(error)
        finally:
            async with self._did:
                self._did.notify_all()
        return _dropped(request) if fault == "drop_after" else web.json_response({"ok": True, "result": result})

    async def _run(self, method: str, args: dict[str, Any]) -> Any:
        if self.enforce and method in COUNTED:
            self._limit(args["chat_id"])
        call = Call(time.monotonic(), method, args)
        run = getattr(self, f"_do_{method}", None)
        if run is None:
            raise ApiError(404, "Not Found: method not found")
        if "chat_id" in args:
            self._reachable(args["chat_id"])
        result = await run(args)
        call.message_id = result.get("message_id", 0) if isinstance(result, dict) else 0
        if method != "getUpdates":
            self.calls.append(call)
        return result

    def _limit(self, chat: int) -> None:
        now = time.monotonic()
        for most, seconds, where in ((30, 1.0, None), (1, 0.95, chat), (20, 60.0, chat if chat < 0 else 0)):
            mine = [
                c for c in self.calls if c.method in COUNTED and c.at > now - seconds and (where is None or c.args.get("chat_id") == where)
            ]
            if len(mine) >= most:
                raise ApiError(429, "Too Many Requests: retry after 1", retry_after=1)

    def _reachable(self, chat: int) -> None:
        if chat in self.blocked:
            raise ApiError(403, "Forbidden: bot was blocked by the user")
        if chat in self.migrated:
            raise ApiError(400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=self.migrated[chat])

    async def _do_getMe(self, args: dict[str, Any]) -> Any:  # noqa: N802
        return {**BOT, "can_read_all_group_messages": self.hears_all}

    async def _do_getUpdates(self, args: dict[str, Any]) -> Any:  # noqa: N802
        if self.webhook:
            raise ApiError(
                409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
            )
        if self._poller is not None and not self._poller.done():
            self._poller.set_result(None)
        mine = self._poller = asyncio.get_running_loop().create_future()
        offset = int(args.get("offset") or 0)
        self.offsets.append(offset)
        until = time.monotonic() + float(args.get("timeout") or 0)
        async with self._more:
            while self._updates and self._updates[0]["update_id"] < offset:
                self._updates.popleft()
            while not self._updates and (left := until - time.monotonic()) > 0:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._more.wait(), min(left, 0.25))
                if mine.done():
                    raise ApiError(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")
            return [*itertools.islice(self._updates, int(args.get("limit") or 100))]

    async def _do_setWebhook(self, args: dict[str, Any]) -> Any:  # noqa: N802
        self.webhook = args
        return True

    async def _do_deleteWebhook(self, args: dict[str, Any]) -> Any:  # noqa: N802
        self.webhook = {}
        return True

    async def _do_sendMessage(self, args: dict[str, Any]) -> Any:  # noqa: N802
        _check_text(args)
        if args.get("message_thread_id") in (1, 404):
            raise ApiError(400, "Bad Request: message thread not found")
        return self._put(args)

    async def _do_sendRichMessage(self, args: dict[str, Any]) -> Any:  # noqa: N802
        return self._put({**args, "text": args["rich_message"]["markdown"]})

    async def _do_sendDocument(self, args: dict[str, Any]) -> Any:  # noqa: N802
        return self._put({**args, "text": f"[{args['document'][0]}]"})

    async def _do_editMessageText(self, args: dict[str, Any]) -> Any:  # noqa: N802
        _check_text(args)
        there = self.messages[args["chat_id"]].get(int(args["message_id"]))
        if there is None:
            raise ApiError(400, "Bad Request: message to edit not found")
        same = all(there.get(name) == args.get(name) for name in ("text", "entities", "reply_markup"))
        if same:
            raise ApiError(
                400,
                "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current"
                " content and reply markup of the message",
            )
        there.update({name: args.get(name) for name in ("text", "entities", "reply_markup")})
        return there

    async def _do_editMessageReplyMarkup(self, args: dict[str, Any]) -> Any:  # noqa: N802
        self.messages[args["chat_id"]][int(args["message_id"])].pop("reply_markup", None)
        return True

    async def _do_deleteMessage(self, args: dict[str, Any]) -> Any:  # noqa: N802
        if self.messages[args["chat_id"]].pop(int(args["message_id"]), None) is None:
            raise ApiError(400, "Bad Request: message to delete not found")
        return True

    async def _do_sendMessageDraft(self, args: dict[str, Any]) -> Any:  # noqa: N802
        if args["chat_id"] < 0:
            raise ApiError(400, "Bad Request: drafts can be sent to private chats only")
        if not int(args["draft_id"]):
            raise ApiError(400, "Bad Request: DRAFT_ID_INVALID")
        if args.get("text"):
            _check_text(args)
        self.drafts[args["chat_id"]] = args.get("text", "")
        return True

    async def _do_sendChatAction(self, args: dict[str, Any]) -> Any:  # noqa: N802
        return True

    async def _do_answerCallbackQuery(self, args: dict[str, Any]) -> Any:  # noqa: N802
        return True

    async def _do_setMyCommands(self, args: dict[str, Any]) -> Any:  # noqa: N802
        return True

    _do_setMyDescription = _do_setMyShortDescription = _do_setMyCommands  # noqa: N815

    async def _do_getChatAdministrators(self, args: dict[str, Any]) -> Any:  # noqa: N802
        people = self.admins.get(args["chat_id"], [])
        return [{"status": "administrator", "user": {"id": one, "is_bot": False, "first_name": "Admin"}} for one in people]

    async def _do_getFile(self, args: dict[str, Any]) -> Any:  # noqa: N802
        data = self.files[args["file_id"]]
        if len(data) > 20 << 20:
            raise ApiError(400, "Bad Request: file is too big")
        return {"file_id": args["file_id"], "file_unique_id": "u", "file_size": len(data), "file_path": f"documents/{args['file_id']}"}

    def _put(self, args: dict[str, Any]) -> dict[str, Any]:
        number = next(self._message_ids)  # type: ignore[call-overload]
        kept = ("text", "entities", "reply_markup", "reply_parameters", "message_thread_id")
        chat = {"id": args["chat_id"], "type": "private" if args["chat_id"] > 0 else "supergroup"}
        body = {"message_id": number, "date": int(time.time()), "chat": chat, "from": BOT, **{k: args[k] for k in kept if k in args}}
        self.messages[args["chat_id"]][number] = body
        self.drafts.pop(args["chat_id"], None)
        return body

    async def download(self, request: web.Request) -> web.Response:
        """A file."""
        return web.Response(body=self.files[request.match_info["name"]])

    # ------------------------------------------------------------------------------------ webhooks

    async def push(self) -> None:
        """Send what waits to the webhook, each until it is taken."""
        async with aiohttp.ClientSession() as session:
            while self._updates:
                headers = {"X-Telegram-Bot-Api-Secret-Token": self.webhook.get("secret_token", "")}
                try:
                    async with session.post(self.webhook["url"], json=self._updates[0], headers=headers) as response:
                        status = response.status
                except aiohttp.ClientError:
                    status = 0
                self.webhook_answers.append(status)
                if status == 200:
                    self._updates.popleft()
                else:
                    await asyncio.sleep(0.2)


def _check_text(args: Mapping[str, Any]) -> None:
    text = args.get("text") or ""
    raw = text.encode("utf-16-le")
    if not text.strip():
        raise ApiError(400, "Bad Request: message text is empty")
    if len(raw) // 2 > 4096:
        raise ApiError(400, "Bad Request: message is too long")
    for entity in args.get("entities") or ():
        start, end = entity["offset"] * 2, (entity["offset"] + entity["length"]) * 2
        try:
            raw[start:end].decode("utf-16-le")
        except UnicodeDecodeError:
            end = len(raw) + 1
        if end > len(raw) or start >= end or "REFUSE" in text:
            raise ApiError(400, "Bad Request: can't parse entities: entity is not valid")


async def _arguments(request: web.Request) -> dict[str, Any]:
    """The arguments of a call, whichever way they are sent: JSON, a form, or a form with files."""
    if request.content_type == "application/json":
        return dict(await request.json())
    args: dict[str, Any] = {}
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            args[name] = (value.filename, value.file.read())
        elif name in JSON_FIELDS:
            args[name] = json.loads(value)
        else:
            args[name] = int(value) if value.lstrip("-").isdigit() and name != "text" else value
    if isinstance(document := args.get("document"), str):
        args["document"] = args.pop(document.removeprefix("attach://"))
    return args


def _error(error: ApiError) -> web.Response:
    body: dict[str, Any] = {"ok": False, "error_code": error.code, "description": str(error)}
    return web.json_response({**body, "parameters": error.parameters} if error.parameters else body, status=error.code)


def _dropped(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


@asynccontextmanager
async def telegram_server(*, port: int = 0, **options: Any) -> AsyncIterator[Telegram]:
    """The server on a port of loopback, 0 for any that is free."""
    server = Telegram(**options)
    app = web.Application(client_max_size=64 << 20)
    app.router.add_route("*", "/bot{token}/{method}", server.handle)
    app.router.add_get("/file/bot{token}/documents/{name}", server.download)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
