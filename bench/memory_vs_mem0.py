"""This memory beside mem0 on the same scripted runs, both really run: `python -m bench.memory_vs_mem0 --mem0 PYTHON`.

PYTHON is the interpreter of an environment that has mem0, which is no dependency of the bot:
`python -m venv mem0 && mem0/bin/pip install mem0ai`, then `--mem0 mem0/bin/python`. Without it only this memory's column is shown.

Both talk to one stand-in for a model server on loopback. It is told what is to be found in each message, and says it in the form that
the prompt before it asks for (mem0's `{"memory": [{"text": …}]}`, ours), so that what differs is what each memory makes of it.
"""

import argparse
import asyncio
import json
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from bot import ExtractOptions, MemoryOptions
from bot.testing import TestBot, create_test_bot
from tests.standins.embedding_server import EmbeddingServer
from tests.standins.model_server import says

USER = "telegram:123"
CANARY = "CANARIO8213"
FOUND = {  # what is to be found in a message: in Spanish, and in English for a model that nobody told which language to write
    "Vivo en Bogotá": ("Vive en Bogotá", "Lives in Bogotá"),
    "Me mudé a Medellín": ("Vive en Medellín", "Lives in Medellín"),
    f"Mi gato se llama {CANARY}": (f"Su gato se llama {CANARY}", f"Has a cat called {CANARY}"),
    "Tengo un gato": ("Tiene un gato", "Has a cat"),
}
SPELLINGS = ("Vive en Bogotá", "vive en bogotá.", "Vive  en Bogotá", "VIVE EN BOGOTÁ", "¡Vive en Bogotá!")
OUR_PROMPT, MEM0S_PROMPT = "You find durable facts", "You are a Memory Extractor"
ASKS_FOR_THE_LANGUAGE = re.compile(r"in the language of the message|SAME LANGUAGE", re.IGNORECASE)
OPTIONS = MemoryOptions(auto_extract=ExtractOptions(debounce_ms=600_000, max_calls_per_day=1000), resolve=True)


# ---------------------------------------------------------------------------------------------- the model


class Model:
    """Answers each extraction by script, and keeps what it was sent. `wraps` puts words around the JSON; `slow` is in seconds."""

    def __init__(self, *, wraps: str = "{}", slow: float = 0.0, spellings: bool = False, obeys_language: bool = False) -> None:
        self.sent: list[str] = []
        self._wraps, self._slow, self._spellings, self._obeys_language = wraps, slow, spellings, obeys_language

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One call: streamed where that is asked for."""
        body = await request.json()
        messages = [str(message["content"]) for message in body["messages"]]
        self.sent.append(json.dumps(messages, ensure_ascii=False))
        extracts = any(prompt in messages[0] for prompt in (OUR_PROMPT, MEM0S_PROMPT))
        if extracts:
            await asyncio.sleep(self._slow)
        text = self._extraction(messages) if extracts else "Hola."
        if body.get("stream"):
            return await says(text)(request, body)
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return web.json_response(
            {"id": "x", "object": "chat.completion", "created": 0, "model": "standin", "choices": [choice], "usage": usage}
        )

    def _extraction(self, messages: Sequence[str]) -> str:
        mem0 = MEM0S_PROMPT in messages[0]
        new = messages[1].split("## New Messages")[-1].split("## Observation")[0] if mem0 else messages[1].split("The messages of")[-1]
        spanish = not self._obeys_language or bool(ASKS_FOR_THE_LANGUAGE.search(" ".join(messages[:2])))
        found = [pair[0 if spanish else 1] for said, pair in FOUND.items() if said in new]
        if self._spellings and found:
            found = [SPELLINGS[len(self.sent) % len(SPELLINGS)]]
        plain = json.dumps(_as_mem0(found) if mem0 else _as_ours(found, messages[1]), ensure_ascii=False)
        again = len(messages) > 2  # asked once more, with what was wrong: a model then does as it is told
        return plain if again else self._wraps.replace("{}", plain) if "{}" in self._wraps else _in_words(self._wraps, mem0=mem0)


def _as_mem0(found: Sequence[str]) -> dict[str, Any]:
    return {"memory": [{"id": str(n), "text": text, "attributed_to": "user"} for n, text in enumerate(found)]}


def _as_ours(found: Sequence[str], prompt: str) -> dict[str, Any]:
    """A city takes the place of the other where the prompt shows what is held, with its id."""
    old = re.search(r'"id": "(m\d+)", "fact": "Vive en Bogotá"', prompt)
    if old and "Vive en Medellín" in found:
        return {"facts": [], "replacements": [{"id": old[1], "fact": "Vive en Medellín"}]}
    return {"facts": list(found), "replacements": []}


def _in_words(words: str, *, mem0: bool) -> str:
    example = _as_mem0(["Odia a su jefe"]) if mem0 else _as_ours(["Odia a su jefe"], "")
    return words.replace("EXAMPLE", json.dumps(example, ensure_ascii=False))


@asynccontextmanager
async def served(model: Model) -> AsyncIterator[str]:
    """The model and an embedder on loopback; the address that OPENAI_BASE_URL would be."""
    app = web.Application(client_max_size=1 << 24)
    app.router.add_post("/v1/chat/completions", model.answer)
    app.router.add_post("/v1/embeddings", EmbeddingServer().answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


# ---------------------------------------------------------------------------------------------- the two sides


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a side holds after a run, the files that hold the canary, and whether the model was sent it after the erasure."""

    held: list[str]
    files: list[str]
    sent_again: bool


