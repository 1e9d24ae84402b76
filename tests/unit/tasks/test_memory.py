"""Whether a model fits into memory is known without building it."""

from __future__ import annotations

import pytest
import torch

from attendo.architectures.registry import get_model_kind
from attendo.core.errors import ConfigError
from attendo.tasks import memory
from attendo.tasks.config import RunConfig

CPU = torch.device("cpu")
CORPUS = {"corpora": [{"src": "a", "tgt": "b"}]}


def make_config(kind: str = "transformer", **options) -> RunConfig:
    return RunConfig(data=CORPUS, model={"kind": kind, "preset": "tiny", **options})


def build(config: RunConfig):
    kind = get_model_kind(config.model.kind)
    return kind.model_class(vocab_size=50, **config.model.options)


@pytest.mark.parametrize("kind", ["transformer", "encoder", "decoder", "rnn-attention", "conv-s2s"])
def test_the_parameters_of_a_deep_model_are_counted(kind):
    config = make_config(kind, num_layers=7, d_model=32)
    assert memory.count_parameters(config, build) == build(config).num_parameters()


def test_decoder_layers_are_counted_on_their_own():
    config = make_config(num_layers=5, num_decoder_layers=9, d_model=32)
    assert memory.count_parameters(config, build) == build(config).num_parameters()


def test_nothing_is_allocated(monkeypatch):
    monkeypatch.setattr(memory, "memory_bytes", lambda: 2**62)
    memory.check_model_size(make_config(num_layers=2**20, d_model=2**12), CPU)


@pytest.mark.parametrize("options", [{"num_layers": 2**20}, {"d_model": 2**19}, {"preset": "big"}])
def test_a_model_that_cannot_fit_is_rejected(monkeypatch, options):
    monkeypatch.setattr(memory, "memory_bytes", lambda: 2**30)
    with pytest.raises(ConfigError):
        memory.check_model_size(make_config(**options), CPU)
    memory.check_model_size(make_config(), CPU)


def test_a_machine_of_unknown_size_takes_all(monkeypatch):
    monkeypatch.setattr(memory, "memory_bytes", lambda: None)
    memory.check_model_size(make_config(num_layers=2**20), CPU)
