"""The encoding of a file in a text format."""

from __future__ import annotations

import codecs
import re

from attendo.core.errors import InputError
from attendo.text.encodings import guess_encoding

SAMPLE_BYTES = 65_536
META_CHARSET = re.compile(rb"""<meta\b[^<>]*charset\s*+=\s*+["']?+\s*+([\w.:-]+)""", re.IGNORECASE)
"""Without `++`, white space that ends nowhere would take quadratic time."""
TEXT_ENCODING = re.compile(
    r"utf-(8|16|32)(-[lb]e|-sig)?|ascii|iso8859-\d+|cp\d+|koi8-\w|mac-\w+|tis-620"
    r"|gb\w+|hz|big5\w*|euc_\w+|shift_jis\w*|iso2022_\w+|johab"
)
"""Encodings of files. Python's others (punycode, unicode_escape) may take quadratic time."""


def decode_file(content: bytes, *, is_html: bool) -> str:
    """Return the text of a file: UTF-8, an encoding that the page names, or a probable one.

    >>> decode_file("나는 학생이다.".encode("cp949"), is_html=False)
    '나는 학생이다.'
    """
    names = ["utf-8-sig"]
    if is_html and (found := META_CHARSET.search(content[:SAMPLE_BYTES])):
        names.append(found[1].decode("ascii", "replace"))
    for name in names:
        if (text := _try_decode(content, name)) is not None:
            return text
    guess = guess_encoding(content[:SAMPLE_BYTES])
    text = _try_decode(content, guess) if guess else None
    if text is None:
        raise InputError("the encoding of the file is not known", hint="convert it to UTF-8")
    return text


def _try_decode(content: bytes, encoding: str) -> str | None:
    try:
        name = codecs.lookup(encoding).name
        if not TEXT_ENCODING.fullmatch(name):
            return None
        # Korean files that call themselves EUC-KR are usually in its superset.
        return content.decode("cp949" if name == "euc_kr" else name)
    except (LookupError, UnicodeError, ValueError, TypeError):
        return None
