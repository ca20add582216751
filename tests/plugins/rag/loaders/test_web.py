"""A page reads as a reader sees it; scripts, menus and hidden text are none of it, and a hostile page is one outcome."""

import codecs
import time

import pytest

from plugins.rag.chunking import chunk
from plugins.rag.loaders import load, web


def read(page: str) -> list[tuple[str, tuple[str, ...]]]:
    loaded = web.load(page.encode())
    assert (loaded.status, loaded.detail) == ("ok", "")
    return [(section.text, section.path) for section in loaded.sections]


def text(page: str) -> str:
    ((found, _),) = read(page)
    return found


def test_headings_become_sections() -> None:
    """Each is called by all that it stands under; text before the first one is content; an empty one is its own words."""
    page = "<body>Antes.<h1>Guía</h1><h2>Pagos <small>hoy</small></h2><p>Con tarjeta.</p><h3>Nada</h3><h2>Envíos</h2><p>Tres días.</p>"

    assert read(page) == [
        ("Antes.", ()),
        ("Con tarjeta.", ("Guía", "Pagos hoy")),
        ("Nada", ("Guía", "Pagos hoy", "Nada")),
        ("Tres días.", ("Guía", "Envíos")),
    ]


def test_the_title_of_the_page_stands_above() -> None:
    """Where there is no first-level heading."""
    assert read("<title>Ayuda\n de Sabio</title><h2>Uno</h2><p>a</p>") == [("a", ("Ayuda de Sabio", "Uno"))]
    assert read("<title>Ayuda</title><h1>Otra</h1><p>a</p>") == [("a", ("Otra",))]


def test_a_heading_may_be_one_by_its_role() -> None:
    """And a question that opens by a press is a heading all the same; a button elsewhere is no text."""
    page = "<div role=heading aria-level=1>FAQ</div><h2><button>¿Cuánto tarda?</button></h2><p>Tres días.<button>Copiar</button></p>"

    assert read(page) == [("Tres días.", ("FAQ", "¿Cuánto tarda?"))]


@pytest.mark.parametrize(
    "unseen",
    [
        "<script>no</script>",
        "<style>no</style>",
        "<nav><a>no</a></nav>",
        "<div role=navigation>no</div>",
        "<template><p>no</p></template>",
        "<noscript>no</noscript>",
        "<!-- no -->",
        "<?php no ?>",
        "<p hidden>no</p>",
        "<p style='color: red; DISPLAY : none'>no</p>",
        "<p style='visibility:hidden'>no</p>",
        "<span style='font-size:0px'>no</span>",
        "<span style='opacity: 0'>no</span>",
        "<span style='opacity: 0.0;'>no</span>",
        "<i aria-hidden=true>no</i>",
        "<textarea>no</textarea>",
        "<select><option>no</select>",
        "<svg><text>no</text></svg>",
        "<dialog>no</dialog>",
        "<iframe src='http://127.0.0.1:9/'>no</iframe>",
        "<table hidden><tr><td>no<td>no</table>",
        "<table><tr hidden><td>no<td>no</table>",
    ],
)
def test_what_a_reader_does_not_see_is_no_content(unseen: str) -> None:
    """Whether it is no text at all, or text that was made invisible."""
    assert text(f"<p>Antes.</p>{unseen}<p>Después.</p>") == "Antes.\n\nDespués."


@pytest.mark.parametrize(
    "seen", ["<p style='opacity: 0.9'>sí</p>", "<p style='font-size:0.9em'>sí</p>", "<details>sí</details>", "<dialog open>sí</dialog>"]
)
def test_what_only_looks_hidden_is_content(seen: str) -> None:
    """Small or closed is not hidden."""
    assert text(f"{seen}<p>Fin.</p>") == "sí\n\nFin."


def test_words_are_joined_as_they_look() -> None:
    """Inline marks part nothing, line breaks and blocks do; blanks are one; entities are characters."""
    page = "<p>pa<b>la</b>bra&nbsp;&amp;\n   más<br>otra&#x301;&#8203; <img src=x alt='Un mapa'></p><div>uno<div>dos</div>tres</div>"

    assert text(page) == "palabra & más\notrá Un mapa\n\nuno\n\ndos\n\ntres"


def test_lists_keep_their_form() -> None:
    """An item a line, with its number, deeper ones indented, unclosed ones too."""
    page = "<ul><li>uno<li>dos<ul><li>tres<p>más</ul></ul><ol start=3><li>c<li>d</ol><dl><dt>Plazo<dd>30 días</dl>"

    assert text(page) == "- uno\n- dos\n  - tres\n    más\n3. c\n4. d\nPlazo\n  30 días"


def test_code_stays_whole() -> None:
    """In a fence that it cannot close, with its language and its blanks."""
    page = "<pre><code class='hljs language-python'>if x:\n    y = <b>1</b> &lt; 2\n</code></pre><pre>```\na</pre>"

    assert text(page) == "```python\nif x:\n    y = 1 < 2\n```\n\n````\n```\na\n````"


def test_tables_stay_whole() -> None:
    """As a table that the chunker knows; what spans rows stands in each; the caption goes ahead."""
    page = (
        "<table><caption>Zonas</caption><tr><th>Zona<th>Plazo<tr><td rowspan=2>Norte<td>1|2<tr><td>3<br>días<tr><td colspan=2>Total</table>"
    )
    rows = "| Zona | Plazo |\n|---|---|\n| Norte | 1\\|2 |\n| Norte | 3 días |\n| Total |  |"

    assert text(page) == f"Zonas\n\n{rows}"
    assert rows in chunk(text(page), size=len(rows), overlap=0)


