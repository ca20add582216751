"""Word (DOCX) to sections: its text as it reads now, headings above it, tables and code whole. Nothing is fetched or run."""

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from plugins.rag.loaders import Loaded
from plugins.rag.loaders.outline import MOST_SPANNED, Block, fence, sections, table
from plugins.rag.text import clean

MOST_UNPACKED = 32 << 20  # bytes of XML in one part: a few kilobytes can claim to be gigabytes

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT = b"http://purl.oclc.org/ooxml/wordprocessingml/main"  # the same words under another roof
_OFFICE = "/relationships/officeDocument"
_SKIPPED = frozenset(("del", "moveFrom", "instrText", "delText", "rPr", "pPr", "sdtPr", "Fallback", "rt"))
_WRAPPERS = frozenset(("sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag", "body"))
_NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes"}
_HEADING = re.compile(r"heading ([1-9])")
_CODE = re.compile(r"\bcode\b|preformatted|verbatim|listing|código", re.IGNORECASE)
_OLE = b"\xd0\xcf\x11\xe0"


@dataclass(frozen=True, slots=True)
class _Style:
    """What a style says, by itself; None where it leaves it to the one that it is based on."""

    name: str = ""
    based: str = ""
    level: int | None = None
    hidden: bool | None = None
    listed: bool | None = None


@dataclass(slots=True)
class _Reading:
    """One document: its parts by name, its styles, its notes."""

    package: zipfile.ZipFile
    styles: dict[str, _Style] = field(default_factory=dict)
    notes: dict[str, dict[str, Any]] = field(default_factory=dict)


class _Refused(Exception):
    """A file that is not read; its arguments are a status and a detail."""


def load(data: bytes) -> Loaded:
    """The sections of a document; else the reason for none: `encrypted`, `too_big`, `broken`, `empty`."""
    if data.startswith(_OLE):
        locked = "EncryptedPackage".encode("utf-16-le") in data
        return Loaded(status="encrypted") if locked else Loaded(status="broken", detail="Word 97-2003 (.doc)")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as package:
            found = tuple(sections(_document(_Reading(package))))
    except _Refused as refusal:
        return Loaded(status=refusal.args[0], detail=refusal.args[1])
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError):
        return Loaded(status="broken", detail="zip")
    return Loaded(found) if found else Loaded(status="empty")


