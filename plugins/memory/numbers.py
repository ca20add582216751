"""Which texts hold a card, an account or an identity number, by form and check digit: an order number that looks alike is none. Pure."""

import re
from collections.abc import Iterator

# ---------------------------------------------------------------------------------------------- cards and accounts

_DIGIT_RUN = re.compile(r"(?<![\d+.,-])\d+(?:[ .\-–]\d+)*")
_SEPARATOR = re.compile(r"[ .\-–]")
_IBAN_START = re.compile(r"(?<![A-Z0-9])([A-Z]{2})[ -]?(\d{2})(?=[ -]?[A-Z0-9])")
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28, "CH": 21, "CR": 22,
    "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22,
    "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30,
    "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31,
    "MU": 30, "NI": 28, "NL": 18, "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31,
    "SE": 24, "SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
}  # fmt: skip
_ACCOUNT_WORDS = re.compile(
    r"\b(?:cuenta(?: bancaria| corriente| de ahorros?)?|n[uú]mero de cuenta|cbu|clabe"
    r"|account (?:number|no\.?)|bank account|routing number)\b"
    r"[^\d\n]{0,20}\d(?:[ .-]?\d){7,}",
    re.IGNORECASE,
)


def luhn(digits: str) -> bool:
    """Whether a run of digits ends in its Luhn check digit."""
    doubled = (int(d) * (1 + i % 2) for i, d in enumerate(reversed(digits)))
    return sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0


