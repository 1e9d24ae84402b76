"""Guess what the bytes of a file are when they are not UTF-8: another encoding, or not text.

The guess only serves a hint (`iconv -f ...`): nothing is decoded silently. Every candidate that
decodes the sample is scored by the likelihood of a simple model: a character is one of the frequent
ones of that encoding's languages with a known probability, otherwise any other one. In the wrong
encoding a text turns into rare characters: Korean becomes rare Chinese, Russian becomes rows of
accented letters.
"""

from __future__ import annotations

import codecs
import math
import unicodedata
from typing import NamedTuple

HANGUL = "이다는을를에의가고한하지기사자로도은리인어시대나그서있수것아보오주제해부게일정여전들면"
KANA = "".join(map(chr, [*range(0x3041, 0x3094), *range(0x30A1, 0x30F7), 0x30FC]))
SIMPLIFIED = (
    "的一是不了在人有我他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家"
)
TRADITIONAL = (
    "的一是不了在人有我他這中大來上個國到說們為子和你地出道也時年得就那要下以生會自著去之過家"
)
CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґў"
WESTERN = "éèàçêâîôûùëïœæäöüßñáíóúãõåøÉÈÀÇÄÖÜ«»’“”–—…¿¡°€"
CENTRAL = "ąćęłńóśźżáčďéěíňřšťúůýžőűöüăşţâîđŁŚŻČŘŠŽ„”–"
TURKISH = "ğışçöüâîİŞÇÖÜ’“”"
GREEK = "αβγδεζηθικλμνξοπρστυφχψωςάέήίόύώ"
HEBREW = "".join(map(chr, range(0x5D0, 0x5EB)))
ARABIC = "ابتثجحخدذرزسشصضطظعغفقكلمنهويىةأإؤئ،؟"
THAI = "".join(map(chr, [*range(0xE01, 0xE3B), *range(0xE40, 0xE4F)]))


SINGLE_BYTE_SIZE = 128


class Candidate(NamedTuple):
    """An encoding, its name for iconv, and the characters that are frequent in its texts."""

    codec: str
    name: str
    frequent: str
    share: float
    """Share of the frequent ones among the characters beyond ASCII, in a text of this encoding."""
    size: int = SINGLE_BYTE_SIZE
    """Number of characters beyond ASCII that are in use."""
    is_latin: bool = False
    """Whether its letters occur within words of ASCII letters."""

    @property
    def min_share(self) -> float:
        """The share below which a text is not in this encoding: random bytes hit an alphabet."""
        return self.share * (0.8 if self.size == SINGLE_BYTE_SIZE else 0.4)


CANDIDATES = (
    Candidate("cp949", "CP949", HANGUL, 0.4, 2_350),
    Candidate("cp932", "SHIFT_JIS", KANA, 0.5, 3_000),
    Candidate("euc_jp", "EUC-JP", KANA, 0.5, 3_000),
    Candidate("gb18030", "GB18030", SIMPLIFIED, 0.3, 3_800),
    Candidate("big5", "BIG5", TRADITIONAL, 0.3, 5_400),
    Candidate("cp1251", "CP1251", CYRILLIC, 0.9),
    Candidate("koi8_r", "KOI8-R", CYRILLIC, 0.9),
    Candidate("cp866", "CP866", CYRILLIC, 0.9),
    Candidate("cp1252", "CP1252", WESTERN, 0.95, is_latin=True),
    Candidate("cp1250", "CP1250", CENTRAL, 0.95, is_latin=True),
    Candidate("cp1254", "CP1254", TURKISH, 0.95, is_latin=True),
    Candidate("cp1253", "CP1253", GREEK, 0.9),
    Candidate("cp1255", "CP1255", HEBREW, 0.9),
    Candidate("cp1256", "CP1256", ARABIC, 0.9),
    Candidate("cp874", "CP874", THAI, 0.95),
)

NUM_LATIN = 50
"""Number of frequent characters of any Latin encoding."""
UTF16_NAMES = {"utf_16_le": "UTF-16LE", "utf_16_be": "UTF-16BE"}
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",  # before UTF-16: its mark begins with that of UTF-16
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
MAGIC_NUMBERS = {
    b"PK\x03\x04": "ZIP",
    b"%PDF-": "PDF",
    b"\x89PNG": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"\xd0\xcf\x11\xe0": "Microsoft Office",
    b"SQLite format 3\0": "SQLite",
    b"PAR1\x15": "Parquet",
    b"BZh91AY&SY": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"7z\xbc\xaf": "7z",
    b"\x7fELF": "ELF",
    b"\x80\x02": "pickle",
    b"\x80\x04": "pickle",
    b"\x93NUMPY": "NumPy",
}
MAX_NUL_SHARE = 0.05
MAX_CONTROL_SHARE = 0.02
MAX_DAMAGED_SHARE = 0.2
"""Share of the characters beyond ASCII that may be damaged in a text that is called UTF-8."""
CONTROL_BYTES = bytes({*range(32), 127} - set(b"\t\n\f\r\x1b"))


