"""A Word file reads as it looks now: nothing that was deleted or hidden, nothing lost that is shown; hostile ones are one outcome."""

import io
import struct
import zipfile
from itertools import pairwise

import pytest

from plugins.rag.chunking import chunk
from plugins.rag.loaders import Section, load, word
from tests.plugins.rag.loaders.words import OFFICE, SPACES, docx, p, packed, r, relations, tbl


def read(body: str, **parts: str) -> list[tuple[str, tuple[str, ...]]]:
    loaded = word.load(docx(body, **parts))
    assert (loaded.status, loaded.detail) == ("ok", "")
    return [(section.text, section.path) for section in loaded.sections]


def test_headings_become_sections() -> None:
    """By the name that Word gives them in every language, by the style that theirs is based on, by the level of an outline."""
    body = p("Antes.") + p("Guía", "Ttulo1") + p("Pagos", "Ttulo2") + p("Con tarjeta.") + p("Envíos", "Mio") + p("Tres días.")
    outlined = (
        p("Otra", "Esquema") + p("Hondo", more='<w:outlineLvl w:val="2"/>') + p("Fin.") + p("Texto", "Ttulo1", '<w:outlineLvl w:val="9"/>')
    )

    assert read(body + outlined) == [
        ("Antes.", ()),
        ("Con tarjeta.", ("Guía", "Pagos")),
        ("Tres días.", ("Guía", "Envíos")),
        ("Fin.\n\nTexto", ("Otra", "Hondo")),
    ]


def test_the_title_stands_above_all() -> None:
    """It is no first-level heading."""
    assert read(p("Manual", "Ttulo") + p("Uno", "Ttulo1") + p("a") + p("Dos", "Ttulo1") + p("b")) == [
        ("a", ("Manual", "Uno")),
        ("b", ("Manual", "Dos")),
    ]


def test_what_is_hidden_or_deleted_is_no_content() -> None:
    """Hidden runs and styles, tracked deletions and moves away, field codes; what is switched back on is shown."""
    runs = [
        r("Se ve"),
        r(" no", "<w:vanish/>"),
        r(" no", '<w:rStyle w:val="Oculto"/>'),
        f"<w:del>{r(' no')}</w:del>",
        f"<w:moveFrom>{r(' no')}</w:moveFrom>",
        "<w:r><w:instrText> HYPERLINK no</w:instrText></w:r>",
        r("."),
    ]
    shown = r("Sí.", '<w:vanish w:val="0"/>')
    body = f'<w:p>{"".join(runs)}</w:p>{p("no", "Oculto")}<w:p><w:pPr><w:pStyle w:val="Oculto"/></w:pPr>{shown}</w:p>'

    assert read(body) == [("Se ve.\n\nSí.", ())]


def test_what_is_shown_is_not_lost() -> None:
    """Content controls, tracked insertions, links, tabs, breaks, text boxes (once), notes where they are referred to."""
    box = f"<mc:Choice><w:txbxContent>{p('Caja.')}</w:txbxContent></mc:Choice><mc:Fallback>{p('Caja.')}</mc:Fallback>"
    paragraphs = [
        f"<w:ins>{r('Puesto.')}</w:ins><w:hyperlink>{r(' Enlace.')}</w:hyperlink>"
        f"<w:sdt><w:sdtContent>{r(' Dentro.')}</w:sdtContent></w:sdt>",
        f"{r('a')}<w:r><w:tab/></w:r>{r('b')}<w:r><w:br/></w:r>{r('c')}",
        f"{r('Con')}<w:r><mc:AlternateContent>{box}</mc:AlternateContent></w:r>",
        f'{r("Plazo")}<w:r><w:footnoteReference w:id="2"/></w:r>{r(".")}',
    ]
    body = f"<w:sdt><w:sdtContent>{p('Control.')}</w:sdtContent></w:sdt>" + "".join(f"<w:p>{inside}</w:p>" for inside in paragraphs)
    notes = f'<w:footnotes {{spaces}}><w:footnote w:id="2">{p("30 días")}</w:footnote></w:footnotes>'

    assert read(body, footnotes=notes) == [("Control.\n\nPuesto. Enlace. Dentro.\n\na b\nc\n\nCon\nCaja.\n\nPlazo (30 días).", ())]


def test_lists_and_code_keep_their_form() -> None:
    """An item a line, deeper ones indented; paragraphs of code in one fence."""
    item = "<w:numPr><w:ilvl w:val='{}'/><w:numId w:val='1'/></w:numPr>"
    body = (
        p("uno", more=item.format(0))
        + p("dos", more=item.format(1))
        + p("tres", "Lista")
        + p("  si x:", "Codigo")
        + p("    y = 1", "Codigo")
        + p("Fin.")
    )

    assert read(body) == [("- uno\n  - dos\n- tres\n\n```\n  si x:\n    y = 1\n```\n\nFin.", ())]


