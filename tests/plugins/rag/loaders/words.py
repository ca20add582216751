"""Small Word files, put together by hand, for tests."""

import io
import zipfile

SPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)
STYLES = """<w:styles {spaces}>
<w:style w:styleId="Ttulo"><w:name w:val="Title"/></w:style>
<w:style w:styleId="Ttulo1"><w:name w:val="heading 1"/></w:style>
<w:style w:styleId="Ttulo2"><w:name w:val="heading 2"/></w:style>
<w:style w:styleId="Mio"><w:name w:val="Mi apartado"/><w:basedOn w:val="Ttulo2"/></w:style>
<w:style w:styleId="Esquema"><w:name w:val="Esquema"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>
<w:style w:styleId="Lista"><w:name w:val="List Bullet"/><w:pPr><w:numPr/></w:pPr></w:style>
<w:style w:styleId="Codigo"><w:name w:val="Source Code"/></w:style>
<w:style w:styleId="Oculto"><w:name w:val="Oculto"/><w:rPr><w:vanish/></w:rPr></w:style>
<w:style w:styleId="Uno"><w:name w:val="Uno"/><w:basedOn w:val="Otro"/></w:style>
<w:style w:styleId="Otro"><w:name w:val="Otro"/><w:basedOn w:val="Uno"/></w:style>
</w:styles>"""
TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def relations(**targets: str) -> str:
    """A part that names others by their kind."""
    inside = "".join(f'<Relationship Id="{kind}" Type="{OFFICE}/{kind}" Target="{target}"/>' for kind, target in targets.items())
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{inside}</Relationships>'


def p(text: str, style: str = "", more: str = "") -> str:
    """A paragraph of one run."""
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{named}{more}</w:pPr>{r(text)}</w:p>"


def r(text: str, properties: str = "") -> str:
    """A run."""
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def tbl(*rows: list[str]) -> str:
    """A table of cells that are given as the inside of a cell."""
    return "<w:tbl>" + "".join("<w:tr>" + "".join(f"<w:tc>{cell}</w:tc>" for cell in row) + "</w:tr>" for row in rows) + "</w:tbl>"


def docx(body: str, *, head: str = "", spaces: str = SPACES, **parts: str) -> bytes:
    """A file with this body. `parts` are more of them by their names without `.xml`; `head` stands before everything."""
    files = {
        "[Content_Types].xml": TYPES,
        "_rels/.rels": relations(officeDocument="word/document.xml"),
        "word/document.xml": f"{head}<w:document {spaces}><w:body>{body}</w:body></w:document>",
        "word/styles.xml": STYLES.format(spaces=spaces),
        "word/_rels/document.xml.rels": relations(styles="styles.xml", **{kind: f"{kind}.xml" for kind in parts}),
        **{f"word/{kind}.xml": text.format(spaces=spaces) for kind, text in parts.items()},
    }
    return packed(files)


def packed(files: dict[str, str]) -> bytes:
    """An archive of texts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        for name, text in files.items():
            package.writestr(name, text)
    return out.getvalue()
