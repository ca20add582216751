"""The real bot as a child process between two servers on loopback: a stand-in for Telegram and a scripted model."""

import asyncio
import base64
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from bot.settings import ROOT
from tests.standins.model_server import Act, ModelServer, fails, model_server, says
from tests.standins.telegram_server import TOKEN, Telegram, telegram_server

START_SECONDS = 120.0  # on a machine that is busy with other tests
DOCUMENT = "# Envíos\n\n## Plazos\n\nEl envío a Canarias tarda nueve días hábiles.\n\n## Coste\n\nEl envío cuesta cinco euros.\n"


@dataclass(slots=True)
class Child:
    """The bot; its log is in a file."""

    process: asyncio.subprocess.Process
    log: Path

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop it; the exit code."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), 30)

    @property
    def said(self) -> str:
        """Its log so far."""
        return self.log.read_text(encoding="utf-8")

    async def logged(self, words: str, *, seconds: float = START_SECONDS) -> str:
        """Wait for words in its log; the log."""
        for _ in range(int(seconds * 20)):
            if words in self.said or self.process.returncode is not None:
                break
            await asyncio.sleep(0.05)
        assert words in self.said, self.said[-2000:]
        return self.said


@asynccontextmanager
async def child(folder: Path, url: str, *, name: str = "bot", **env: str) -> AsyncIterator[Child]:
    """The bot in a folder, talking to the server at `url`; killed at the end where it still runs."""
    log = folder / f"{name}.log"
    base = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "BOT_LOG_LEVEL": "DEBUG",
        "BOT_DOCUMENTS": "docs",
        "BOT_HTTP_PORT": "0",
        "TELEGRAM_TOKEN": TOKEN,
        "TELEGRAM_API_BASE": url,
    }
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "envios.md").write_text(DOCUMENT, encoding="utf-8")
    with log.open("ab") as file:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bot", cwd=folder, env={**base, **env}, stdin=asyncio.subprocess.DEVNULL, stdout=file, stderr=file
        )
    try:
        yield Child(process, log)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def act(request: web.Request, body: dict[str, Any]) -> Any:
    """The model: it says what the last message asks of it, else `eco: ` and the message."""
    text = str(body["messages"][-1]["content"])
    if "image_url" in text:
        return _look(text)(request, body)
    if match := re.search(r"lento (\d+)", text):
        return says(*(f"palabra{n} " for n in range(int(match[1]))), every=0.02)(request, body)
    if "largo" in text:
        code = "\n".join(f"    valor_{n} = {n}" for n in range(400))
        return says(f"Mira el código:\n\n```python\n{code}\n```\n\nEso es todo.")(request, body)
    if "negrita" in text:
        return says("Esto va en **negrita**", " y `código`.")(request, body)
    if "cita" in text:
        return says("Tarda nueve días hábiles [1].")(request, body)
    if "REFUSE" in text:
        return says("**REFUSE** esto")(request, body)
    return says(f"eco: {text}")(request, body)


def _look(text: str) -> Act:
    blind = base64.b64encode(b"\xff\xd8\xff\xe0 BLIND").decode() in text
    return fails(400, "image_url is only supported by certain models") if blind else says("un gato naranja")


@dataclass(slots=True)
class World:
    """All three."""

    telegram: Telegram
    model: ModelServer
    bot: Child
    folder: Path

    async def get(self, path: str) -> tuple[int, Any]:
        """What the bot's own HTTP server says."""
        port = re.search(r"serving HTTP on port (\d+)", await self.bot.logged("serving HTTP"))
        assert port is not None
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port[1]}{path}") as response:
            return response.status, await response.json()


@asynccontextmanager
async def world(folder: Path, *, hears_all: bool = False, enforce: bool = False, **env: str) -> AsyncIterator[World]:
    """The bot, connected."""
    async with AsyncExitStack() as stack:
        telegram = await stack.enter_async_context(telegram_server(hears_all=hears_all, enforce=enforce))
        model = await stack.enter_async_context(model_server(act))
        settings = {"OPENAI_BASE_URL": model.url, "BOT_ADMINS": "telegram:98,telegram:99", "BOT_MEMORY_AUTO_EXTRACT": "false", **env}
        bot = await stack.enter_async_context(child(folder, telegram.url, **settings))
        await bot.logged("connected as")
        yield World(telegram, model, bot, folder)