def test_tables_stay_whole() -> None:
    """As a table that the chunker knows: merged cells are filled down, a frame of one column is its text."""
    merged = [f'<w:tcPr><w:vMerge w:val="restart"/></w:tcPr>{p("Norte")}', p("1|2")]
    wide = [f'<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>{p("Total")}']
    body = tbl([p("Zona"), p("Plazo")], merged, [f"<w:tcPr><w:vMerge/></w:tcPr>{p('')}", p("3")], wide) + tbl([p("Aviso")], [p("Ojo.")])

    ((text, _),) = read(body)

    rows = "| Zona | Plazo |\n|---|---|\n| Norte | 1\\|2 |\n| Norte | 3 |\n| Total |  |"
    assert text == f"{rows}\n\nAviso\n\nOjo."
    assert chunk(text, size=len(rows), overlap=0)[0] == rows


def test_the_strict_form_is_read_too() -> None:
    """The same words under another name space."""
    strict = SPACES.replace(
        "http://schemas.openxmlformats.org/wordprocessingml/2006/main", "http://purl.oclc.org/ooxml/wordprocessingml/main"
    )

    assert word.load(docx(p("Hola."), spaces=strict)).sections == (Section("Hola."),)


@pytest.mark.parametrize(
    ("data", "status", "detail"),
    [
        (b"PK\x03\x04 not an archive", "broken", "zip"),
        (docx(p("a"))[:-200], "broken", "zip"),
        (packed({"mimetype": "application/vnd.oasis.opendocument.text"}), "broken", "≠ DOCX"),
        (
            packed({"_rels/.rels": relations(officeDocument="xl/workbook.xml"), "xl/workbook.xml": "<workbook/>"}),
            "broken",
            "≠ DOCX",
        ),
        (docx("<w:p>"), "broken", "word/document.xml"),
        (b"\xd0\xcf\x11\xe0" + b"\0" * 600, "broken", "Word 97-2003 (.doc)"),
        (b"\xd0\xcf\x11\xe0" + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le"), "encrypted", ""),
        (docx(p("&x;"), head='<!DOCTYPE x [<!ENTITY x "y">]>'), "broken", "<!ENTITY>"),
        (docx(""), "empty", ""),
        (docx(p("Oculto", "Oculto")), "empty", ""),
    ],
    ids=["no archive", "cut", "odt", "xlsx", "xml", "doc", "password", "entities", "nothing", "hidden"],
)
async def test_what_is_no_document_says_so(data: bytes, status: str, detail: str) -> None:
    """One outcome each, never an exception."""
    loaded = await load("x.docx", data)

    assert (loaded.status, loaded.detail) == (status, detail)


async def test_entities_are_not_unfolded() -> None:
    """Neither a billion laughs, nor the text of a file that an entity names; whatever it is called."""
    bomb = "<!DOCTYPE x [<!ENTITY a 'ja'>" + "".join(f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in pairwise("abcdefghij")) + "]>"
    assert (await load("x.docx", docx(p("&j;"), head=bomb))).status == "broken"
    assert (await load("x.docx", docx(p("&f;"), head="<!DOCTYPE x [<!ENTITY f SYSTEM 'file:///etc/passwd'>]>"))).status == "broken"


async def test_an_archive_that_unfolds_without_end_is_too_big() -> None:
    """By what it claims, before anything is unpacked; one that claims less than it holds is found out."""
    bomb = docx(p("a" * (40 << 20)))
    lying = bytearray(docx(p("b" * 100_000)))
    for sign, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        place = lying.rfind(sign, 0, lying.rfind(b"word/document.xml") if sign == b"PK\x01\x02" else lying.find(b"word/document.xml"))
        lying[place + at : place + at + 4] = struct.pack("<I", 500)

    loaded = await load("x.docx", bomb)

    assert len(bomb) < 100_000
    assert (loaded.status, loaded.detail) == ("too_big", "word/document.xml: 40 MB")
    assert (await load("x.docx", bytes(lying))).status == "broken"


async def test_a_large_file_is_read_elsewhere() -> None:
    """In a process of its own, with the same outcome."""
    paragraphs = "".join(p(f"Párrafo {n}.") for n in range(5_000))
    data = docx(p("Guía", "Ttulo1") + paragraphs)
    assert word.weight(data) > 128 << 10

    loaded = await load("x.docx", data)

    assert loaded.status == "ok"
    assert loaded.sections == word.load(data).sections
    assert loaded.sections[0].path == ("Guía",)


def test_nothing_outside_of_the_file_is_looked_at() -> None:
    """A part that stands elsewhere, by an address or by a way up, is none."""
    files = {
        "_rels/.rels": relations(officeDocument="word/document.xml"),
        "word/document.xml": f"<w:document {SPACES}><w:body>{p('Hola.')}</w:body></w:document>",
        "word/_rels/document.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Id="a" Type="{OFFICE}/styles" TargetMode="External" Target="http://127.0.0.1:9/styles.xml"/>'
        f'<Relationship Id="b" Type="{OFFICE}/footnotes" Target="../../../etc/passwd"/></Relationships>',
    }

    assert word.load(packed(files)).sections == (Section("Hola."),)


def test_a_member_with_a_password_says_so() -> None:
    """An archive can be locked file by file."""
    data = bytearray(docx(p("a")))
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as package:
        entry = data.index(b"PK\x01\x02", package.start_dir)
    while entry >= 0:
        data[entry + 8] |= 1
        entry = data.find(b"PK\x01\x02", entry + 4)

    assert word.load(bytes(data)).status == "encrypted"
