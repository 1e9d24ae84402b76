"""On a GPU a search multiplies in TF32; what is looked into or scored does not."""

from __future__ import annotations

import pytest
import torch

from attendo.bundle import build_model, save_bundle
from attendo.decoding import scoring
from attendo.kernels import tf32
from attendo.translator import Translator
from attendo.translator.backends import pytorch as engine_module

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


@pytest.fixture
def folder(toy, tmp_path):
    torch.manual_seed(3)
    model = build_model("transformer", SIZES, toy.prepared.tokenizer)
    save_bundle(tmp_path / "model", model, toy.prepared.tokenizer)
    return tmp_path / "model"


@pytest.fixture
def seen(monkeypatch):
    """Pretend that there is a GPU, and write down how each search and each score multiplies."""
    found: list[bool] = []

    def spy(work):
        def run(*arguments, **options):
            found.append(tf32.is_tf32_enabled())
            return work(*arguments, **options)

        return run

    monkeypatch.setattr(engine_module, "fast_products", lambda _device: tf32.use_tf32())
    monkeypatch.setattr(engine_module, "search", spy(engine_module.search))
    monkeypatch.setattr(scoring, "score", spy(scoring.score))
    return found


def test_a_search_does_and_nothing_else(folder, seen):
    translator = Translator.load(folder)
    translator.translate(["ka to"], max_extra_tokens=2)
    assert seen == [True]
    translator.translate(["ka to"], max_extra_tokens=2, trace=True)
    translator.score(["ka to"], ["KA"])
    assert seen == [True, False, False]
    assert not tf32.is_tf32_enabled()


def test_float32_has_all_bits(folder, seen):
    Translator.load(folder, precision="float32").translate(["ka to"], max_extra_tokens=2)
    assert seen == [False]


def test_only_a_gpu_is_warmed_up(folder, seen, monkeypatch):
    engine = Translator.load(folder, device="cpu").backend
    engine.warm_up()
    assert not seen
    monkeypatch.setattr(type(engine), "device", torch.device("cuda"))
    monkeypatch.setattr(type(engine), "pad", lambda _self, rows: torch.tensor(rows))
    engine.warm_up()
    assert seen == [True, True, True]
