"""Catalogs are read from `.po`, the later one wins, a broken one stops the start, and a message shows its language."""

import json
import re
import time
from pathlib import Path

import pytest

from bot.errors import ConfigurationError
from bot.i18n import LOCALES, Catalogs, detect

HEADER = r"""msgid ""
msgstr ""
"Language: xx\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"
"Content-Type: text/plain; charset=utf-8\n"

"""
XQUAD = Path(__file__).resolve().parents[3] / "shared" / "data"


def write(directory: Path, language: str, body: str) -> Path:
    path = directory / language / "LC_MESSAGES" / "messages.po"
    path.parent.mkdir(parents=True)
    path.write_text(HEADER + body, encoding="utf-8")
    return path


def pair(message: str, translation: str) -> str:
    return f'msgid "{message}"\nmsgstr "{translation}"\n\n'


class TestCatalogs:
    def test_a_message_is_read_in_each_language(self, tmp_path: Path) -> None:
        """The catalog of the reader's language gives the words, accents and escapes included."""
        write(tmp_path, "es", pair("Hello", 'Adiós\\n\\"y\\" más'))
        write(tmp_path, "en", pair("Hello", "Hello!"))
        catalogs = Catalogs.load([tmp_path])

        assert catalogs.gettext("es")("Hello") == 'Adiós\n"y" más'
        assert catalogs.gettext("en")("Hello") == "Hello!"

    def test_plural_forms_follow_the_number(self, tmp_path: Path) -> None:
        """`ngettext` picks the form by the rule in the catalog's header."""
        write(tmp_path, "es", 'msgid "{n} fact"\nmsgid_plural "{n} facts"\nmsgstr[0] "un dato"\nmsgstr[1] "{n} datos"\n')
        ngettext = Catalogs.load([tmp_path]).ngettext("es")

        assert [ngettext("{n} fact", "{n} facts", n).format(n=n) for n in (0, 1, 2)] == ["0 datos", "un dato", "2 datos"]

    def test_the_default_language_comes_first(self, tmp_path: Path) -> None:
        """`languages` is what a person can choose from, the default one first."""
        for language in ("en", "es", "de"):
            write(tmp_path, language, "")

        assert Catalogs.load([tmp_path], default="es").languages == ("es", "de", "en")

    def test_an_unknown_language_reads_the_default_one(self, tmp_path: Path) -> None:
        """A reader without a catalog gets the default language, and so does one without a language."""
        write(tmp_path, "es", pair("Hello", "Hola"))
        catalogs = Catalogs.load([tmp_path], default="es")

        assert catalogs.gettext("fr")("Hello") == catalogs.gettext(None)("Hello") == "Hola"

    def test_an_unknown_message_is_its_own_text(self, tmp_path: Path) -> None:
        """A message without a translation, or with a fuzzy or an empty one, is shown as it stands in the code."""
        write(tmp_path, "es", pair("Empty", "") + "#, fuzzy\n" + pair("Guess", "Adivina"))
        catalogs = Catalogs.load([tmp_path])

        assert [catalogs.gettext("es")(message) for message in ("Absent", "Empty", "Guess")] == ["Absent", "Empty", "Guess"]
        assert catalogs.ngettext("es")("{n} day", "{n} days", 2) == "{n} days"

    def test_a_later_directory_wins_message_by_message(self, tmp_path: Path) -> None:
        """A plugin's catalog replaces what it translates and leaves the rest."""
        write(tmp_path / "bot", "es", pair("Sources: {sources}", "Fuentes: {sources}") + pair("Hello", "Hola"))
        write(tmp_path / "plugin", "es", pair("Sources: {sources}", "Según: {sources}"))
        gettext = Catalogs.load([tmp_path / "bot", tmp_path / "plugin"]).gettext("es")

        assert gettext("Sources: {sources}") == "Según: {sources}"
        assert gettext("Hello") == "Hola"

    def test_a_plugin_may_add_a_language(self, tmp_path: Path) -> None:
        """A language that only a plugin has can be chosen like any other."""
        write(tmp_path / "bot", "es", pair("Hello", "Hola"))
        write(tmp_path / "plugin", "pt", pair("Hello", "Olá"))
        catalogs = Catalogs.load([tmp_path / "bot", tmp_path / "plugin"])

        assert catalogs.languages == ("es", "pt")
        assert catalogs.gettext("pt-BR")("Hello") == "Olá"

    @pytest.mark.parametrize(
        ("tag", "language"),
        [("es-MX", "es"), ("EN_gb.UTF-8", "en"), ("pt_BR", "pt_br"), ("pt-PT", None), ("", None), (None, None), ("C.UTF-8", None)],
    )
    def test_a_platforms_tag_names_a_language(self, tmp_path: Path, tag: str | None, language: str | None) -> None:
        """`match` knows regions and encodings, and says None for what it has no catalog for."""
        for code in ("es", "en", "pt_br"):
            write(tmp_path, code, "")

        assert Catalogs.load([tmp_path]).match(tag) == language

    def test_a_default_language_without_a_catalog_is_refused(self, tmp_path: Path) -> None:
        """The error names the setting and the languages there are."""
        write(tmp_path, "es", "")

        with pytest.raises(ConfigurationError, match=r"BOT_DEFAULT_LANGUAGE='fr' .*: es"):
            Catalogs.load([tmp_path], default="fr")

    def test_a_catalog_that_changed_is_read_again(self, tmp_path: Path) -> None:
        """What was read before is used only while the file is as it was."""
        path = write(tmp_path, "es", pair("Hello", "Hola"))
        before = Catalogs.load([tmp_path])
        path.write_text(HEADER + pair("Hello", "Buenas"), encoding="utf-8")

        assert Catalogs.load([tmp_path]).gettext("es")("Hello") == "Buenas"
        assert before.gettext("es")("Hello") == "Hola"

    def test_two_sets_of_catalogs_share_nothing(self, tmp_path: Path) -> None:
        """One bot's plugin rewords nothing for another bot in the same process."""
        write(tmp_path / "bot", "es", pair("Hello", "Hola"))
        write(tmp_path / "plugin", "es", pair("Hello", "Buenas"))
        with_plugin = Catalogs.load([tmp_path / "bot", tmp_path / "plugin"])
        swapped = Catalogs.load([tmp_path / "plugin", tmp_path / "bot"])
        alone = Catalogs.load([tmp_path / "bot"])

        assert [c.gettext("es")("Hello") for c in (with_plugin, swapped, alone)] == ["Buenas", "Hola", "Hola"]

    def test_the_bots_own_catalogs_load_quickly(self) -> None:
        """Reading and checking them is a small part of a start: 40 ms is aimed at, and ten times that is a fault."""
        started = time.perf_counter()
        catalogs = Catalogs.load()

        assert set(catalogs.languages) >= {"es", "en"}
        assert time.perf_counter() - started < 0.4


