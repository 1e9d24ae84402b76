from __future__ import annotations

import pytest

from attendo.core.errors import ConfigError
from attendo.tasks.config import ModelConfig, RunConfig
from attendo.training.config import TrainConfig

DATA = {"corpora": [{"src": "a.ko", "tgt": "a.en"}]}


def make(**parts) -> RunConfig:
    return RunConfig(**{"data": DATA, **parts})


def test_defaults_are_the_papers():
    train = TrainConfig()
    assert (train.beta_1, train.beta_2, train.epsilon) == (0.9, 0.98, 1e-9)
    assert (train.warmup_steps, train.label_smoothing, train.average_checkpoints) == (4000, 0.1, 5)
    assert (train.schedule, train.clip_norm, train.ema_decay) == ("paper", 0.0, 0.0)
    assert train.validation_interval == train.save_every
    assert TrainConfig(validate_every=7).validation_interval == 7


@pytest.mark.parametrize(
    ("parts", "reported"),
    [
        ({"train": {"max_step": 5}}, r"unknown key 'train.max_step': did you mean 'max_steps'"),
        ({"model": {"num_layer": 2}}, r"unknown key 'model.num_layer': did you mean 'num_layers'"),
        ({"model": {"preset": "smal"}}, "did you mean 'small'"),
        ({"trian": {}}, "unknown key 'trian': did you mean 'train'"),
        ({"train": {"schedule": "linear"}}, "train.schedule = 'linear'"),
        ({"train": {"max_steps": 0}}, "train.max_steps = 0"),
        ({"train": {"keep_last": 2}}, "average_checkpoints 5 needs keep_last"),
        ({"model": {"kind": "rnn"}}, "model: no model kind 'rnn': "),
        ({"model": {"vocab_size": 9}}, "unknown key 'model.vocab_size'"),
    ],
)
def test_typos_get_the_nearest_name(parts, reported):
    with pytest.raises(ConfigError, match=reported):
        make(**parts)


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(ConfigError) as raised:
        make(train={"max_step": 5, "sed": 1}, model={"num_layer": 2})
    assert len(raised.value.reasons) == 3


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ({"d_model": "wide"}, "d_model = 'wide'"),
        ({"num_heads": 7}, "cannot be split over num_heads 7"),
        ({"dropout": 1.5}, "dropout = 1.5"),
        ({"norm": "both"}, "norm = 'both'"),
    ],
)
def test_bug_wrong_options_of_the_model_were_reported_only_after_the_data(options, reported):
    with pytest.raises(ConfigError, match=reported):
        make(model=options)


def test_options_change_the_preset():
    model = ModelConfig(preset="tiny", num_layers=2, norm="pre")
    assert model.overrides == {"num_layers": 2, "norm": "pre"}
    assert model.options["d_model"] == 128
    assert model.options["num_layers"] == 2


def test_saved_and_loaded_is_the_same(tmp_path):
    config = make(model={"preset": "tiny", "d_ff": 64}, train={"samples": ["왕자"], "seed": 3})
    config.save(tmp_path / "config.json")
    loaded = RunConfig.load(tmp_path / "config.json")
    assert loaded == config
    assert loaded.differences(config) == []
    assert loaded.model.overrides == {"d_ff": 64}


def test_differences_are_named():
    ours = make(train={"seed": 2, "max_steps": 9}, model={"d_ff": 64})
    theirs = make(train={"seed": 1, "max_steps": 5, "patience": 3, "accumulation_steps": 2})
    assert ours.differences(theirs) == [
        "model.d_ff: not set there, 64 here",
        "train.seed: 1 there, 2 here",
    ]


def test_names_of_files_do_not_differ_but_what_is_read_from_them_does():
    def config(*corpora: dict, **data) -> RunConfig:
        return make(data={"corpora": corpora, **data})

    pair = {"src": "a.ko", "tgt": "a.en"}
    moved = {"src": "/data/b.ko", "tgt": "/data/b.en"}
    assert config(moved, dev=moved).differences(config(pair, dev=pair)) == []
    heavier = config(pair, {**moved, "weight": 0.5})
    assert heavier.differences(config(pair, moved)) == [
        "data.corpora[1].weight: 1.0 there, 0.5 here"
    ]
    assert heavier.differences(config(pair)) == [
        "data.corpora[1].src: not set there, '/data/b.ko' here",
        "data.corpora[1].tgt: not set there, '/data/b.en' here",
    ]
    assert config(pair).differences(config(pair, dev=moved)) == [
        "data.dev.src: '/data/b.ko' there, not set here",
        "data.dev.tgt: '/data/b.en' there, not set here",
    ]


def test_a_run_on_series_may_resume_from_another_folder():
    def config(*paths: str, **series) -> RunConfig:
        return RunConfig(series={"paths": paths, "targets": ["y"], **series})

    assert config("b/y.csv").differences(config("/a/x.csv")) == []
    assert config("x.csv", horizon=3).differences(config("x.csv", "y.csv")) == [
        "series.horizon: 7 there, 3 here",
        "series.paths[1]: 'y.csv' there, not set here",
    ]


def test_options_of_the_model_are_stored_with_their_types():
    model = ModelConfig(num_layers="7", d_model="128", dropout="0.5")
    assert model.overrides == {"num_layers": 7, "d_model": 128, "dropout": 0.5}


def test_a_key_of_a_table_is_suggested_with_its_table():
    with pytest.raises(ConfigError, match=r"did you mean 'train\.max_steps'"):
        RunConfig(data={"corpora": [{"src": "a", "tgt": "b"}]}, max_steps=5)
    assert {"train.max_steps", "data.tokenizer.kind", "data.corpora.src"} <= {
        *RunConfig.nested_keys()
    }


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"data": {"tokenizer": "bpe"}}, "data.tokenizer.kind=bpe"),
        ({"data": {"tokenizer": 3}}, "vocab_size"),
        ({"data": {"corpora": {"src": "a"}}}, "[[data.corpora]]"),
        ({"data": {"corpora": ["a.tsv"]}}, "path"),
        ({"train": []}, "max_steps"),
    ],
)
def test_a_value_in_position_of_a_table_gets_a_hint(settings, hint):
    with pytest.raises(ConfigError) as caught:
        RunConfig.check_tables(settings)
    assert hint in caught.value.hint
