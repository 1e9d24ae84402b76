from __future__ import annotations

import csv
import gzip
import io
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attendo.core.errors import ConfigError, InputError
from attendo.data import readers
from attendo.data.corpus_config import CorpusConfig, Pair
from attendo.data.readers import read_pairs
from attendo.text import lines

if TYPE_CHECKING:
    from pathlib import Path

TWO = [Pair("하나", "one"), Pair("둘", "two")]
KO, EN = "하나\n둘\n", "one\ntwo\n"
SAME_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(path: Path, text: str | bytes) -> Path:
    raw = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def read(folder: Path, name: str, text: str | bytes, **options: object) -> list[Pair]:
    return list(read_pairs(CorpusConfig(path=write(folder / name, text), **options)))


def read_two(folder: Path, src: str | bytes, tgt: str | bytes, **options: object) -> list[Pair]:
    paths = {"src": write(folder / "a.ko", src), "tgt": write(folder / "a.en", tgt)}
    return list(read_pairs(CorpusConfig(**paths, **options)))


# --- two text files


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_two_files_are_read_plain_and_packed(tmp_path, ending):
    src, tgt = write(tmp_path / f"a.ko{ending}", KO), write(tmp_path / f"a.en{ending}", EN)
    assert list(read_pairs(CorpusConfig(src=src, tgt=tgt))) == TWO


def test_a_line_ends_at_the_line_feed_only(tmp_path):
    src = "a\u2028b\x85c\x0bd\x1ce\rf\r\ng\r\r\n"
    pairs = read_two(tmp_path, src, "x\ny")
    assert [pair.src for pair in pairs] == ["a\u2028b\x85c\x0bd\x1ce\rf", "g\r"]


def test_a_byte_order_mark_is_left_out_at_the_start_only(tmp_path):
    pairs = read_two(tmp_path, b"\xef\xbb\xbf" + KO.encode(), "one\n\ufefftwo\n")
    assert pairs == [TWO[0], Pair("둘", "\ufefftwo")]


line = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\ufeff"), max_size=12)


@SAME_FOLDER
@given(st.lists(st.tuples(line, line), min_size=1))
def test_two_files_give_back_what_was_written(tmp_path, pairs):
    src, tgt = ("".join(f"{side}\n" for side in sides) for sides in zip(*pairs, strict=True))
    has_text = any(a.strip() and b.strip() for a, b in pairs)
    if has_text:
        assert read_two(tmp_path, src, tgt, allow_copies=True) == pairs
    else:
        with pytest.raises(InputError, match="the corpus is empty"):
            read_two(tmp_path, src, tgt)


@pytest.mark.parametrize(
    ("src", "tgt", "counts"),
    [("a\nb\nc\n", "x\n", (3, 1)), ("a\n", "x\ny\nz\nw", (1, 4)), ("a\n", "", (1, 0))],
)
def test_files_of_different_length_name_both_counts(tmp_path, src, tgt, counts):
    with pytest.raises(InputError, match="same number of lines") as caught:
        read_two(tmp_path, src, tgt)
    assert f"a.ko has {counts[0]} lines" in str(caught.value)
    assert f"a.en has {counts[1]}" in str(caught.value)


def test_bug_files_of_different_length_must_say_where_they_part(tmp_path, everyday_pairs):
    pairs = everyday_pairs[:600]
    sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
    del targets[300]
    with pytest.raises(InputError) as caught:
        read_two(tmp_path, *("".join(f"{line}\n" for line in side) for side in (sources, targets)))
    assert caught.value.hint.values["shift"] == -1
    assert abs(caught.value.hint.values["line"] - 302) <= 10


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_wrong_byte_is_named_with_file_line_and_offset(tmp_path, ending):
    src = write(tmp_path / f"a.ko{ending}", "하나\n".encode() + b"ab\xb5\n")
    tgt = write(tmp_path / "a.en", EN)
    with pytest.raises(InputError, match=r"line 2, byte 9: 0xb5 is not valid UTF-8") as caught:
        list(read_pairs(CorpusConfig(src=src, tgt=tgt)))
    assert str(src) in caught.value.reason
    assert "iconv" in str(caught.value.hint)


def test_utf16_is_recognized_by_its_mark(tmp_path):
    with pytest.raises(InputError, match=r"is not UTF-8 text[\s\S]*iconv -f UTF-16 -t UTF-8 a.ko"):
        read_two(tmp_path, KO.encode("utf-16"), EN)


