"""What a person's own words bear out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.memory.evidence import asks_to_forget, bears_out, is_echo, share


@pytest.mark.parametrize(
    "fact", ["Vive en Bogotá", "vive en bogotá, Colombia", "El usuario vive en Bogotá", "Actualmente vive en Bogotá", "Bogotá"]
)
def test_an_echo(fact: str) -> None:
    """A fact that says what one that was shown says, with no more than words that the person did not use."""
    assert is_echo(fact, "¿Qué hora es?", ["Tiene un perro", "Vive en Bogotá"])


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        ("Vive en Bogotá", "Vivo en Bogotá, por si no te lo dije"),
        ("Vive en Bogotá con su hermana", "Mi hermana se vino a casa"),
        ("Tiene dos gatos", "¿Qué comen mis gatos? Tengo dos"),
        ("Trabaja en Medellín", "¿Qué hora es?"),
    ],
)
def test_no_echo(fact: str, words: str) -> None:
    """What the person said, or adds to a fact, is theirs; and so is what says something else."""
    assert not is_echo(fact, words, ["Tiene un perro", "Vive en Bogotá"])


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        ("Vivo en Bogotá", "city", "Bogotá"),
        ("me mude a medellin", "ciudad", "Medellín"),
        ("Tengo 34 años", "age", "34"),
        ("Soy vegetariana", "vegetariana", "sí"),
        ("Trabajo de enfermera en un hospital", "job", "Enfermera de hospital"),
        ("Me llamo Al", "name", "Al"),
        ("I really love hiking in the Andes", "hobby", "hikes in the Andes"),
        ("私は東京に住んでいます", "city", "東京"),
        ("mi emoji es ♥", "emoji", "♥"),
    ],
)
def test_what_was_said_is_borne_out(words: str, key: str, value: str) -> None:
    """The value is in the words, accents, case and endings aside."""
    assert bears_out(words, key, value)


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        ("¿Qué dice el documento?", "city", "CANARIO"),
        ("Resume esto, por favor", "city", "Bogotá"),
        ("¿En qué ciudad está la sede?", "ciudad", "Bogotá"),
        ("Hola", "vegetariana", "sí"),
        ("Tengo 345 libros", "age", "34"),
        ("the cat is on the mat", "pet", "a dog"),
        ("", "city", "Bogotá"),
    ],
)
def test_what_was_not_said_is_not(words: str, key: str, value: str) -> None:
    """A value that a document brought in is not in the person's words; that the key is there is not enough."""
    assert not bears_out(words, key, value)


@pytest.mark.parametrize(
    "words",
    [
        "Olvida dónde vivo",
        "Please forget that",
        "Ya no vivo allí",
        "bórralo",
        "no quiero que sepas mi ciudad",
        "Lo de Bogotá no es así",
        "I no longer live there",
    ],
)
def test_asking_to_forget(words: str) -> None:
    """A word of forgetting is enough, or one that denies the key or the value."""
    assert asks_to_forget(words, "ciudad", "Bogotá")


@pytest.mark.parametrize(
    "words",
    [
        "¿Qué dice el documento?",
        "Hola",
        "Gracias por todo",
        "",
        "¿Qué dice el documento de Bogotá?",
        "¿En qué ciudad está la sede?",
        "Me olvidé el paraguas",
        "Se me olvidó la clave",
        "Mándame el borrador, el de las eliminatorias",
        "I forgot my umbrella",
    ],
)
def test_not_asking_to_forget(words: str) -> None:
    """Where the person speaks of something else, or only of the thing, a document cannot make the model forget."""
    assert not asks_to_forget(words, "ciudad", "Bogotá")


@given(st.text(), st.text())
def test_a_share_is_between_nothing_and_all(claim: str, words: str) -> None:
    """Whatever the texts, the share is from 0 to 1."""
    assert 0 <= share(claim, words) <= 1
