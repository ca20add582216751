"""Which texts hold a secret or an identity number, by rule: whatever a model says, these are not kept. Pure.

Formats that carry a check digit are checked, so that an order number or a telephone number that looks alike is let through. A kind is
all that is told; the value is neither returned nor logged.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator

_INVISIBLE = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)

# ---------------------------------------------------------------------------------------------- keys and tokens

_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]*(?:PRIVATE KEY|CERTIFICATE)|PuTTY-User-Key-File|AGE-SECRET-KEY-1", re.IGNORECASE)
_JWT = re.compile(r"\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*")
_KEYS = re.compile(
    r"(?<![\w-])(?:"
    r"sk-[\w-]{16,}"  # OpenAI, Anthropic and those alike
    r"|[sr]k_(?:live|test)_\w{10,}|whsec_\w{16,}"  # Stripe
    r"|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[abeoprs]-[\w-]{10,}|xapp-\d-[\w-]{10,}"  # Slack
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"  # AWS
    r"|AIza[\w-]{30,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}"  # Google
    r"|EAA[A-Za-z0-9]{20,}"  # Meta
    r"|\d{6,12}:[A-Za-z][\w-]{32,}"  # a Telegram bot's token
    r"|npm_\w{30,}|pypi-[\w-]{30,}|hf_\w{20,}|r8_\w{30,}|gsk_\w{30,}|pplx-\w{30,}|xai-\w{30,}"
    r"|SG\.[\w-]{16,}\.[\w-]{16,}|key-[0-9a-f]{32}|(?:AC|SK)[0-9a-f]{32}"  # SendGrid, Mailgun, Twilio
    r"|do[opr]_v1_[0-9a-f]{32,}|shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}|sq0[a-z]{3}-[\w-]{20,}|lin_api_\w{30,}|PMAK-[\w-]{30,}"
    r"|[MNO][A-Za-z\d]{23,}\.[\w-]{6}\.[\w-]{27,}"  # Discord
    r"|[5KL][1-9A-HJ-NP-Za-km-z]{50,51}"  # Bitcoin, wallet import format
    r"|xprv[1-9A-HJ-NP-Za-km-z]{100,}"
    r")(?![\w])"
)
_BEARER = re.compile(r"\bbearer\s+[\w.~+/-]{16,}=*|\bbasic\s+[A-Za-z0-9+/]{16,}={0,2}(?!\w)|AccountKey=[A-Za-z0-9+/=]{20,}", re.IGNORECASE)
_URL_LOGIN = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@]*:[^\s/@]+@", re.IGNORECASE)
_LONG_TOKEN = re.compile(r"(?<![\w/.=-])[A-Za-z0-9_-]{32,}(?![\w/.-])")


def _long_token(text: str) -> bool:
    """A long run of mixed letters and digits, as generated keys are; a UUID, a hash in hex or an address is none."""
    return any(
        sum(c.isdigit() for c in token) >= 3
        and any(c.isupper() for c in token)
        and any(c.islower() for c in token)
        and len(set(token)) >= 16
        for token in _LONG_TOKEN.findall(text)
    )


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


def _card(text: str) -> bool:
    return any(_issued(digits) and luhn(digits) for digits in _joined(text, 13, 19))


def _joined(text: str, shortest: int, longest: int) -> Iterator[str]:
    """Runs of digits as a person groups them, `4111 1111 1111 1111`, and every part of a run that could be one number."""
    for run in _DIGIT_RUN.findall(text):
        groups = _SEPARATOR.split(run)[:64]
        for start in range(len(groups)):
            digits, short, long = "", False, False
            for group in groups[start:]:
                digits += group
                short, long = short or len(group) <= 2, long or len(group) >= 3
                if len(digits) > longest or (short and long):
                    break
                if len(digits) >= shortest:
                    yield digits


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
_RUT = re.compile(r"(?<![\w.])(\d{1,2}\.?\d{3}\.?\d{3})[-–]([\dkK])(?![\w-])")
_CPF = re.compile(r"(?<![\w+.-])(\d{3})\.?(\d{3})\.?(\d{3})[-–]?(\d{2})(?![\w-])")
_CURP = re.compile(r"(?<!\w)([A-Z]{4}\d{6}[HMX][A-Z]{5}[A-Z\d])(\d)(?!\w)", re.IGNORECASE)
_SSN = re.compile(r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")
_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_CURP_ALPHABET = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"
_ID_WORDS = re.compile(
    r"\b(?:dni|nie|nif|n\.i\.f\.|c[eé]dula(?: de (?:ciudadan[ií]a|identidad))?|pasaporte|passport|ssn|social security|seguro social"
    r"|seguridad social|nss|curp|rfc|cuit|cuil|rut|run|cpf|carn[eé] de identidad|documento(?: de identidad| nacional)?"
    r"|tarjeta de identidad|identity card|national id|id card|driver'?s? licen[cs]e|licencia de conducir)\b"
    r"(?:\s+(?:number|n[uú]mero|no|n[ºo°]|card))?[\s.:=#]*(?:(?:es|is|was|era|con|n[ºo°]\.?)\s+(?:el\s+|the\s+)?)?[\s.:=#]*"
    r"(?=[A-Z0-9.\- ]*\d)(?:[A-Z]{0,4}[ -]?\d(?:[ .-]?[A-Z0-9]){4,})",
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


# ---------------------------------------------------------------------------------------------- passwords, in words

_OF = r"(?:\s+(?:del?|de la|of|for|to|para|en|al?|my|the|mi|el|la)\s+[\w.-]+(?:\s+[\w.-]+){0,2}?)?"
_SAYS = r"\s*(?::|=|->|→|=>)\s*"
_IS = r"\s+(?:es|is|era|was|ser[aá]|son|are)\s+(?:siempre\s+|always\s+|ahora\s+|now\s+)?"
_STRONG = (
    r"(?:contrase[nñ]a|contrasenya|password|passwort|passwd|pwd|passphrase|passcode|frase de (?:paso|recuperaci[oó]n)|frase semilla"
    r"|seed phrase|recovery phrase|senha)s?"
)
_WEAK = (
    r"(?:clave|pin|cvv|cvc|cvv2|token|api[ _-]?key|secret(?:o|[ _-]?key)?|private key|access key|llave|otp|pass"
    r"|(?:c[oó]digo|code|clave) (?:pin|de (?:seguridad|verificaci[oó]n|acceso|desbloqueo)|secreto|cvv)"
    r"|(?:security|verification|access|unlock|secret) code)s?"
)
# "mi contraseña es segura" says nothing of it
_ADJECTIVES = (
    r"(?:muy |tan |too |very |so |demasiado |m[aá]s |more )?"
    r"(?:segur[ao]s?|larg[ao]s?|d[eé]bil(?:es)?|fuertes?|secret[ao]s?|cort[ao]s?|f[aá]cil(?:es)?|dif[ií]cil(?:es)?|obligatori[ao]s?|necesari[ao]s?"
    r"|importantes?|distint[ao]s?|complicad[ao]s?|imposible|long|short|weak|strong|safe|secure|easy|hard|required|necessary|different|important"
    r"|wrong|expired|lost|incorrect[ao]?s?|un|una|a|an|the|algo|something|lo|que|what|not|no)\b"
)
_VALUE_WITH_DIGIT = r"[\"'«“`(]?(?=[^\s]*\d)[^\s]{3,}"
_PASSWORDS = (
    re.compile(rf"\b{_STRONG}{_OF}{_SAYS}\S", re.IGNORECASE),
    re.compile(rf"\b{_STRONG}{_OF}{_IS}(?!{_ADJECTIVES})\S", re.IGNORECASE),
    re.compile(rf"\b{_STRONG}\s+{_VALUE_WITH_DIGIT}", re.IGNORECASE),
    re.compile(rf"\b{_WEAK}{_OF}(?:{_SAYS}|{_IS}){_VALUE_WITH_DIGIT}", re.IGNORECASE),
    re.compile(rf"\b(?:clave|api[ _-]?key|token|secret[ _-]?key){_OF}{_SAYS}[^\s]{{6,}}", re.IGNORECASE),
    re.compile(r"\b(?:pin|cvv|cvc|otp)\s+\d{3,8}\b", re.IGNORECASE),
    re.compile(
        rf"\b(?:uso|usa|utiliza|uses?|using)\s+\S+\s+(?:como|as)\s+(?:mi |su |my |his |her |their |the )?(?:{_STRONG}|pin|clave)\b",
        re.IGNORECASE,
    ),
)

# ---------------------------------------------------------------------------------------------- all of them


def _any(*patterns: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: any(pattern.search(text) for pattern in patterns)


_RULES: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("PRIVATE_KEY", _any(_PEM)),
    ("TOKEN", _any(_JWT, _KEYS, _BEARER)),
    ("PASSWORD", _any(_URL_LOGIN, *_PASSWORDS)),
    ("CARD", _card),
    ("ACCOUNT", lambda text: _iban(text) or bool(_ACCOUNT_WORDS.search(text)) or any(map(_cbu, _joined(text, 22, 22)))),
    ("ID_NUMBER", lambda text: _dni(text) or _cuit(text) or _rut(text) or _cpf(text) or _curp(text) or _any(_SSN, _ID_WORDS)(text)),
    ("TOKEN", _long_token),
)
KINDS = tuple(dict.fromkeys(kind for kind, _ in _RULES))
LOOKED_AT = 20_000  # characters: a text longer than this is refused for its length


def secret_in(text: str) -> str | None:
    """The kind of secret that a text holds, one of KINDS, or None. Look-alike digits and hidden characters do not get one through."""
    plain = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text[:LOOKED_AT]))
    plain = "".join(str(unicodedata.digit(c)) if c.isdigit() and not c.isascii() else c for c in plain)
    return next((kind for kind, holds in _RULES if holds(plain)), None)
