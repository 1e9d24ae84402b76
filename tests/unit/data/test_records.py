"""Which fields of JSON Lines, JSON arrays and Parquet are read."""

from __future__ import annotations

import gzip
import json
import sys

import pytest

from attendo.core.errors import InputError, MissingExtraError
from attendo.data import records
from attendo.data.corpus_config import CorpusConfig, Pair
from attendo.data.readers import find_selection, read_pairs

PAIRS = [Pair("Yes.", "네."), Pair("No.", "아니요.")]
SWAPPED = [pair.swapped() for pair in PAIRS]


def dump_lines(items: list[object]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def write(folder, name: str, items: list[dict[str, object]]):
    """Write records in the format of a name."""
    path = folder / name
    if name.endswith(".parquet"):
        arrow = pytest.importorskip("pyarrow")
        import pyarrow.parquet

        pyarrow.parquet.write_table(arrow.Table.from_pylist(items), path)
    else:
        text = json.dumps(items, indent=1) if ".json" in path.suffixes else dump_lines(items)
        raw = text.encode()
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


FORMATS = ["a.jsonl", "a.json", "a.json.gz", "a.parquet"]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("make", "options", "pairs"),
    [
        (lambda en, ko: {"en": en, "ko": ko}, {}, PAIRS),
        (lambda en, ko: {"question": en, "answer": ko}, {}, PAIRS),
        (lambda en, ko: {"id": 7, "English": en, "Korean": ko}, {}, PAIRS),
        (lambda en, ko: {"id": f"x{len(ko)}", "note": "n", "en": en, "ko": ko}, {}, PAIRS),
        (lambda en, ko: {"translation": {"en": en, "ko": ko}}, {}, PAIRS),
        (lambda en, ko: {"translation": {"en": en, "ko": ko}}, {"src_lang": "ko"}, SWAPPED),
        (lambda en, ko: {"tgt": ko, "src": en}, {}, PAIRS),
        (
            lambda en, ko: {"de": "Ja", "en": en, "ko": ko},
            {"src_lang": "ko", "tgt_lang": "en"},
            SWAPPED,
        ),
        (
            lambda en, ko: {"a": "Ja", "b": en, "c": ko},
            {"src_field": "c", "tgt_field": "b"},
            SWAPPED,
        ),
    ],
)
def test_fields_are_chosen(tmp_path, name, make, options, pairs):
    path = write(tmp_path, name, [make(*pair) for pair in PAIRS])
    assert list(read_pairs(CorpusConfig(path=path, **options))) == pairs


@pytest.mark.parametrize("name", FORMATS)
def test_more_fields_of_text_need_a_choice(tmp_path, name):
    path = write(tmp_path, name, [{"a": "Ja", "b": "Yes", "c": "네"}])
    with pytest.raises(InputError, match=r"1 \(a\): Ja\n  2 \(b\): Yes\n  3 \(c\): 네") as caught:
        list(read_pairs(CorpusConfig(path=path)))
    assert "--src-field" in caught.value.hint


def test_json_may_hold_an_object_with_data_or_json_lines(tmp_path):
    items = [{"en": en, "ko": ko} for en, ko in PAIRS]
    for text in json.dumps({"version": 1, "data": items}), dump_lines(items):
        (tmp_path / "a.json").write_text(text)
        assert list(read_pairs(CorpusConfig(path=tmp_path / "a.json"))) == PAIRS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[{", "is not valid JSON"),
        ("7", "not an array"),
        ('{"a": "b",\n "c": 1}', "not an array"),
        ('["a"]', "element 1 is not a JSON object"),
        ('[{"src": "a", "tgt": "b"}, {"src": "a"}]', "element 2 has no field 'tgt'"),
        ("[]", "the corpus is empty"),
        ("", "the corpus is empty"),
    ],
)
def test_wrong_json_files_are_rejected(tmp_path, text, words):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match=words):
        list(read_pairs(CorpusConfig(path=tmp_path / "a.json")))


def test_a_json_array_has_a_limit(tmp_path, monkeypatch):
    path = write(tmp_path, "a.json", [{"en": en, "ko": ko} for en, ko in PAIRS])
    monkeypatch.setattr(records, "MAX_JSON_BYTES", 20)
    with pytest.raises(InputError, match=r"larger than 20 bytes[\s\S]*jq -c"):
        list(read_pairs(CorpusConfig(path=path)))


def test_a_missing_text_in_parquet_is_empty(tmp_path):
    path = write(tmp_path, "a.parquet", [{"en": "Yes.", "ko": "네."}, {"en": "No.", "ko": None}])
    assert list(read_pairs(CorpusConfig(path=path))) == [Pair("Yes.", "네."), Pair("No.", "")]


def test_a_file_that_is_not_parquet_is_rejected(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_text("no table")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        list(read_pairs(CorpusConfig(path=tmp_path / "a.parquet")))


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"attendo\[formats\]"):
        list(read_pairs(CorpusConfig(path=tmp_path / "a.parquet")))


def test_the_choice_is_described(tmp_path):
    path = write(tmp_path, "a.jsonl", [{"id": 1, "translation": {"en": "Yes.", "ko": "네."}}])
    selection = find_selection(CorpusConfig(path=path))
    assert (selection.kind, selection.src, selection.tgt) == ("field", "en", "ko")