BROKEN = {
    "an unknown keyword": ('msgid "a"\nmsgstring "b"\n', 8),
    "an open quote": ('msgid "a\nmsgstr "b"\n', 7),
    "words after the quote": ('msgid "a"\nmsgstr "b" c\n', 8),
    "no translation": ('msgid "a"\n\nmsgid "b"\nmsgstr "c"\n', 7),
    "a missing placeholder": (pair("Erased {n} facts", "Borré datos"), 7),
    "another placeholder": (pair("Erased {n} facts", "Borré {m} datos"), 7),
    "a placeholder too many": (pair("Erased", "Borré {n}"), 7),
    "an open brace": (pair("Erased {n} facts", "Borré {n datos"), 7),
    "a stray brace": (pair("Erased {n} facts", "Borré {n} datos }"), 7),
    "another placeholder in a plural form": ('msgid "{n} fact"\nmsgid_plural "{n} facts"\nmsgstr[0] "un dato"\nmsgstr[1] "{x} datos"\n', 7),
    "too many plural forms": ('msgid "{n} a"\nmsgid_plural "{n} b"\nmsgstr[0] "a"\nmsgstr[1] "b"\nmsgstr[2] "c"\n', 7),
}


class TestBroken:
    @pytest.mark.parametrize(("body", "line"), BROKEN.values(), ids=BROKEN.keys())
    def test_a_broken_catalog_stops_the_start(self, tmp_path: Path, body: str, line: int) -> None:
        """It is named in one line, with file and line."""
        path = write(tmp_path, "es", body)

        with pytest.raises(ConfigurationError) as caught:
            Catalogs.load([tmp_path])
        assert str(caught.value).startswith(f"{path}:{line}: ")
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        "content",
        [
            b"\xff\xfe\x00",
            HEADER.replace("plural=(n != 1)", "plural=(n !=").encode(),
            HEADER.replace("nplurals=2", "nplurals=two").encode(),
            HEADER.replace("utf-8", "no-such-charset").encode() + pair("a", "á").encode(),
        ],
        ids=["not UTF-8", "no plural rule", "no number of plurals", "no charset"],
    )
    def test_a_header_that_cannot_work_stops_the_start(self, tmp_path: Path, content: bytes) -> None:
        """So does a file in another encoding, or a header whose plural rule or charset makes no sense."""
        path = write(tmp_path, "es", "")
        path.write_bytes(content)

        with pytest.raises(ConfigurationError, match=re.escape(str(path))):
            Catalogs.load([tmp_path])

    def test_a_plural_form_may_leave_out_the_number(self, tmp_path: Path) -> None:
        """ "un dato" is right for one, and so is a message whose singular has no number."""
        write(tmp_path, "es", 'msgid "one fact"\nmsgid_plural "{n} facts"\nmsgstr[0] "un dato"\nmsgstr[1] "{n} datos"\n')

        assert Catalogs.load([tmp_path]).ngettext("es")("one fact", "{n} facts", 3) == "{n} datos"

    def test_braces_in_a_message_that_is_not_formatted_are_text(self, tmp_path: Path) -> None:
        """A message such as `write {` is left alone."""
        write(tmp_path, "es", pair("write { first", "escribe { primero"))

        assert Catalogs.load([tmp_path]).gettext("es")("write { first") == "escribe { primero"


