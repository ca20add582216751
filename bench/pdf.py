"""The two PDF readers side by side: `python -m bench.pdf [FOLDER…]`. For each file: what each reader finds, and in how long.

Each is asked in a process of its own, as the bot does; the seconds hold the start of that process. Then what the bot makes of the file.
"""

import asyncio
import json
import platform
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from plugins.rag.loaders import load, process
from plugins.rag.loaders.pdf import READERS, tidy

SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
FOLDERS = (SHARED / "faulty" / "pdf", SHARED / "docs" / "pdf")
CHILD = Path(process.__file__).with_name("pdf_child.py")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a reader made of a file."""

    status: str
    pages: int
    with_text: int
    words: int
    seconds: float

    def __str__(self) -> str:
        found = f"{self.with_text}/{self.pages} pages, {self.words:,} words" if self.status == "ok" else self.status
        return f"{found}, {self.seconds:.2f} s"


async def seen(reader: str, data: bytes) -> Seen:
    """What one reader says."""
    began = time.perf_counter()
    said = await process.answer(CHILD, reader, data)
    seconds = time.perf_counter() - began
    if said is None:
        return Seen("timed out", 0, 0, 0, seconds)
    try:
        answer = json.loads(said)
    except ValueError:
        return Seen("crashed", 0, 0, 0, seconds)
    pages = [tidy(page) for page in answer["pages"]]
    return Seen(answer["status"], len(pages), sum(map(bool, pages)), sum(len(page.split()) for page in pages), seconds)


async def main(folders: list[Path]) -> None:
    """Print a row for each file, and the sums."""
    print(f"{platform.machine()}, Python {platform.python_version()}, " + ", ".join(f"{n} {version(n)}" for n in ("pypdfium2", "pypdf")))
    print("| file | " + " | ".join(READERS) + " | outcome |\n|---|" + "---|" * (len(READERS) + 1))
    total = dict.fromkeys(READERS, 0.0)
    alone = dict.fromkeys(READERS, 0)
    files = sorted(path for folder in folders for path in ([folder] if folder.is_file() else folder.rglob("*.pdf")))
    for path in files:
        data = await asyncio.to_thread(path.read_bytes)
        each = {reader: await seen(reader, data) for reader in READERS}
        outcome = await load(path.name, data)
        for reader, one in each.items():
            total[reader] += one.seconds
            alone[reader] += one.words > 0 and not any(other.words for name, other in each.items() if name != reader)
        print(f"| {path.name} | " + " | ".join(map(str, each.values())) + f" | {outcome.status} {outcome.detail[:30]} |", flush=True)
    for reader in READERS:
        print(f"{reader}: {total[reader]:.1f} s in all; text in {alone[reader]} files where the other found none")


if __name__ == "__main__":
    asyncio.run(main([Path(name) for name in sys.argv[1:]] or list(FOLDERS)))
