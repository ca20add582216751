"""Which texts hold a secret or an identity number, by rule: whatever a model says, these are not kept. Pure.

A kind is all that is told; the value is neither returned nor logged. Numbers with check digits are in `numbers.py`.
"""

import re
import unicodedata
from collections.abc import Callable

from .numbers import is_account, is_card, is_identity

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
    r"|discord(?:app)?\.com/api/webhooks/\d+/[\w-]{30,}|hooks\.slack\.com/services/\w+/\w+/\w{16,}"  # whoever has the address may write
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


# ---------------------------------------------------------------------------------------------- passwords, in words

_KIND = (
    r"(?:\s+(?:nuev[ao]|actual|antigu[ao]|viej[ao]|anterior|temporal|maestr[ao]|principal|personal|din[aá]mica|num[eé]ric[ao]|bancari[ao]"
    r"|new|old|current|master|main|temporary|personal))?"
)
_OF = _KIND + r"(?:\s+(?:del?|de la|of|for|to|para|en|al?|my|the|mi|el|la)\s+[\w.-]+(?:\s+[\w.-]+){0,2}?)?"
_SAYS = r"\s*(?::|=|->|→|=>)\s*"
_IS = (
    r"(?:\s+(?:siempre|ahora|hoy|always|now|today))?\s+(?:es|is|era|was|ser[aá]|son|are|sigue siendo)\s+"
    r"(?:(?:siempre|ahora|always|now)\s+)?"
)
_STRONG = (
    r"(?:contrase[nñ]a|contrasenya|password|passwort|passwd|pwd|passphrase|passcode|frase de (?:paso|recuperaci[oó]n)|frase semilla"
    r"|seed phrase|recovery phrase|senha)s?"
)
_LOCKED_ES = r"(?:alarma|puerta|portal|garaje|port[oó]n|caja(?: fuerte)?|candado|maleta|m[oó]vil|tel[eé]fono|celular|casa|wifi|oficina)"
_LOCKED_EN = r"(?:alarm|door|gate|garage|safe|lock|locker|suitcase|phone|house|building|office|wifi)"
_WEAK = (
    r"(?:clave|(?:pin|nip)(?: number| code)?|cvv|cvc|cvv2|token|api[ _-]?key|secret(?:o|[ _-]?key)?|private key|access key|llave|otp|pass"
    rf"|combinaci[oó]n del? (?:la |mi |el |su )?{_LOCKED_ES}"
    rf"|combination (?:for|of|to) (?:the |my |our )?{_LOCKED_EN}|{_LOCKED_EN} combination"
    r"|(?:c[oó]digo|code|clave) (?:pin|secreto|cvv|de (?:seguridad|verificaci[oó]n|acceso|desbloqueo|entrada)"
    rf"|del? (?:la |mi |el |su )?{_LOCKED_ES})"
    rf"|(?:security|verification|access|unlock|secret|entry|{_LOCKED_EN}) code|code (?:for|of|to) (?:the |my |our )?{_LOCKED_EN})s?"
)
# "mi contraseña es segura" says nothing of it
_ADJECTIVES = (
    r"(?:muy |tan |too |very |so |demasiado |m[aá]s |more )?"
    r"(?:segur[ao]s?|larg[ao]s?|d[eé]bil(?:es)?|fuertes?|secret[ao]s?|cort[ao]s?|f[aá]cil(?:es)?|dif[ií]cil(?:es)?|obligatori[ao]s?|necesari[ao]s?"
    r"|importantes?|distint[ao]s?|complicad[ao]s?|imposible|long|short|weak|strong|safe|secure|easy|hard|required|necessary|different|important"
    r"|wrong|expired|lost|incorrect[ao]?s?|un|una|a|an|the|algo|something|lo|que|what|not|no)\b"
)
_WHOSE = r"(?:mi |su |la |el |my |his |her |their |the )?"
_VALUE_WITH_DIGIT = r"[\"'«“`(]?(?=[^\s]*\d)[^\s]{3,}"
_SPELT = r"(?:cero|uno|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|zero|oh|one|two|three|four|five|six|seven|eight|nine)"
_PASSWORDS = (
    re.compile(rf"\b{_STRONG}{_OF}{_SAYS}\S", re.IGNORECASE),
    re.compile(rf"\b{_STRONG}{_OF}{_IS}(?!{_ADJECTIVES})\S", re.IGNORECASE),
    re.compile(rf"\b{_STRONG}\s+{_VALUE_WITH_DIGIT}", re.IGNORECASE),
    re.compile(rf"\b{_WEAK}{_OF}(?:{_SAYS}|{_IS})(?:(?:el|la|the)\s+)?{_VALUE_WITH_DIGIT}", re.IGNORECASE),
    re.compile(rf"\b(?:mi|su|my|his|her)\s+clave{_OF}{_IS}[^\s]+[\s.!]*\Z", re.IGNORECASE),
    re.compile(rf"\b(?:clave|api[ _-]?key|token|secret[ _-]?key){_OF}{_SAYS}[^\s]{{6,}}", re.IGNORECASE),
    re.compile(r"\b(?:pin|nip|cvv|cvc|otp)\s+\d{3,8}\b", re.IGNORECASE),
    re.compile(rf"\b(?:pin|nip|cvv|clave|code|c[oó]digo){_OF}(?:{_SAYS}|{_IS})(?:{_SPELT}[\s,-]+){{2,}}{_SPELT}\b", re.IGNORECASE),
    re.compile(
        rf"\b(?:uso|usa|utiliza|uses?|using)\s+\S+\s+(?:como|as)\s+{_WHOSE}(?:{_STRONG}|pin|clave)\b",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:uso|usa|utiliza|tengo|tiene|uses?|using|have|has)\s+{_VALUE_WITH_DIGIT}\s+(?:de|para|for)\s+{_WHOSE}(?:{_STRONG}|pin|clave)\b",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:de|como|para|for|as)\s+{_WHOSE}(?:{_STRONG}|pin|clave)\s+(?:i |yo |he |she )?"
        rf"(?:tengo|uso|tiene|usa|utilizo|pongo|puse|use|uses|have|has|put)\s+(?!{_ADJECTIVES})\S",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:cambi[eéoó]|cambiar|puse|pongo|changed|change|set|reset)\s+(?:{_WHOSE})(?:{_STRONG}|pin|clave){_OF}\s+(?:a|por|to)\s+"
        rf"(?!{_ADJECTIVES})\S",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:usuario|user(?:name)?|login)\b[\s:=]+\S+[\s,;/]+(?:y |and )?(?:{_STRONG}|clave|pass)\b[\s:=]+(?!{_ADJECTIVES})\S",
        re.IGNORECASE,
    ),
)

