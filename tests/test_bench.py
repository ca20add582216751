"""The benches run by hand, so that what they build on is there is looked at here."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("bench", "bot", "handlers", "plugins", "tests")
BENCHES = sorted((ROOT / "bench").glob("*.py"))


def is_there(module: str, name: str) -> bool:
    """Whether a module has a name, or is a package with a module of that name."""
    if hasattr(importlib.import_module(module), name):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


@pytest.mark.parametrize("path", BENCHES, ids=lambda path: path.stem)
def test_what_a_bench_imports_of_ours_is_there(path: Path) -> None:
    """Each name that it takes from one of our modules; other libraries are its own affair."""
    imports = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom) and node.module]
    named = [(str(node.module), name.name) for node in imports for name in node.names if str(node.module).partition(".")[0] in OURS]

    missing = [f"{module}.{name}" for module, name in named if not is_there(module, name)]

    assert missing == []
