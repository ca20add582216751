"""HTML to sections: what a reader of the page sees, headings above it, tables and code whole. Nothing is fetched."""

import codecs
import re
from collections.abc import Iterator
from typing import Any

from plugins.rag.loaders import Loaded
from plugins.rag.loaders.outline import MOST_SPANNED, Block, fence, sections, table
from plugins.rag.text import NotText, clean, decode

_DROPPED = re.compile(
    "script|style|template|noscript|nav|head|iframe|object|embed|applet|svg|canvas|math|audio|video|map|select|datalist|input|textarea|"
    "progress|meter"
)
_BLOCK = re.compile(
    "address|article|aside|blockquote|body|caption|center|dd|details|dialog|div|dl|dt|fieldset|figcaption|figure|footer|form|header|hgroup|"
    "hr|html|legend|li|main|menu|ol|p|section|summary|table|tbody|td|tfoot|th|thead|tr|ul"
)
_ITEMS = frozenset(("li", "dt", "dd"))
_LISTS = frozenset(("ul", "ol", "menu"))
_LAYOUT = frozenset(("table", "h1", "h2", "h3", "h4", "h5", "h6", "pre"))  # a table with such things in it only arranges the page
_HEADING = re.compile(r"h([1-6])")
_UNSEEN = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|(?:font-size|opacity|max-height):0(?:[a-z%]*(?:;|!|$)|\.0*(?:[a-z%]|;|!|$))"
)
_ROLES = frozenset(("navigation", "menu", "menubar", "search", "toolbar"))
_LANGUAGE = re.compile(r"(?:language|lang|highlight-source)-([\w+#-]{1,20})")

_TAG = re.compile(r"<(?:!doctype|!--|/?[a-z][a-z0-9-]*[\s/>])", re.IGNORECASE)
_DECLARED = re.compile(
    rb"""<meta[^>]{0,300}?charset\s*=\s*["']?\s*([\w.:-]{2,30})|\A\s*<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w.:-]{2,30})""", re.IGNORECASE
)
_TEXTUAL = re.compile(r"utf-(?:8|16|32)|iso8859-\d+|cp\d+|koi8|shift_jis|euc|gb|big5|iso2022_jp|mac|johab|tis-620|hz")
_BY_STANDARD = {"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "tis-620": "cp874", "gb2312": "gb18030", "gbk": "gb18030"}
_SIGNS = {b"%PDF": "PDF", b"PK\x03\x04": "zip", b"\xd0\xcf\x11\xe0": "Office", b"\x89PNG": "PNG", b"GIF8": "GIF", b"\xff\xd8\xff": "JPEG"}
_SIGNS |= {b"{\\rtf": "RTF", b"\x1f\x8b": "gzip", b"MIME-Version:": "MHTML", b"From: <Saved by": "MHTML"}

_BREAK = "\x0b"  # stands for <br>: `clean` leaves none in a text


def load(data: bytes) -> Loaded:
    """The sections of a page; `broken` for what is no HTML."""
    start = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n")
    for sign, name in _SIGNS.items():
        if start.startswith(sign):
            return Loaded(status="broken", detail=name)
    try:
        text = decoded(data)
    except NotText:
        return Loaded(status="broken")
    if not text.strip():
        return Loaded(status="empty")
    if not _TAG.search(text):
        return Loaded(status="broken", detail="≠ HTML")
    root, whole = _parsed(text)
    if root is None:
        return Loaded(status="empty")
    title = " ".join(clean(root.findtext("head/title") or "").split())
    found = tuple(sections(_Walk().blocks(root), title=title))
    if not found:
        return Loaded(status="empty")
    return Loaded(found) if whole else Loaded(found, "partly", "> 2048 <>")


def decoded(data: bytes) -> str:
    """The text of a page: by its byte order mark, as UTF-8 where it is that, by what it declares, else by what its bytes tell.

    Raises NotText.
    """
    declared = _declared(data[:4096])
    if declared and not _is_utf8(data) and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" not in data[:200]:
        return clean(data.decode(declared, "replace"))
    return decode(data)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\x1b$" not in data  # Japanese in seven bits


def _declared(head: bytes) -> str | None:
    found = _DECLARED.search(head)
    if not found:
        return None
    try:
        name = codecs.lookup((found[1] or found[2]).decode("ascii")).name
    except (LookupError, UnicodeDecodeError):
        return None
    if not _TEXTUAL.match(name) or name.startswith("utf"):
        return None  # it declares UTF-8 and is none: its bytes tell more
    return _BY_STANDARD.get(name, name)


def _parsed(text: str) -> tuple[Any, bool]:
    """The tree of a page, and whether it is all of it: nesting that is too deep is cut off."""
    from lxml import etree  # type: ignore[import-untyped]

    parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True, huge_tree=True)
    root = etree.fromstring(text.encode(), parser)
    return root, not any(entry.level_name == "FATAL" for entry in parser.error_log)


