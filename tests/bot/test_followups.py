"""A question that leans on the one before is told from one that stands by itself."""

import pytest

from bot import is_follow_up


@pytest.mark.parametrize(
    "text",
    [
        "¿Y en Canarias?",
        "¿y cuánto cuesta?",
        "¿Cuánto cuesta?",
        "¿por qué?",
        "¿Cuándo llega?",
        "¿qué tal con tarjeta?",
        "¿Puedo devolverlo en la tienda?",
        "¿dónde lo compro?",
        "¿y eso cuánto tarda?",
        "¿Cuál es su teléfono?",
        "pero sin factura",
        "And on Sundays?",
        "What about the islands?",
        "how long does it take?",
        "Why?",
        "Are they open on Sundays?",
    ],
)
def test_it_leans(text: str) -> None:
    """It opens with "and", points at something that it does not name, or asks bare of any subject."""
    assert is_follow_up(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "???",
        "y",
        "hola",
        "gracias",
        "envíos",
        "¿Cuánto tarda el envío a Canarias?",
        "¿cuál es la capital de Francia?",
        "¿Hay una charla sobre precios mañana?",
        "What is the capital of Australia?",
        "I was told on the phone that the parcel is lost: what do I have to do now?",
        "What are the opening hours on Sundays?",
    ],
)
def test_it_stands_by_itself(text: str) -> None:
    """A question with a subject of its own, a greeting, or a text that is long enough to say what it is about."""
    assert not is_follow_up(text)
