"""The one HTTP server of the process: whether it lives, whether it is ready, and the routes that platforms add."""

import asyncio
import contextlib
import errno
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.errors import BotError, ConfigurationError

if TYPE_CHECKING:
    from aiohttp import web

Check = Callable[[], Awaitable[None]]
"""Returns where a part of the process is ready, and raises where it is not."""

MAX_BODY = 1_048_576  # bytes; a platform's webhook stays far below
CHECK_SECONDS = 2.0
GRACE_SECONDS = 5.0
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Route:
    """A path that a platform answers at: `handler` takes an aiohttp Request and returns its Response."""

    method: str
    path: str
    handler: "Callable[[web.Request], Awaitable[web.StreamResponse]]"


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens: the port is the real one, also where 0 was asked for."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """As a client writes it, without a slash at the end."""
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"


@contextlib.asynccontextmanager
async def serve(
    host: str,
    port: int,
    *,
    routes: Sequence[Route] = (),
    checks: Mapping[str, Check] | None = None,
    max_body: int = MAX_BODY,
    check_seconds: float = CHECK_SECONDS,
    grace_seconds: float = GRACE_SECONDS,
) -> AsyncIterator[Address]:
    """Serve `/healthz`, `/readyz` and `routes` meanwhile; requests under way get `grace_seconds` to end.

    A body over `max_body` bytes is refused with 413. Raises ConfigurationError where the address cannot be listened at.
    """
    from aiohttp import web

    app = web.Application(client_max_size=max_body)
    app.on_response_prepare.append(_no_banner)
    app.router.add_get("/healthz", _alive)
    app.router.add_get("/readyz", _readiness(checks or {}, check_seconds))
    for route in routes:
        app.router.add_route(route.method, route.path, route.handler)
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=grace_seconds)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except (OSError, OverflowError, UnicodeError) as error:
            raise _refusal(host, port, error) from error
        bound = runner.addresses[0]
        log.info("serving HTTP on port %d", bound[1])
        yield Address(str(bound[0]), int(bound[1]))
    finally:
        await runner.cleanup()


async def readiness(checks: Mapping[str, Check], seconds: float) -> Mapping[str, str]:
    """What each check says, by name: `ok`, `TIMEOUT`, the code of a BotError, or `ERROR`; never the text of an exception.

    They run side by side. One that outlives `seconds` is cancelled and not waited for.
    """
    tasks = {name: asyncio.ensure_future(check()) for name, check in checks.items()}
    if tasks:
        await asyncio.wait(tasks.values(), timeout=seconds)
    return {name: _outcome(task) for name, task in tasks.items()}


def _outcome(task: "asyncio.Future[None]") -> str:
    if not task.done():
        task.cancel()
        task.add_done_callback(lambda late: late.cancelled() or late.exception())  # whatever it still says is of no use
        return "TIMEOUT"
    if task.cancelled():
        return "ERROR"
    error = task.exception()
    return "ok" if error is None else error.code if isinstance(error, BotError) else "ERROR"


async def _alive(request: "web.Request") -> "web.Response":
    return _json({"status": "ok"}, 200)


def _readiness(checks: Mapping[str, Check], seconds: float) -> "Callable[[web.Request], Awaitable[web.StreamResponse]]":
    async def ready(request: "web.Request") -> "web.Response":
        said = await readiness(checks, seconds)
        is_ready = all(word == "ok" for word in said.values())
        return _json({"status": "ready" if is_ready else "not ready", "checks": said}, 200 if is_ready else 503)

    return ready


def _json(body: Mapping[str, object], status: int) -> "web.Response":
    from aiohttp import web

    return web.Response(text=json.dumps(body), status=status, content_type="application/json", headers={"Cache-Control": "no-store"})


async def _no_banner(request: "web.Request", response: "web.StreamResponse") -> None:
    response.headers.pop("Server", None)  # which versions run here is nobody's business


def _refusal(host: str, port: int, error: Exception) -> ConfigurationError:
    number = error.errno if isinstance(error, OSError) else None
    why = "it is taken" if number == errno.EADDRINUSE else getattr(error, "strerror", None) or str(error)
    if isinstance(error, socket.gaierror | UnicodeError) or number == errno.EADDRNOTAVAIL:
        return ConfigurationError(f"BOT_HTTP_HOST={host!r} cannot be listened at: {why}; use 127.0.0.1, or 0.0.0.0 for every address")
    return ConfigurationError(f"BOT_HTTP_PORT={port} cannot be listened at on {host}: {why}; choose another, or 0 for any that is free")
