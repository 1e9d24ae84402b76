from __future__ import annotations

import io
import json

import pytest

from attendo.core.errors import InputError
from attendo.memory.jsonl import format_jsonl, read_jsonl
from attendo.memory.tmx import format_tmx, read_tmx
from attendo.memory.unit import Unit

UNITS = [
    Unit(
        'A < B & "C"\nnext line', "가 < 나 & '다'", "en", "ko", model="en-ko", output="가",
        author='Kim "K" <k@x>', time=1_700_000_000,
    ),
    Unit("Zwei", "둘", "de", "ko", origin="import"),
]  # fmt: skip


def tmx(text: str) -> list[Unit]:
    return list(read_tmx(io.BytesIO(text.encode())))


@pytest.mark.parametrize(
    ("write", "read"), [(format_tmx, read_tmx), (format_jsonl, read_jsonl)], ids=["tmx", "jsonl"]
)
def test_units_survive_the_round_trip(write, read):
    content = "".join(write(UNITS)).encode()
    assert list(read(io.BytesIO(content))) == UNITS


def test_tmx_has_no_control_characters():
    content = "".join(format_tmx([Unit("a\x00b\x1b", "c", "en", "ko")]))
    assert [one.source for one in tmx(content)] == ["a\ufffdb\ufffd"]


def test_the_readers_of_the_training_data_read_both_formats(tmp_path):
    from attendo.data.corpus_config import CorpusConfig
    from attendo.data.readers import read_pairs

    for name, write in (("a.tmx", format_tmx), ("a.jsonl", format_jsonl)):
        path = tmp_path / name
        path.write_text("".join(write([*UNITS[:1], Unit("One", "하나", "en", "ko")])))
        pairs = [
            tuple(one) for one in read_pairs(CorpusConfig(path=path, src_lang="en", tgt_lang="ko"))
        ]
        assert pairs[1] == ("One", "하나")


def test_the_source_is_the_declared_language():
    text = """<tmx version="1.4"><header srclang="en-US"/><body><tu>
    <tuv xml:lang="ko"><seg>둘</seg></tuv><tuv xml:lang="en-us"><seg>two</seg></tuv>
    <tuv xml:lang="de"><seg>zwei</seg></tuv></tu></body></tmx>"""
    assert [(one.src_lang, one.source, one.tgt_lang, one.target) for one in tmx(text)] == [
        ("en-us", "two", "ko", "둘"), ("en-us", "two", "de", "zwei"),
    ]  # fmt: skip


def test_codes_are_left_out_and_highlights_kept():
    text = """<tmx version="1.4"><header/><body><tu><tuv xml:lang="en">
    <seg>Press <bpt i="1">&lt;b></bpt><hi>OK</hi><ept i="1">&lt;/b></ept> now</seg></tuv>
    <tuv lang="ko"><seg>확인</seg></tuv></tu></body></tmx>"""
    assert [one.source for one in tmx(text)] == ["Press OK now"]


BOMB = '<!DOCTYPE tmx [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{BOMB}<tmx><header/><body/></tmx>", "XML entities"),
        ('<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]><tmx/>', "XML entities"),
        ('<!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx><x>&nbsp;</x></tmx>', "XML entities"),
        ("<tmx><body>", "line 1: no element found"),
        ("", "no element found"),
        ("<html/>", "no element <tmx>"),
        ("<tmx>" + "<x>" * 60, "nested too deeply"),
        (f"<tmx><tu><tuv lang='en'><seg>{'x' * 10_001}</seg></tuv></tu></tmx>", "more than 10000"),
        ('<?xml version="1.0" encoding="klingon"?><tmx/>', "encoding"),
    ],
)
def test_damaged_or_hostile_tmx_is_rejected(text, reason):
    with pytest.raises(InputError, match=reason):
        tmx(text)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 2: not valid JSON"),
        ("[" * 100_000, "line 2: not valid JSON"),
        ("[]", "line 2: not an object"),
        ('{"src": "a"}', "line 2: no field 'tgt'"),
        ('{"sorce": "a"}', "line 2: unknown field 'sorce': did you mean 'src'"),
        ('{"src": 1, "tgt": "b", "src_lang": "en", "tgt_lang": "ko"}', "line 2: 'src' is not"),
        (json.dumps("x" * 2**20), "line 2: longer than"),
    ],
)
def test_damaged_jsonl_is_rejected_with_the_line(line, reason):
    with pytest.raises(InputError, match=reason):
        list(read_jsonl(io.BytesIO(b"\n" + line.encode())))


def test_jsonl_without_details():
    line = '\ufeff{"src": "a", "tgt": "b", "src_lang": "en", "tgt_lang": "ko", "time": null}'
    assert list(read_jsonl(io.BytesIO(line.encode()))) == [
        Unit("a", "b", "en", "ko", origin="import")
    ]