def weight(data: bytes) -> int:
    """How many bytes of XML a file claims to hold; 0 for what is no such file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as package:
            return sum(item.file_size for item in package.infolist() if item.filename.endswith((".xml", ".rels")))
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return 0


# ---------------------------------------------------------------------------------------------- the package


def _document(reading: _Reading) -> Iterator[Block]:
    main = next((target for kind, target in _relations(reading, "") if kind.endswith(_OFFICE)), "word/document.xml")
    root = _part(reading, main)
    if root is None or _name(root) != "document":
        raise _Refused("broken", "≠ DOCX")
    related = {kind.rsplit("/", 1)[-1]: target for kind, target in _relations(reading, main)}
    if "styles" in related and (styles := _part(reading, related["styles"])) is not None:
        reading.styles = {style.get(f"{_W}styleId") or "": _style(style) for style in styles.iter(f"{_W}style")}
    for kind in _NOTES.values():
        if kind in related and (notes := _part(reading, related[kind])) is not None:
            reading.notes[kind] = {note.get(f"{_W}id") or "": note for note in notes if isinstance(note.tag, str)}
    body = root.find(f"{_W}body")
    return _blocks(reading, body) if body is not None else iter(())


def _relations(reading: _Reading, part: str) -> list[tuple[str, str]]:
    """What a part refers to inside the file, by kind."""
    folder, name = posixpath.split(part)
    root = _part(reading, posixpath.join(folder, "_rels", f"{name}.rels"))
    if root is None:
        return []
    inside = [one for one in root if isinstance(one.tag, str) and one.get("TargetMode") != "External"]
    return [(one.get("Type") or "", posixpath.normpath(posixpath.join("/", folder, one.get("Target") or ""))[1:]) for one in inside]


def _part(reading: _Reading, name: str) -> Any:
    """The tree of a part, or None where there is none of that name."""
    from lxml import etree  # type: ignore[import-untyped]

    try:
        about = reading.package.getinfo(name)
    except KeyError:
        return None
    if about.flag_bits & 1:
        raise _Refused("encrypted", "")
    if about.file_size > MOST_UNPACKED:
        raise _Refused("too_big", f"{name}: {about.file_size >> 20} MB")
    data = reading.package.read(about)  # no more than it claims: what does not match is refused by its checksum
    if b"<!" in data.replace(b"<!--", b"").replace(b"<![CDATA[", b"").replace(b"\0", b""):
        raise _Refused("broken", "<!ENTITY>")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True)
    try:
        return etree.fromstring(data.replace(_STRICT, _W[1:-1].encode()), parser)
    except etree.XMLSyntaxError as error:
        raise _Refused("broken", name) from error


def _name(element: Any) -> str:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


# ---------------------------------------------------------------------------------------------- styles


def _style(element: Any) -> _Style:
    name, based = element.find(f"{_W}name"), element.find(f"{_W}basedOn")
    level = element.find(f"{_W}pPr/{_W}outlineLvl")
    vanish = element.find(f"{_W}rPr/{_W}vanish")
    listed = element.find(f"{_W}pPr/{_W}numPr")
    return _Style(
        name=(name.get(f"{_W}val") or "") if name is not None else "",
        based=(based.get(f"{_W}val") or "") if based is not None else "",
        level=_number(level) if level is not None else None,
        hidden=_on(vanish) if vanish is not None else None,
        listed=True if listed is not None else None,
    )


def _number(element: Any) -> int:
    given = element.get(f"{_W}val") or ""
    return int(given) if given.isascii() and given.isdigit() and len(given) < 4 else 9


def _on(element: Any) -> bool:
    return element.get(f"{_W}val", "true") not in ("0", "false", "off")


def _chain(reading: _Reading, style: str | None) -> Iterator[_Style]:
    """A style and those that it is based on, which may run in a circle."""
    met: set[str] = set()
    while style and style not in met and (found := reading.styles.get(style)) is not None:
        met.add(style)
        yield found
        style = found.based


def _styled(element: Any, properties: str, style: str) -> str | None:
    found = element.find(f"{_W}{properties}/{_W}{style}")
    return found.get(f"{_W}val") if found is not None else None


def _heading(reading: _Reading, paragraph: Any) -> int | None:
    """The level of a heading: 0 for the title, then 1 to 9; None for text."""
    outline = paragraph.find(f"{_W}pPr/{_W}outlineLvl")
    if outline is not None:
        return _number(outline) + 1 if _number(outline) < 9 else None
    for style in _chain(reading, _styled(paragraph, "pPr", "pStyle")):
        if match := _HEADING.fullmatch(style.name.casefold()):
            return int(match[1])
        if style.name.casefold() == "title":
            return 0
        if style.level is not None:
            return style.level + 1 if style.level < 9 else None
    return None


def _hidden(reading: _Reading, run: Any) -> bool:
    """Whether a run is hidden text: by itself, by its style, or by that of its paragraph."""
    own = run.find(f"{_W}rPr/{_W}vanish")
    if own is not None:
        return _on(own)
    paragraph = next(run.iterancestors(f"{_W}p"), None)
    styles = [_styled(run, "rPr", "rStyle"), _styled(paragraph, "pPr", "pStyle") if paragraph is not None else None]
    return next((style.hidden for name in styles for style in _chain(reading, name) if style.hidden is not None), False)


# ---------------------------------------------------------------------------------------------- the text


def _blocks(reading: _Reading, parent: Any) -> Iterator[Block]:
    """Paragraphs and tables in order, also those inside of content controls and what was inserted."""
    code: list[str] = []
    for element in _inside(parent):
        paragraph = _name(element) == "p"
        if paragraph and _is_code(reading, element):
            code.append(_text(reading, element))
            continue
        if code:
            yield from _fenced(code)
            code = []
        yield from _paragraph(reading, element) if paragraph else _table(reading, element)
    yield from _fenced(code)


def _fenced(code: list[str]) -> list[Block]:
    return [Block(fence("\n".join(code)))] if any(line.strip() for line in code) else []


def _inside(parent: Any) -> Iterator[Any]:
    stack = list(reversed(parent))
    while stack:
        element = stack.pop()
        name = _name(element)
        if name in _WRAPPERS:
            stack.extend(reversed(element))
        elif name in ("p", "tbl"):
            yield element


def _is_code(reading: _Reading, paragraph: Any) -> bool:
    return any(_CODE.search(style.name) for style in _chain(reading, _styled(paragraph, "pPr", "pStyle")))


def _paragraph(reading: _Reading, paragraph: Any) -> Iterator[Block]:
    text = "\n".join(" ".join(line.split()) for line in _text(reading, paragraph).split("\n")).strip()
    if not text:
        return
    level = _heading(reading, paragraph)
    if level is not None:
        yield Block(" ".join(text.split()), level)
    elif (depth := _depth(reading, paragraph)) is not None:
        yield Block(f"{'  ' * depth}- " + text.replace("\n", "\n" + "  " * (depth + 1)), tight=True)
    else:
        yield Block(text)


def _depth(reading: _Reading, paragraph: Any) -> int | None:
    """How deep in a list a paragraph stands; None outside of one."""
    own = paragraph.find(f"{_W}pPr/{_W}numPr")
    if own is None:
        return 0 if any(style.listed for style in _chain(reading, _styled(paragraph, "pPr", "pStyle"))) else None
    number, level = own.find(f"{_W}numId"), own.find(f"{_W}ilvl")
    if number is not None and number.get(f"{_W}val") == "0":
        return None
    return min(_number(level), 8) if level is not None else 0


def _text(reading: _Reading, element: Any) -> str:
    """The text of a paragraph (or of whatever holds some) as it reads: without what was deleted, hidden, or is there twice."""
    parts: list[str] = []
    stack = list(reversed(element))
    while stack:
        one = stack.pop()
        name = _name(one)
        if name in _SKIPPED or not name or (name == "r" and _hidden(reading, one)):
            continue
        if name == "t":
            parts.append(one.text or "")
        elif name in ("br", "cr", "p", "tab"):
            parts.append("\t" if name == "tab" else "\n")
        elif name in ("noBreakHyphen", "softHyphen"):
            parts.append("-" if name == "noBreakHyphen" else "")
        elif name in _NOTES:
            parts.append(_note(reading, _NOTES[name], one.get(f"{_W}id") or ""))
        stack.extend(reversed(one))
    return clean("".join(parts))


def _note(reading: _Reading, kind: str, number: str) -> str:
    """A note stands in brackets where it is referred to, once: it belongs to that sentence."""
    note = reading.notes.get(kind, {}).pop(number, None)
    words = " ".join(_text(reading, note).split()) if note is not None else ""
    return f" ({words})" if words else ""


def _table(reading: _Reading, element: Any) -> Iterator[Block]:
    """A table whole; one of a single column is a frame around its text."""
    rows: list[list[str]] = []
    for row in _children(element, "tr"):
        if row.find(f"{_W}trPr/{_W}del") is not None:
            continue
        cells: list[str] = []
        for cell in _children(row, "tc"):
            cells += _cell(reading, cell, rows[-1] if rows else [], len(cells))
        rows.append(cells)
    if max(map(len, rows), default=0) < 2:
        for row in _children(element, "tr"):
            for cell in _children(row, "tc"):
                yield from _blocks(reading, cell)
    elif text := table(rows):
        yield Block(text)


def _children(element: Any, wanted: str) -> Iterator[Any]:
    stack = list(reversed(element))
    while stack:
        one = stack.pop()
        name = _name(one)
        if name == wanted:
            yield one
        elif name in _WRAPPERS:
            stack.extend(reversed(one))


def _cell(reading: _Reading, cell: Any, above: list[str], column: int) -> list[str]:
    merged = cell.find(f"{_W}tcPr/{_W}vMerge")
    span = cell.find(f"{_W}tcPr/{_W}gridSpan")
    width = max(1, min(_number(span), MOST_SPANNED)) if span is not None else 1
    continued = merged is not None and merged.get(f"{_W}val", "continue") == "continue"
    text = (above[column] if column < len(above) else "") if continued else _text(reading, cell)
    return [text, *[""] * (width - 1)]
