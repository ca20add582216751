"""Bytes become text with their accents, whatever they were written in."""

import pytest

from plugins.rag.text import NotText, clean, decode

SPANISH = "El niño comió piñas: ¿cuánto costó? 5 € — «nada», dijo él."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_every_encoding_keeps_its_accents(encoding: str) -> None:
    """Text of any usual encoding, with its mark or without, is read without loss."""
    assert decode(SPANISH.encode(encoding)) == SPANISH


@pytest.mark.parametrize("text", ["Año nuevo", "café", "Información: atención de mañana", "¿Cigüeñas aquí?"])
@pytest.mark.parametrize("encoding", ["latin-1", "cp850"])
def test_a_few_words_are_enough(text: str, encoding: str) -> None:
    """A short text of the West is told apart too, where statistics would guess."""
    assert decode(text.encode(encoding)) == text


def test_text_of_an_old_mac_is_told_apart() -> None:
    """A paragraph of it has letters that make no sense in cp1252."""
    text = "El niño comió aquí, en la montaña. ¿Qué más? Él está después."

    assert decode(text.encode("mac_roman")) == text


def test_typographic_english_is_not_taken_for_old_spanish() -> None:
    """Dashes and curly quotes of cp1252 stay what they are, between letters too."""
    text = "He said “wait”—then left. Don’t ask…"

    assert decode(text.encode("cp1252")) == text


def test_other_alphabets_are_guessed() -> None:
    """What no Western encoding explains is left to statistics."""
    russian = "Привет, как дела? Это документ про доставку и оплату заказов в нашем магазине."

    assert decode(russian.encode("cp1251")) == russian


def test_a_spoilt_byte_spoils_one_character() -> None:
    """UTF-8 with a byte broken in it is still UTF-8."""
    data = SPANISH.encode() * 3

    text = decode(data[:200] + b"\xff" + data[200:])

    assert text.count("niño") == 3
    assert "Ã" not in text


def test_what_no_store_takes_is_gone() -> None:
    """NUL, control characters, zero-width ones and lone surrogates are taken out, and there is one kind of line break."""
    assert clean("a\0b\x07\u200bc\ud800\r\nd\u2028e\rf\x85g") == "abc\ufffd\nd\ne\nf\ng"


def test_accents_have_one_form() -> None:
    """A decomposed accent is the composed one."""
    assert clean("cafe\u0301") == "café"


def test_what_a_terminal_obeys_is_no_text() -> None:
    """A log with colours is read as its words: nothing of a sequence is left, and a bare bracket is."""
    assert clean("\x1b[32mOK\x1b[0m [2J] \x1b]0;título\x07fin\x1b[2J") == "OK [2J] fin"


def test_a_picture_is_no_text() -> None:
    """Bytes that are no text at all are refused, rather than read as letters."""
    with pytest.raises(NotText):
        decode(bytes(range(256)) * 20)
