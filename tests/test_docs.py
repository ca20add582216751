"""The documentation is whole and true: both languages say the same, every setting and command is there, every link leads somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.registry import load

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = {  # Spanish, English: a page and the same page in the other language
    "que-es.md": "what-it-is.md",
    "comandos.md": "commands.md",
    "privacidad.md": "privacy.md",
    "memoria.md": "memory.md",
    "documentos.md": "documents.md",
    "preguntas-frecuentes.md": "faq.md",
    "instalacion.md": "install.md",
    "configuracion.md": "settings.md",
    "problemas.md": "troubleshooting.md",
    "plugins.md": "plugins.md",
}
READERS = [*(DOCS / "es").glob("*.md"), *(DOCS / "en").glob("*.md"), ROOT / "README.md", ROOT / "README.es.md"]
WRITTEN = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
MARKDOWN = MarkdownIt().enable("table")
REGISTRY = load(installed=False)
VARIABLE = re.compile(r"\b(?:BOT|OPENAI|OLLAMA|TELEGRAM|WHATSAPP)_[A-Z_]+\b")
SETTINGS = sorted({field.alias or name for section in REGISTRY.sections for name, field in section.model_fields.items()})


def headings(path: Path) -> list[tuple[str, str]]:
    """`(tag, text)` of each heading; what looks like one inside a code block is none."""
    tokens = MARKDOWN.parse(path.read_text(encoding="utf-8"))
    return [(token.tag, tokens[i + 1].content) for i, token in enumerate(tokens) if token.type == "heading_open"]


def inline(path: Path) -> Iterator[Token]:
    """Each piece of text, link or code span of a page."""
    for token in MARKDOWN.parse(path.read_text(encoding="utf-8")):
        yield from token.children or ()


def anchor(text: str) -> str:
    """The name that a heading has in a link."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


class TestTwoLanguages:
    def test_every_page_is_in_both(self) -> None:
        """A page that exists in one language only answers half of the people."""
        assert {path.name for path in (DOCS / "es").iterdir()} == set(PAGES)
        assert {path.name for path in (DOCS / "en").iterdir()} == set(PAGES.values())

    @pytest.mark.parametrize(("spanish", "english"), PAGES.items(), ids=PAGES.values())
    def test_a_page_has_the_same_headings(self, spanish: str, english: str) -> None:
        """The structure is one: as many headings, in the same order of levels."""
        levels = [tag for tag, _ in headings(DOCS / "es" / spanish)]

        assert levels == [tag for tag, _ in headings(DOCS / "en" / english)]
        assert levels[0] == "h1"
        assert len(levels) > 3

    @pytest.mark.parametrize(("spanish", "english"), PAGES.items(), ids=PAGES.values())
    def test_a_page_names_the_same_things(self, spanish: str, english: str) -> None:
        """The variables and the commands of a page are those of the same page in the other language."""
        words = re.compile(rf"{VARIABLE.pattern}|(?<=`)/[a-z_]+\b")
        texts = [(DOCS / folder / page).read_text(encoding="utf-8") for folder, page in (("es", spanish), ("en", english))]
        found = [set(words.findall(text)) - {"/hora", "/time"} for text in texts]

        assert found[0] == found[1]


class TestComplete:
    @pytest.mark.parametrize("page", ["es/configuracion.md", "en/settings.md"])
    def test_every_setting_is_documented(self, page: str) -> None:
        """Whoever runs the bot finds each variable, with what it is for."""
        text = (DOCS / page).read_text(encoding="utf-8")

        assert [name for name in SETTINGS if f"### {name}\n\n`{name}` " not in text] == []

    @pytest.mark.parametrize("page", ["es/comandos.md", "en/commands.md"])
    def test_every_command_is_documented(self, page: str) -> None:
        """So does a person each command, named in a heading: that is what an answer cites."""
        titles = " ".join(text for _, text in headings(DOCS / page))

        assert [name for name in REGISTRY.commands if not re.search(rf"/{name}\b", titles)] == []

    @pytest.mark.parametrize("path", READERS, ids=named)
    def test_only_settings_that_exist_are_named(self, path: Path) -> None:
        """A variable that was renamed or dropped is no longer advised."""
        mentioned = set(VARIABLE.findall(path.read_text(encoding="utf-8")))

        assert mentioned <= set(SETTINGS) | {"BOT_"}

    @pytest.mark.parametrize("path", READERS, ids=named)
    def test_only_commands_that_exist_are_named(self, path: Path) -> None:
        """Nor is a command."""
        spans = [token.content for token in inline(path) if token.type == "code_inline"]
        commands = {match[1] for span in spans if (match := re.match(r"/([a-z_]+)(?: |$)", span))}

        assert commands <= set(REGISTRY.commands) | {"healthz", "readyz", "setprivacy"}

    @pytest.mark.parametrize("name", ["Dockerfile", "compose.yaml"])
    def test_the_container_sets_what_exists(self, name: str) -> None:
        """An unknown variable would stop the container at its start."""
        code = re.sub(r"(?m)^\s*#.*$", "", (ROOT / name).read_text(encoding="utf-8"))

        assert set(VARIABLE.findall(code)) <= set(SETTINGS)


class TestArchitecture:
    def test_every_part_of_the_process_has_its_line(self) -> None:
        """Whoever looks for a module finds what it is for."""
        text = (DOCS / "architecture.md").read_text(encoding="utf-8")
        parts = {path.name for path in (ROOT / "bot").iterdir() if (path / "__init__.py").exists()}
        parts |= {path.stem for path in (ROOT / "bot").glob("*.py") if not path.stem.startswith("__")}

        assert {part for part in parts if f"`{part}`" not in text and f"`{part}/`" not in text} == set()

    def test_every_decision_is_listed(self) -> None:
        """The index of the decisions links each, by its title."""
        text = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
        pages = [path for path in (DOCS / "decisions").glob("*.md") if path.name != "README.md"]

        assert [path.name for path in pages if f"[{headings(path)[0][1]}]({path.name})" not in text] == []


class TestLinks:
    @pytest.mark.parametrize("path", WRITTEN, ids=named)
    def test_local_links_resolve(self, path: Path) -> None:
        """A link to a file of the project, or to a heading in it, leads there."""
        broken = [target for target in _targets(path) if not _resolves(path, target)]

        assert broken == []

    @pytest.mark.parametrize("path", WRITTEN, ids=named)
    def test_a_page_is_one_language_of_plain_text(self, path: Path) -> None:
        """UTF-8 without control characters, tabs or trailing space, and a newline at the end."""
        text = path.read_text(encoding="utf-8")

        assert re.search(r"[\x00-\x08\x0b-\x1f\x7f\t\ufeff]| \n", text) is None
        assert text.endswith("\n")


def _targets(path: Path) -> list[str]:
    links = [str(token.attrs.get("href") or token.attrs.get("src") or "") for token in inline(path) if token.type in ("link_open", "image")]
    return [link for link in links if not re.match(r"[a-z]+:", link)]


def _resolves(path: Path, target: str) -> bool:
    name, _, fragment = target.partition("#")
    page = (path.parent / name) if name else path
    if not page.exists() or not page.resolve().is_relative_to(ROOT):
        return False
    return not fragment or fragment in {anchor(text) for _, text in headings(page)}
