from __future__ import annotations

import gzip
import struct
import sys
from typing import TYPE_CHECKING

import pytest

from attendo.core.errors import InputError, MissingExtraError
from attendo.data import exchange_formats
from attendo.data.corpus_config import CorpusConfig, Pair
from attendo.data.readers import read_pairs

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, text: str | bytes) -> Path:
    raw = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def read(folder: Path, name: str, text: str | bytes, **options: object) -> list[Pair]:
    return list(read_pairs(CorpusConfig(path=write(folder / name, text), **options)))


TMX = """<?xml version="1.0" encoding="utf-8"?>{doctype}
<tmx version="1.4"><header srclang="{srclang}" segtype="sentence"/><body>
<tu><tuv xml:lang="EN-us"><seg>{text}</seg></tuv>
<tuv xml:lang="ko"><seg>하<!-- ! -->나</seg></tuv></tu>
<tu><tuv xml:lang="en">
<seg>a <bpt i="1">&lt;b></bpt>big<ept i="1">&lt;/b></ept> <hi>cat</hi>.</seg></tuv>
<tuv xml:lang="ko"><seg>큰 고양이.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>only English</seg></tuv></tu>
</body></tmx>"""
TMX_PAIRS = [Pair("one", "하나"), Pair("a big cat.", "큰 고양이.")]


def make_tmx(text: str = "one", doctype: str = "", srclang: str = "en") -> str:
    return TMX.format(text=text, doctype=doctype, srclang=srclang)


@pytest.mark.parametrize("name", ["a.tmx", "a.tmx.gz"])
def test_tmx_gives_its_two_languages(tmp_path, name):
    assert read(tmp_path, name, make_tmx(doctype='<!DOCTYPE tmx SYSTEM "tmx14.dtd">')) == TMX_PAIRS


def test_tmx_gives_the_languages_that_are_asked_for(tmp_path):
    pairs = read(tmp_path, "a.tmx", make_tmx(srclang="*all*"), src_field="ko", tgt_field="en")
    assert pairs == [pair.swapped() for pair in TMX_PAIRS]


@pytest.mark.parametrize(
    "options",
    [{"src_field": "en", "tgt_field": "fr"}, {"src_lang": "en", "tgt_lang": "fr"}],
)
def test_tmx_without_the_requested_languages_is_rejected(tmp_path, options):
    with pytest.raises(InputError, match=r"both 'en' and 'fr'[\s\S]*--src-lang.*: EN-us, ko, en"):
        read(tmp_path, "a.tmx", make_tmx(srclang="*all*"), **options)


THREE_LANGUAGES = make_tmx().replace("</tu>", '<tuv xml:lang="fr-FR"><seg>un</seg></tuv></tu>', 1)


def test_tmx_with_three_languages_needs_a_choice(tmp_path):
    with pytest.raises(InputError, match=r"languages en-us, ko, fr-fr[\s\S]*--src-lang"):
        read(tmp_path, "a.tmx", THREE_LANGUAGES)
    for options in ({"src_lang": "fr", "tgt_lang": "ko"}, {"src_field": "fr", "tgt_field": "ko"}):
        assert read(tmp_path, "a.tmx", THREE_LANGUAGES, **options) == [Pair("un", "하나")]


@pytest.mark.parametrize(
    ("options", "srclang", "pairs"),
    [
        ({}, "*all*", TMX_PAIRS),
        ({}, "ko", [pair.swapped() for pair in TMX_PAIRS]),
        ({"src_lang": "Korean"}, "en", [pair.swapped() for pair in TMX_PAIRS]),
        ({"tgt_lang": "en"}, "en", [pair.swapped() for pair in TMX_PAIRS]),
    ],
)
def test_tmx_with_two_languages_has_a_direction(tmp_path, options, srclang, pairs):
    assert read(tmp_path, "a.tmx", make_tmx(srclang=srclang), **options) == pairs


LAUGHS = "<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {name} '{f'&{before};' * 10}'>"
    for before, name in zip("abcdefgh", "bcdefghi")  # noqa: B905
)


