from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attendo.core.errors import InputError
from attendo.data import shards
from attendo.data.shards import TokenizedCorpus, write_shards
from attendo.data.tokenizer_training import train_tokenizer
from attendo.text.tokenizer import END_ID, TokenizerConfig

SOURCES = [f"나는 {number} 번 학교에 간다" for number in range(50)]
TARGETS = [f"I go to school {number} times" + " again" * (number % 5) for number in range(50)]


def write_text(folder, sources=SOURCES, targets=TARGETS):
    paths = folder / "text.src", folder / "text.tgt"
    for path, texts in zip(paths, (sources, targets), strict=True):
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return paths


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    paths = write_text(tmp_path_factory.mktemp("text"))
    return train_tokenizer(*paths, TokenizerConfig(), num_pairs=50, seed=1)


@pytest.fixture
def folder(tmp_path, tokenizer):
    write_shards(*write_text(tmp_path), tokenizer, tmp_path / "shards")
    return tmp_path / "shards"


def ids_of(corpus):
    return [tuple(side.tolist() for side in corpus.pair(index)) for index in range(len(corpus))]


def expected(tokenizer, sources, targets):
    pairs = zip(tokenizer.encode_src(sources), tokenizer.encode_tgt(targets), strict=True)
    return list(pairs)


def test_every_pair_comes_back(folder, tokenizer):
    corpus = TokenizedCorpus.load(folder)
    assert len(corpus) == 50
    assert ids_of(corpus) == expected(tokenizer, SOURCES, TARGETS)
    assert corpus.fingerprint == tokenizer.fingerprint
    assert corpus.num_too_long == 0


def test_source_ids_are_counted(folder, tokenizer, monkeypatch):
    monkeypatch.setattr(shards, "COUNTED_IDS", 7)
    ids = [one for row in tokenizer.encode_src(SOURCES) for one in row]
    expected = np.bincount(ids, minlength=tokenizer.src_vocab_size)
    counted = TokenizedCorpus.load(folder).count_src_ids(tokenizer.src_vocab_size)
    assert np.array_equal(counted, expected)


def test_lengths_are_those_of_the_pairs(folder):
    corpus = TokenizedCorpus.load(folder)
    assert corpus.src_lengths.dtype == corpus.tgt_lengths.dtype == np.int32
    lengths = list(zip(corpus.src_lengths.tolist(), corpus.tgt_lengths.tolist(), strict=True))
    assert lengths == [(len(src), len(tgt)) for src, tgt in ids_of(corpus)]
    src, tgt = corpus.pair(3)
    assert src[-1] == tgt[-1] == END_ID
    assert src.dtype == tgt.dtype == np.int64
    src[0] = -1  # a copy: the files are not touched
    assert corpus.pair(3)[0][0] != -1


