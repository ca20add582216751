"""JSON is written out so that a person can read it, and whatever is wrong with it is one outcome."""

from plugins.rag.loaders.structured import load


def test_each_element_of_an_array_is_a_section() -> None:
    """With its title or question as the heading, its text first-hand, and its short fields to filter by."""
    loaded = load('[{"pregunta": "¿Aceptan Bizum?", "respuesta": "Sí, hasta 500 €.", "tema": "pagos"}, "texto suelto"]')

    first, second = loaded.sections
    assert first.path == ("¿Aceptan Bizum?",)
    assert first.text == "pregunta: ¿Aceptan Bizum?\nSí, hasta 500 €.\ntema: pagos"
    assert first.metadata["tema"] == "pagos"
    assert (second.text, second.path) == ("texto suelto", ("#2",))


def test_what_is_nested_is_named_by_its_way() -> None:
    """A leaf says where it stands."""
    assert load('{"a": {"b": [{"c": "hondo"}]}, "d": null, "e": false}').sections[0].text == "a.b.c: hondo\ne: false"


def test_numbers_are_kept_as_they_are_written() -> None:
    """No digit is lost, none is too long, and what JSON has no word for stays a word."""
    digits = "9" * 5000

    assert load(f'{{"n": {digits}, "x": 1.10, "y": NaN}}').sections[0].text == f"n: {digits}\nx: 1.10\ny: NaN"


def test_each_line_of_json_lines_stands_for_itself() -> None:
    """A broken line is named, and the others are read."""
    loaded = load('{"text": "uno"}\n{broken\n\n{"text": "tres"}', lines=True)

    assert [section.text for section in loaded.sections] == ["uno", "tres"]
    assert (loaded.status, loaded.detail) == ("partly", "l. 2")


def test_what_is_no_json_says_so() -> None:
    """A trailing comma, a nesting that no parser follows, nothing at all: one outcome each, never an exception."""
    assert (load('{"a": 1,}').status, load('{"a": 1,}').detail) == ("broken", "l. 1")
    assert load("[" * 100_000).status == "broken"
    assert load("[" * 3000 + "]" * 3000).status == "broken"
    assert load("no json", lines=True).status == "broken"
    assert load("[]").status == load("null").status == load('[null, "", " ", {}]').status == "empty"