# Each of these patterns needs one of these words; without any, which is nearly always, none has to be tried.
_PASSWORD_WORDS = (
    *("contrase", "passw", "passphrase", "passcode", "pwd", "frase", "phrase", "senha", "clave", "pin", "nip", "cvv", "cvc", "token"),
    *("api", "secret", "key", "llave", "otp", "pass", "codigo", "código", "code", "combinaci", "combination"),
)


def _password(text: str) -> bool:
    folded = text.casefold()
    return any(word in folded for word in _PASSWORD_WORDS) and any(pattern.search(text) for pattern in _PASSWORDS)


# ---------------------------------------------------------------------------------------------- all of them


def _any(*patterns: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: any(pattern.search(text) for pattern in patterns)


_RULES: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("PRIVATE_KEY", _any(_PEM)),
    ("TOKEN", _any(_JWT, _KEYS, _BEARER)),
    ("PASSWORD", lambda text: bool(_URL_LOGIN.search(text)) or _password(text)),
    ("CARD", is_card),
    ("ACCOUNT", is_account),
    ("ID_NUMBER", is_identity),
    ("TOKEN", _long_token),
)
KINDS = tuple(dict.fromkeys(kind for kind, _ in _RULES))
LOOKED_AT = 20_000  # characters: a text longer than this is refused for its length


_BEYOND_LATIN = re.compile("[^\\0-\u036f]")  # in it, no letter is a digit once the form is NFKC


def secret_in(text: str) -> str | None:
    """The kind of secret that a text holds, one of KINDS, or None. Look-alike digits and hidden characters do not get one through."""
    plain = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text[:LOOKED_AT]))
    plain = _BEYOND_LATIN.sub(lambda c: str(unicodedata.digit(c[0])) if c[0].isdigit() else c[0], plain)
    return next((kind for kind, holds in _RULES if holds(plain)), None)
