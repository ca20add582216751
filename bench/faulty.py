"""What becomes of each file of a folder: `python -m bench.faulty [FOLDER]`. For each: its outcome, how much text, how long it took."""

import asyncio
import sys
import time
from pathlib import Path

from plugins.rag.loaders import load

FOLDER = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "faulty"


async def main(folder: Path, paths: list[Path]) -> None:
    """Print the table, then how many there were of each outcome."""
    print("| file | outcome | sections | characters | seconds |\n|---|---|---|---|---|")
    counts: dict[str, int] = {}
    for path in paths:
        data = await asyncio.to_thread(path.read_bytes)
        began = time.perf_counter()
        found = await load(path.name, data)
        seconds = time.perf_counter() - began
        counts[found.status] = counts.get(found.status, 0) + 1
        told = f"{found.status} ({found.detail})" if found.detail else found.status
        characters = sum(len(section.text) for section in found.sections)
        print(f"| {path.relative_to(folder)} | {told} | {len(found.sections)} | {characters:,} | {seconds:.2f} |", flush=True)
    print(", ".join(f"{status}: {n}" for status, n in sorted(counts.items())))


if __name__ == "__main__":
    chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    asyncio.run(main(chosen, sorted(path for path in chosen.rglob("*") if path.is_file())))
