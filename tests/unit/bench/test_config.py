from __future__ import annotations

import pytest
import torch

from attendo.bench.config import SIZES, DecodingBenchConfig, Shape, TrainingBenchConfig
from attendo.core.errors import ConfigError
from attendo.model.config import TransformerConfig


@pytest.mark.parametrize(
    ("name", "layers", "d_model", "d_ff"),
    [
        ("tiny", 4, 128, 256),
        ("small", 3, 256, 1024),
        ("base", 6, 512, 2048),
        ("big", 6, 1024, 4096),
    ],
)
def test_sizes_are_those_of_the_published_figures(name, layers, d_model, d_ff):
    config = TransformerConfig(vocab_size=SIZES[name].vocab_size, **SIZES[name].options)
    assert (config.num_layers, config.d_model, config.d_ff) == (layers, d_model, d_ff)


@pytest.mark.parametrize(
    "text", ["", "800", "800x32", "0x32+32", "8x1+32", "8x32+1", "8x-3+4", "axb+c"]
)
def test_no_batch(text):
    with pytest.raises(ConfigError, match=r"800x32\+32"):
        Shape.parse(text)


def test_every_wrong_setting_is_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        TrainingBenchConfig(size="bse", device="tpu")
    assert len(caught.value.reasons) == 2
    assert "did you mean 'base'" in caught.value.reasons[0]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"batch": "8x9+9", "corpus": ("a", "b")}, "choose one"),
        ({"precision": "float8"}, "precision"),
        ({"step": 3}, "did you mean 'steps'"),
        ({"vocab_size": 3}, "vocab_size"),
    ],
)
def test_wrong_settings(settings, reason):
    with pytest.raises(ConfigError, match=reason):
        TrainingBenchConfig(**settings)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there():
    with pytest.raises(ConfigError, match="finds no GPU"):
        DecodingBenchConfig(device="cuda")


def test_a_batch_holds_what_the_longer_side_needs():
    assert TrainingBenchConfig(batch="8x20+30").token_budget == 240
    assert TrainingBenchConfig(corpus=("a", "b"), batch_tokens=700).token_budget == 700


def test_steps_are_shared_over_rounds():
    assert TrainingBenchConfig(steps=100, rounds=4).round_steps == 25
    assert TrainingBenchConfig(steps=1, rounds=4).round_steps == 1