def _issued(digits: str) -> bool:
    """Whether a card issuer gives numbers of this beginning and length."""
    n, two, four = len(digits), int(digits[:2]), int(digits[:4])
    return (
        (digits[0] == "4" and n in (13, 16, 19))
        or (n == 16 and (51 <= two <= 55 or 2221 <= four <= 2720))
        or (n == 15 and two in (34, 37))
        or (n in (14, 16) and (two in (36, 38, 39) or 300 <= four // 10 <= 305))
        or (n == 16 and 3528 <= four <= 3589)
        or (16 <= n <= 19 and (two in (50, 62, 64, 65) or 56 <= two <= 69))
    )


def is_card(text: str) -> bool:
    """Whether a text holds the number of a payment card."""
    return any(_issued(digits) and luhn(digits) for digits in _joined(text, 13, 19))


def _joined(text: str, shortest: int, longest: int) -> Iterator[str]:
    """Runs of digits as a person groups them, `4111 1111 1111 1111`, and every part of a run that could be one number."""
    for run in _DIGIT_RUN.findall(text):
        groups = _SEPARATOR.split(run)[:64]
        for start in range(len(groups)):
            digits = ""
            for group in groups[start:]:
                digits += group
                if len(digits) > longest or not _alike(group, groups[start]):
                    break
                if len(digits) >= shortest:
                    yield digits


def _alike(group: str, first: str) -> bool:
    """Whether two groups of digits may be of one number: "1 2 … 9 10 11" is a list."""
    return len(group) == len(first) or min(len(group), len(first)) >= 3


def _iban(text: str) -> bool:
    upper = text.upper()
    for match in _IBAN_START.finditer(upper):
        length = _IBAN_LENGTHS.get(match[1])
        rest = re.match(r"(?:[ -]?[A-Z0-9])+", upper[match.end() :])
        if length is None or rest is None:
            continue
        number = match[1] + match[2] + re.sub(r"[ -]", "", rest[0])
        if len(number) >= length and _mod_97(number[:length]) == 1:
            return True
    return False


def _mod_97(iban: str) -> int:
    return int("".join(str(int(c, 36)) for c in iban[4:] + iban[:4])) % 97


def _weighted(digits: str, weights: str) -> int:
    return sum(int(d) * int(w) for d, w in zip(digits, weights, strict=True))


def _cbu(digits: str) -> bool:
    """An Argentine account: two blocks, each with its check digit."""
    bank, account = digits[:8], digits[8:]
    first = (10 - _weighted(bank[:7], "7139713") % 10) % 10
    second = (10 - _weighted(account[:13], "3971397139713") % 10) % 10
    return int(bank[7]) == first and int(account[13]) == second and len(set(digits)) > 1


# ---------------------------------------------------------------------------------------------- identity numbers

_DNI = re.compile(r"(?<![\w.])(\d{2}\.?\d{3}\.?\d{3})[ -]?([A-HJ-NP-TV-Z])(?!\w)", re.IGNORECASE)
_NIE = re.compile(r"(?<!\w)([XYZ])[ -]?(\d{7})[ -]?([A-HJ-NP-TV-Z])(?!\w)", re.IGNORECASE)
_CUIT = re.compile(r"(?<![\w+.-])(20|23|24|25|26|27|30|33|34)[ -]?(\d{8})[ -]?(\d)(?![\w-])")
_RUT = re.compile(r"(?<![\w.-])(\d{1,2}\.?\d{3}\.?\d{3})[-–]([\dkK])(?![\w-])")
_CPF = re.compile(r"(?<![\w+.-])(\d{3})\.?(\d{3})\.?(\d{3})[-–]?(\d{2})(?![\w-])")
_CURP = re.compile(r"(?<!\w)([A-Z]{4}\d{6}[HMX][A-Z]{5}[A-Z\d])(\d)(?!\w)", re.IGNORECASE)
_SSN = re.compile(r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")
_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_CURP_ALPHABET = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"
_ID_WORDS = re.compile(
    r"\b(?:dni|nie|nif|n\.i\.f\.|c[eé]dula(?: de (?:ciudadan[ií]a|identidad))?|pasaporte|passport|ssn|social security|seguro social"
    r"|seguridad social|nss|curp|rfc|cuit|cuil|rut|(?-i:RUN)|cpf|carn[eé]t? de identidad|documento(?: de identidad| nacional)?"
    r"|tarjeta de identidad|identity card|national id|id card|driver'?s? licen[cs]e|licencia de conducir)\b"
    r"(?:\s+(?:number|n[uú]mero|no|n[ºo°]|card))?(?:\s+\w+(?=\s*[:=]|\s+(?:es|is|was|era)\s))?"  # "mi DNI peruano es"
    r"[\s.:=#]*(?:(?:es|is|was|era|con|n[ºo°]\.?)\s+(?:el\s+|the\s+)?)?[\s.:=#]*"
    r"(?!(?:del?|en|from|of|in|since|desde|para|for)\b)([A-Z]{0,4}[ -]?\d[A-Z0-9]*(?:[ .-]\d[A-Z0-9]*)*)",
    re.IGNORECASE,
)


def _dni(text: str) -> bool:
    plain = ((int(m[1].replace(".", "")), m[2]) for m in _DNI.finditer(text))
    foreign = ((int(str("XYZ".index(m[1].upper())) + m[2]), m[3]) for m in _NIE.finditer(text))
    return any(_LETTERS[number % 23] == letter.upper() for number, letter in (*plain, *foreign))


def _cuit(text: str) -> bool:
    for match in _CUIT.finditer(text):
        check = 11 - _weighted(match[1] + match[2], "5432765432") % 11
        if (0 if check == 11 else check) == int(match[3]):
            return True
    return False


def _rut(text: str) -> bool:
    for match in _RUT.finditer(text):
        digits = match[1].replace(".", "")
        check = 11 - sum(int(d) * (2 + i % 6) for i, d in enumerate(reversed(digits))) % 11
        if {11: "0", 10: "k"}.get(check, str(check)) == match[2].lower():
            return True
    return False


def _cpf(text: str) -> bool:
    for match in _CPF.finditer(text):
        digits = "".join(match.groups())
        if len(set(digits)) > 1 and all(_cpf_check(digits[:n]) == int(digits[n]) for n in (9, 10)):
            return True
    return False


def _cpf_check(digits: str) -> int:
    return sum(int(d) * w for d, w in zip(digits, range(len(digits) + 1, 1, -1), strict=True)) * 10 % 11 % 10


def _curp(text: str) -> bool:
    for match in _CURP.finditer(text):
        body = match[1].upper()
        total = sum(_CURP_ALPHABET.index(c) * (18 - i) for i, c in enumerate(body))
        if (10 - total % 10) % 10 == int(match[2]):
            return True
    return False


def is_account(text: str) -> bool:
    """Whether a text holds the number of a bank account."""
    return _iban(text) or bool(_ACCOUNT_WORDS.search(text)) or any(map(_cbu, _joined(text, 22, 22)))


def is_identity(text: str) -> bool:
    """Whether a text holds the number of an identity document."""
    by_check = (_dni, _cuit, _rut, _cpf, _curp)
    return any(holds(text) for holds in by_check) or bool(_SSN.search(text)) or any(map(_is_long, _ID_WORDS.findall(text)))


def _is_long(number: str) -> bool:
    """Whether what is said to be an identity number is long enough for one: "2027" is a year."""
    return sum(c.isalnum() for c in number) >= 5 and sum(c.isdigit() for c in number) >= 4
