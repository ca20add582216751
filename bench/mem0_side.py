"""What `bench.memory_vs_mem0` runs under an interpreter that has mem0: `python mem0_side.py RUN URL FOLDER` prints what became of it.

Imports nothing of the bot's, so that mem0 can live in an environment of its own.
"""

import asyncio
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

USER = "telegram:123"


def memory_of(url: str, folder: Path) -> Any:
    """mem0's own AsyncMemory: its OpenAI clients on loopback, Qdrant and the history in files under `folder`, nothing sent home."""
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "home"), "OPENAI_API_KEY": "none"}
    os.environ.pop("OPENROUTER_API_KEY", None)
    (folder / "home").mkdir(parents=True, exist_ok=True)
    model = {"model": "standin", "openai_base_url": url, "api_key": "none"}
    store = {"collection_name": "facts", "path": str(folder / "qdrant"), "embedding_model_dims": 8, "on_disk": True}
    return importlib.import_module("mem0").AsyncMemory.from_config(
        {
            "llm": {"provider": "openai", "config": model},
            "embedder": {"provider": "openai", "config": {**model, "embedding_dims": 8}},
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": str(folder / "history.db"),
        }
    )


async def held(memory: Any) -> list[str]:
    """What it remembers of the person."""
    found = await memory.get_all(filters={"user_id": USER}, top_k=1000)
    return sorted(item["memory"] for item in found["results"])


async def say(memory: Any, text: str) -> None:
    """Let it extract from one message of the person."""
    await memory.add([{"role": "user", "content": text}], user_id=USER)


async def several_at_once(memory: Any, texts: list[str]) -> None:
    """Messages side by side."""
    await asyncio.gather(*(say(memory, text) for text in texts))


async def one_by_one(memory: Any, texts: list[str]) -> None:
    """Messages in order."""
    for text in texts:
        await say(memory, text)


async def erased_under_way(memory: Any, texts: list[str]) -> None:
    """All of the person's is deleted while the model is asked."""
    adding = asyncio.create_task(several_at_once(memory, texts))
    await asyncio.sleep(0.5)
    await memory.delete_all(user_id=USER)
    await adding


async def erased_then_goes_on(memory: Any, texts: list[str]) -> None:
    """All of the person's is deleted before the last message."""
    await one_by_one(memory, texts[:-1])
    assert await held(memory)
    await memory.delete_all(user_id=USER)
    await one_by_one(memory, texts[-1:])


WAYS = {way.__name__: way for way in (several_at_once, one_by_one, erased_under_way, erased_then_goes_on)}


async def main(way: str, url: str, folder: Path) -> None:
    """One run; the messages come as JSON on standard input."""
    memory = memory_of(url, folder)
    await WAYS[way](memory, json.load(sys.stdin))
    facts = await held(memory)
    memory.close()
    print(json.dumps({"held": facts, "version": importlib.import_module("importlib.metadata").version("mem0ai")}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