@given(st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1), min_size=1))
def test_any_texts_and_any_chunk_come_back(tokenizer, tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("any")
    paths = write_text(folder, texts, texts[::-1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "CHUNK_PAIRS", 3)
        write_shards(*paths, tokenizer, folder / "shards")
    corpus = TokenizedCorpus.load(folder / "shards")
    assert ids_of(corpus) == expected(tokenizer, texts, texts[::-1])


def test_a_large_vocabulary_takes_wider_ids(tmp_path, tokenizer):
    class Large:
        src_vocab_size, tgt_vocab_size, fingerprint = 2**16 + 1, 8, "large"

        def encode_src(self, texts, **_options):
            return [[2**16, END_ID] for _ in texts]

        encode_tgt = encode_src

    write_shards(*write_text(tmp_path), Large(), tmp_path / "shards")
    assert TokenizedCorpus.load(tmp_path / "shards").pair(49)[0].tolist() == [2**16, END_ID]
    small = tmp_path / "small"
    write_shards(*write_text(tmp_path), tokenizer, small)
    assert json.loads((small / "meta.json").read_text())["dtype"] == "uint16"


def test_long_pairs_are_left_out_and_counted(tmp_path, tokenizer):
    pairs = expected(tokenizer, SOURCES, TARGETS)
    longest = sorted(max(map(len, pair)) for pair in pairs)[25]
    folder = tmp_path / "shards"
    write_shards(*write_text(tmp_path), tokenizer, folder, max_tokens=longest)
    corpus = TokenizedCorpus.load(folder)
    fitting = [pair for pair in pairs if max(map(len, pair)) <= longest]
    assert 0 < len(fitting) < 50
    assert ids_of(corpus) == fitting
    assert corpus.num_too_long == 50 - len(fitting)


def test_a_corpus_may_be_left_empty(tmp_path, tokenizer):
    write_shards(*write_text(tmp_path), tokenizer, tmp_path / "shards", max_tokens=1)
    corpus = TokenizedCorpus.load(tmp_path / "shards")
    assert (len(corpus), corpus.num_too_long, corpus.src_lengths.tolist()) == (0, 50, [])


def test_progress_counts_the_pairs(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr(shards, "CHUNK_PAIRS", 20)
    reported = []
    write_shards(*write_text(tmp_path), tokenizer, tmp_path / "shards", progress=reported.append)
    assert reported == [20, 40, 50]


@pytest.mark.parametrize("index", [-1, 50])
def test_a_pair_that_is_not_there(folder, index):
    with pytest.raises(IndexError):
        TokenizedCorpus.load(folder).pair(index)


@pytest.mark.parametrize("name", ["src.ids", "tgt.ids", "src.offsets", "tgt.offsets"])
def test_a_truncated_file_is_reported(folder, name):
    path = folder / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=rf"{name} has .* bytes of .*(?s:.)*delete the folder"):
        TokenizedCorpus.load(folder)
    path.unlink()
    with pytest.raises(InputError, match=f"{name} is missing"):
        TokenizedCorpus.load(folder)


@pytest.mark.parametrize(("index", "value"), [(0, 1), (3, 2**40), (-1, 0)])
def test_impossible_offsets_are_reported(folder, index, value):
    offsets = np.fromfile(folder / "tgt.offsets", np.int64)
    offsets[index] = value
    offsets.tofile(folder / "tgt.offsets")
    with pytest.raises(InputError, match=r"tgt\.offsets has impossible values"):
        TokenizedCorpus.load(folder)


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"format": 1, "extra": 2}'])
def test_a_broken_meta_file_is_reported(folder, text):
    (folder / "meta.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"meta\.json cannot be read"):
        TokenizedCorpus.load(folder)


def test_another_format_is_reported(folder):
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    (folder / "meta.json").write_text(json.dumps(meta | {"format": 99}), encoding="utf-8")
    with pytest.raises(InputError, match="format is 99"):
        TokenizedCorpus.load(folder)


def test_nothing_is_overwritten(folder, tokenizer, tmp_path):
    with pytest.raises(InputError, match="already exists"):
        write_shards(*write_text(tmp_path), tokenizer, folder)


def test_an_error_leaves_nothing_and_a_leftover_is_replaced(tmp_path, tokenizer):
    leftover = tmp_path / ".shards.partial"
    leftover.mkdir()
    (leftover / "rubbish").write_text("from a killed process")
    with pytest.raises(InputError, match="50 lines"):
        write_shards(*write_text(tmp_path, SOURCES, TARGETS[:-1]), tokenizer, tmp_path / "shards")
    assert not leftover.exists()
    assert not (tmp_path / "shards").exists()
    leftover.mkdir()
    (leftover / "rubbish").write_text("from a killed process")
    write_shards(*write_text(tmp_path), tokenizer, tmp_path / "shards")
    assert not leftover.exists()
    names = {path.name for path in (tmp_path / "shards").iterdir()}
    assert names == {"src.ids", "src.offsets", "tgt.ids", "tgt.offsets", "meta.json"}