@pytest.mark.parametrize(
    "entity", [LAUGHS, "<!ENTITY i SYSTEM 'file:///etc/hostname'>", "<!ENTITY i 'harmless'>"]
)
def test_xml_entities_are_never_expanded(tmp_path, entity):
    with pytest.raises(InputError, match="declares XML entities"):
        read(tmp_path, "a.tmx", make_tmx("&i;", f"<!DOCTYPE tmx [{entity}]>"))
    with pytest.raises(InputError, match=r"declares XML entities|amplification"):
        read(tmp_path, "a.xlf", f"<!DOCTYPE xliff [{entity}]>" + XLIFF1.replace("you", "&i;"))


def test_broken_xml_is_reported_with_its_line(tmp_path):
    with pytest.raises(InputError, match=r"a\.tmx: .*line 5"):
        read(tmp_path, "a.tmx", make_tmx()[:220])


def test_tmx_units_are_forgotten_as_they_are_read(tmp_path):
    from lxml import etree

    path = write(tmp_path / "a.tmx", make_tmx().replace("<body>", "<body>" + "<tu/>" * 5000))
    behind: list[int] = []
    with path.open("rb") as stream:
        num_units = sum(1 for _ in exchange_formats._tmx_units(_Spy(etree, behind), stream, path))
    assert num_units == 5003
    assert max(behind) <= 1


class _Spy:
    """lxml.etree whose `QName` counts the units that are still there before this one."""

    def __init__(self, etree, behind):
        self._etree, self._behind = etree, behind

    def __getattr__(self, name):
        return getattr(self._etree, name)

    def QName(self, element):  # noqa: N802
        if element.tag == "tu":
            self._behind.append(sum(1 for _ in element.itersiblings(preceding=True)))
        return self._etree.QName(element)


PO = """
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Language: ko\\n"

msgid "one"
msgstr "하나"

#, fuzzy
msgid "fuzzy"
msgstr "흐릿"

msgid "untranslated"
msgstr ""

msgctxt "menu"
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "파일 %d개"

#~ msgid "old"
#~ msgstr "옛것"
"""
PO_PAIRS = [Pair("one", "하나"), Pair("%d file", "파일 %d개")]


@pytest.mark.parametrize("name", ["a.po", "a.po.gz"])
def test_po_gives_what_is_finished(tmp_path, name):
    assert read(tmp_path, name, PO) == PO_PAIRS


@pytest.mark.parametrize("fields", [("ko", "en"), ("target", "source"), ("msgstr", "msgid")])
def test_po_can_be_reversed(tmp_path, fields):
    pairs = read(tmp_path, "a.po", PO, src_field=fields[0], tgt_field=fields[1])
    assert pairs == [pair.swapped() for pair in PO_PAIRS]


def test_po_of_another_language_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"not have both 'de' and 'fr'[\s\S]*msgstr, ko"):
        read(tmp_path, "a.po", PO, src_field="de", tgt_field="fr")


def test_po_with_wrong_bytes_is_named_by_line_not_read_as_latin(tmp_path):
    with pytest.raises(InputError, match=r"a\.po, line 8, byte \d+: 0xc7 is not valid UTF-8"):
        read(tmp_path, "a.po", PO.encode("cp949"))


def test_po_in_its_declared_encoding_is_read(tmp_path):
    assert read(tmp_path, "a.po", PO.replace("UTF-8", "CP949").encode("cp949")) == PO_PAIRS


@pytest.mark.parametrize(
    ("charset", "words"), [("EUC-JP", "declares the charset euc-jp"), ("x9", "x9")]
)
def test_po_that_is_not_in_its_declared_encoding_is_reported(tmp_path, charset, words):
    with pytest.raises(InputError, match=words):
        read(tmp_path, "a.po", PO.replace("UTF-8", charset))


