from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from attendo.model.feed_forward import FeedForward
from attendo.model.layers import AddAndNorm, DecoderLayer, EncoderLayer


def test_feed_forward_is_the_same_at_every_position():
    network = FeedForward(8, 32).double()
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    whole = network(x)
    for position in range(5):
        torch.testing.assert_close(network(x[:, position]), whole[:, position])
    inner = (x @ network.inner.weight.T + network.inner.bias).clamp(min=0)
    torch.testing.assert_close(whole, inner @ network.outer.weight.T + network.outer.bias)


def test_gelu_departs_from_relu():
    network, other = FeedForward(8, 32), FeedForward(8, 32, activation="gelu")
    other.load_state_dict(network.state_dict())
    x = torch.randn(1, 3, 8)
    assert not torch.allclose(network(x), other(x))


def test_post_norm_normalizes_the_sum():
    add = AddAndNorm(8, dropout=0.0, norm="post", eps=1e-5)
    x, transformed = torch.randn(2, 3, 8), torch.randn(2, 3, 8)
    assert add.pre(x) is x
    torch.testing.assert_close(
        add.post(x, transformed), nn.functional.layer_norm(x + transformed, (8,))
    )


def test_pre_norm_leaves_the_path_around_untouched():
    add = AddAndNorm(8, dropout=0.0, norm="pre", eps=1e-5)
    x, transformed = torch.randn(2, 3, 8), torch.randn(2, 3, 8)
    torch.testing.assert_close(add.pre(x), nn.functional.layer_norm(x, (8,)))
    assert torch.equal(add.post(x, transformed), x + transformed)


def test_dropout_falls_on_the_sublayer_not_on_the_path_around_it():
    add = AddAndNorm(1000, dropout=0.5, norm="pre", eps=1e-5)
    left = add.post(torch.full((1, 1, 1000), 3.0), torch.ones(1, 1, 1000))
    assert sorted(left.unique().tolist()) == [3.0, 5.0]
    add.eval()
    assert add.post(torch.zeros(1, 1, 1000), torch.ones(1, 1, 1000)).unique().tolist() == [1.0]


def test_without_residual_post_norm_normalizes_the_sublayer_alone():
    add = AddAndNorm(2, dropout=0.0, norm="post", eps=1e-12, residual=False)
    x, transformed = torch.tensor([[100.0, 7.0]]), torch.tensor([[1.0, 3.0]])
    assert add.pre(x) is x
    torch.testing.assert_close(add.post(x, transformed), torch.tensor([[-1.0, 1.0]]))


def test_without_residual_pre_norm_gives_the_sublayer_as_it_is():
    add = AddAndNorm(2, dropout=0.0, norm="pre", eps=1e-12, residual=False)
    x, transformed = torch.tensor([[100.0, 7.0]]), torch.tensor([[1.0, 3.0]])
    torch.testing.assert_close(add.pre(x), torch.tensor([[1.0, -1.0]]))
    assert torch.equal(add.post(x, transformed), transformed)


def test_without_residual_dropout_still_falls_on_the_sublayer():
    add = AddAndNorm(1000, dropout=0.5, norm="pre", eps=1e-5, residual=False)
    left = add.post(torch.full((1, 1, 1000), 3.0), torch.ones(1, 1, 1000))
    assert sorted(left.unique().tolist()) == [0.0, 2.0]


def transform_by_hand(layer, x, *, is_pre: bool, scale: bool, residual: bool):
    """One head, one sentence, an encoder layer in numpy."""

    def linear(module, values):
        return values @ module.weight.detach().numpy().T + module.bias.detach().numpy()

    def normalize(module, values):
        spread = np.sqrt(values.var(-1, keepdims=True) + module.eps)
        normed = (values - values.mean(-1, keepdims=True)) / spread
        return normed * module.weight.detach().numpy() + module.bias.detach().numpy()

    def attend(values):
        own = layer.self_attention
        scores = linear(own.query, values) @ linear(own.key, values).T
        exponentials = np.exp(scores / (2.0 if scale else 1.0))
        weights = exponentials / exponentials.sum(-1, keepdims=True)
        return linear(own.output, weights @ linear(own.value, values))

    def feed(values):
        return linear(layer.feed_forward.outer, linear(layer.feed_forward.inner, values).clip(0))

    for add, sublayer in ((layer.self_add, attend), (layer.feed_forward_add, feed)):
        changed = sublayer(normalize(add.norm, x) if is_pre else x) + (x if residual else 0.0)
        x = changed if is_pre else normalize(add.norm, changed)
    return x


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("residual", [True, False])
def test_an_encoder_layer_has_the_modules_of_its_options(norm, scale, residual):
    layer = EncoderLayer(4, 8, 1, norm=norm, scale=scale, residual=residual).double().eval()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(3, 4, dtype=torch.float64)
    expected = transform_by_hand(
        layer, x.numpy(), is_pre=norm == "pre", scale=scale, residual=residual
    )
    found, _ = layer(x[None])
    assert found[0].detach().numpy() == pytest.approx(expected, abs=1e-10)
    defaults = transform_by_hand(layer, x.numpy(), is_pre=norm == "pre", scale=True, residual=True)
    assert np.allclose(expected, defaults, atol=1e-2) is (scale and residual)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_layers_give_weights_only_when_asked(norm):
    x, memory = torch.randn(2, 4, 16), torch.randn(2, 6, 16)
    encoder = EncoderLayer(16, 32, 4, norm=norm).eval()
    decoder = DecoderLayer(16, 32, 4, norm=norm).eval()
    plain, nothing = encoder(x)
    looked_at, weights = encoder(x, need_weights=True)
    assert nothing is None
    assert weights.shape == (2, 4, 4, 4)
    torch.testing.assert_close(plain, looked_at)
    plain, *nothing = decoder(x, memory)
    looked_at, self_weights, cross_weights = decoder(x, memory, need_weights=True)
    assert nothing == [None, None]
    assert self_weights.shape == (2, 4, 4, 4)
    assert cross_weights.shape == (2, 4, 4, 6)
    torch.testing.assert_close(plain, looked_at)