def detect_file_type(head: bytes) -> str | None:
    """Return the name of a binary file type, from the first bytes of a file.

    >>> detect_file_type(b"%PDF-1.7"), detect_file_type(b"PDF is a format")
    ('PDF', None)
    """
    return next((name for magic, name in MAGIC_NUMBERS.items() if head.startswith(magic)), None)


def has_many_nul_bytes(head: bytes) -> bool:
    """Return whether bytes are UTF-16 or binary, even if they happen to be valid UTF-8."""
    return head.count(0) > MAX_NUL_SHARE * len(head)


def guess_encoding(sample: bytes) -> str | None:
    """Return the iconv name of the encoding of a text; None if no known encoding fits.

    >>> guess_encoding("나는 학생이다.".encode("cp949"))
    'CP949'
    >>> guess_encoding("L'élève a réussi.".encode("latin-1"))
    'CP1252'
    """
    for mark, name in BYTE_ORDER_MARKS.items():
        if sample.startswith(mark):
            return name
    if 0 in sample:
        return _guess_utf16(sample)
    if len(sample) - len(sample.translate(None, CONTROL_BYTES)) > MAX_CONTROL_SHARE * len(sample):
        return None
    scores = {candidate.name: _score(sample, candidate) for candidate in CANDIDATES}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] > -math.inf else None


def is_damaged_utf8(sample: bytes) -> bool:
    r"""Return whether a text is UTF-8 apart from a few bytes.

    >>> is_damaged_utf8("나는 학생이다.".encode() + b"\xff"), is_damaged_utf8(b"caf\xe9")
    (True, False)
    """
    text = sample.decode("utf-8", errors="replace").rstrip("\ufffd")  # the sample may be cut
    num_foreign = sum(not letter.isascii() for letter in text)
    num_damaged = max(text.count("\ufffd"), 1)
    return num_damaged <= MAX_DAMAGED_SHARE * num_foreign


def _guess_utf16(sample: bytes) -> str | None:
    for codec, name in UTF16_NAMES.items():
        text = _decode(sample[: len(sample) // 2 * 2], codec)
        if text is not None and _is_plain_text(text):
            return name
    return None


def _is_plain_text(text: str) -> bool:
    """Return whether a text has spaces or line ends, and hardly any odd characters."""
    num_unusual = sum(
        unicodedata.category(letter) in ("Cc", "Cn", "Co") and letter not in "\t\r\n"
        for letter in text
    )
    return any(letter in " \n" for letter in text) and num_unusual <= 0.01 * len(text)


def _decode(sample: bytes, codec: str) -> str | None:
    """Decode a sample, whose last character may be cut; None if it does not fit."""
    try:
        return codecs.getincrementaldecoder(codec)().decode(sample)
    except UnicodeDecodeError:
        return None


def _score(sample: bytes, candidate: Candidate) -> float:
    """Return the log-likelihood of the bytes, minus infinity if they are no such text."""
    text = _decode(sample, candidate.codec)
    if text is None or text.isascii():
        return -math.inf
    num_foreign = sum(not letter.isascii() for letter in text)
    num_fitting = _count_fitting(text, candidate)
    if num_fitting < candidate.min_share * num_foreign:
        return -math.inf
    # Latin encodings share most letters: if both fit, the more usual one, listed first, is meant.
    num_frequent = NUM_LATIN if candidate.is_latin else len(candidate.frequent)
    fitting = math.log(candidate.share / num_frequent)
    other = math.log((1 - candidate.share) / (candidate.size - num_frequent))
    return num_fitting * fitting + (num_foreign - num_fitting) * other


def _count_fitting(text: str, candidate: Candidate) -> int:
    """Count the characters beyond ASCII that are frequent and fit their neighbors."""
    frequent = frozenset(candidate.frequent)
    fits = _fits_latin if candidate.is_latin else _fits_alone
    neighbors = zip(" " + text, text, text[1:] + " ", strict=False)
    return sum(letter in frequent and fits(before, after) for before, letter, after in neighbors)


def _fits_latin(before: str, after: str) -> bool:
    """Return whether an accented letter has at most one accented neighbor."""
    return before.isascii() or after.isascii()


def _fits_alone(before: str, after: str) -> bool:
    """Return whether a letter is outside of words of ASCII letters."""
    return not (before.isascii() and before.isalpha()) and not (after.isascii() and after.isalpha())
