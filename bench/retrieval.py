"""How well and how fast passages are found: `python -m bench.retrieval [FOLDER]`, FOLDER with xquad_es.json and xquad_en.json.

Ranking is measured on all questions. Relevance is measured with and without the article that holds the answer: what is kept of the
answerable, what is rejected of the rest. Speed is that of the whole `retrieve()`, on texts put together from the same passages.
"""

import asyncio
import json
import platform
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from plugins.rag import create_rag
from plugins.rag.fusion import RELEVANT_SHARE
from plugins.rag.lexical import Lexicon

FOLDER = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
SIZES = (1_000, 10_000)
ASKED = 400


def quality(data: dict[str, Any]) -> dict[str, float]:
    """hit@1 and hit@3 of the order, and what the bar of relevance keeps and rejects."""
    ids = [passage["id"] for passage in data["passages"]]
    articles = np.array([name.rsplit("-", 1)[0] for name in ids])
    lexicon = Lexicon()
    lexicon.add([passage["text"] for passage in data["passages"]])
    everything = np.ones(len(ids), dtype=bool)
    first = third = kept = rejected = 0
    for question in data["questions"]:
        relevant = set(question["relevant"])
        scores = lexicon.score(question["question"], everything)
        top = np.argsort(-scores.bm25, kind="stable")[:3]
        first += ids[top[0]] in relevant
        third += any(ids[slot] in relevant for slot in top)
        kept += bool(scores.share[top].max() >= RELEVANT_SHARE)
        without = articles != question["relevant"][0].rsplit("-", 1)[0]
        scores = lexicon.score(question["question"], without)
        top = np.argsort(-scores.bm25, kind="stable")[:3]
        rejected += bool(scores.share[top].max() < RELEVANT_SHARE)
    n = len(data["questions"])
    return {"hit@1": first / n, "hit@3": third / n, "kept": kept / n, "rejected": rejected / n}


async def speed(data: dict[str, Any], size: int, seed: int = 7) -> dict[str, float]:
    """Milliseconds of `retrieve()` at a number of chunks, and chunks taken in a second."""
    chance = random.Random(seed)
    sentences = [s.strip() for passage in data["passages"] for s in passage["text"].split(". ") if len(s) > 20]
    rag = create_rag(embeddings="local")
    texts = [". ".join(chance.choices(sentences, k=5))[:990] for _ in range(size)]
    began = time.perf_counter()
    for start in range(0, size, 500):
        await rag.add_text("\n\n".join(texts[start : start + 500]), source=f"part {start}")
    seconds = time.perf_counter() - began
    chunks = sum(document["chunks"] for document in await rag.listing())
    times = []
    for question in chance.choices(data["questions"], k=ASKED):
        began = time.perf_counter()
        await rag.retrieve(question["question"])
        times.append((time.perf_counter() - began) * 1000)
    return {"chunks": chunks, "p50": statistics.median(times), "p99": float(np.percentile(times, 99)), "per_second": chunks / seconds}


async def main(folder: Path) -> None:
    """Print all figures, with what they were measured on."""
    print(f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}")
    sets = {name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("xquad_es", "xquad_en")}
    for name, data in sets.items():
        found = quality(data)
        print(f"{name}: " + ", ".join(f"{what} {value:.4f}" for what, value in found.items()))
    for size in SIZES:
        found = await speed(sets["xquad_es"], size)
        print(
            f"retrieve() at {found['chunks']:.0f} chunks: p50 {found['p50']:.2f} ms, p99 {found['p99']:.2f} ms;"
            f" taken in at {found['per_second']:.0f} chunks a second"
        )


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