class _Walk:
    """Goes through a tree without recursion, as no depth may be too deep, and gives its blocks."""

    def __init__(self) -> None:
        self._done: list[Block] = []
        self._inline: list[str] = []
        self._heading: int | None = None
        self._lists: list[int | None] = []  # the number of the next item of each open list; None where they have none
        self._marker: str | None = None  # what stands before the next line of an item; None outside of one

    def blocks(self, root: Any) -> Iterator[Block]:
        """The blocks of a tree in order."""
        stack: list[tuple[Any, bool]] = [(root, False)]
        while stack:
            element, ended = stack.pop()
            if ended:
                self._end(element)
            elif self._start(element):
                self._inline.append(element.text or "")
                stack.append((element, True))
                stack.extend((child, False) for child in reversed(element))
                continue
            if element is not root:
                self._inline.append(element.tail or "")
            yield from self._done
            self._done.clear()
        self._flush()
        yield from self._done

    def _start(self, element: Any) -> bool:
        """Take an element up; False where nothing in it is to be walked."""
        tag = element.tag
        if not isinstance(tag, str) or hidden(element) or (tag == "button" and self._heading is None):
            return False
        if tag in ("br", "img", "wbr"):
            self._inline.append(_BREAK if tag == "br" else f" {element.get('alt') or ''} " if tag == "img" else "")
            return False
        if tag == "pre" or (tag == "table" and not _layout(element)):
            self._flush()
            self._whole(element)
            return False
        level = _level(element)
        if level is not None or _BLOCK.fullmatch(tag):
            self._flush()
        if level is not None:
            self._heading = level
        if tag in _LISTS:
            self._lists.append(
                int(start) if tag == "ol" and (start := element.get("start") or "1").isdecimal() and len(start) < 10 else None
            )
        elif tag == "li":
            self._marker = self._item()
        elif tag in ("dt", "dd"):
            self._marker = "  " if tag == "dd" else ""
        return True

    def _end(self, element: Any) -> None:
        tag = element.tag
        if _BLOCK.fullmatch(tag) or _level(element) is not None:
            self._flush()
            self._heading = None
        if tag in _LISTS and self._lists:
            self._lists.pop()
        if tag in _ITEMS:
            self._marker = None

    def _item(self) -> str:
        indent = "  " * max(0, min(len(self._lists), 8) - 1)
        number = self._lists[-1] if self._lists else None
        if number is None:
            return f"{indent}- "
        self._lists[-1] = number + 1
        return f"{indent}{number}. "

    def _flush(self) -> None:
        """What was gathered becomes a block."""
        lines = [" ".join(line.split()) for line in "".join(self._inline).split(_BREAK)]
        self._inline.clear()
        text = clean("\n".join(lines)).strip()  # a page can spell any character by its number
        if not text:
            return
        if self._heading is not None:
            self._done.append(Block(" ".join(text.split()), self._heading))
        elif self._marker is not None:
            space = " " * len(self._marker)
            self._done.append(Block(self._marker + text.replace("\n", f"\n{space}"), tight=True))
            self._marker = space
        else:
            self._done.append(Block(text))

    def _whole(self, element: Any) -> None:
        """A table or code, which stays together."""
        if element.tag == "pre":
            code = seen(element, keep=True)
            named = " ".join([element.get("class") or "", *(child.get("class") or "" for child in element)])
            language = _LANGUAGE.search(named)
            if code.strip():
                self._done.append(Block(fence(code, language[1] if language else "")))
            return
        for caption in element.iterchildren("caption"):
            self._done += [Block(text)] if (text := " ".join(seen(caption).split())) else []
        if text := table(list(_rows(element))):
            self._done.append(Block(text))


