"""Telegram, measured over a stand-in on loopback: a flood within the limits, and the overhead beside a bare aiogram echo bot.

`python -m bench.telegram overhead` and `python -m bench.telegram flood` print what stands in docs/benchmarks.md.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from bench import scripted
from bot.settings import ROOT
from tests.standins.model_server import model_server, says
from tests.standins.ports import free_port
from tests.standins.telegram_server import TOKEN, Telegram, telegram_server

SECRET = "a-secret-of-the-bench"
QUESTION = "¿Cuánto tiempo se guardan mis datos?"
ECHO = """
import asyncio, sys
from aiogram import Bot, Dispatcher
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.webhook.aiohttp_server import SimpleRequestHandler
from aiohttp import web

token, base, port, secret = sys.argv[1:5]
dispatcher = Dispatcher()

@dispatcher.message()
async def echo(message):
    await message.answer(message.text)

async def main():
    bot = Bot(token, session=AiohttpSession(api=TelegramAPIServer.from_base(base)))
    if port == "0":
        await dispatcher.start_polling(bot, handle_signals=False)
    app = web.Application()
    SimpleRequestHandler(dispatcher, bot, secret_token=secret).register(app, "/hook")
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(port)).start()
    await asyncio.Event().wait()

asyncio.run(main())
"""


@asynccontextmanager
async def _child(*command: str, cwd: Path, env: Mapping[str, str]) -> Any:
    with (cwd / "child.log").open("wb") as log:
        everywhere = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        process = await asyncio.create_subprocess_exec(*command, cwd=cwd, env={**everywhere, **env}, stdout=log, stderr=log)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _sabio(folder: Path, url: str, port: int, **more: str) -> Any:
    env = {
        "HOME": str(folder),
        "TELEGRAM_TOKEN": TOKEN,
        "TELEGRAM_API_BASE": url,
        "BOT_HTTP_PORT": str(port or free_port()),
        "BOT_LOG_LEVEL": "WARNING",
        **({"TELEGRAM_WEBHOOK_URL": f"http://127.0.0.1:{port}/hook", "TELEGRAM_WEBHOOK_SECRET": SECRET} if port else {}),
        **more,
    }
    return _child(sys.executable, "-m", "bot", cwd=folder, env=env)


# ---------------------------------------------------------------------------------------------- overhead


async def _updates_a_second(server: Telegram, n: int, port: int) -> float:
    """Let n people ask once each; how many answers came a second, from the first to the last."""
    people = range(10_000, 10_000 + n)
    before = len(server.calls)
    begun = time.monotonic()
    if port:
        await _push(server, [server.message(QUESTION, user=user) for user in people], port)
    else:
        for user in people:
            await server.say(QUESTION, user=user)
    seen, answered = before, 0

    def all_answered() -> bool:
        """Looks at each call once: a server that counts all of them at every one takes the time of who is measured."""
        nonlocal seen, answered
        answered += sum(call.method == "sendMessage" for call in server.calls[seen:])
        seen = len(server.calls)
        return answered >= n

    await server.until(all_answered, seconds=300)
    for user in people:
        server.messages.pop(user, None)
    return n / (time.monotonic() - begun)


async def _push(server: Telegram, messages: list[dict[str, Any]], port: int) -> None:
    """Send updates to a webhook over 40 connections at once, as Telegram does."""
    headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET}
    waiting = iter(enumerate(messages, start=int(time.time() * 1000) % 10**9))
    async with aiohttp.ClientSession() as session:

        async def one() -> None:
            for number, message in waiting:
                while True:
                    async with session.post(
                        f"http://127.0.0.1:{port}/hook", json={"update_id": number, "message": message}, headers=headers
                    ) as r:
                        if r.status == 200:
                            break
                    await asyncio.sleep(0.05)

        await asyncio.gather(*(one() for _ in range(40)))


async def _ready(server: Telegram, port: int) -> None:
    for _ in range(1200):
        try:
            if port:
                await _push(server, [server.message(QUESTION, user=1)], port)
            else:
                await server.say(QUESTION, user=1)
            await server.until(lambda: server.texts(1), seconds=120)
            return
        except aiohttp.ClientError:
            await asyncio.sleep(0.1)


async def _rate(n: int, port: int, bot: Callable[[Path, str], Any]) -> float:
    """Updates that a bot answers a second: the best of three rounds."""
    async with telegram_server() as server:
        with tempfile.TemporaryDirectory() as folder:
            async with bot(Path(folder), server.url):
                await _ready(server, port)
                return max([await _updates_a_second(server, n, port) for _ in range(3)])


async def overhead(n: int) -> None:
    """All bots on the same stand-in, one after the other, by polling and by webhook.

    Sabio answers with a model that costs nothing, and without one, from what it retrieved: then that is a part of its work. In a
    round everyone asks once, so it has to last longer than the second in which a chat may get one message: n over the updates a second.
    """

    def echo(folder: Path, url: str) -> Any:
        return _child(sys.executable, "-c", ECHO, TOKEN, url, str(port), SECRET, cwd=folder, env={})

    def extractive(folder: Path, url: str) -> Any:
        return _sabio(folder, url, port, TELEGRAM_RATE="1000", BOT_PROVIDER="extractive")

    def with_model(folder: Path, url: str, *, extract: bool = False) -> Any:
        more = {"BOT_PROVIDER": "scripted", "BOT_MEMORY_AUTO_EXTRACT": str(extract).lower(), "PYTHONPATH": scripted.installed(folder)}
        return _sabio(folder, url, port, TELEGRAM_RATE="1000", BOT_APPEND_SOURCES="true", **more)

    bots: dict[str, Callable[[Path, str], Any]] = {
        "a scripted model": with_model,
        "one that also extracts facts": partial(with_model, extract=True),
        "no model": extractive,
    }
    print(f"| way | aiogram echo, updates/s | Sabio with {' | ratio | with '.join(bots)} | ratio |\n|---|---|{'---|---|' * len(bots)}")
    for way in ("polling", "webhook"):
        port = free_port() if way == "webhook" else 0
        bare = await _rate(n, port, echo)
        print(f"| {way} | {bare:.0f} |", end="", flush=True)
        for bot in bots.values():
            rate = await _rate(n, port, bot)
            print(f" {rate:.0f} | {rate / bare:.2f} |", end="", flush=True)
        print()


# ---------------------------------------------------------------------------------------------- flood


async def flood(chats: int, each: int) -> None:
    """Many chats at once, a model of 50 tokens a second, a stand-in that counts: each answered once, in order, within the limits."""
    words = [f"palabra{n} " for n in range(50)]

    async def act(request: Any, body: dict[str, Any]) -> Any:
        return await says(f"[{body['messages'][-1]['content']}] ", *words, every=0.02)(request, body)

    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(telegram_server())
        model = await stack.enter_async_context(model_server(act))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        more = {"OPENAI_BASE_URL": model.url, "BOT_MEMORY_AUTO_EXTRACT": "false", "BOT_APPEND_SOURCES": "false"}
        await stack.enter_async_context(_sabio(Path(folder), server.url, 0, **more))
        await _ready(server, 0)
        server.calls.clear()
        asked: dict[str, float] = {}
        people = range(100, 100 + chats)
        for n in range(each):
            for user in people:
                asked[f"{user}.{n}"] = time.monotonic()
                await server.say(f"{user}.{n}", user=user)
        await server.until(lambda: sum(call.method == "sendMessage" for call in server.calls) >= chats * each, seconds=600)
        took = time.monotonic() - min(asked.values())
    delays = sorted(call.at - asked[call.args["text"].split("]")[0][1:]] for call in server.calls if call.method == "sendMessage")
    order = all([text.split("]")[0] for text in server.texts(user)] == [f"[{user}.{n}" for n in range(each)] for user in people)
    cuts = statistics.quantiles(delays, n=100)
    print(f"{chats} chats × {each} messages: {len(delays)} answers in {took:.1f} s, each once and in order: {order}")
    print(f"delay of the whole answer: median {cuts[49]:.1f} s, 95 % {cuts[94]:.1f} s, most {delays[-1]:.1f} s")
    busiest = max(server.busiest(seconds=0.999, chat=user) for user in people)
    drafts = sum(call.method == "sendMessageDraft" for call in server.calls)
    print(f"most in any second: {server.busiest(seconds=0.999)} in all, {busiest} to one chat; {drafts} drafts")


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["overhead", "flood"], default="overhead")
    parser.add_argument("-n", type=int, default=2000, help="updates of each round")
    parser.add_argument("--chats", type=int, default=200)
    parser.add_argument("--each", type=int, default=5)
    chosen = parser.parse_args()
    asyncio.run(overhead(chosen.n) if chosen.what == "overhead" else flood(chosen.chats, chosen.each))


if __name__ == "__main__":
    main()
