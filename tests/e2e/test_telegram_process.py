"""Telegram and the process: how it starts, how it stops, what it survives."""

import asyncio
import io
from pathlib import Path

import aiohttp
import pytest

from tests.e2e.telegram_world import World, act, child, world
from tests.standins.model_server import model_server
from tests.standins.ports import free_port
from tests.standins.telegram_server import TOKEN, telegram_server

pytestmark = pytest.mark.timeout(300)  # each starts the bot, some several times, and a busy machine takes long for that
SECRET = "a-secret-of-the-webhook"


async def test_no_stop_loses_or_doubles_a_message(tmp_path: Path) -> None:
    """SIGTERM in the middle of answers, then SIGKILL: at the end each is answered once, in order."""
    async with telegram_server() as telegram, model_server(act) as model:
        env = {"OPENAI_BASE_URL": model.url, "BOT_MEMORY_AUTO_EXTRACT": "false"}
        for chat in range(1, 9):
            for text in ("hola", "lento 60", "adiós"):
                await telegram.say(text, user=chat)
        async with child(tmp_path, telegram.url, **env) as bot:
            await telegram.until(lambda: len([1 for chat in range(1, 9) if telegram.texts(chat)]) >= 4, seconds=120)
            assert await bot.stop() == 0
        done = sum(len(telegram.texts(chat)) for chat in range(1, 9))
        async with child(tmp_path, telegram.url, **env) as bot:
            await bot.logged("connected as")
            await asyncio.sleep(0.7)  # in the middle of an answer
            bot.process.kill()
        async with child(tmp_path, telegram.url, **env):
            await telegram.until(lambda: all(len(telegram.texts(chat)) >= 3 for chat in range(1, 9)), seconds=120)
            await asyncio.sleep(1.0)  # what would be doubled would come now

    assert done < 24
    for chat in range(1, 9):
        assert [text.split()[:2] for text in telegram.texts(chat)] == [["eco:", "hola"], ["palabra0", "palabra1"], ["eco:", "adiós"]]


async def test_a_wrong_token_stops_the_start_with_one_line(tmp_path: Path) -> None:
    """Exit code 2, the variable named, the token not."""
    async with telegram_server() as telegram:
        telegram.faults["getMe"].append("401 Unauthorized")
        async with child(tmp_path, telegram.url) as bot:
            assert await asyncio.wait_for(bot.process.wait(), 120) == 2

    assert "sabio: TELEGRAM_TOKEN is refused by Telegram" in bot.said
    assert TOKEN not in bot.said


async def test_telegram_may_be_down_at_the_start_and_another_may_poll(tmp_path: Path) -> None:
    """It is said in /readyz, tried again, and well in the end; a second poller is said aloud, and a webhook that was left is taken away."""
    port = free_port()
    async with model_server(act) as model, child(tmp_path, f"http://127.0.0.1:{port}", OPENAI_BASE_URL=model.url) as bot:
        here = World(None, model, bot, tmp_path)  # type: ignore[arg-type]
        await bot.logged("getMe did not work")
        status, down = await here.get("/readyz")
        async with telegram_server(port=port) as telegram:
            telegram.webhook = {"url": "https://example.org/old"}
            telegram.faults["getUpdates"].extend(
                ["409 Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"] * 50
            )
            await telegram.say("hola", user=1)
            await bot.logged("another process polls with the same token")
            conflict = (await here.get("/readyz"))[1]["checks"]["telegram"]
            telegram.faults["getUpdates"].clear()  # the other has stopped
            answer = await telegram.answer(1, seconds=60)
            ready = await here.get("/readyz")

    assert (status, down["checks"]["telegram"]) == (503, "TRANSPORT_UNAVAILABLE")
    assert conflict == "TELEGRAM_CONFLICT"
    assert answer.startswith("eco: hola")
    assert ready[0] == 200


async def test_a_webhook_takes_updates_once_and_only_with_the_secret(tmp_path: Path) -> None:
    """403 without it, 413 for too much, 400 for what is no JSON; what comes twice is answered once; what cannot be read is acknowledged."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/hook"
    env = {"TELEGRAM_WEBHOOK_URL": url, "TELEGRAM_WEBHOOK_SECRET": SECRET, "BOT_HTTP_PORT": str(port)}
    async with world(tmp_path, BOT_TRANSCRIBE_MODEL="whisper-1", BOT_VISION="true", **env) as here, aiohttp.ClientSession() as session:
        await here.telegram.until(lambda: here.telegram.webhook)
        headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET}

        async def post(**request: object) -> int:
            async with session.post(url, **request) as response:  # type: ignore[arg-type]
                return response.status

        update = {"update_id": 5, "message": here.telegram.message("hola", user=1)}
        answers = [
            await post(json=update),
            await post(json=update, headers={"X-Telegram-Bot-Api-Secret-Token": "x"}),
            await post(data=io.BytesIO(b"x" * 2_000_000), headers=headers),
            await post(data=b"{", headers=headers),
            await post(json={"update_id": 6, "message": 7}, headers=headers),
            await post(json=update, headers=headers),
            await post(json=update, headers=headers),
        ]
        await here.telegram.say("y otra", user=1)
        await here.telegram.push()
        await here.telegram.answer(1, 2)
        await _speak(here)
        await _show(here)

    assert answers == [403, 403, 413, 400, 200, 200, 200]
    assert [text.split("\n")[0] for text in here.telegram.texts(1)] == ["eco: hola", "eco: y otra"]
    assert here.telegram.webhook["secret_token"] == SECRET


async def _speak(here: World) -> None:
    """A voice note is fetched, written down by the model's server and answered; one that is too long is not fetched."""
    here.telegram.files["v1"] = b"OggS..."
    here.model.transcript = "cuánto cuesta el envío"
    await here.telegram.say(None, user=2, voice={"file_id": "v1", "duration": 3, "mime_type": "audio/ogg", "file_size": 7})
    await here.telegram.say(None, user=3, voice={"file_id": "v2", "duration": 9999, "mime_type": "audio/ogg", "file_size": 11 << 20})
    await here.telegram.push()

    assert (await here.telegram.answer(2)).startswith("eco: cuánto cuesta el envío")
    assert "10 MB" in await here.telegram.answer(3)
    assert [(data, model) for _, data, model in here.model.heard] == [(b"OggS...", "whisper-1")]


async def _show(here: World) -> None:
    """A photo is fetched and looked at by the model, and its caption answered; one that the model refuses gets a sentence."""
    here.telegram.files["p1"] = b"\xff\xd8\xff\xe0 a cat"
    here.telegram.files["p2"] = b"\xff\xd8\xff\xe0 BLIND"
    for user, name in ((4, "p1"), (5, "p2")):
        photo = [{"file_id": name, "file_unique_id": name, "width": 9, "height": 9, "file_size": 10}]
        await here.telegram.say(None, user=user, photo=photo, caption="¿qué animal es?")
    await here.telegram.push()
    answers = await here.telegram.answer(4), await here.telegram.answer(5)
    turn = next(body for body in here.model.requests if body["messages"][-1]["content"] == "¿qué animal es?")

    assert answers[0].startswith("eco: ¿qué animal es?")
    assert "no puede ver esa imagen" in answers[1]
    assert "un gato naranja" in turn["messages"][0]["content"]
