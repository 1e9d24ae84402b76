"""The numbers of lessons 4, 7, 8 and 9, compared with what the layers of the model compute."""

from __future__ import annotations

import pytest
import torch

from attendo.model.attention import MultiHeadAttention, scaled_dot_product
from attendo.model.layers import AddAndNorm
from attendo.model.masks import causal_mask, padding_mask

X = torch.tensor([[1.0, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])
W_Q = torch.tensor([[1.0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]])
W_K = torch.tensor([[0.0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]])
W_V = torch.tensor([[0.0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]])


class TestLesson4:
    """Attention by hand."""

    scores = torch.tensor([[2.0, 4, 4], [4, 16, 12], [4, 12, 10]])
    weights = torch.tensor(
        [
            [0.13613, 0.43194, 0.43194],
            [0.00089045, 0.90884, 0.090267],
            [0.0074449, 0.75471, 0.23785],
        ]
    )
    output = torch.tensor(
        [[1.8639, 6.3194, 1.7042], [1.9991, 7.8141, 0.2735], [1.9926, 7.4796, 0.7359]]
    )

    def test_scores(self):
        assert torch.equal((X @ W_Q) @ (X @ W_K).T, self.scores)

    def test_weights_and_output(self):
        output, weights = scaled_dot_product(X @ W_Q, X @ W_K, X @ W_V, need_weights=True)
        torch.testing.assert_close(weights, self.weights, rtol=0, atol=6e-6)
        torch.testing.assert_close(output, self.output, rtol=0, atol=6e-5)
        torch.testing.assert_close(scaled_dot_product(X @ W_Q, X @ W_K, X @ W_V), output)

    def test_one_head_of_multi_head_attention_is_equal(self):
        attention = MultiHeadAttention(4, 1, d_k=3, d_v=3, bias=False)
        with torch.no_grad():
            for linear, matrix in zip(
                (attention.query, attention.key, attention.value), (W_Q, W_K, W_V), strict=True
            ):
                linear.weight.copy_(matrix.T)
        _, weights = attention(X[None], X[None], X[None], need_weights=True)
        torch.testing.assert_close(weights[0, 0], self.weights, rtol=0, atol=6e-6)


class TestLesson7:
    """Masks: "I am sam <pad>"."""

    ids = torch.tensor([[5, 6, 7, 0]])

    def test_the_padding_column_is_exactly_zero_and_rows_sum_to_one(self):
        x = torch.randn(1, 4, 8)
        _, weights = scaled_dot_product(x, x, x, padding_mask(self.ids), need_weights=True)
        assert bool((weights[..., -1] == 0).all())
        torch.testing.assert_close(weights.sum(-1), torch.ones(1, 4))

    def test_look_ahead_hides_j_greater_than_i(self):
        x = torch.randn(1, 4, 8)
        _, weights = scaled_dot_product(x, x, x, causal_mask(4), need_weights=True)
        assert bool((weights.triu(1) == 0).all())
        assert bool(
            (weights.tril()[0, torch.tril_indices(4, 4)[0], torch.tril_indices(4, 4)[1]] > 0).all()
        )
        assert float(weights[0, 0, 0]) == 1.0

    def test_which_mask_goes_where(self, make_model):
        explanation = make_model().explain(self.ids, torch.tensor([[1, 9, 0]]))
        for weights in explanation.encoder_self:  # padding of the source
            assert bool((weights[..., 3] == 0).all())
            assert bool((weights[..., :3] > 0).all())
        for weights in explanation.decoder_self:  # look-ahead, and padding of the target
            assert bool((weights[..., 2] == 0).all())
            assert bool((weights[..., 0, 1:] == 0).all())
            assert bool((weights[..., 1, :2] > 0).all())
        for weights in explanation.cross:  # padding of the source, no look-ahead
            assert bool((weights[..., 3] == 0).all())
            assert bool((weights[..., :3] > 0).all())


class TestLesson8:
    """Add and norm."""

    def test_starts_with_gamma_one_and_beta_zero(self, make_model):
        for module in make_model().modules():
            if isinstance(module, torch.nn.LayerNorm):
                assert module.weight.unique().tolist() == [1.0]
                assert module.bias.unique().tolist() == [0.0]

    def test_is_the_formula(self):
        add = AddAndNorm(6, dropout=0.0, norm="post", eps=1e-5)
        x, sublayer = torch.randn(2, 3, 6), torch.randn(2, 3, 6)
        total = x + sublayer
        mean = total.mean(-1, keepdim=True)
        variance = ((total - mean) ** 2).mean(-1, keepdim=True)
        expected = (total - mean) / torch.sqrt(variance + 1e-5)
        torch.testing.assert_close(add.post(x, sublayer), expected)
        with torch.no_grad():
            add.norm.weight.fill_(3.0)
            add.norm.bias.fill_(-1.0)
        torch.testing.assert_close(add.post(x, sublayer), 3 * expected - 1)

    def test_does_not_depend_on_the_batch_as_batch_norm_does(self):
        x = torch.randn(4, 3, 6)
        add = AddAndNorm(6, dropout=0.0, norm="post", eps=1e-5)
        torch.testing.assert_close(add.post(x, x)[:1], add.post(x[:1], x[:1]))
        batch_norm = torch.nn.BatchNorm1d(6)
        alone, together = (batch_norm(part.transpose(1, 2)) for part in (x[:1], x))
        assert not torch.allclose(together[:1], alone, atol=1e-2)


class TestLesson9:
    """What the residual path does to gradients."""

    @staticmethod
    def run(skip: float) -> tuple[list[float], list[float]]:
        """x = 0.5 through three sigmoid units of weight 0.1; a skip from h1 to the output sum."""
        w1, w2, w3 = (torch.tensor(0.1, dtype=torch.float64, requires_grad=True) for _ in range(3))
        h1 = torch.sigmoid(w1 * 0.5)
        h2 = torch.sigmoid(w2 * h1)
        y = torch.sigmoid(w3 * h2 + skip * h1)
        loss = (1 - y) ** 2
        gradients = torch.autograd.grad(loss, (w1, w2, w3))
        return [v.item() for v in (h1, h2, y, loss)], [v.item() for v in gradients]

    def test_without_a_residual_the_first_weight_has_almost_no_gradient(self):
        values, gradients = self.run(skip=0.0)
        assert values == pytest.approx([0.51250, 0.51281, 0.51282, 0.23735], abs=6e-6)
        assert gradients == pytest.approx([-0.000076, -0.0031169, -0.12483], rel=5e-3)

    def test_with_a_residual_its_gradient_is_forty_times_larger(self):
        values, gradients = self.run(skip=0.1)
        assert values[2:] == pytest.approx([0.52561, 0.22505], abs=6e-6)
        assert gradients == pytest.approx([-0.0030291, -0.0030291, -0.12132], rel=5e-4)
        assert gradients[0] / self.run(skip=0.0)[1][0] == pytest.approx(40, abs=1)

    def test_a_chain_of_tiny_local_gradients_vanishes_and_residuals_carry_it(self):
        x = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
        signal = torch.tensor(-0.125, dtype=torch.float64)
        (chained,) = torch.autograd.grad(1e-6 * x, x, signal)
        (carried,) = torch.autograd.grad(x + 1e-6 * x, x, signal)
        assert float(chained) == pytest.approx(-1.25e-7)
        assert float(carried) == pytest.approx(-0.125, rel=1e-5)

    def test_the_encoder_passes_the_gradient_around_dead_sublayers(self, make_model):
        """Sub-layers that pass almost nothing leave the gradient of the embedding undiminished."""
        model = make_model(torch.float64, norm="pre", num_layers=3, positions="none")
        with torch.no_grad():
            for layer in model.encoder.layers:
                layer.self_attention.output.weight.mul_(1e-6)
                layer.feed_forward.outer.weight.mul_(1e-6)
        embedded = torch.randn(1, 4, 16, dtype=torch.float64, requires_grad=True)
        x, mask = embedded, torch.ones(1, 1, 4, dtype=torch.bool)
        for layer in model.encoder.layers:
            x, _ = layer(x, mask)
        (gradient,) = torch.autograd.grad(x, embedded, torch.full_like(x, -0.125))
        torch.testing.assert_close(gradient, torch.full_like(gradient, -0.125), rtol=1e-4, atol=0)