def test_a_table_that_arranges_the_page_is_none() -> None:
    """With headings or tables in it, or a single column, its cells are text like any other."""
    page = "<table><tr><td><h1>Guía</h1>Uno.<td><table><tr><td>a<td>b</table></table><table><tr><td>Ojo.<tr><td>Más.</table>"

    assert read(page) == [("Uno.\n\n| a | b |\n|---|---|\n\nOjo.\n\nMás.", ("Guía",))]


SPANISH = "<p>Señal año ¿qué?</p>"


@pytest.mark.parametrize(
    "data",
    [
        SPANISH.encode(),
        codecs.BOM_UTF8 + SPANISH.encode(),
        SPANISH.encode("utf-16"),
        f"<meta charset=iso-8859-1>{SPANISH}".encode("latin-1"),
        f'<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">{SPANISH}'.encode("cp1252"),
        f'<?xml version="1.0" encoding="ISO-8859-15"?><html>{SPANISH}</html>'.encode("iso-8859-15"),
        f"<meta charset=iso-8859-1>{SPANISH}".encode(),
        f"<meta charset=utf-8>{SPANISH}".encode("cp1252"),
        f"<meta charset=rot13>{SPANISH}".encode("cp1252"),
        f"<meta charset=no-such>{SPANISH}".encode("cp1252"),
    ],
    ids=["plain", "bom", "utf-16", "latin-1", "cp1252", "xml", "says latin-1, is utf-8", "says utf-8, is not", "no encoding", "unknown"],
)
def test_no_accent_is_lost(data: bytes) -> None:
    """By the byte order mark, as UTF-8, as declared, else by the bytes; a page that declares what it is not is read all the same."""
    assert [section.text for section in web.load(data).sections] == ["Señal año ¿qué?"]


@pytest.mark.parametrize("encoding", ["cp1251", "shift_jis", "koi8-r", "euc-jp", "iso-2022-jp", "gb2312", "big5"])
def test_what_it_declares_counts_in_any_script(encoding: str) -> None:
    """Where bytes alone tell little."""
    words = {"cp1251": "Привет", "koi8-r": "Привет", "gb2312": "你好", "big5": "你好"}.get(encoding, "日本語")
    data = f"<meta charset='{encoding}'><p>{words}</p>".encode(encoding)

    assert [section.text for section in web.load(data).sections] == [words]


@pytest.mark.parametrize(
    ("data", "status", "detail"),
    [
        (b"%PDF-1.7\n<p>", "broken", "PDF"),
        (b"\n PK\x03\x04", "broken", "zip"),
        (b"\x89PNG\r\n\x1a\n\0\0", "broken", "PNG"),
        (b"MIME-Version: 1.0\n\n<html>", "broken", "MHTML"),
        (b'{"a": "1 < 2"}', "broken", "≠ HTML"),
        (b"Hola.", "broken", "≠ HTML"),
        (bytes(range(1, 9)) * 500, "broken", ""),
        (b"  \n ", "empty", ""),
        (b"<html><body><script>x</script></body></html>", "empty", ""),
        (b"<!-- -->", "empty", ""),
    ],
    ids=["pdf", "zip", "png", "mhtml", "json", "text", "binary", "blank", "script", "comment"],
)
async def test_what_is_no_page_says_so(data: bytes, status: str, detail: str) -> None:
    """One outcome each, never an exception."""
    loaded = await load("x.html", data)

    assert (loaded.status, loaded.detail) == (status, detail)


async def test_entities_of_its_own_are_not_unfolded() -> None:
    """A page has none: their names stay what they are."""
    page = "<!DOCTYPE html [<!ENTITY a 'ja'><!ENTITY b '&a;&a;'><!ENTITY f SYSTEM 'file:///etc/passwd'>]><p>Fin &b; &f;</p>"

    loaded = await load("x.xhtml", page.encode())

    assert "jaja" not in str(loaded)
    assert "root:" not in str(loaded)
    assert "Fin" in loaded.sections[-1].text


async def test_nesting_without_end_is_cut_off() -> None:
    """What stands above it is read, and the outcome says that it is not all."""
    deep = await load("x.html", b"<p>Hola.</p>" + b"<div>" * 20_000 + b"no")
    nested = await load("x.html", b"<p>Hola.</p>" + b"<div>" * 1_000 + b"<p>hondo" + b"</div>" * 1_000 + b"<p>Fin.")

    assert (deep.status, deep.detail, deep.sections[0].text) == ("partly", "> 2048 <>", "Hola.")
    assert (nested.status, nested.sections[0].text) == ("ok", "Hola.\n\nhondo\n\nFin.")


async def test_a_large_page_is_read_elsewhere() -> None:
    """In a process of its own, with the same outcome."""
    page = ("<h1>Guía</h1>" + "<p>Un párrafo de la guía.</p>" * 15_000).encode()

    loaded = await load("x.html", page)

    assert loaded == web.load(page)
    assert loaded.sections[0].path == ("Guía",)


def test_spans_do_not_fill_memory() -> None:
    """A cell that asks for a million columns gets no more than some."""
    began = time.perf_counter()

    web.load(b"<table>" + b"<tr><td rowspan=999999 colspan=999999>x<td>y" * 500)

    assert time.perf_counter() - began < 5