async def ours(way: str, model: Model, texts: Sequence[str], folder: Path, url: str) -> list[str]:
    """The whole bot over a SQLite file, its model reached by HTTP, as it is run; what it remembers."""
    settings = {"BOT_PROVIDER": "openai", "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "BOT_DATA_DIR": str(folder)}
    async with create_test_bot(memory=OPTIONS, settings=settings, database_url=f"sqlite:///{folder / 'bot.db'}") as bot:
        await OUR_WAYS[way](bot, texts)
        return await bot.ai.memory(USER)


async def _several_at_once(bot: TestBot, texts: Sequence[str]) -> None:
    await asyncio.gather(*(bot.ai.extract_memory(USER, text, "") for text in texts))  # a call each: the debounce would make one of all


async def _one_by_one(bot: TestBot, texts: Sequence[str]) -> None:
    for text in texts:
        await bot.say(text, user=USER)
        await bot.ai.idle()


async def _erased_under_way(bot: TestBot, texts: Sequence[str]) -> None:
    adding = asyncio.create_task(_several_at_once(bot, texts))
    await asyncio.sleep(0.5)
    await bot.delete_subject(USER)
    await adding


async def _erased_then_goes_on(bot: TestBot, texts: Sequence[str]) -> None:
    await _one_by_one(bot, texts[:-1])
    assert await bot.ai.memory(USER)
    await bot.say("/forget_me", user=USER)
    await bot.say("sí", user=USER)
    await _one_by_one(bot, texts[-1:])


OUR_WAYS: Mapping[str, Callable[[TestBot, Sequence[str]], Awaitable[None]]] = {
    "several_at_once": _several_at_once,
    "one_by_one": _one_by_one,
    "erased_under_way": _erased_under_way,
    "erased_then_goes_on": _erased_then_goes_on,
}


@dataclass(frozen=True, slots=True)
class Mem0:
    """The interpreter that has mem0."""

    python: str

    async def run(self, way: str, model: Model, texts: Sequence[str], folder: Path, url: str) -> list[str]:
        """A child process; what it remembers."""
        script = Path(__file__).with_name("mem0_side.py")
        process = await asyncio.create_subprocess_exec(
            *(self.python, str(script), way, url, str(folder)),
            cwd=folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(json.dumps(list(texts)).encode()), 300)
        if process.returncode:
            raise SystemExit(f"mem0 ended with {process.returncode}:\n{err.decode()[-2000:]}")
        return list(json.loads(out.decode().splitlines()[-1])["held"])

    def version(self) -> str:
        """The version that is installed there."""
        ask = [self.python, "-c", "from importlib.metadata import version; print(version('mem0ai'))"]
        return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()


Side = Callable[[str, Model, Sequence[str], Path, str], Awaitable[list[str]]]


def files_with_the_canary(folder: Path) -> list[str]:
    """By their raw bytes."""
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file() and CANARY.encode() in file.read_bytes())


