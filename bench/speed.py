"""How fast documents are taken in and found, and what it costs: `python -m bench.speed [PART …]`, PART one of those in `PARTS`.

Each part runs in a process of its own, with one thread for arithmetic; vectors also with all cores for everybody. Peers stand in the same
run, in turns, so that a busy machine slows both; a peer whose package is missing is left out (`pip install faiss-cpu bm25s PyStemmer`, best
in an environment of its own).
"""

import asyncio
import gc
import importlib.util
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from plugins.rag import Document, create_rag
from plugins.rag.cosine import cores, cosines
from plugins.rag.fusion import best

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "xquad_es.json"
SIZES = (1_000, 10_000, 100_000)
DIMENSION = 384
A_DOCUMENT = 100  # chunks
ASKED = 400
BEAT = 0.005  # seconds between two looks at the event loop
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
Array = np.ndarray[Any, Any]


# ---------------------------------------------------------------------------------------------- texts


class Texts:
    """Paragraphs of five sentences put together at random, and questions: of xquad_es where it is there, else of the bot's own pages."""

    def __init__(self, seed: int = 7) -> None:
        self._chance = random.Random(seed)
        if DATA.exists():
            data = json.loads(DATA.read_text(encoding="utf-8"))
            passages = [one["text"] for one in data["passages"]]
            self.questions = [one["question"] for one in data["questions"]]
        else:
            passages = [page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("e[sn]/*.md"))]
            self.questions = [line.lstrip("# ") for text in passages for line in text.splitlines() if line.startswith("## ")]
        self._sentences = [" ".join(one.split()) for text in passages for one in text.split(". ") if len(one) > 20]

    def paragraph(self) -> str:
        """At most 990 characters, so that a paragraph is a chunk."""
        return ". ".join(self._chance.choices(self._sentences, k=5))[:989] + "."

    def documents(self, chunks: int) -> list[Document]:
        """Documents that make about so many chunks."""
        count = max(1, chunks // A_DOCUMENT)
        return [Document(f"d{n}", "\n\n".join(self.paragraph() for _ in range(chunks // count)), f"d{n}") for n in range(count)]

    def asked(self) -> list[str]:
        """Questions, the same in every run."""
        return self._chance.choices(self.questions, k=ASKED)


# ---------------------------------------------------------------------------------------------- measuring


class Lag:
    """How late the event loop was at most, in milliseconds, while something went on."""

    def __init__(self) -> None:
        self.most = 0.0
        self.over = 0

    @asynccontextmanager
    async def watched(self) -> AsyncIterator["Lag"]:
        """Look at the loop while the body runs."""
        task = asyncio.create_task(self._look())
        try:
            yield self
        finally:
            task.cancel()

    async def _look(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(BEAT)
            late = (time.perf_counter() - began - BEAT) * 1000
            self.most = max(self.most, late)
            self.over += late > 50

    def __str__(self) -> str:
        return f"loop at most {self.most:.0f} ms late ({self.over} times over 50)"


async def idle_lag() -> str:
    """What the machine alone makes the loop late: what else runs on it counts in every figure."""
    async with Lag().watched() as lag:
        await asyncio.sleep(3)
    return f"  with nothing to do: {lag}"


@contextmanager
def timed(spent: list[float]) -> Iterator[None]:
    """Append the seconds that the body takes."""
    began = time.perf_counter()
    yield
    spent.append(time.perf_counter() - began)


def in_turns(rivals: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The least milliseconds of each, of so many rounds in which all take turns: what the work takes where nothing disturbs it.

    Each goes three times before it is timed three times, so that none finds the processor's cache full of another's data.
    """
    spent: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(rounds):
        for name, work in rivals.items():
            for _ in range(3):
                work()
            for _ in range(3):
                with timed(spent[name]):
                    work()
    return {name: min(values) * 1000 for name, values in spent.items()}


def peak() -> float:
    """The most memory that this process has taken so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# ---------------------------------------------------------------------------------------------- parts


async def vectors() -> None:
    """Exact search for the three nearest, beside faiss and plain numpy, on the same vectors and with as many threads each."""
    faiss: Any = importlib.import_module("faiss") if importlib.util.find_spec("faiss") else None
    if faiss is None:
        print("  faiss is not installed: left out")
    else:
        faiss.omp_set_num_threads(cores())
    print(f"  {cores()} thread{'s' * (cores() > 1)} each{', which faiss uses for many questions but not for one' * (cores() > 1)}")
    chance = np.random.default_rng(7)
    for size in SIZES:
        rows = _unit(chance.standard_normal((size, DIMENSION), dtype=np.float32))
        asked = _unit(rows[:32] + 0.05 * chance.standard_normal((32, DIMENSION), dtype=np.float32))
        alive = np.ones(size, dtype=bool)
        flat = faiss.IndexFlatIP(DIMENSION) if faiss else None
        if flat is not None:
            flat.add(rows)
        for count in (1, 32):
            some = asked[:count]
            question = some[0] if count == 1 else some
            rivals: dict[str, Callable[[], Any]] = {"ours": lambda rows=rows, q=question, alive=alive: _nearest(rows, q, alive)}
            rivals["M @ q"] = lambda rows=rows, q=question: rows @ q.T
            if flat is not None:
                rivals["faiss"] = lambda flat=flat, some=some: flat.search(some, 3)
                assert np.array_equal(np.atleast_2d(rivals["ours"]()), rivals["faiss"]()[1]), "not the exact top 3"
            best_of = in_turns(rivals, max(12, min(400, 2_000_000 // (size * count))))
            ratio = f"   {best_of['ours'] / best_of['faiss']:.2f} × faiss" if flat is not None else ""
            print(f"  {size:>7} × {DIMENSION}, {count:>2} at once: {_figures(best_of, 'ms')}{ratio}")


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _nearest(rows: Array, question: Array, alive: Array) -> Array:
    found = cosines(rows, question)
    return best(found, alive, 3) if found.ndim == 1 else np.array([best(column, alive, 3) for column in np.ascontiguousarray(found.T)])


def _figures(values: dict[str, float], unit: str) -> str:
    return ", ".join(f"{name} {value:.3f} {unit}" for name, value in values.items())


async def retrieving() -> None:
    """The whole of `retrieve()` with `local`, and taking documents in, beside bm25s on the same texts."""
    print(await idle_lag())
    for size in SIZES:
        texts = Texts()
        documents = texts.documents(size)
        questions = texts.asked()
        before = peak()
        rag = create_rag(documents=documents)
        spent: list[float] = []
        async with Lag().watched() as taking:
            with timed(spent):
                await rag.warmup()
        after, chunks = peak(), sum(document["chunks"] for document in await rag.listing())
        print(f"  {chunks:>7} chunks taken in: {chunks / spent[0]:.0f} a second, {after - before:.0f} MiB more at the peak; {taking}")
        print(f"          bm25s, cut already: {_bm25s([p for d in documents for p in d.text.split(chr(10) * 2)])}")
        gc.collect()
        times: list[float] = []
        async with Lag().watched() as finding:
            for question in questions:
                with timed(times):
                    await rag.retrieve(question)
                await asyncio.sleep(0)
        low, middle, high = (float(np.percentile(times, share)) * 1000 for share in (0, 50, 99))
        print(f"          retrieve(): p50 {middle:.2f} ms, p99 {high:.2f} ms, least {low:.2f} ms; {finding}")


def _bm25s(paragraphs: Sequence[str]) -> str:
    if not (importlib.util.find_spec("bm25s") and importlib.util.find_spec("Stemmer")):
        return "not installed, left out"
    bm25s, stemmer = importlib.import_module("bm25s"), importlib.import_module("Stemmer").Stemmer("spanish")
    spent: list[float] = []
    with timed(spent):
        index = bm25s.BM25()
        index.index(bm25s.tokenize(list(paragraphs), stopwords="es", stemmer=stemmer, show_progress=False), show_progress=False)
    return f"{len(paragraphs) / spent[0]:.0f} a second"


class Counting:
    """An embedder that costs next to nothing and counts the texts that it is given."""

    id = "counting"

    def __init__(self) -> None:
        self.texts = 0

    async def embed(self, texts: Sequence[str]) -> Array:
        """A vector for each text, of nothing but its number."""
        self.texts += len(texts)
        return np.random.default_rng(self.texts).standard_normal((len(texts), DIMENSION), dtype=np.float32)


async def restarting() -> None:
    """A restart with 100,000 chunks in a `.db` file, by words alone and with vectors: no text is embedded again."""
    with tempfile.TemporaryDirectory() as folder:
        documents = Texts().documents(SIZES[-1])
        for name in ("local", "vectors"):
            path = Path(folder) / f"{name}.db"
            first, second = Counting(), Counting()
            spent: list[float] = []
            async with Lag().watched() as writing:
                with timed(spent):
                    await create_rag(documents=documents, embeddings=first if name == "vectors" else "local", persist_path=path).warmup()
            print(f"  {name}: written in {spent[0]:.1f} s ({path.stat().st_size >> 20} MiB; {first.texts} texts embedded); {writing}")
            gc.collect()
            rag = create_rag(documents=documents, embeddings=second if name == "vectors" else "local", persist_path=path)
            async with Lag().watched() as reading:
                with timed(spent):
                    await rag.warmup()
            assert sum(document["chunks"] for document in await rag.listing()) >= SIZES[-1] * 0.9
            print(f"  {name}: there again after {spent[1]:.1f} s, {second.texts} texts embedded; {reading}")
    print(f"  peak memory of all this: {peak():.0f} MiB")


async def editing() -> None:
    """One file edited among 1,000: what it costs to take that over."""
    texts = Texts()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "docs"
        home.mkdir()
        for number in range(1_000):
            (home / f"{number}.md").write_text("\n\n".join(texts.paragraph() for _ in range(10)), encoding="utf-8")
        counting = Counting()
        rag = create_rag(documents=[home], embeddings=counting, persist_path=Path(folder) / "index.db")
        spent: list[float] = []
        async with Lag().watched() as lag:
            with timed(spent):
                await rag.warmup()
            whole, counting.texts = counting.texts, 0
            with timed(spent):
                await rag.warmup()
            assert counting.texts == 0
            (home / "500.md").write_text("\n\n".join(texts.paragraph() for _ in range(10)), encoding="utf-8")
            with timed(spent):
                await rag.warmup()
            edited = counting.texts
            with timed(spent):
                await rag.add_files([home / "500.md"])
        print(f"  1,000 files, {whole} chunks: taken in within {spent[0]:.1f} s; nothing changed {spent[1]:.2f} s;")
        print(f"  one changed {spent[2]:.2f} s ({edited} texts embedded); that file by name {spent[3]:.3f} s; {lag}")


PARTS = {"vectors": vectors, "retrieving": retrieving, "restarting": restarting, "editing": editing}


def main(names: Sequence[str]) -> None:
    """Run the parts, each in a process of its own."""
    cores = os.cpu_count()
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {cores} cores, load {load:.1f}, Python {platform.python_version()}, numpy {np.__version__}")
    for name in names or PARTS:
        print(f"{name}: {(PARTS[name].__doc__ or '').splitlines()[0]}", flush=True)
        for threads in (ONE_THREAD, {}) if name == "vectors" else (ONE_THREAD,):
            subprocess.run([sys.executable, "-m", "bench.speed", "--here", name], check=True, env={**os.environ, **threads})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        asyncio.run(PARTS[sys.argv[2]]())
    else:
        main(sys.argv[1:])