class TestDetect:
    @pytest.mark.parametrize(
        ("text", "language"),
        [
            ("¿Cómo borro todos mis datos?", "es"),
            ("como borro mis datos", "es"),
            ("QUE SABES DE MI", "es"),
            ("hola", "es"),
            ("sí", "es"),
            ("medios de pago", "es"),
            ("¿envío?", "es"),
            ("Me llamo John y vivo en New York", "es"),
            ("/remember Vivo en Bogotá", "es"),
            ("How do I delete my data?", "en"),
            ("what can you do", "en"),
            ("hello", "en"),
            ("yes", "en"),
            ("don’t", "en"),
            ("I live in Bogotá", "en"),
            ("My name is José Muñoz", "en"),
            ("/forget I live in Madrid", "en"),
            ("ok", None),
            ("123", None),
            ("ES91 2100 0418", None),
            ("no", None),
            ("", None),
            ("👍", None),
            ("/help", None),
            ("https://example.org/what/is/the/time", None),
            ("```\nfor what in the_list: is_it()\n```", None),
        ],
    )
    def test_the_language_of_a_short_message(self, text: str, language: str | None) -> None:
        """Function words, accents and ¿¡ñ tell; commands, addresses and code do not; what tells nothing is None."""
        assert detect(text) == language

    def test_a_long_message_takes_no_longer(self) -> None:
        """Only the beginning is looked at, so that a pasted book costs what a page does."""
        started = time.perf_counter()

        assert detect("¿qué es esto? " * 500_000) == "es"
        assert time.perf_counter() - started < 0.1

    @pytest.mark.parametrize("language", ["es", "en"])
    def test_real_questions(self, language: str) -> None:
        """Of 1,190 questions that people wrote, at most one in a hundred is taken for another language."""
        path = XQUAD / f"xquad_{language}.json"
        if not path.exists():
            pytest.skip(f"{path.name} is not there: the real questions are not part of the repository")
        questions = [item["question"] for item in json.loads(path.read_text(encoding="utf-8"))["questions"]]
        wrong = [question for question in questions if detect(question) != language]

        assert len(wrong) <= len(questions) // 100, wrong[:5]


def test_our_own_catalogs_are_there() -> None:
    """Spanish and English are what the bot comes with."""
    assert {path.name for path in LOCALES.iterdir() if path.is_dir() and not path.name.startswith("_")} >= {"es", "en"}