async def outcome(side: Side, way: str, model: Model, texts: Sequence[str]) -> Outcome:
    """One run of one side in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with served(model) as url:
            held = await side(way, model, texts, folder, url)
        files = files_with_the_canary(folder)
    later = model.sent[next((n for n, sent in enumerate(model.sent) if texts[-1] in sent), len(model.sent)) :]
    return Outcome(held, files, any(CANARY in sent for sent in later))


# ---------------------------------------------------------------------------------------------- the runs

PROSE = "Sure! Here is what I found:\n{}\nLet me know if you need more."
EXAMPLE = "There is nothing to remember. If the person had complained, I would have answered EXAMPLE."


def _rows(result: Outcome) -> str:
    return f"{len(result.held)}" + (f" ({', '.join(dict.fromkeys(result.held))})" if 0 < len(result.held) < 10 else "")


def _canary(result: Outcome) -> str:
    return f"in files: {', '.join(result.files) or 'none'}; sent to the model again: {'yes' if result.sent_again else 'no'}"


Run = tuple[str, str, Callable[[], Model], Sequence[str], Callable[[Outcome], str]]
RUNS: Sequence[Run] = (
    ("50 restatements at once, the same words: facts", "several_at_once", Model, ["Vivo en Bogotá"] * 50, _rows),
    ("50 at once, in 5 spellings: facts", "several_at_once", lambda: Model(spellings=True), ["Vivo en Bogotá"] * 50, _rows),
    ("50 one by one, in 5 spellings: facts", "one_by_one", lambda: Model(spellings=True), ["Vivo en Bogotá"] * 50, _rows),
    ("a change of mind: facts", "one_by_one", Model, ["Vivo en Bogotá", "Me mudé a Medellín"], _rows),
    ("erased while the model is asked: facts afterwards", "erased_under_way", lambda: Model(slow=1.5), ["Vivo en Bogotá"], _rows),
    ("a canary, after erasure", "erased_then_goes_on", Model, [f"Mi gato se llama {CANARY}", "Hola de nuevo"], _canary),
    ("JSON with prose around it: facts", "one_by_one", lambda: Model(wraps=PROSE), ["Tengo un gato"], _rows),
    ("prose that quotes JSON and means none: facts", "one_by_one", lambda: Model(wraps=EXAMPLE), ["Qué calor hace"], _rows),
    (
        "a model that writes English unless asked for the language",
        "one_by_one",
        lambda: Model(obeys_language=True),
        ["Tengo un gato"],
        _rows,
    ),
)


async def main(python: str | None) -> None:
    """Print the table."""
    mem0 = Mem0(python) if python else None
    columns = ["this memory", *([f"mem0 {mem0.version()}"] if mem0 else [])]
    print(f"Python {platform.python_version()}, {platform.machine()}\n")
    print(f"| run | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    sides: list[Side] = [ours, *([mem0.run] if mem0 else [])]
    for what, way, model, texts, read in RUNS:
        cells = [read(await outcome(side, way, model(), texts)) for side in sides]
        print(f"| {what} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--mem0", metavar="PYTHON", help="an interpreter that can import mem0")
    sys.exit(asyncio.run(main(arguments.parse_args().mem0)))
