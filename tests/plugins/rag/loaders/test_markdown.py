"""Headings make sections, and nothing that merely looks like one does."""

from plugins.rag.loaders.markdown import sections


def paths(text: str, *, mdx: bool = False) -> list[str]:
    return [" › ".join(section.path) for section in sections(text, mdx=mdx)]


def test_the_headings_above_are_the_path() -> None:
    """A section is called by all headings that it stands under; a level may be skipped."""
    text = "# FAQ\n\nHola.\n\n## Pagos\n\nCon tarjeta.\n\n#### Bizum\n\nTambién.\n\n## Envíos\n\nTres días.\n"

    assert paths(text) == ["FAQ", "FAQ › Pagos", "FAQ › Pagos › Bizum", "FAQ › Envíos"]


def test_text_before_the_first_heading_is_content() -> None:
    """It has no path, and is not lost."""
    assert [(s.text, s.path) for s in sections("Antes.\n\n# Uno\n\nDentro.")] == [("Antes.", ()), ("Dentro.", ("Uno",))]


def test_what_stands_in_a_fence_is_no_heading() -> None:
    """Neither comments in code, nor fences in tildes or list items, nor indented code make sections."""
    text = "# T\n\n```bash\n# uno\n```\n\n~~~\n```\n# dos\n~~~\n\n- item\n\n  ```\n  # tres\n  ```\n\n    # cuatro\n\n#Sin espacio"

    assert paths(text) == ["T"]


def test_underlined_headings_count() -> None:
    """Setext headings are headings; 24/7 in one is a name."""
    assert paths("Servicio 24/7\n=============\n\nSiempre.\n\nTurnos\n------\n\nTres.") == ["Servicio 24/7", "Servicio 24/7 › Turnos"]


def test_a_heading_reads_plain() -> None:
    """Emphasis, links, code marks and anchors are not part of a heading's name."""
    assert paths("## **Uno** [dos](x.md) `tres` {#ancla}\n\nx") == ["Uno dos tres"]
    assert paths("## Islas {/* islands */}\n\nx", mdx=True) == ["Islas"]


def test_front_matter_gives_the_title_and_is_no_content() -> None:
    """Its title stands above the sections where there is no first-level heading."""
    text = "---\ntitle: 'Arquitectura'\ntags: [a]\n---\nIntro.\n\n## Islas\n\nTexto."

    assert [(s.text, s.path) for s in sections(text)] == [("Intro.", ("Arquitectura",)), ("Texto.", ("Arquitectura", "Islas"))]
    assert sections("---\ntitle: Solo portada\n---\n") == []


def test_a_rule_at_the_top_is_no_front_matter() -> None:
    """A line of dashes that nothing closes hides nothing."""
    assert [s.text for s in sections("---\n\nTexto.")] == ["---\n\nTexto."]


def test_comments_are_not_shown() -> None:
    """What a reader of the page does not see is not answered from; text beside it stays."""
    (section,) = sections("# T\n\nVisible.\n\n<!--\n# Comentado\nNo debe aparecer.\n-->\n\nTambién.")

    assert "Comentado" not in section.text
    assert "Visible." in section.text
    assert "También." in section.text


def test_imports_of_mdx_are_not_content() -> None:
    """The module lines of MDX are left out, and only there, and only outside of code."""
    text = "import X from 'y';\n\nexport const a = 1;\n\nTexto.\n\n```js\nimport z from 'z';\n```"

    assert "import X" not in sections(text, mdx=True)[0].text
    assert "import z" in sections(text, mdx=True)[0].text
    assert "import X" in sections(text)[0].text


def test_headings_that_hold_nothing_are_found_by_their_words() -> None:
    """No heading is lost: it is in a path, or a section of its own words."""
    assert [(s.text, s.path) for s in sections("# Uno\n## Dos\n### Tres\n# Cuatro")] == [
        ("Tres", ("Uno", "Dos", "Tres")),
        ("Cuatro", ("Cuatro",)),
    ]


def test_nested_emphasis_takes_no_time() -> None:
    """Only blocks are parsed, so that text made to be slow is not."""
    import time

    began = time.perf_counter()
    sections("# T\n\n" + "*a **b " * 20_000)

    assert time.perf_counter() - began < 3
