"""Runs by itself, in a process that can be killed: a large page or Word file on standard input, its sections as JSON on standard output.

python child.py html|docx MEMORY_BYTES CPU_SECONDS
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def main() -> None:
    """Read, answer, leave."""
    sys.path.insert(0, str(ROOT))
    from plugins.rag.loaders import read_marked_up
    from plugins.rag.loaders.pdf_child import limit

    kind, memory, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    data = sys.stdin.buffer.read()
    limit(memory, seconds)
    loaded = read_marked_up(kind, data)
    sections = [[section.text, section.path] for section in loaded.sections]
    answer = {"status": loaded.status, "detail": loaded.detail, "sections": sections}
    sys.stdout.buffer.write(json.dumps(answer).encode("ascii"))


if __name__ == "__main__":
    main()
