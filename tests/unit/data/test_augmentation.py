from __future__ import annotations

import numpy as np
import pytest

from attendo.data.augmentation import CHANGES, AugmentationConfig, augment_pairs
from attendo.data.config import DataConfig
from attendo.data.corpus_config import Pair
from attendo.data.pipeline import prepare_data

ENGLISH = Pair("The cat sat on the mat.", "Die Katze saß auf der Matte.")
KOREAN = Pair("나는 TensorFlow 모델을 학습했다.", "I trained a TensorFlow model.")
OFF = dict.fromkeys(AugmentationConfig().rates, 0.0)


def augment(pair, seed=1, **rates):
    config = AugmentationConfig(enabled=True, **{**OFF, **rates})
    return next(augment_pairs([pair], config, seed))


@pytest.mark.parametrize(
    ("kind", "pair", "expected"),
    [
        ("upper", ENGLISH, (ENGLISH.src.upper(), ENGLISH.tgt.upper())),
        ("upper", ENGLISH._replace(tgt=KOREAN.src), (ENGLISH.src.upper(), KOREAN.src)),
        ("upper", KOREAN, tuple(KOREAN)),  # Hangul does not say how to write the target
        ("title", Pair("a cat", "un chat"), ("A Cat", "Un Chat")),
        ("lower", ENGLISH, (ENGLISH.src.lower(), ENGLISH.tgt)),
        ("no_full_stop", KOREAN, (KOREAN.src[:-1], KOREAN.tgt[:-1])),
        ("no_full_stop", Pair("?", "?"), ("?", "?")),  # nothing would be left
        ("words", KOREAN, ("TensorFlow", "TensorFlow")),
        ("words", ENGLISH, (ENGLISH.src[:-1], ENGLISH.tgt[:-1])),
    ],
)
def test_a_pair_is_changed(kind, pair, expected):
    assert tuple(augment(pair, **{kind: 1.0})) == expected


def test_typos_are_in_the_source_only_and_small():
    changed = [augment(KOREAN, seed, typos=1.0) for seed in range(30)]
    assert {pair.tgt for pair in changed} == {KOREAN.tgt}
    assert len({pair.src for pair in changed}) > 10
    assert all(abs(len(pair.src) - len(KOREAN.src)) <= 2 for pair in changed)


def test_spans_are_added_to_both_sides():
    for seed in range(40):
        changed = augment(KOREAN, seed, spans=1.0)
        before, after = (
            changed.src.partition(KOREAN.src)[::2],
            changed.tgt.partition(KOREAN.tgt)[::2],
        )
        assert before == after
        assert any(before)


def test_every_kind_has_a_rate_and_the_rates_hold():
    assert set(CHANGES) == set(AugmentationConfig().rates)
    pairs = [Pair(f"This is sentence number {n}.", f"Das ist Satz {n}.") for n in range(4000)]
    config = AugmentationConfig(enabled=True)
    changed = list(augment_pairs(pairs, config, 3))
    assert changed == list(augment_pairs(pairs, config, 3))
    share = np.mean([one != other for one, other in zip(pairs, changed, strict=True)])
    assert 0.15 < share < sum(config.rates.values()) + 0.02
    assert sum(not pair.src.endswith(".") for pair in changed) > 0.05 * len(pairs)


def test_prepared_data_has_two_versions_of_train_always_the_same(toy, tmp_path):
    settings = {"corpora": [{"src": toy.src, "tgt": toy.tgt}], "tokenizer": {"kind": "bpe"}}
    plain = prepare_data(DataConfig(**settings), tmp_path / "cache")
    config = DataConfig(**settings, augmentation={"enabled": True, "typos": 0.5})
    first = prepare_data(config, tmp_path / "cache")
    second = prepare_data(config, tmp_path / "other")
    assert first.directory.name == second.directory.name != plain.directory.name
    assert len(first.train) == 2
    assert len(plain.train) == 1

    def ids(prepared, number):
        corpus = prepared.train[number][0]
        return [corpus.pair(index)[0].tolist() for index in range(len(corpus))]

    assert ids(first, 0) == ids(second, 0) != ids(first, 1)
    assert ids(first, 1) == ids(second, 1) != ids(plain, 0)
    assert [weight for _, weight in first.train] == [0.5, 0.5]


def test_the_keys_of_old_caches_stay_valid(toy, tmp_path):
    settings = {"corpora": [{"src": toy.src, "tgt": toy.tgt}], "tokenizer": {"kind": "bpe"}}
    off = DataConfig(**settings, augmentation={"enabled": False, "upper": 0.5})
    keys = [prepare_data(one, tmp_path).directory.name for one in (DataConfig(**settings), off)]
    assert keys[0] == keys[1]
