"""Which texts hold a secret, and which only look like it."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plugins.memory.numbers import luhn
from plugins.memory.secrets import _PASSWORDS, KINDS, _password, secret_in

# Nothing here is anyone's: the numbers are made up, or those that banks and vendors publish for tests. Tokens are put together from two
# pieces, so that no scanner takes this file for a leak.
SECRETS = [
    ("TOKEN", "Su clave es sk-" + "proj-abcdEFGH1234567890abcdEFGH"),
    ("TOKEN", "sk-" + "ant-api03-AbCdEfGhIjKlMnOpQrStUv"),
    ("TOKEN", "usa sk_" + "live_51H8abcDEFghiJKL"),
    ("TOKEN", "rk_" + "test_51H8abcDEFghiJKL"),
    ("TOKEN", "webhook whsec_" + "abcdefghijklmnop1234"),
    ("TOKEN", "my token ghp" + "_abcdefghijklmnopqrstuvwxyz0123456789"),
    ("TOKEN", "github" + "_pat_11ABCDEFG0abcdefghijkl_mnopqrstuv"),
    ("TOKEN", "glpat" + "-abcdefghij1234567890"),
    ("TOKEN", "xox" + "b-123456789012-abcdefghijkl"),
    ("TOKEN", "AKIA" + "IOSFODNN7EXAMPLE"),
    ("TOKEN", "AIza" + "SyA1234567890abcdefghijklmnopqrstuv"),
    ("TOKEN", "ya29" + ".a0AfH6SMBabcdefghijklmnop"),
    ("TOKEN", "EAA" + "CEdEose0cBAabcdefghij1234"),
    ("TOKEN", "El bot: 123456789" + ":AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0"),
    ("TOKEN", "npm" + "_abcdefghijklmnopqrstuvwxyz0123456789"),
    ("TOKEN", "hf" + "_abcdefghijklmnopqrstuvwxyzABCDEFGH"),
    ("TOKEN", "gsk" + "_abcdefghijklmnopqrstuvwxyz0123456789ABCD"),
    ("TOKEN", "SG" + ".abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789abcdefg"),
    ("TOKEN", "Authorization: Bearer abcdef" + "0123456789abcdef"),
    ("TOKEN", "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlX2hlcmU"),
    ("TOKEN", "AccountKey=abcdefghijklmnopqrstuvwxyz" + "0123456789=="),
    ("TOKEN", "Guarda esto: aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF"),
    ("PRIVATE_KEY", "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow"),
    ("PRIVATE_KEY", "-----BEGIN OPENSSH " + "PRIVATE KEY----- b3BlbnNz"),
    ("PRIVATE_KEY", "AGE-SECRET-" + "KEY-1QQPQZRY"),
    ("PASSWORD", "postgres://ana:gato@db.example.org/bot"),
    ("PASSWORD", "contraseña: gato"),
    ("PASSWORD", "Mi contraseña es gato1234"),
    ("PASSWORD", "Mi contraseña del wifi es gatito"),
    ("PASSWORD", "la contrasena de mi correo es perro-azul"),
    ("PASSWORD", "MI CONTRASEÑA ES GATO"),
    ("PASSWORD", "Su contraseña siempre es hola123"),
    ("PASSWORD", "password=hunter2"),
    ("PASSWORD", "My password is hunter2"),
    ("PASSWORD", "The password for the router is swordfish"),
    ("PASSWORD", "passwd hunter2"),
    ("PASSWORD", "La clave es casa1234"),
    ("PASSWORD", "clave de la alarma: 4432"),
    ("PASSWORD", "El PIN de mi tarjeta es 4432"),
    ("PASSWORD", "pin: 4432"),
    ("PASSWORD", "My PIN is 0000"),
    ("PASSWORD", "CVV 123"),
    ("PASSWORD", "cvc: 123"),
    ("PASSWORD", "código de verificación: 889123"),
    ("PASSWORD", "My verification code is 889123"),
    ("PASSWORD", "El código de seguridad es 7788"),
    ("PASSWORD", "seed phrase: army van defense carry"),
    ("PASSWORD", "Usa gato1234 como contraseña"),
    ("PASSWORD", "I use swordfish as my password"),
    ("PASSWORD", "api_key = abcdef123456"),
    ("PASSWORD", "contra\u200bseña: gato"),
    ("PASSWORD", "ｐａｓｓｗｏｒｄ: hunter2"),
    ("CARD", "Mi tarjeta es 4111 1111 1111 1111"),
    ("CARD", "4111111111111111"),
    ("CARD", "4111-1111-1111-1111 vence 12/27"),
    ("CARD", "5500 0000 0000 0004 12 27"),
    ("CARD", "Amex 3782 822463 10005"),
    ("CARD", "6011 1111 1111 1117"),
    ("CARD", "2223 0031 2200 3222"),
    ("CARD", "30569309025904"),
    ("CARD", "3530111333300000"),
    ("CARD", "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"),
    ("CARD", "41\u200b11 1111 1111 1111"),
    ("CARD", "４１１１ １１１１ １１１１ １１１１"),
    ("CARD", "٤١١١١١١١١١١١١١١١"),
    ("ACCOUNT", "ES91 2100 0418 4502 0005 1332"),
    ("ACCOUNT", "Su IBAN es es9121000418450200051332"),
    ("ACCOUNT", "DE89370400440532013000 es la cuenta"),
    ("ACCOUNT", "GB82 WEST 1234 5698 7654 32"),
    ("ACCOUNT", "Cuenta bancaria: 0012 3456 7890"),
    ("ACCOUNT", "account number 123456789012"),
    ("ACCOUNT", "CBU 2850590940090418135201"),
    ("ACCOUNT", "2850590940090418135201"),
    ("ACCOUNT", "CLABE 032180000118359719"),
    ("ID_NUMBER", "Su DNI es 12345678Z"),
    ("ID_NUMBER", "12345678Z"),
    ("ID_NUMBER", "12.345.678-Z"),
    ("ID_NUMBER", "X1234567L"),
    ("ID_NUMBER", "NIE y-1234567-x"),
    ("ID_NUMBER", "CUIT 20-12345678-6"),
    ("ID_NUMBER", "20123456786"),
    ("ID_NUMBER", "RUT 12.345.678-5"),
    ("ID_NUMBER", "12345678-5"),
    ("ID_NUMBER", "CPF 111.444.777-35"),
    ("ID_NUMBER", "11144477735"),
    ("ID_NUMBER", "HEGG560427MVZRRL04"),
    ("ID_NUMBER", "Mi cédula es 1.020.304.050"),
    ("ID_NUMBER", "cedula de ciudadanía 52345678"),
    ("ID_NUMBER", "Su pasaporte es AAB123456"),
    ("ID_NUMBER", "passport number: 123456789"),
    ("ID_NUMBER", "SSN 078-05-1120"),
    ("ID_NUMBER", "dni: 30123456"),
    ("TOKEN", "Avisos: https://discord.com/api/webhooks/123456789012345678/05HA064GiIjHGb3CXlMaXZjljENUhJduRHHJEYXg4Jdp"),
    ("TOKEN", "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"),
    ("PASSWORD", "El pin de su tarjeta es el 4821"),
    ("PASSWORD", "My pin number is 4821"),
    ("PASSWORD", "Su NIP es 4821"),
    ("PASSWORD", "Su clave dinámica es 123456"),
    ("PASSWORD", "De contraseña tengo gatito7"),
    ("PASSWORD", "For my password I use banana42"),
    ("PASSWORD", "Usa gatito7 de contraseña"),
    ("PASSWORD", "La combinación de la caja fuerte es 12-34-56"),
    ("PASSWORD", "The combination to my locker is 12-34-56"),
    ("PASSWORD", "My alarm code is 4821"),
    ("PASSWORD", "El código de la alarma es 4821"),
    ("PASSWORD", "El código del portal: 12B4"),
    ("PASSWORD", "the code for the door is 4821#"),
    ("PASSWORD", "Mi clave es perrito"),
    ("PASSWORD", "Mi contraseña nueva es Tomate"),
    ("PASSWORD", "Mi contraseña sigue siendo Tomate"),
    ("PASSWORD", "my old password was tomato"),
    ("PASSWORD", "Cambié la contraseña a Tomate1"),
    ("PASSWORD", "I changed my password to tomato"),
    ("PASSWORD", "usuario ana, clave perrito"),
    ("PASSWORD", "user: ana, pass: perrito"),
    ("PASSWORD", "Mi pin es cuatro ocho dos uno"),
    ("PASSWORD", "my banking PIN is four eight two one"),
    ("ID_NUMBER", "Mi DNI peruano es 45678912"),
    ("ID_NUMBER", "Su carnet de identidad es 1234567-8"),
    ("ID_NUMBER", "Su RUN es 12345678"),
    ("ID_NUMBER", "Reisepass no, passport: C01X00T47"),
]

FALSE_FRIENDS = [
    "Vive en Bogotá",
    "Nació el 12/03/1987",
    "Nació el 1987-03-12",
    "Su cumpleaños es el 3 de mayo de 1990",
    "Su teléfono es +57 300 123 4567",
    "Llámame al 612 345 678",
    "Su teléfono es +54 9 11 1234-5678",
    "Phone: +1 (415) 555-2671",
    "Su móvil es +52 1 55 1234 5678",
    "El pedido 4521234567890123 llegó tarde",
    "Pedido 2024-000123456",
    "Order #123-4567890-1234567",
    "Su número de pedido es 98765432",
    "El seguimiento es 1Z999AA10123456784",
    "Lee el libro 978-3-16-148410-0",
    "ISBN 9783161484100",
    "ISBN-10 0-306-40615-2",
    "El IMEI es 490154203237518",
    "El código postal es 28013",
    "Vive en la calle 12 número 34-56, apartamento 701",
    "Mide 1.82 y pesa 78 kg",
    "Gana 2.500.000 pesos",
    "Corre 10 km en 45:30",
    "Reunión el 2024-05-06 10:30:00",
    "Su IP es 192.168.100.200",
    "Coordenadas 4.7109886, -74.0720920",
    "La respuesta es 42",
    "Le gusta el número 12345678",
    "Matrícula 1234 BCD",
    "Vuelo IB6830 a Bogotá",
    "Su contraseña es segura",
    "Olvidó su contraseña",
    "Su contraseña es muy larga",
    "Cambia la contraseña cada mes",
    "Forgot the password twice",
    "His password is too short",
    "Usa un gestor de contraseñas",
    "La clave del éxito es la paciencia",
    "La clave es dormir bien",
    "Toca en clave de sol",
    "Le gusta el pin de su chaqueta",
    "Colecciona pins",
    "Trabaja con tokens y embeddings",
    "El secreto es la masa",
    "Su secreto: masa madre",
    "Su DNI está caducado",
    "Tiene que renovar el pasaporte en 2026",
    "Perdió la cédula en 2019",
    "Abrió una cuenta bancaria en 2020",
    "Su cuenta de Instagram es @ana_2020",
    "Usa el commit 4a5b6c7d8e9f0a1b2c3d4e5f6a7b8c9d0e1f2a3b",
    "Su id es 550e8400-e29b-41d4-a716-446655440000",
    "https://youtu.be/dQw4w9WgXcQ",
    "https://example.org/articulos/Como-Hacer-Pan-De-Masa-Madre-En-Casa-2024",
    "Trabaja en https://www.example.org:8080/inicio",
    "Le gusta el algoritmo sk-learn",
    "Versión 3.11.9 de Python",
    "Los números 1 2 3 4 5 6 7 8 9 10 11 12 13",
    "Años 1987 1990 1995 2001 2010 2024",
    "ES una persona de 91 años",
    "Vive en DE desde 2015",
    "Su pasaporte es de 2019 y está roto",
    "my passport is from 2019 and worn",
    "My longest run was 42195 meters",
    "Su carnet de identidad caduca en 2030",
    "Su clave es la paciencia",
    "La combinación es 4-3-3",
    "La combinación de colores es azul y verde",
    "Su código de descuento es VERANO24",
    "I use KeePass for my passwords",
    "Usa Bitwarden para sus contraseñas",
    "Cambió de contraseña hace 3 días",
    "I changed my password to a longer one",
    "De contraseña tiene una muy larga",
    "Es usuario de Linux y la clave de su equipo",
    "the code of conduct has 12 rules",
    "dress code is formal",
    "Su contraseña tiene 12 caracteres",
    "Usa 2 gestores para contraseñas",
    "user since 2019 and happy",
    "Su colección de pins tiene 1998 piezas",
]


@pytest.mark.parametrize(("kind", "text"), SECRETS)
def test_secrets_are_found(kind: str, text: str) -> None:
    """Each is refused, and the kind is the one that the person is told."""
    assert secret_in(text) == kind


@pytest.mark.parametrize("text", FALSE_FRIENDS)
def test_false_friends_are_let_through(text: str) -> None:
    """Order numbers, telephone numbers, dates, ISBN, and talk about passwords are no secrets."""
    assert secret_in(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112",  # Luhn
        "ES91 2100 0418 4502 0005 1333",  # mod 97
        "12345678A",  # the letter of a DNI
        "X1234567A",
        "20-12345678-5",  # mod 11
        "12.345.678-6",
        "111.444.777-36",
        "111.111.111-11",  # every digit the same is none, although its digits check
        "HEGG560427MVZRRL05",
        "2850590940090418135202",
    ],
)
def test_a_wrong_check_digit_is_a_false_friend(text: str) -> None:
    """A number of the right form whose check digit is wrong is none of that kind."""
    assert secret_in(text) is None


@given(st.text(max_size=400))
def test_any_text_is_answered(text: str) -> None:
    """Whatever the text, the answer is a kind or None: nothing raises."""
    assert secret_in(text) in (None, *KINDS)


@given(st.integers(min_value=10**14, max_value=10**15 - 1), st.sampled_from(["", " ", "-"]))
def test_a_visa_number_is_found_however_it_is_grouped(body: int, separator: str) -> None:
    """Any 16 digits that start with 4 and check are a card, in groups of four or in one."""
    digits = f"4{str(body)[1:]}"
    number = next(f"{digits}{check}" for check in range(10) if luhn(f"{digits}{check}"))
    shown = separator.join(number[i : i + 4] for i in range(0, 16, 4))

    assert secret_in(f"es {shown}") is not None


def test_a_hostile_text_takes_no_time() -> None:
    """Long runs that nearly match are decided at once: no rule backtracks without bound."""
    for text in (
        "1 " * 10_000,
        "4" * 20_000,
        "ES91" + "A" * 20_000,
        "contraseña " * 2_000,
        "dni " + "1." * 9_000,
        "a" * 20_000,
        "eyJ" * 6_000,
        "clave de a " * 1_800,
        "usuario a " * 2_000,
        "de clave tengo " * 1_300,
        "uso pin1 de " * 1_600,
        "code of the door " * 1_100,
        "mi clave es a" + "." * 19_000 + "x",
        "pin es uno " + "dos " * 4_900,
        "passport a " * 1_800,
    ):
        secret_in(text)


@pytest.mark.parametrize("pattern", _PASSWORDS, ids=range(len(_PASSWORDS)))
@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
def test_no_pattern_is_left_out_for_its_words(pattern: re.Pattern[str], data: st.DataObject) -> None:
    """The words that are looked for first stand in whatever a pattern of passwords finds."""
    text = data.draw(st.from_regex(pattern, alphabet=st.characters(max_codepoint=0xFF)))

    assert not pattern.search(text) or _password(text)
