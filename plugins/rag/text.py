"""Bytes to text that is safe to store, embed and show: encodings told apart, and nothing in it that no engine keeps."""

import codecs
import re
import unicodedata

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WESTERN = frozenset("áéíóúüñçàèìòùâêîôûäöïëãõßÁÉÍÓÚÜÑÇÀÈÌÒÙÂÊÎÔÛÄÖÏËÃÕœŒ¿¡ªº°«»·€£©®™±×½¼²³§“”‘’„–—…•\xa0\xad")
_USUAL = frozenset("áéíóúñü¿¡")
_OLDER = ("mac_roman", "cp850")
_ELSEWHERE = ["cp1251", "koi8_r", "cp1250", "cp1253", "cp1254", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"]
_UNSAFE = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\x80-\x84\x86-\x9f\u200b\u2060\ufeff\ufffe\uffff]")
_SEQUENCES = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\\\)")  # colours, the cursor, a window's title
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SUSPECT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u2029\u2060\ufeff\ufffe\uffff]")
_BINARY_SHARE = 0.05


class NotText(ValueError):
    """The bytes are no text in any encoding that makes sense."""


def decode(data: bytes) -> str:
    """The text that the bytes are, cleaned. Raises NotText for what is none: a picture with the name of a text, say."""
    text = _decoded(data)
    control = sum(1 for c in text[:20_000] if c < " " and c not in "\t\n\r\f\v\0")
    if control > _BINARY_SHARE * len(text[:20_000]):
        raise NotText("it holds control characters where text should be")
    return clean(text)


def clean(text: str) -> str:
    """The text with one kind of line break and without what a terminal obeys, NUL, control and zero-width characters, lone surrogates."""
    if text.isascii() and text.isprintable():
        return text
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _has_surrogates(text) else text
    if _SUSPECT.search(whole):  # one look, where most texts need no more
        whole = _SEQUENCES.sub("", whole) if "\x1b" in whole else whole
        whole = _UNSAFE.sub("", _BREAKS.sub("\n", whole))
    return unicodedata.normalize("NFC", whole)


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _decoded(data: bytes) -> str:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data.decode(encoding, "replace").removeprefix("\ufeff")
    if utf16 := _utf16_without_bom(data):
        return data.decode(utf16, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return _damaged_utf8(data) or _legacy(data)


def _utf16_without_bom(data: bytes) -> str | None:
    """Western text in UTF-16 has a NUL in nearly every second byte, always on the same side."""
    sample = data[:4000]
    half = len(sample) // 2
    if half < 2 or len(data) % 2:
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd > 0.6 * half and even < 0.1 * half:
        return "utf-16-le"
    if even > 0.6 * half and odd < 0.1 * half:
        return "utf-16-be"
    return None


def _damaged_utf8(data: bytes) -> str | None:
    """UTF-8 with a few bytes spoilt or cut off stays UTF-8."""
    text = data.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    good = sum(1 for c in text if c > "\x7f") - bad
    return text if good > 4 * bad else None


def _legacy(data: bytes) -> str:
    """One byte a letter: by far most often cp1252, where every high byte makes sense in it; statistics decide only what is left."""
    if _western(data, "cp1252"):
        return data.decode("cp1252")
    older = [data.decode(encoding) for encoding in _OLDER if _western(data, encoding)]
    if older:
        return max(older, key=lambda text: sum(c in _USUAL for c in text))
    import charset_normalizer

    best = charset_normalizer.from_bytes(data[:200_000], cp_isolation=_ELSEWHERE).best()
    return data.decode(best.encoding if best else "cp1252", "replace")


def _western(data: bytes, encoding: str) -> bool:
    high = bytes({byte for byte in data if byte > 0x7F})
    return _WESTERN.issuperset(high.decode(encoding, "replace"))
