"""A model's Markdown as Telegram shows it: plain text and the entities over it. Nothing that was written is lost."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from telegramify_markdown import RenderConfig

log = logging.getLogger(__name__)

BULLET = "•"
WEB = ("http://", "https://", "tg://", "mailto:")

# What no parser is needed for: lines that begin no list, title, quote or rule, of words, citation marks and `code`.
_CODE = r"[^\s`*~\[\]<>|\\&$]++"
_PIECE = (
    r"(?:[^\0-\x1f\x7f-\x9f*_~`\[\]<|\\&$]++"
    r"|\[\d++(?:, ?\d++)*+\](?![(:])"
    r"|(?<=[^\W_])_(?=[^\W_])"
    rf"|`{_CODE}(?: {_CODE})*+`(?!`))"
)
_LINE = rf"(?![\s#>+=:\ufeff-]|\d++[.)]){_PIECE}++(?<!\s)"
SIMPLE = re.compile(rf"{_LINE}(?:\n\n?+{_LINE})*+")


@dataclass(frozen=True, slots=True)
class Entity:
    """A format over a part of a text; `offset` and `length` are in UTF-16 units, as Telegram counts."""

    type: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None

    @property
    def end(self) -> int:
        """The unit after the last one."""
        return self.offset + self.length

    def to_json(self) -> dict[str, Any]:
        """As the Bot API takes it."""
        fields = {"type": self.type, "offset": self.offset, "length": self.length, "url": self.url, "language": self.language}
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Formatted:
    """A text and the entities over it."""

    text: str
    entities: tuple[Entity, ...] = ()


def units(text: str) -> int:
    """How long Telegram takes a text to be: in UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cleaned(text: str) -> str:
    """A text that can be sent: no NUL, no lone surrogates."""
    if "\0" in text:
        text = text.replace("\0", "")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def plain(text: str) -> Formatted:
    """A text as it stands."""
    return Formatted(cleaned(text))


def formatted(markdown: str) -> Formatted:
    """Markdown as text and entities; the text as it stands where it cannot be read as Markdown."""
    text = cleaned(markdown)
    return simple(text) or parsed(text)


def simple(text: str) -> Formatted | None:
    """What `parsed` gives, a tenth of its time, where that is plain to see; None where a text has to be parsed."""
    if SIMPLE.fullmatch(text) is None:
        return None
    if "`" not in text:
        return Formatted(text)
    pieces = text.split("`")
    lengths = [units(piece) for piece in pieces]
    codes = tuple(Entity("code", sum(lengths[:n]), lengths[n]) for n in range(1, len(pieces), 2))
    return Formatted("".join(pieces), codes)


def parsed(text: str) -> Formatted:
    """Any Markdown that can be sent as text and entities."""
    try:
        shown, entities = _converted(_without_html(text))
    except Exception as error:  # noqa: BLE001 - a parser that stumbles over a model's words must not hold up the answer
        log.warning("an answer is sent without its formatting: %s", type(error).__name__)
        return Formatted(text)
    if not (shown := shown.rstrip()):
        return Formatted(text)
    end = units(shown)
    return Formatted(shown, tuple(one for one in (_usable(one, end) for one in entities) if one is not None))


def _converted(markdown: str) -> tuple[str, Sequence[Any]]:
    from telegramify_markdown import convert

    return convert(markdown, latex_escape="\\" in markdown, config=_look())


def _usable(entity: Any, end: int) -> Entity | None:
    """An entity of the library as ours, up to the `end` of the text; None for what Telegram would refuse a whole message for."""
    if entity.type == "underline":
        return None  # the library underlines titles, which are bold too
    if entity.type == "text_link" and not (entity.url or "").startswith(WEB):
        return None
    length = min(entity.offset + entity.length, end) - entity.offset
    if length <= 0:
        return None
    words = (entity.language or "").split()
    return Entity(entity.type, entity.offset, length, entity.url, words[0][:64] if words else None)


@lru_cache(maxsize=1)
def _look() -> "RenderConfig":
    from telegramify_markdown import RenderConfig

    look = RenderConfig.isolated()
    for level in range(1, 7):
        setattr(look.markdown_symbol, f"heading_level_{level}", "")
    look.markdown_symbol.image = look.markdown_symbol.link = ""
    look.markdown_symbol.unordered_list_item = BULLET
    return look


def _without_html(markdown: str) -> str:
    """The same with a backslash before each `<` that would begin a tag: tags are dropped otherwise, as in `List<int>`."""
    if "<" not in markdown:
        return markdown
    import pyromark
    from telegramify_markdown.converter import STANDARD_OPTIONS

    for _ in range(8):  # what follows an escaped tag may turn out to be one
        source = markdown.encode("utf-8")
        tags = [
            at for payload, span in pyromark.events_with_range(markdown, options=STANDARD_OPTIONS) for at in _tags(payload, span, source)
        ]
        if not tags:
            break
        bounds = [0, *sorted(set(tags)), len(source)]
        markdown = b"\\".join(source[a:b] for a, b in pairwise(bounds)).decode("utf-8")
    return markdown


def _tags(payload: Any, span: Any, source: bytes) -> list[int]:
    if not isinstance(payload, dict) or not ("Html" in payload or "InlineHtml" in payload):
        return []
    part = source[span["start"] : span["end"]]
    return [span["start"] + at for at, byte in enumerate(part) if byte == ord("<") and (at == 0 or part[at - 1] != ord("\\"))]
