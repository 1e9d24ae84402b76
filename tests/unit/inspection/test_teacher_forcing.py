from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from attendo.bundle import build_model
from attendo.core.errors import InputError
from attendo.inspection import capture
from attendo.inspection.activations import (
    SUBLAYERS,
    capture_attention,
    capture_input,
    capture_sublayer,
)
from attendo.inspection.gradient_flow import gradient_norms
from attendo.inspection.heads import get_attention
from attendo.inspection.record import KINDS
from attendo.inspection.teacher_forcing import teacher_force
from attendo.model.positional_encoding import sinusoidal
from attendo.translator import Translator

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2}
VARIANTS = [
    {},
    {"norm": "pre"},
    {"attention_width": 3, "d_k": 3, "d_v": 5, "bias": False},
    {"positions": "concatenated"},
    {"scale": False},
    {"residual": False},
    {"residual": False, "norm": "pre"},
]
NAMES = ["paper", "pre", "narrow", "concatenated", "unscaled", "no-residual", "no-residual-pre"]


@pytest.fixture(params=VARIANTS, ids=NAMES)
def translator(request, toy) -> Translator:
    model = build_model("transformer", {**SIZES, **request.param}, toy.prepared.tokenizer)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)  # the norms and biases too
    return Translator(model.eval(), toy.prepared.tokenizer)


@pytest.fixture
def record(translator):
    return capture(translator, "ka to mi re so", "SO RE MI")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer", [0, 1])
def test_an_attention_shows_what_the_model_computes(translator, record, kind, layer):
    inside = capture_attention(translator.model, teacher_force(translator, record), kind, layer)
    assert inside.weights == pytest.approx(record.attention(kind)[layer], abs=1e-5)
    assert (record.attention(kind)[layer][:, ~inside.mask] == 0).all()
    assert inside.heads == pytest.approx(inside.weights @ inside.values, abs=1e-5)
    output = get_attention(translator.model, kind, layer).output
    joined = np.concatenate(list(inside.heads), axis=-1)  # (T, H * K)
    expected = joined @ output.weight.detach().numpy().T
    if output.bias is not None:
        expected = expected + output.bias.detach().numpy()
    assert inside.output == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("which", SUBLAYERS)
def test_a_sublayer_shows_add_and_norm(translator, record, which):
    inside = capture_sublayer(translator.model, teacher_force(translator, record), which, 1)
    assert inside.is_pre_norm is (translator.model.config.norm == "pre")
    assert inside.has_residual is translator.model.config.residual
    around = inside.x if inside.has_residual else 0.0
    assert inside.added == pytest.approx(around + inside.transformed, abs=1e-5)
    stack, name = SUBLAYERS[which]
    norm = getattr(getattr(translator.model, stack).layers[1], f"{name}_add").norm
    before = inside.x if inside.is_pre_norm else inside.added
    mean, variance = before.mean(-1, keepdims=True), before.var(-1, keepdims=True)
    expected = (before - mean) / np.sqrt(variance + norm.eps)
    expected = expected * norm.weight.detach().numpy() + norm.bias.detach().numpy()
    assert inside.normed == pytest.approx(expected, abs=1e-4)


def test_sublayers_follow_each_other(translator, record):
    """What leaves self-attention is what goes around cross-attention."""
    forced = teacher_force(translator, record)
    first = capture_sublayer(translator.model, forced, "decoder_self", 0)
    second = capture_sublayer(translator.model, forced, "cross", 0)
    third = capture_sublayer(translator.model, forced, "decoder_feed_forward", 0)
    assert second.x == pytest.approx(first.added if first.is_pre_norm else first.normed, abs=1e-5)
    assert third.x == pytest.approx(second.added if second.is_pre_norm else second.normed, abs=1e-5)


def test_the_input_is_embedding_and_position(translator, record):
    inside = capture_input(translator.model, teacher_force(translator, record))
    weight = translator.model.src_embedding.weight.detach().numpy()
    ids = [token["id"] for token in record.src["tokens"]]
    assert inside.embedded == pytest.approx(weight[ids] * 4.0, abs=1e-5)  # sqrt(16)
    table = sinusoidal(len(ids), 16).numpy()
    if translator.model.config.positions == "concatenated":
        mixing = translator.model.src_positions.projection.weight.detach().numpy()
        assert inside.positions == pytest.approx(table @ mixing[:, 16:].T, abs=1e-5)
        mixed = inside.embedded @ mixing[:, :16].T + inside.positions
        assert inside.total == pytest.approx(mixed, abs=1e-5)
    else:
        assert inside.positions == pytest.approx(table, abs=1e-6)
        assert inside.total == pytest.approx(inside.embedded + table, abs=1e-5)


def test_a_layer_or_sublayer_that_is_not_there_is_rejected(translator, record):
    forced = teacher_force(translator, record)
    with pytest.raises(InputError, match="no sub-layer 'crss'"):
        capture_sublayer(translator.model, forced, "crss", 0)
    with pytest.raises(InputError, match="no layer 2 of the decoder"):
        capture_sublayer(translator.model, forced, "cross", 2)
    with pytest.raises(InputError, match="no layer 2 of cross attention"):
        capture_attention(translator.model, forced, "cross", 2)


def test_gradients_are_those_of_the_model_itself(translator, record):
    model, forced = translator.model, teacher_force(translator, record)
    outputs = {"encoder": [], "decoder": []}

    def keep(name):
        def hook(_layer, given, result):
            if not outputs[name]:
                outputs[name].append(given[0])
            outputs[name].append(result[0])
            outputs[name][-1].retain_grad()
            outputs[name][0].retain_grad()

        return hook

    handles = [
        layer.register_forward_hook(keep(name))
        for name in outputs
        for layer in getattr(model, name).layers
    ]
    F.cross_entropy(forced(model)[0], forced.target_ids).backward()
    for handle in handles:
        handle.remove()
    expected = [[float(x.grad.norm()) for x in outputs[name]] for name in outputs]
    found = gradient_norms(model, forced)
    assert list(found[0]) == pytest.approx(expected[0], rel=1e-3)
    assert list(found[1]) == pytest.approx(expected[1], rel=1e-3)


def test_without_residuals_a_zero_layer_blocks_the_signal(translator, record):
    model, forced = translator.model, teacher_force(translator, record)
    with torch.no_grad():
        for weight in model.decoder.layers[0].parameters():
            weight.zero_() if weight.dim() > 1 else None
    _, alive = gradient_norms(model, forced)
    _, dead = gradient_norms(model, forced, has_residuals=False)
    assert dead[0] == 0.0
    assert dead[1] > 0.0
    if model.config.residual:
        assert alive[0] > 1e-5
    else:
        assert alive == dead  # there never was a way around