def make_mo(pairs: dict[str, str]) -> bytes:
    """Write a catalogue by hand, as the gettext manual lays it out."""
    keys = sorted(pairs)
    texts = [key.encode() for key in keys] + [pairs[key].encode() for key in keys]
    start = 28 + 8 * len(texts)
    table, body = b"", b""
    for text in texts:
        table += struct.pack("<II", len(text), start + len(body))
        body += text + b"\0"
    count = len(keys)
    head = struct.pack("<7I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, 0)
    return head + table + body


def test_mo_gives_its_singulars(tmp_path):
    header = {"": "Content-Type: text/plain; charset=UTF-8\n"}
    raw = make_mo(header | {"one": "하나", "%d file\0%d files": "파일 %d개\0파일들 %d개"})
    assert sorted(read(tmp_path, "a.mo", raw)) == sorted(PO_PAIRS)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("a.mo", b"no catalogue"),
        ("a.mo", b""),
        ("a.mo", make_mo({"a": "b"})[:30]),
        ("a.po", b"no catalogue\n"),
        ("a.xlf", b"<xliff"),
        ("a.xlf", b"<html/>"),
    ],
)
def test_what_is_not_a_catalogue_is_reported(tmp_path, name, raw):
    with pytest.raises(InputError, match=r"is not a readable"):
        read(tmp_path, name, raw)


def test_a_catalogue_that_is_too_large_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange_formats, "MAX_CATALOG_BYTES", 100)
    with pytest.raises(InputError, match="larger than 100 bytes"):
        read(tmp_path, "a.po.gz", PO)


XLIFF1 = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="x" source-language="en" target-language="ko" datatype="plaintext"><body>
<trans-unit id="1">
<source>Hello <g id="1">you</g></source><target>안녕 <g id="1">너</g></target></trans-unit>
<trans-unit id="2"><source>a</source><target state="needs-translation">b</target></trans-unit>
<trans-unit id="3" translate="no"><source>a</source><target>c</target></trans-unit>
<trans-unit id="4"><source>alone</source></trans-unit>
<trans-unit id="5" approved="yes">
<source>one</source><target state="final">하나</target></trans-unit>
</body></file></xliff>"""
XLIFF2 = """<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0"
srcLang="en" trgLang="ko"><file id="f">
<unit id="1"><segment><source>Hello you</source><target>안녕 너</target></segment></unit>
<unit id="2"><segment state="initial"><source>a</source><target>b</target></segment></unit>
<unit id="3"><segment state="final"><source>one</source><target>하나</target></segment></unit>
</file></xliff>"""


@pytest.mark.parametrize(("name", "text"), [("a.xlf", XLIFF1), ("a.xliff", XLIFF2)])
def test_xliff_gives_what_is_finished(tmp_path, name, text):
    expected = [Pair("Hello you", "안녕 너"), Pair("one", "하나")]
    assert read(tmp_path, name, text) == expected
    turned = read(tmp_path, name, text, src_field="ko", tgt_field="en")
    assert turned == [pair.swapped() for pair in expected]


@pytest.mark.parametrize(
    ("name", "module"), [("a.tmx", "lxml.etree"), ("a.po", "translate.storage")]
)
def test_a_missing_library_names_the_extra(tmp_path, monkeypatch, name, module):
    for loaded in [loaded for loaded in sys.modules if loaded.startswith(module)]:
        monkeypatch.setitem(sys.modules, loaded, None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"attendo\[formats\]"):
        read(tmp_path, name, "")


def test_a_po_file_without_finished_translations_is_rejected_with_counts(tmp_path):
    unfinished = PO.replace('msgid "one"', '#, fuzzy\nmsgid "one"').replace(
        'msgctxt "menu"', '#, fuzzy\nmsgctxt "menu"'
    )
    with pytest.raises(InputError, match="none of its 5 entries") as caught:
        read(tmp_path, "a.po", unfinished)
    for words in "3 fuzzy", "1 untranslated", "1 obsolete":
        assert words in caught.value.reason


def test_a_po_file_may_have_any_line_ends(tmp_path):
    for line_end in "\r\n", "\r":
        assert read(tmp_path, "a.po", PO.replace("\n", line_end)) == PO_PAIRS


def test_languages_turn_a_po_file_round(tmp_path):
    assert read(tmp_path, "a.po", PO, src_lang="en", tgt_lang="ko") == PO_PAIRS
    reverse = [pair.swapped() for pair in PO_PAIRS]
    assert read(tmp_path, "a.po", PO, src_lang="ko", tgt_lang="en") == reverse
    unnamed = PO.replace('"Language: ko\\n"\n', "")
    assert read(tmp_path, "a.po", unnamed, src_lang="en", tgt_lang="ko") == PO_PAIRS
