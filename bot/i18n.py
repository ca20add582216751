"""The words that people read, in their language: gettext catalogs straight from `.po` files, and a guess at the language of a message."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING

from bot.errors import ConfigurationError, Gettext

if TYPE_CHECKING:
    from babel.messages.catalog import Catalog, Message

LOCALES = Path(__file__).resolve().parent.parent / "locales"
DOMAIN = "messages"
NGettext = Callable[[str, str, int], str]
_LINE = re.compile(r'(?:#.*|(?:(?:msgctxt|msgid|msgid_plural|msgstr(?:\[\d\])?)\s+)?"(?:[^"\\]|\\.)*")?\s*')

# ---------------------------------------------------------------------------------------------- catalogs


@dataclass(frozen=True, slots=True)
class Catalogs:
    """The messages of every language. A language that is not there reads the default one, a message that is not there its msgid."""

    default: str
    by_language: Mapping[str, NullTranslations]

    @classmethod
    def load(cls, directories: Iterable[Path] = (LOCALES,), *, default: str = "es") -> "Catalogs":
        """Read `<lang>/LC_MESSAGES/messages.po` in each directory; a later directory wins, message by message.

        Raises ConfigurationError, in one line with file, line and message, for a catalog that is broken or a default language without one.
        """
        found: dict[str, NullTranslations] = {}
        for directory in directories:
            for path in sorted(Path(directory).glob(f"*/LC_MESSAGES/{DOMAIN}.po")):
                language = path.parent.parent.name
                translations = _translations(path)
                if language in found:
                    translations.add_fallback(found[language])
                found[language] = translations
        if default not in found:
            there = ", ".join(sorted(found)) or "none"
            raise ConfigurationError(f"BOT_DEFAULT_LANGUAGE={default!r} has no catalog; languages there are: {there}")
        return cls(default, found)

    @property
    def languages(self) -> tuple[str, ...]:
        """The codes of the languages there are, the default one first."""
        return (self.default, *sorted(self.by_language.keys() - {self.default}))

    def match(self, tag: str | None) -> str | None:
        """The language that a platform's tag (`es-MX`, `en_GB.UTF-8`) stands for, or None where there is no catalog for it."""
        if not tag or tag in self.by_language:
            return tag or None
        words = re.split(r"[-_.@]", tag.casefold())
        return next((code for code in ("_".join(words[:2]), words[0]) if code in self.by_language), None)

    def gettext(self, language: str | None) -> Gettext:
        """The function that translates a message."""
        return self._of(language).gettext

    def ngettext(self, language: str | None) -> NGettext:
        """The function that translates a message with a number: `(singular, plural, n)`."""
        return self._of(language).ngettext

    def _of(self, language: str | None) -> NullTranslations:
        return self.by_language[self.match(language) or self.default]


def _translations(path: Path) -> GNUTranslations:
    """The catalog in a file. It goes through the compiled form in memory, so that there is no build step to forget."""
    try:
        written = path.stat()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    return GNUTranslations(BytesIO(_compiled(path, (written.st_mtime_ns, written.st_size))))


@lru_cache(maxsize=64)
def _compiled(path: Path, written: tuple[int, int]) -> bytes:
    """The compiled form, made once for each state of the file: a process may open many bots, in its tests say."""
    from babel.messages.mofile import write_mo  # with its reader 10 ms, and nothing but a start needs them

    compiled = BytesIO()
    try:
        write_mo(compiled, parse(path))
        GNUTranslations(BytesIO(compiled.getvalue()))
    except (ValueError, LookupError, OSError) as error:  # an impossible plural rule or charset in the header
        raise ConfigurationError(f"{path}:1: the header cannot work: {error}") from error
    return compiled.getvalue()