def test_a_missing_file_is_reported_at_once_with_the_nearest_name(tmp_path):
    config = CorpusConfig(src=write(tmp_path / "train.ko", KO), tgt=tmp_path / "trian.ko")
    with pytest.raises(InputError, match=r"trian.ko does not exist\n  hint: .*train\.ko'\?"):
        read_pairs(config)


def test_folders_and_foreign_packings_are_rejected_at_once(tmp_path):
    src = write(tmp_path / "a.ko", KO)
    with pytest.raises(InputError, match="is a folder"):
        read_pairs(CorpusConfig(src=src, tgt=tmp_path))
    with pytest.raises(InputError, match=r"compressed as \.xz"):
        read_pairs(CorpusConfig(src=src, tgt=write(tmp_path / "a.xz", b"...")))


@pytest.mark.parametrize(("src", "tgt"), [("", ""), ("\n\n", "\n\n"), ("a\n", " \n")])
def test_an_empty_corpus_is_rejected(tmp_path, src, tgt):
    with pytest.raises(InputError, match="the corpus is empty"):
        read_two(tmp_path, src, tgt)


@pytest.mark.parametrize("name", ["a.tsv", "a.csv.gz", "a.jsonl", "a.po"])
def test_an_empty_file_is_an_empty_corpus(tmp_path, name):
    with pytest.raises(InputError, match="the corpus is empty"):
        read(tmp_path, name, "\n")


def test_a_side_that_copies_the_other_is_rejected(tmp_path):
    text = "".join(f"line {number}\n" for number in range(20))
    with pytest.raises(InputError, match="both sides are the same text in 20 of 20") as caught:
        read_two(tmp_path, text, text)
    assert "a.ko" in caught.value.reason
    assert "a.en" in caught.value.reason
    assert len(read_two(tmp_path, text, text, allow_copies=True)) == 20


def test_some_copies_are_no_reason_to_reject(tmp_path):
    same = "".join(f"line {number}\n" for number in range(9))
    assert len(read_two(tmp_path, same + "하나\n", same + "one\n")) == 10


@pytest.mark.parametrize("damage", [lambda raw: raw[:-9], lambda raw: raw[:40] + b"\0" * 20])
def test_damaged_gzip_is_reported(tmp_path, damage):
    raw = gzip.compress("".join(f"{number * 7919}\n" for number in range(999)).encode())
    src = tmp_path / "a.gz"
    src.write_bytes(damage(raw))
    config = CorpusConfig(src=src, tgt=write(tmp_path / "b", "x\n" * 999))
    with pytest.raises(InputError, match=r"a\.gz is a damaged gzip file"):
        list(read_pairs(config))


def test_gzip_is_known_by_its_content_not_its_name(tmp_path):
    (tmp_path / "a.gz").write_text(KO)
    (tmp_path / "b").write_bytes(gzip.compress(EN.encode()))
    assert list(read_pairs(CorpusConfig(src=tmp_path / "a.gz", tgt=tmp_path / "b"))) == TWO


def test_an_endless_line_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    assert read_two(tmp_path, "123456789\n", "x\n") == [Pair("123456789", "x")]
    with pytest.raises(InputError, match="line 1 is longer than 10 bytes"):
        read_two(tmp_path, "1234567890\n", "x\n")


def test_only_the_head_is_read_before_the_first_pair(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "NUM_CHECKED_PAIRS", 3)
    pairs = read_pairs(
        CorpusConfig(
            src=write(tmp_path / "a", "a\n" * 50_000 + "b"),
            tgt=write(tmp_path / "b", "x\n" * 50_000),
        )
    )
    assert next(pairs) == Pair("a", "x")
    with pytest.raises(InputError, match="has 50,001 lines"):
        list(pairs)


# --- tables


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz", "a.tab"])
def test_tsv_without_a_header_has_two_columns(tmp_path, name):
    assert read(tmp_path, name, '하나\tone\n\n둘\t"two\n') == [TWO[0], Pair("둘", '"two')]


@pytest.mark.parametrize(
    ("header", "options"),
    [
        ("id\tTarget\tsource\n", {}),
        ("id\ten\tko\n", {"src_field": "ko", "tgt_field": "en"}),
        ("id\ttgt\tsrc\n", {"src_field": 3, "tgt_field": 2}),
        ("", {"src_field": 3, "tgt_field": 2}),
    ],
)
def test_columns_are_found_by_header_name_or_number(tmp_path, header, options):
    assert read(tmp_path, "a.tsv", header + "1\tone\t하나\n2\ttwo\t둘\n", **options) == TWO


