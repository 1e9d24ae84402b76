"""Labels as targets: each is one piece, whatever stands in it; a source cut as elsewhere."""

from __future__ import annotations

import json

import pytest

from attendo.core.errors import ConfigError, InputError
from attendo.data.config import DataConfig
from attendo.data.pipeline import prepare_data
from attendo.data.tokenizer_training import train_tokenizer
from attendo.text.phrase_constraints import IncrementalDetokenizer
from attendo.text.tokenizer import END_ID, UNK_ID, Tokenizer, TokenizerConfig

LABELS = ["not spam", "spam", "<s>", "<unk>", "▁", "a ▁ b", "표지 하나", "0", "\uf8fe2", "x" * 70]
CONFIG = TokenizerConfig(shared=False, tgt_kind="label")


@pytest.fixture
def files(tmp_path):
    src, tgt = tmp_path / "a.src", tmp_path / "a.tgt"
    src.write_text("".join(f"a text of number {n} and more\n" for n in range(120)), "utf-8")
    tgt.write_text("".join(f"{LABELS[n % len(LABELS)]}\n" for n in range(120)), "utf-8")
    return src, tgt


@pytest.fixture
def tokenizer(files):
    return train_tokenizer(*files, CONFIG, num_pairs=120, seed=1)


def test_every_label_is_one_piece_and_comes_back(tokenizer):
    ids = tokenizer.encode_tgt(LABELS)
    assert all(len(row) == 2 and row[1] == END_ID for row in ids)
    assert len({row[0] for row in ids}) == len(LABELS)
    assert UNK_ID not in {row[0] for row in ids}
    assert tokenizer.decode_tgt(ids) == LABELS
    assert sorted(tokenizer.labels) == sorted(LABELS)
    assert tokenizer.tgt_vocab_size == 4 + len(LABELS)
    view = IncrementalDetokenizer(tokenizer)
    assert [view.decode(row) for row in ids] == LABELS
    number = tokenizer.encode_tgt(["not spam"])[0][0]
    assert tokenizer.tgt_pieces([number]) == ["▁not spam"]


def test_a_label_that_was_never_seen_is_unknown(tokenizer):
    assert tokenizer.encode_tgt(["not", "spam spam"]) == [[UNK_ID, END_ID]] * 2
    assert tokenizer.encode_tgt(["  not   spam "]) == tokenizer.encode_tgt(["not spam"])


def test_it_is_saved_and_loaded(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "saved")
    again = Tokenizer.load(tmp_path / "saved")
    assert (again.kind, again.tgt_kind) == ("bpe", "label")
    assert again.labels == tokenizer.labels


def test_the_size_of_the_vocabulary_is_the_sources(files):
    config = CONFIG.replace(vocab_size=40, byte_fallback=False)
    made = train_tokenizer(*files, config, num_pairs=120, seed=1)
    assert (made.src_vocab_size, made.tgt_vocab_size) == (40, 4 + len(LABELS))


def test_a_source_tokenizer_that_is_given_is_taken_as_it_is(tokenizer, files, tmp_path):
    tokenizer.save(tmp_path / "saved")
    config = CONFIG.replace(src_from=str(tmp_path / "saved"))
    assert config.src_sha256 == tokenizer.src_fingerprint
    files[0].write_text("wholly other words\n" * 120, "utf-8")
    files[1].write_text("yes\nno\n" * 60, "utf-8")
    made = train_tokenizer(*files, config, num_pairs=120, seed=1)
    assert made.src_fingerprint == tokenizer.src_fingerprint
    assert sorted(made.labels) == ["no", "yes"]
    other = CONFIG.replace(src_from=str(tmp_path / "saved"), src_sha256="0" * 64)
    with pytest.raises(InputError, match="has another checksum"):
        train_tokenizer(*files, other, num_pairs=120, seed=1)


def test_settings_that_part_the_sides_need_two_vocabularies():
    with pytest.raises(ConfigError, match=r"tgt_kind .* shared = false"):
        TokenizerConfig(tgt_kind="word")


def test_older_runs_and_caches_keep_their_names():
    """What is not set is not written: the key of a cache, and a run's config, stay as they were."""
    assert list(TokenizerConfig().model_dump()) == [
        "kind",
        "shared",
        "vocab_size",
        "byte_fallback",
        "character_coverage",
        "max_sentences",
    ]
    assert "tgt_kind" not in json.loads(TokenizerConfig().model_dump_json())
    assert CONFIG.model_dump()["tgt_kind"] == "label"


def write_lines(path, lines):
    path.write_text("".join(f"{text}\t{label}\n" for text, label in lines), "utf-8")
    return {"path": path}


def settings(**more):
    return {
        "tokenizer": CONFIG.model_dump(),
        "disjoint": "source",
        "cleaning": {"max_length_ratio": None},
        **more,
    }


def test_an_unseen_label_in_a_given_dev_set_is_rejected(tmp_path):
    train = [(f"a long enough text of number {n}", "a" if n % 2 else "b") for n in range(40)]
    dev = [("one more text", "a"), ("another one", "c d"), ("and a third", "c d")]
    config = DataConfig(
        corpora=(write_lines(tmp_path / "train.tsv", train),),
        **settings(dev=write_lines(tmp_path / "dev.tsv", dev)),
    )
    with pytest.raises(InputError, match=r"labels that do not occur in train.*'c d' \(2\)"):
        prepare_data(config, tmp_path / "cache")


def test_a_class_whose_only_line_went_to_dev_is_left_out_there_and_reported(tmp_path):
    train = [(f"a long enough text of number {n}", f"only {n}") for n in range(60)]
    train += [(f"some other text of number {n}", "common") for n in range(60)]
    config = DataConfig(corpora=(write_lines(tmp_path / "train.tsv", train),), **settings())
    made = prepare_data(config, tmp_path / "cache")
    unseen = made.report["dev"]["unseen"]
    assert unseen
    assert all(label.startswith("only ") and count == 1 for label, count in unseen.items())
    assert {pair.tgt for pair in made.dev_pairs} <= set(made.tokenizer.labels)
    assert len(made.dev_pairs) + len(unseen) == 6  # 5 % of 120
