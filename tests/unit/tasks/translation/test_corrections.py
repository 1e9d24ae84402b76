from __future__ import annotations

import pytest

from attendo.core.errors import InputError
from attendo.data.corpus_config import CorpusConfig
from attendo.memory.jsonl import format_jsonl
from attendo.memory.store import TranslationMemory
from attendo.memory.tmx import format_tmx
from attendo.memory.unit import Unit
from attendo.tasks.translation.corrections import read_corrections, sample_pairs, write_pairs

UNITS = [Unit(f"text {n}\nline", f"글 {n}", "en", "ko") for n in range(100)]


def write_store(path, units):
    with TranslationMemory(path) as memory:
        memory.add(units)
    return path


def test_a_store_gives_its_corrections_of_the_two_languages(tmp_path):
    others = [
        Unit("imported", "가져옴", "en", "ko", origin="import"),
        Unit("text 1", "Text 1", "en", "de"),
    ]
    found = read_corrections(write_store(tmp_path / "memory.db", [*UNITS, *others]), "en", "ko")
    assert found.total == 100
    assert 1 <= len(found.held_back) <= 25
    assert not set(found.train) & set(found.held_back)
    assert all("\n" not in pair.src for pair in (*found.train, *found.held_back))
    assert {pair.tgt for pair in (*found.train, *found.held_back)} == {
        f"글 {n}" for n in range(100)
    }


@pytest.mark.parametrize(("name", "write"), [("a.tmx", format_tmx), ("a.jsonl", format_jsonl)])
def test_exported_files_give_the_same(tmp_path, name, write):
    store = read_corrections(write_store(tmp_path / "memory.db", UNITS), "en-US", "ko")
    path = tmp_path / name
    path.write_text("".join(write(UNITS)))
    assert read_corrections(path, "en-US", "ko") == store


def test_tables_are_read_too(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("en\tko\n" + "".join(f"text {n}\t글 {n}\n" for n in range(20)))
    assert read_corrections(path, "en", "ko").total == 20


def test_the_same_lines_are_held_back_when_there_are_more(tmp_path):
    few = read_corrections(write_store(tmp_path / "few.db", UNITS[:60]), "en", "ko")
    many = read_corrections(write_store(tmp_path / "many.db", UNITS), "en", "ko")
    assert set(few.held_back) <= set(many.held_back)


def test_too_few_corrections_are_an_error(tmp_path):
    path = write_store(tmp_path / "memory.db", UNITS[:9])
    with pytest.raises(InputError, match="has 9 corrections from 'en' to 'ko', at least 10"):
        read_corrections(path, "en", "ko")
    with pytest.raises(InputError, match="has 0 corrections"):
        read_corrections(path, "en", "de")


def test_a_sample_is_of_all_corpora_and_always_the_same(tmp_path):
    corpora = []
    for name in ("a", "b"):
        src, tgt = tmp_path / f"{name}.src", tmp_path / f"{name}.tgt"
        src.write_text("".join(f"{name} {n}\n" for n in range(200)))
        tgt.write_text("".join(f"{name.upper()} {n}\n" for n in range(200)))
        corpora.append(CorpusConfig(src=src, tgt=tgt))
    sample = sample_pairs(corpora, 50)
    assert sample == sample_pairs(corpora, 50)
    assert len(set(sample)) == 50
    assert {pair.src[0] for pair in sample} == {"a", "b"}
    assert len(sample_pairs(corpora, 1000)) == 400
    others = sample_pairs(corpora, 1000, without=sample)
    assert len(others) == 350
    assert not set(others) & set(sample)
    src, tgt = write_pairs(tmp_path, "sample", sample)
    assert src.read_text().splitlines()[3] == sample[3].src
    assert tgt.read_text().splitlines()[3] == sample[3].tgt