def parse(path: Path) -> "Catalog":
    """The messages of a `.po` file, checked. Raises ConfigurationError with file, line and message."""
    from babel.messages.pofile import PoFileError, read_po

    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if not _LINE.fullmatch(line):
            raise ConfigurationError(f"{path}:{number}: this is no line of a .po file: {line!r}")
    try:
        catalog = read_po(lines, abort_invalid=True)
    except PoFileError as error:
        raise ConfigurationError(f"{path}:{error.lineno + 1}: {error}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:  # how the reader fails on a broken header or order of lines
        raise ConfigurationError(f"{path}: cannot be read as a catalog: {error!r}") from error
    for message in catalog:
        if message.id and (fault := mismatch(message)):
            raise ConfigurationError(f"{path}:{message.lineno}: {fault}")
    return catalog


def mismatch(message: "Message") -> str | None:
    """What is wrong with the placeholders of a translation, or None.

    A translation has the `{names}` of its message. A plural form may leave some out ("one fact" for `{n}`), but has no others.
    """
    ids, strings = _forms(message.id), _forms(message.string)
    try:
        wanted = frozenset[str]().union(*map(placeholders, ids))
    except ValueError:  # braces that are no placeholders: the message is not one to be formatted
        return None
    for string in filter(None, strings):
        try:
            there = placeholders(string)
        except ValueError as error:
            return f"the translation {string!r} has a broken placeholder: {error}"
        if there - wanted or (len(ids) == 1 and there != wanted):
            return f"the translation {string!r} has the placeholders {_listed(there)}, its message {ids[0]!r} has {_listed(wanted)}"
    return None


def _forms(value: str | Sequence[str] | None) -> Sequence[str]:
    return [value] if isinstance(value, str) else value or ()


def placeholders(text: str) -> frozenset[str]:
    """The `{names}` in a text. Raises ValueError where a brace is open."""
    return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)


def _listed(names: frozenset[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names)) or "none"


# ---------------------------------------------------------------------------------------------- the language of a message


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORDS = {
    "es": _set(
        """
        al algo alguien algun alguna ante antes aqui asi aun aunque ayer bien buen buena buenas bueno buenos cada casi como con
        cual cuales cualquier cuando cuanta cuantas cuanto cuantos de debo del desde despues dia dias dime donde dos el ella ellos
        en entonces entre eras eres es esa esas ese eso esos esta estan estas este esto estos estoy fue gracias haber hace hacen
        hacer haces hacia hago hasta hay hola hoy igual la las le les lo los luego llamo mas mejor mi mis mucho muchos muy nada
        nadie ni nos nosotros nuestra nuestro nunca o olvida otra otro para pero poco por porque puede pueden puedes puedo pues
        que quien quienes quiero quieres recuerda saber sabes se segun ser si sido siempre sin sobre sois somos soy su sus tambien
        te tengo ti tiene tienen tienes toda todas todavia todo todos tu tus un una unas uno unos usted ustedes va vamos ver vez
        vivo voy y ya yo adios ayuda borra borrar borro cuesta datos envio gusta hablame explica documentos preguntas
        """
    ),
    "en": _set(
        """
        about add after all also am an and any are aren't be because been before being but by bye can cannot could did do does doing
        done each erase every for forget from get give goodbye had hello help her here hey hi him his how i if in into is it its
        just know let like live make many much my name need never new not now of off on one or other our out over please prefer
        really remember say she should some tell than thank thanks that the their them then there these they this those through to
        too under until up us very want was we were what when where which while who whom whose why will with without work would yes
        yet you your yours delete data documents questions good morning
        """
    ),
}
_TOKEN = re.compile(r"\b[^\W\d_]+(?:['’][^\W\d_]+)?\b")  # the letters of `ES91` are no word
_NOT_PROSE = re.compile(r"```.*?(?:```|\Z)|`[^`]*`|\S+://\S+|^/\w+", re.DOTALL)
_CONTRACTION = re.compile(r"['’](?:s|t|m|d|re|ve|ll)\Z")
_UNACCENTED = str.maketrans("áéíóúü", "aeiouu")
_LONGEST = 2000  # characters looked at: the language of a message shows at its beginning


def detect(text: str) -> str | None:
    """The language that a message is written in, `"es"` or `"en"`, or None where it does not show (`ok`, `123`)."""
    prose = _NOT_PROSE.sub(" ", text[:_LONGEST]).casefold()
    words = _TOKEN.findall(prose)
    spanish = sum(word.translate(_UNACCENTED) in _WORDS["es"] or word.endswith(("ción", "mente")) for word in words)
    spanish += 2 * bool(re.search("[¿¡]", prose)) + bool(re.search("[áíóúñ]", prose))
    english = sum(word in _WORDS["en"] or word.endswith(("tion", "ing")) or bool(_CONTRACTION.search(word)) for word in words)
    return None if spanish == english else "es" if spanish > english else "en"
