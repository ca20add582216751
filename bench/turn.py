"""The time that the bot adds to a turn beside the model's own, and what it is made of: `python -m bench.turn [turns]`.

A scripted model without a delay, 1,000 chunks, 50 facts, a window of 20 messages, in a SQLite file, as in the bot.
"""

import asyncio
import gc
import random
import re
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bot import Completion, MemoryOptions, Prompt, ToolCall
from bot.testing import TestBot, create_test_bot

CHUNKS, FACTS, WINDOW, TURNS = 1_000, 50, 20, 1_000
WARM_UP = 50
WORDS = re.findall(
    r"\w+",
    """envío pedido plazo tarjeta pago factura cliente almacén ciudad precio descuento devolución garantía horario tienda correo dirección
    producto talla color marca oferta cuenta cambio entrega mensajero aduana impuesto recibo sucursal proveedor contrato aviso""",
)


class Scripted:
    """A model that answers at once, in a few fragments."""

    name = model = "scripted"
    fragments = ("El envío ", "tarda tres ", "días ", "[1].")

    async def complete(self, prompt: Prompt) -> Completion:
        """The whole answer."""
        return Completion("".join(self.fragments))

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | ToolCall]:
        """The answer in its fragments."""
        for fragment in self.fragments:
            yield fragment


class Watch:
    """Sums the wall time of parts of a turn."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = defaultdict(list)

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Time what is inside."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.spent[part].append((time.perf_counter() - started) * 1000)

    def wrap(self, owner: Any, method: str, part: str) -> None:
        """Time every call of an async method."""
        inner: Callable[..., Awaitable[Any]] = getattr(owner, method)

        async def timed(*args: Any, **options: Any) -> Any:
            with self.of(part):
                return await inner(*args, **options)

        setattr(owner, method, timed)


def chunk(rng: random.Random, n: int) -> str:
    """A section of some 600 characters that is like no other."""
    sentences = [" ".join(rng.choices(WORDS, k=12)).capitalize() + "." for _ in range(7)]
    return f"## Sección {n}\n\n{' '.join(sentences)}\n"


async def prepare(bot: TestBot, rng: random.Random) -> None:
    """Facts and a full window for the person who will ask."""
    await bot.ai.remember("user-1", [f"Le gusta el plato {n}" for n in range(FACTS)])
    for _ in range(WINDOW // 2 + WARM_UP):
        await bot.ai.reply_in_chat("user-1", question(rng), user_id="user-1")


def question(rng: random.Random) -> str:
    """What a person asks."""
    return f"¿Qué {rng.choice(WORDS)} tiene {rng.choice(WORDS)} {rng.choice(WORDS)}?"


async def measure(turns: int) -> tuple[list[float], Watch, list[float]]:
    """Milliseconds of each turn as it is; then of parts, watched, in other turns, so that watching slows nothing that is reported."""
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "docs").mkdir()
        for n in range(CHUNKS):
            (Path(folder) / "docs" / f"{n}.md").write_text(chunk(rng, n), encoding="utf-8")
        async with create_test_bot(
            provider=Scripted(),
            memory=MemoryOptions(max_facts=FACTS),
            database_url=f"sqlite:///{folder}/bot.db",
            settings={"BOT_DOCUMENTS": f"{folder}/docs"},
        ) as bot:
            await prepare(bot, rng)
            chunks = sum(int(row["chunks"]) for row in await bot.library.listing())
            assert chunks == CHUNKS, chunks
            gc.collect()
            whole = [await one(bot, rng) for _ in range(turns)]
            watch = Watch()
            watching(bot, watch)
            watched = [await one(bot, rng) for _ in range(turns // 2)]
            return whole, watch, watched


async def one(bot: TestBot, rng: random.Random) -> float:
    """One turn, in milliseconds."""
    asked = question(rng)
    started = time.perf_counter()
    reply = await bot.ai.reply_in_chat_detailed("user-1", asked, user_id="user-1")
    spent = (time.perf_counter() - started) * 1000
    assert len(reply.facts) == FACTS, len(reply.facts)
    assert reply.citations, asked
    return spent


def watching(bot: TestBot, watch: Watch) -> None:
    """Time the parts of a turn."""
    turns: Any = bot.ai._turns  # type: ignore[attr-defined]
    history, recall, rag = turns.history, turns.recall, turns.rag
    for owner, method, part in (
        (history, "open", "epochs, window, stored reply"),
        (recall, "relevant", "facts"),
        (rag.retriever, "retrieve", "retrieval"),
        (history, "keep", "transaction"),
    ):
        watch.wrap(owner, method, part)


def percentile(values: list[float], share: float) -> float:
    """The value that this share of them does not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def main(turns: int) -> None:
    """Print the figures."""
    whole, watch, watched = await measure(turns)
    print(f"{turns} turns: {CHUNKS} chunks, {FACTS} facts, a window of {WINDOW}, SQLite file, scripted model without delay")
    print(f"  median {statistics.median(whole):.2f} ms   p99 {percentile(whole, 0.99):.2f} ms   most {max(whole):.2f} ms")
    print(f"what it is made of (medians of {len(watched)} further turns, watched; facts and retrieval run side by side):")
    parts = {part: statistics.median(spent) for part, spent in watch.spent.items()}
    side_by_side = max(parts["facts"], parts["retrieval"])
    rest = statistics.median(watched) - side_by_side - sum(v for k, v in parts.items() if k not in ("facts", "retrieval"))
    for part, spent in [*parts.items(), ("prompt, stream, citations, tasks", rest)]:
        print(f"  {part:<34} {spent:.2f} ms")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else TURNS))
