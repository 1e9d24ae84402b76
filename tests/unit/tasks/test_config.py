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
    assert (train.warmup_steps, train.label_smoothing, train.average_last) == (4000, 0.1, 5)
    assert (train.schedule, train.clip_norm, train.ema_decay) == ("paper", 0.0, 0.0)
    assert train.validation_interval == train.save_every
    assert TrainConfig(validate_every=7).validation_interval == 7


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"train": {"max_step": 5}}, r"train: unknown key 'max_step': did you mean 'max_steps'"),
        ({"model": {"num_layer": 2}}, r"model: unknown key 'num_layer': did you mean 'num_layers'"),
        ({"model": {"preset": "smal"}}, "did you mean 'small'"),
        ({"trian": {}}, "unknown key 'trian': did you mean 'train'"),
        ({"train": {"schedule": "linear"}}, "train: schedule = 'linear'"),
        ({"train": {"max_steps": 0}}, "train: max_steps = 0"),
        ({"train": {"keep_last": 2}}, "average_last 5 needs keep_last"),
        ({"model": {"kind": "rnn"}}, "model: no model kind 'rnn': "),
        ({"model": {"vocab_size": 9}}, "unknown key 'vocab_size'"),
    ],
)
def test_typos_get_the_nearest_name(parts, told):
    with pytest.raises(ConfigError, match=told):
        make(**parts)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(ConfigError) as raised:
        make(train={"max_step": 5, "sed": 1}, model={"num_layer": 2})
    assert len(raised.value.reasons) == 3


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"d_model": "wide"}, "d_model = 'wide'"),
        ({"num_heads": 7}, "cannot be split over num_heads 7"),
        ({"dropout": 1.5}, "dropout = 1.5"),
        ({"norm": "both"}, "norm = 'both'"),
    ],
)
def test_bug_wrong_options_of_the_model_were_told_only_after_the_data(options, told):
    with pytest.raises(ConfigError, match=told):
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
        "model.d_ff: None there, 64 here",
        "train.seed: 1 there, 2 here",
    ]
    other = make(data={"corpora": [{"src": "b.ko", "tgt": "a.en"}]})
    (told,) = other.differences(make())
    assert told.startswith("data.corpora: ")
    assert "b.ko" in told
