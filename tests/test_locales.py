"""Every text that a person reads exists in Spanish and in English, and the catalogs hold nothing else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po

from bot.i18n import LOCALES, mismatch, parse
from locales.update import KEYWORDS, ROOT, SOURCES, extracted, rendered, untranslated

CATALOGS = {language: LOCALES / language / "LC_MESSAGES" / "messages.po" for language in ("es", "en")}
Key = str | tuple[str, ...]


@pytest.fixture(scope="module")
def template() -> Catalog:
    return extracted()


@pytest.fixture(params=CATALOGS, ids=str)
def catalog(request: pytest.FixtureRequest) -> Catalog:
    return parse(CATALOGS[request.param])


def ids(catalog: Catalog) -> set[Key]:
    return {tuple(message.id) if isinstance(message.id, list | tuple) else message.id for message in catalog if message.id}


def test_nothing_is_missing(template: Catalog, catalog: Catalog) -> None:
    """A message in the code is in the catalog; `make messages` adds it."""
    assert ids(template) - ids(catalog) == set()


def test_nothing_is_stale(template: Catalog, catalog: Catalog) -> None:
    """A message that the code no longer has is no longer translated; `make messages` takes it out."""
    assert ids(catalog) - ids(template) == set()
    assert dict(catalog.obsolete) == {}


def test_everything_is_translated(catalog: Catalog) -> None:
    """No translation is empty, lacks a plural form, or waits for somebody to look at it."""
    assert [message.id for message in untranslated(catalog)] == []
    assert [message.id for message in catalog if message.id and message.fuzzy] == []


def test_placeholders_are_those_of_the_message(catalog: Catalog) -> None:
    """A translation is formatted with the same names."""
    assert [fault for message in catalog if message.id and (fault := mismatch(message))] == []


def test_english_says_what_the_code_says() -> None:
    """The code is written in English, so the English catalog repeats it."""
    catalog = parse(CATALOGS["en"])

    assert [message.id for message in catalog if message.id and message.string != message.id] == []


def test_spanish_was_written() -> None:
    """A Spanish text that equals the English one was forgotten, but for what both languages share."""
    catalog = parse(CATALOGS["es"])
    same = [message.id for message in catalog if message.id and message.string == message.id]

    assert set(same) <= {"[es|en]", "/remove ID", "No"}


def test_the_template_is_up_to_date(template: Catalog) -> None:
    """`messages.pot` is what a translator of a third language starts from."""
    assert ids(parse(LOCALES / "messages.pot")) == ids(template)


def test_a_run_that_finds_nothing_new_changes_nothing() -> None:
    """The catalogs are written the way `make messages` writes them, so that a later change shows only what it changes."""
    for language, path in CATALOGS.items():
        with path.open("rb") as file:
            catalog = read_po(file)

        assert path.read_text(encoding="utf-8") == rendered(catalog, language)


def test_every_way_to_write_a_message_is_found(tmp_path: Path) -> None:
    """In handlers `ctx._` and `ctx.ngettext`, in classes `self._`, a parameter called `_`, and the no-op `_` of constants."""
    source = tmp_path / "example.py"
    source.write_text(
        '_("constant")\n'
        'await ctx.reply(ctx._("in a handler {n}").format(n=1))\n'
        'self._("in a class")\n'
        'ctx.ngettext("{n} one", "{n} many", n)\n'
        'registry.command("x", help=_("help"), usage=_("[usage]"))\n'
        '_(\n    "in two "\n    "pieces"\n)\n',
        encoding="utf-8",
    )
    found = [message for _, message, _, _ in extract_from_file("python", source, keywords=KEYWORDS)]

    assert found == ["constant", "in a handler {n}", "in a class", ("{n} one", "{n} many"), "help", "[usage]", "in two pieces"]


def test_a_message_is_whole_before_it_is_translated() -> None:
    """A text that is put together inside `_()` is in no catalog: f-strings, `+` and `.format` go outside."""
    assert [where for where, node in calls() if any(map(put_together, node.args[:2]))] == []


def put_together(node: ast.expr) -> bool:
    """Whether an argument makes a text, rather than naming or looking up one that is marked elsewhere."""
    return isinstance(node, ast.JoinedStr | ast.BinOp) or (
        isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("format", "join")
    )


def test_no_message_hides_where_babel_does_not_look(template: Catalog) -> None:
    """Before Python 3.12 a call within an f-string is text to Babel: whatever the parser finds is in the template too."""
    known = {text for key in ids(template) for text in ([key] if isinstance(key, str) else key)}
    hidden = [
        where
        for where, node in calls()
        for argument in node.args[:2]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str) and argument.value not in known
    ]

    assert hidden == []


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Each call that translates, with where it stands."""
    for path in (file for source in SOURCES for file in (ROOT / source).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in KEYWORDS:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node