def hidden(element: Any) -> bool:
    """Whether a reader of the page does not see an element, or it is no content: menus, scripts, fields to fill in."""
    has = element.get
    if _DROPPED.fullmatch(element.tag) or (has("hidden") is not None and has("hidden") != "until-found") or has("aria-hidden") == "true":
        return True
    if has("role") in _ROLES or (element.tag == "dialog" and has("open") is None):
        return True
    style = has("style")
    return bool(style and _UNSEEN.search("".join(style.split()).casefold()))


def seen(element: Any, *, keep: bool = False) -> str:
    """The text that a reader sees in an element, on one line; `keep`: with its line ends, as in code."""
    parts: list[str] = []
    stack: list[tuple[Any, bool]] = [(element, False)]
    while stack:
        one, ended = stack.pop()
        shown = isinstance(one.tag, str) and not hidden(one)
        apart = shown and not keep and (one.tag == "br" or _BLOCK.fullmatch(one.tag))
        parts.append(" " if apart else "\n" if shown and one.tag == "br" and not ended else "")
        if shown and not ended:
            parts += [one.text or "", (one.get("alt") or "") if one.tag == "img" else ""]
            stack.append((one, True))
            stack.extend((child, False) for child in reversed(one))
        elif one is not element:
            parts.append(one.tail or "")
    return clean("".join(parts))


def _level(element: Any) -> int | None:
    if match := _HEADING.fullmatch(element.tag):
        return int(match[1])
    if element.get("role") == "heading":
        level = element.get("aria-level") or "2"
        return int(level) if level in "123456" and len(level) == 1 else 2
    return None


def _layout(element: Any) -> bool:
    """Whether a table only arranges the page: it holds headings or other tables, or has a single column."""
    if element.get("role") in ("presentation", "none") or any(inner.tag in _LAYOUT for inner in element.iterdescendants()):
        return True
    return all(len([cell for cell in row if cell.tag in ("td", "th")]) < 2 for row in element.iter("tr"))


def _rows(element: Any) -> Iterator[list[str]]:
    """The cells of each row. What spans several rows stands in each of them, so that a row can be read by itself."""
    above: dict[int, tuple[int, str]] = {}
    for row in element.iter("tr"):
        if hidden(row) or any(hidden(parent) for parent in row.iterancestors("thead", "tbody", "tfoot")):
            continue
        cells: list[str] = []

        def reach(column: int, cells: list[str] = cells) -> None:
            while len(cells) <= column and len(cells) in above:
                left, text = above.pop(len(cells))
                cells.append(text)
                if left > 1:
                    above[len(cells) - 1] = (left - 1, text)

        for cell in row:
            if cell.tag not in ("td", "th") or hidden(cell):
                continue
            reach(len(cells) + MOST_SPANNED)
            text = seen(cell)
            for number in range(_span(cell, "colspan")):
                if (down := _span(cell, "rowspan")) > 1:
                    above[len(cells)] = (down - 1, text if not number else "")
                cells.append(text if not number else "")
        reach(len(cells) + MOST_SPANNED)
        yield cells


def _span(cell: Any, name: str) -> int:
    given = (cell.get(name) or "1").strip()
    return max(1, min(int(given), MOST_SPANNED)) if given.isascii() and given.isdigit() and len(given) < 6 else 1
