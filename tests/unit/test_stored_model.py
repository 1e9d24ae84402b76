"""A model as arrays: the same weights as PyTorch reads, and the same conversion."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attendo.bundle import build_model, get_weights, load_bundle, save_bundle
from attendo.core.errors import InputError
from attendo.core.quantization import quantize_weights
from attendo.stored_model import StoredModel
from attendo.translator.backends.ctranslate2.converter import write

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 2}


@pytest.fixture(params=["float32", "int8", "float16"])
def folder(request, toy, tmp_path):
    tokenizer = toy.prepared.tokenizer
    model = build_model("transformer", SIZES, tokenizer)
    weights = {
        "float32": lambda stored: stored,
        "int8": quantize_weights,
        "float16": lambda stored: {name: one.half() for name, one in stored.items()},
    }[request.param](get_weights(model))
    about = {"src_lang": "ko"}
    save_bundle(tmp_path / "model", model, tokenizer, about=about, weights=weights)
    return tmp_path / "model"


def test_the_weights_are_those_that_pytorch_reads(folder):
    bundle, stored = load_bundle(folder), StoredModel.read(folder)
    assert stored.about == bundle.about
    assert stored.config == bundle.model.config
    assert stored.num_parameters == bundle.model.num_parameters()
    expected = get_weights(bundle.model)
    assert set(stored.weights.arrays) == set(expected)
    for name, weight in expected.items():
        assert np.array_equal(stored.weights.get(name, *weight.shape), weight.numpy()), name


def test_the_conversion_needs_no_pytorch_and_is_the_same(folder, tmp_path):
    for name, model in (("loaded", load_bundle(folder)), ("stored", StoredModel.read(folder))):
        (tmp_path / name).mkdir()
        write(model, tmp_path / name, quantization="int8")
    files = sorted(path.name for path in (tmp_path / "loaded").iterdir())
    assert "model.bin" in files
    for name in files:
        loaded, stored = ((tmp_path / which / name).read_bytes() for which in ("loaded", "stored"))
        assert loaded == stored, name


def test_a_weight_of_another_shape_is_named(folder, tmp_path):
    index = json.loads((folder / "bundle.json").read_text("utf-8"))
    index["config"]["d_ff"] = 33
    (folder / "bundle.json").write_text(json.dumps(index), "utf-8")
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match=r"feed_forward\.inner\.bias is of another shape"):
        write(StoredModel.read(folder), tmp_path / "out")


def test_a_tokenizer_of_another_size_is_an_error(folder):
    index = json.loads((folder / "bundle.json").read_text("utf-8"))
    index["config"]["vocab_size"] += 1
    (folder / "bundle.json").write_text(json.dumps(index), "utf-8")
    with pytest.raises(InputError, match="the tokenizer has"):
        StoredModel.read(folder)
