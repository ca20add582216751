"""`make messages`: find every message in the code and bring the catalogs up to date, so that what is left is to translate."""

from copy import deepcopy
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

LOCALES = Path(__file__).resolve().parent
ROOT = LOCALES.parent
SOURCES = ("bot", "handlers", "plugins")
KEYWORDS = {"_": None, "ngettext": (1, 2)}  # of `ctx._`, of a `gettext` called `_`, and of the no-op `_` that marks a constant
SOURCE_LANGUAGE = "en"
WIDTH = 120


def extracted() -> Catalog:
    """The template: every message in the code, with the files that it stands in."""
    template = Catalog(project="Sabio", version="", charset="utf-8", copyright_holder="The Sabio developers", fuzzy=False)
    for source in SOURCES:
        found = extract_from_dir(ROOT / source, method_map=[("**.py", "python")], keywords=KEYWORDS, comment_tags=["note:"])
        for filename, _line, message, comments, context in sorted(found, key=lambda item: (item[0], item[1])):
            template.add(message, locations=[(f"{source}/{filename}", None)], auto_comments=comments, context=context)
    return template


def updated(path: Path, template: Catalog) -> Catalog:
    """A catalog with the messages of the template and the translations that it had; in the source language each is its own."""
    with path.open("rb") as file:
        catalog = read_po(file)
    catalog.update(deepcopy(template), no_fuzzy_matching=True)
    catalog.obsolete.clear()
    for message in catalog if language_of(path) == SOURCE_LANGUAGE else ():
        message.string = message.id
    return catalog


def language_of(path: Path) -> str:
    """The language whose catalog stands at `<lang>/LC_MESSAGES/messages.po`."""
    return path.parent.parent.name


def rendered(catalog: Catalog, language: str | None = None) -> str:
    """The text of a catalog, with a header that holds no dates: a run that finds nothing new changes nothing."""
    header = ["Content-Type: text/plain; charset=utf-8"]
    if language:
        header = [f"Language: {language}", f"Plural-Forms: {catalog.plural_forms}", *header]
    body = BytesIO()
    write_po(body, catalog, width=WIDTH, include_lineno=False, omit_header=True)
    return "\n".join(['msgid ""', 'msgstr ""', *(f'"{line}\\n"' for line in header)]) + "\n\n" + body.getvalue().decode().strip() + "\n"


def untranslated(catalog: Catalog) -> list[Message]:
    """The messages that have no translation, or lack one of their plural forms."""
    return [m for m in catalog if m.id and not (m.string if isinstance(m.string, str) else m.string and all(m.string))]


def main() -> None:
    """Rewrite `messages.pot` and each `messages.po`; say how many messages of each are still to be translated."""
    template = extracted()
    (LOCALES / "messages.pot").write_text(rendered(template), encoding="utf-8")
    for path in sorted(LOCALES.glob("*/LC_MESSAGES/messages.po")):
        catalog = updated(path, template)
        path.write_text(rendered(catalog, language_of(path)), encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {len(catalog)} messages, {len(untranslated(catalog))} to be translated")


if __name__ == "__main__":
    main()
