"""What the size of chunks does to what is found: `python -m bench.chunking [FILE]`, FILE with documents and questions with gold spans.

Each document is cut and indexed whole, each question asked over all of them; of the characters retrieved, how many are gold (precision),
how many of the gold are retrieved (recall), and both over their union (IoU). A larger chunk finds more and costs more of the prompt, so
recall is measured too with as many chunks as a number of characters holds. Means over the questions.
"""

import json
import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plugins.rag.fusion import best
from plugins.rag.ingest import cut
from plugins.rag.lexical import Lexicon
from plugins.rag.loaders import Section

FILE = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "chunking_eval_en.json"
SIZES = ((400, 0), (400, 100), (600, 0), (600, 150), (800, 0), (800, 150), (1000, 0), (1000, 150), (1000, 250), (1200, 150), (1500, 150))
SIZES += ((2000, 150),)
TOP_KS = (3, 5)
BUDGETS = (3_000, 5_000)  # characters

Span = tuple[int, int]


def located(text: str, pieces: Sequence[str]) -> Iterator[Span]:
    """Where each piece stands in its document, blanks aside: pieces come in order and may overlap."""
    inked = [at for at, c in enumerate(text) if not c.isspace()]
    dense = "".join(text[at] for at in inked)
    start = 0
    for piece in pieces:
        bare = "".join(piece.split())
        at = dense.find(bare, start)
        if at < 0:  # a frame was repeated around it, or it stands further up
            at = dense.find(bare)
        if at < 0:
            yield (0, 0)
            continue
        yield inked[at], inked[at + len(bare) - 1] + 1
        start = at + 1


def scores(found: Sequence[tuple[str, Span]], document: str, gold: Sequence[Span], length: int) -> tuple[float, float, float]:
    """Recall, precision and IoU of the characters retrieved; those of another document are wrong ones."""
    got, wanted = np.zeros(length, dtype=bool), np.zeros(length, dtype=bool)
    elsewhere = sum(end - start for name, (start, end) in found if name != document)
    for name, (start, end) in found:
        if name == document:
            got[start:end] = True
    for start, end in gold:
        wanted[start:end] = True
    both, either = int((got & wanted).sum()), int((got | wanted).sum()) + elsewhere
    taken = int(got.sum()) + elsewhere
    return both / max(1, int(wanted.sum())), both / max(1, taken), both / max(1, either)


def measured(data: dict[str, Any], size: int, overlap: int) -> list[float]:
    """The means: recall, precision and IoU for each top_k, then recall for each budget."""
    texts = {document["id"]: document["text"] for document in data["documents"]}
    places: list[tuple[str, Span]] = []
    lexicon = Lexicon()
    for name, text in texts.items():
        pieces = [chunk.text for chunk in cut(name, [Section(text)], size=size, overlap=overlap)]
        places += [(name, span) for span in located(text, pieces)]
        lexicon.add(pieces)
    everything = np.ones(len(places), dtype=bool)
    sums = np.zeros(3 * len(TOP_KS) + len(BUDGETS))
    for question in data["questions"]:
        order = lexicon.score(question["question"], everything).bm25
        ranked = [places[slot] for slot in best(order, everything, 50)]
        spans = [(start, end) for start, end in question["spans"]]
        name, length = question["document"], len(texts[question["document"]])
        row = [value for top_k in TOP_KS for value in scores(ranked[:top_k], name, spans, length)]
        row += [scores(within(ranked, budget), name, spans, length)[0] for budget in BUDGETS]
        sums += row
    return list(sums / len(data["questions"]))


def within(ranked: Sequence[tuple[str, Span]], budget: int) -> list[tuple[str, Span]]:
    """The first pieces that a number of characters holds, the last of them cut."""
    kept: list[tuple[str, Span]] = []
    for name, (start, end) in ranked:
        end = min(end, start + budget)
        kept.append((name, (start, end)))
        budget -= end - start
        if budget <= 0:
            break
    return kept


def main(file: Path) -> None:
    """Print a row for each size."""
    data = json.loads(file.read_text(encoding="utf-8"))
    print(
        f"{platform.machine()}, Python {platform.python_version()}: {len(data['documents'])} documents, {len(data['questions'])} questions"
    )
    columns = [f"{what}@{k}" for k in TOP_KS for what in ("recall", "precision", "IoU")]
    columns += [f"recall in {budget:,} characters" for budget in BUDGETS]
    print("| size / overlap | " + " | ".join(columns) + " |")
    print("|---|" + "---|" * len(columns))
    for size, overlap in SIZES:
        cells = [f"{value:.3f}" for value in measured(data, size, overlap)]
        print(f"| {size} / {overlap} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
