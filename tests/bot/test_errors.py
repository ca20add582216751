"""One tree of errors: stable codes, and words that hold nothing of the person's."""

import inspect

import pytest

from bot import errors
from bot.errors import BadRequest, BotError, ConfigurationError, RagError, StorageError
from bot.i18n import Catalogs

TREE = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, BotError)]


def test_each_has_a_code_of_its_own() -> None:
    """A code names one kind, in capitals, and never changes with the text."""
    codes = [kind.code for kind in TREE if kind is not RagError]  # RagError has one for each instance

    assert len(set(codes)) == len(codes)
    assert all(code == code.upper() and code.isascii() for code in codes)


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_the_drawing_is_true(kind: type[BotError]) -> None:
    """The tree at the top of the module shows every class, below the one that it is a kind of."""
    drawing = (errors.__doc__ or "").splitlines()
    depth = {line.strip("│├└─ ").split()[0]: len(line) - len(line.lstrip("│├└─ ")) for line in drawing if line.startswith("    ")}

    assert depth[kind.__name__] == 4 + 4 * (len(kind.__mro__) - 4)


@pytest.mark.parametrize("kind", [kind for kind in TREE if kind not in (RagError, BadRequest)], ids=lambda kind: kind.__name__)
def test_words_are_translated_and_say_nothing_of_the_cause(kind: type[BotError]) -> None:
    """A person reads a sentence of the catalogs; the text for the log is not in it."""
    catalogs = Catalogs.load()
    english, spanish = (kind("/secret/path").words(catalogs.gettext(lang)) for lang in ("en", "es"))

    assert english != spanish
    assert "/secret/path" not in english + spanish


def test_a_bad_request_says_its_own_sentence() -> None:
    """It was made with the words that the person reads."""
    assert BadRequest("No conozco ese idioma").words(str.upper) == "No conozco ese idioma"


def test_a_rag_error_names_its_kind_and_source() -> None:
    """`code` says which of the kinds, `source` which file."""
    error = RagError("LOAD_FAILED", "broken", source="a.pdf")

    assert (error.code, error.source, str(error)) == ("LOAD_FAILED", "a.pdf", "broken")


def test_kinds_can_be_caught_by_their_parent() -> None:
    """Whoever answers a failure of storage answers a database that is too new as well."""
    assert issubclass(errors.SchemaTooNew, StorageError)
    assert not issubclass(ConfigurationError, StorageError)
