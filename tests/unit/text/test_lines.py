"""Line ends, encodings and damaged files."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest

from attendo.core.errors import InputError
from attendo.text.encodings import guess_encoding, is_damaged_utf8
from attendo.text.lines import read_lines

KOREAN = "나는 어제 학교에 가서 친구들을 만났다."
JAPANESE = "私は昨日学校へ行って友達に会いました。"
SIMPLIFIED = "我昨天去学校见了朋友。我们一起吃了午饭，然后在图书馆学习。"
TRADITIONAL = "我昨天去學校見了朋友。我們一起吃了午飯，然後在圖書館學習。"
RUSSIAN = "Вчера я пошёл в школу и встретил друзей."
FRENCH = "L'élève a réussi à l'école, et le garçon naïf est allé à la forêt."
SENTENCES = [
    (KOREAN, "cp949", "CP949"),
    (KOREAN, "utf-16", "UTF-16"),
    (KOREAN, "utf-16-le", "UTF-16LE"),
    (KOREAN, "utf-16-be", "UTF-16BE"),
    (JAPANESE, "shift_jis", "SHIFT_JIS"),
    (JAPANESE, "euc_jp", "EUC-JP"),
    (JAPANESE, "utf-16-le", "UTF-16LE"),
    (SIMPLIFIED, "gb18030", "GB18030"),
    (TRADITIONAL, "big5", "BIG5"),
    (RUSSIAN, "cp1251", "CP1251"),
    (RUSSIAN, "koi8_r", "KOI8-R"),
    (FRENCH, "latin-1", "CP1252"),
    (FRENCH, "utf-16-le", "UTF-16LE"),
    ("Die Mädchen hörten schöne Musik und aßen süße Äpfel.", "cp1252", "CP1252"),
    ("¿Cómo estás? Mañana iré a la montaña.", "latin-1", "CP1252"),
    ("Wczoraj poszedłem do szkoły i spotkałem przyjaciół.", "cp1250", "CP1250"),
    ("Dün okula gittim ve arkadaşlarımla buluştum, çalıştık.", "cp1254", "CP1254"),
    ("Χθες πήγα στο σχολείο και συνάντησα τους φίλους μου.", "cp1253", "CP1253"),
]


def write(folder, raw: bytes):
    (folder / "a.txt").write_bytes(raw)
    return folder / "a.txt"


@pytest.mark.parametrize(("text", "codec", "name"), SENTENCES)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_hint_names_the_encoding(tmp_path, text, codec, name, pack):
    path = write(tmp_path, pack(f"{text}\n{text}\n".encode(codec)))
    with pytest.raises(InputError) as caught:
        list(read_lines(path))
    assert f"iconv -f {name} -t UTF-8 a.txt" in caught.value.hint


def test_an_encoding_is_found_after_ascii_lines(tmp_path):
    path = write(tmp_path, b"plain\n" * 50_000 + f"{FRENCH}\n".encode("latin-1"))
    with pytest.raises(InputError, match="line 50001, byte 300002: 0xe9") as caught:
        list(read_lines(path))
    assert "CP1252" in caught.value.hint


def test_a_few_bad_bytes_in_utf8_are_no_other_encoding(tmp_path):
    path = write(tmp_path, f"{KOREAN}\n".encode() * 3 + b"\xff\n" + f"{KOREAN}\n".encode())
    with pytest.raises(InputError, match="line 4") as caught:
        list(read_lines(path))
    assert "iconv" not in caught.value.hint
    assert not is_damaged_utf8(FRENCH.encode("latin-1"))


def test_binary_files_are_recognized(tmp_path):
    noise = random.Random(1).randbytes(5000)  # noqa: S311
    assert guess_encoding(noise) is None
    with pytest.raises(InputError, match="binary file"):
        list(read_lines(write(tmp_path, noise)))
    with pytest.raises(InputError, match="it is a ZIP file"):
        list(read_lines(write(tmp_path, b"PK\x03\x04 plain text follows\n")))
    with pytest.raises(InputError, match="not UTF-8 text") as caught:
        list(read_lines(write(tmp_path, "plain ASCII\n".encode("utf-16-le"))))
    assert "UTF-16LE" in caught.value.hint


def test_a_flipped_byte_is_damaged_gzip_for_any_error(tmp_path):
    """Without compression a flipped byte damages the text only: its checksum comes at the end."""
    packer = zlib.compressobj(0, wbits=31)
    packed = bytearray(packer.compress(f"{FRENCH}\n".encode() * 3) + packer.flush())
    packed[40] = 0xFF
    with pytest.raises(InputError, match="is a damaged gzip file"):
        list(read_lines(write(tmp_path, bytes(packed))))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\rb\rc", ["a", "b", "c"]),
        ("a\rb\r", ["a", "b"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\rb\nc\n", ["a\rb", "c"]),
        ("a\r", ["a"]),
        ("\ufeffa\rb", ["a", "b"]),
        ("a\u2028b\x85c\x0b\x0c\nd", ["a\u2028b\x85c\x0b\x0c", "d"]),
    ],
)
def test_line_ends(tmp_path, text, expected):
    assert list(read_lines(write(tmp_path, text.encode()))) == expected


def test_many_lines_of_classic_mac_os(tmp_path):
    expected = [f"{number} {KOREAN}" for number in range(5000)]  # several blocks
    assert list(read_lines(write(tmp_path, "\r".join(expected).encode()))) == expected
