from __future__ import annotations

from time import process_time

import pytest

from attendo.core.errors import InputError
from attendo.documents.encoding import decode_file
from attendo.documents.html import read_html

PAGE = '<html lang="ko"><meta charset={}><p>나는 학생이다.</p></html>'


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("utf-8", "utf-8"),
        ("utf-8", "utf-8-sig"),
        ("", "utf-8"),
        ("euc-kr", "euc_kr"),
        ("ks_c_5601-1987", "cp949"),
        ("utf-16le", "utf_16_le"),
        ("?", "cp949"),
    ],
)
def test_the_encoding_is_what_the_page_names_or_a_probable_one(name, codec) -> None:
    page = PAGE.format(name)
    assert decode_file(page.encode(codec), is_html=True) == page


def test_an_empty_file_is_read() -> None:
    assert decode_file(b"", is_html=False) == ""


@pytest.mark.parametrize("name", ["punycode", "unicode_escape", "utf-7", "idna", "hex", "rot13"])
def test_codecs_of_python_that_are_no_encodings_of_files_are_not_used(name) -> None:
    """Python takes quadratic time for punycode."""
    with pytest.raises(InputError):
        decode_file(f"<meta charset={name}>-\\ud800".encode() + b"\x8d\x8f\xff", is_html=True)


@pytest.mark.parametrize(
    "page",
    ["<meta charset=" + " " * 60_000 + ">", "<meta" * 12_000, "<meta charset" * 5_000,
     "<meta " + "charset= " * 7_000 + ">", "<html lang=" + " " * 60_000, "<html" + " lang" * 12_000
     + ">"],
)  # fmt: skip
def test_pages_that_are_made_to_hurt_are_read_in_linear_time(page) -> None:
    """The first one stopped the server for minutes."""
    begin = process_time()
    with pytest.raises(InputError):
        decode_file(page.encode() + b"\x8d\x8f\xff", is_html=True)
    read_html(page, "en")
    assert process_time() - begin < 10  # CPU time: how busy the machine is does not count