def test_a_column_that_is_not_there_is_reported_with_the_nearest(tmp_path):
    with pytest.raises(InputError, match=r"no column 'korean'\n  hint: did you mean 'Korean'"):
        read(tmp_path, "a.tsv", "Korean\ten\n하나\tone\n", src_field="korean", tgt_field="en")


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_a_line_with_too_few_columns_is_named(tmp_path, name):
    mark = "\t" if name == "a.tsv" else ","
    with pytest.raises(InputError, match=r"line 2: 1 columns, column 2 is needed"):
        read(tmp_path, name, f"하나{mark}one\nno mark\n")


cell = st.text(st.characters(codec="utf-8", exclude_characters="\r\ufeff"), min_size=1, max_size=9)
words = cell.filter(lambda text: text.strip())


@SAME_FOLDER
@given(st.lists(st.tuples(words, words), min_size=1))
def test_csv_gives_back_what_was_written(tmp_path, pairs):
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("src", "tgt"), *pairs])
    assert read(tmp_path, "a.csv", text.getvalue(), allow_copies=True) == pairs


@pytest.mark.parametrize("text", ['하나,"one\n둘,two\n', '하나,one\n"둘"x,two\n'])
def test_broken_csv_is_named_by_its_line(tmp_path, text):
    with pytest.raises(InputError, match=r"a\.csv, line 2: "):
        read(tmp_path, "a.csv", text)


# --- JSONL


@pytest.mark.parametrize(
    ("records", "options"),
    [
        ([{"src": ko, "tgt": en} for ko, en in TWO], {}),
        ([{"source": ko, "target": en, "id": 1} for ko, en in TWO], {}),
        ([{"k": ko, "e": en} for ko, en in TWO], {"src_field": "k", "tgt_field": "e"}),
        (
            [{"translation": {"en": en, "ko": ko}} for ko, en in TWO],
            {"src_field": "ko", "tgt_field": "en"},
        ),
    ],
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson.gz"])
def test_jsonl_fields(tmp_path, name, records, options):
    text = "\n\n".join(json.dumps(record) for record in records)
    assert read(tmp_path, name, text, **options) == TWO


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"src": "a", ', "line 2 is not valid JSON"),
        ("[" * 100_000, "line 2 is not valid JSON"),
        ('["a", "b"]', "line 2 is not a JSON object"),
        ('{"src": "a"}', "line 2 has no field 'tgt'"),
        (
            '{"translation": {"en": "a", "ko": "b"}}',
            "no field 'src'[\\s\\S]*Known: translation, en",
        ),
        ('{"src": "a", "tgt": 7}', "line 2: 'tgt' is 7, not a string"),
        ('{"src": "a", "tgt": "\\ud83d"}', "line 2: 'tgt' has a lone surrogate"),
    ],
)
def test_wrong_json_is_named_by_its_line(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        read(tmp_path, "a.jsonl", '{"src": "x", "tgt": "y"}\n' + text)


# --- the config


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "give src and tgt"),
        ({"src": "a"}, "give src and tgt"),
        ({"src": "a", "tgt": "b", "path": "c"}, "leave src and tgt out"),
        ({"src": "a", "tgt": "b", "format": "tsv"}, "give it as path"),
        ({"path": "a", "format": "text"}, "two files"),
        ({"path": "a.tsv", "src_field": 1}, "give both or none"),
        ({"path": "a.tsv", "src_field": 1, "tgt_field": 1}, "are both 1"),
        ({"path": "a.tsv", "src_field": 1, "tgt_field": "en"}, "both numbers or both names"),
        ({"src": "a", "tgt": "b", "src_field": 1, "tgt_field": 2}, "whole files"),
        ({"path": "a.tsv", "weight": 0}, "weight = 0"),
        ({"path": "a.tsv", "src_field": 0, "tgt_field": 1}, "src_field"),
    ],
)
def test_wrong_configs_are_rejected(options, words):
    with pytest.raises(ConfigError, match=words):
        CorpusConfig(**options)


def test_an_unknown_suffix_names_the_nearest(tmp_path):
    with pytest.raises(InputError, match=r"suffix '\.tvs'[\s\S]*did you mean '\.tsv'"):
        read(tmp_path, "a.tvs", "a\tb\n")
    assert read(tmp_path, "a.txt", "하나\tone\n둘\ttwo\n", format="tsv") == TWO


def test_a_config_survives_saving(tmp_path):
    config = CorpusConfig(path="a.tsv", src_field=2, tgt_field=1, weight=0.5)
    config.save(tmp_path / "c.json")
    assert CorpusConfig.load(tmp_path / "c.json") == config
