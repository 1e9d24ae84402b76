"""The loss from states equals the loss from logits, in value and in gradient."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from attendo.training import fused_linear_cross_entropy as module
from attendo.training.fused_linear_cross_entropy import fused_linear_cross_entropy
from attendo.training.losses import label_smoothed_nll


def draw(*, has_bias: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor]:
    torch.manual_seed(0)
    states = torch.randn(23, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(41, 8, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(41, dtype=torch.float64, requires_grad=True) if has_bias else None
    labels = torch.randint(0, 41, (23,))
    labels[[2, 22]] = 0
    return states, weight, bias, labels


@pytest.mark.parametrize("at_once", [1, 5, 512])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("has_bias", [False, True])
def test_it_is_the_loss_of_all_logits(monkeypatch, at_once, smoothing, has_bias):
    monkeypatch.setattr(module, "CPU_TOKENS_PER_CHUNK", at_once)
    states, weight, bias, labels = draw(has_bias=has_bias)
    leaves = [leaf for leaf in (states, weight, bias) if leaf is not None]
    logits = F.linear(states, weight, bias)
    expected = label_smoothed_nll(logits[None], labels[None], smoothing=smoothing)
    ours = fused_linear_cross_entropy(states, weight, bias, labels, smoothing=smoothing)
    torch.testing.assert_close(ours, expected)
    for found, wanted in zip(
        torch.autograd.grad(3.0 * ours, leaves),
        torch.autograd.grad(3.0 * expected, leaves),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted)


def test_without_gradients_it_is_only_the_loss():
    states, weight, bias, labels = draw(has_bias=True)
    with torch.no_grad():
        loss = fused_linear_cross_entropy(states, weight, bias, labels, smoothing=0.1)
    assert not loss.requires_grad
    assert float(loss) > 0


def test_under_autocast_products_are_low_and_sums_precise():
    states, weight, _, labels = draw(has_bias=False)
    states, weight = (leaf.detach().float().requires_grad_() for leaf in (states, weight))
    exact = fused_linear_cross_entropy(states, weight, None, labels, smoothing=0.1)
    with torch.autocast("cpu", torch.bfloat16):
        low = fused_linear_cross_entropy(states, weight, None, labels, smoothing=0.1)
    assert low.dtype == torch.float32
    assert low.item() == pytest.approx(exact.item(), rel=1e-2)
    assert low.item() != exact.item()
    low.backward()
    assert states.grad is not None
    assert states.grad.dtype == torch.float32


@pytest.mark.parametrize("part", ["_cross_entropy", "_cross_entropy_in_place"])
def test_both_ways_to_score_a_part_agree_with_autograd(part):
    """The one for a GPU, whose operations are fused, and the one for a CPU."""
    _, _, _, labels = draw(has_bias=False)
    logits = torch.randn(23, 41, dtype=torch.float64, requires_grad=True)
    expected = label_smoothed_nll(logits[None], labels[None], smoothing=0.1)
    expected.backward()
    loss, gradient = getattr(module, part)(logits.detach(), labels, 0.1, 0)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradient, logits.grad)
