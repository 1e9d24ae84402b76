from __future__ import annotations

import pytest
import torch

from attendo.training.losses import label_smoothed_nll, rdrop_kl, score_tokens

LABELS = torch.tensor([[3, 1, 4], [2, 0, 0]])


def by_hand(logits: torch.Tensor, labels: torch.Tensor, epsilon: float) -> torch.Tensor:
    """(1 - epsilon) nll + epsilon / V times the sum over the vocabulary, padding left out."""
    total = torch.zeros((), dtype=logits.dtype)
    logs = logits - logits.exp().sum(-1, keepdim=True).log()
    for row, column in (labels != 0).nonzero().tolist():
        own = logs[row, column]
        total = total - (1 - epsilon) * own[labels[row, column]] - epsilon / len(own) * own.sum()
    return total


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.9])
def test_equals_the_formula_and_its_gradient(epsilon):
    logits = torch.randn(2, 3, 7, dtype=torch.float64, requires_grad=True)
    ours = label_smoothed_nll(logits, LABELS, smoothing=epsilon)
    expected = by_hand(logits, LABELS, epsilon)
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)
    gradients = [torch.autograd.grad(loss, logits)[0] for loss in (ours, expected)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)
    probabilities = logits.softmax(-1)
    target = torch.nn.functional.one_hot(LABELS, 7).double() * (1 - epsilon) + epsilon / 7
    real = (LABELS != 0).unsqueeze(-1)
    torch.testing.assert_close(gradients[0], (probabilities - target) * real, rtol=0, atol=1e-12)


def test_padding_changes_neither_loss_nor_gradient():
    logits = torch.randn(2, 3, 7, requires_grad=True)
    loss = label_smoothed_nll(logits, LABELS, smoothing=0.1)
    loss.backward()
    assert bool((logits.grad[LABELS == 0] == 0).all())
    changed = logits.detach().clone()
    changed[1, 1:] = 100.0
    assert label_smoothed_nll(changed, LABELS, smoothing=0.1).item() == loss.item()


def test_half_precision_is_summed_in_single():
    logits = (torch.randn(2, 3, 7) * 4).bfloat16()
    loss = label_smoothed_nll(logits, LABELS, smoothing=0.1)
    assert loss.dtype == torch.float32
    expected = by_hand(logits.double(), LABELS, 0.1)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_score_counts_right_tokens_and_plain_log_loss():
    logits = torch.zeros(2, 3, 7)
    logits[0, 0, 3] = logits[0, 1, 5] = logits[1, 0, 2] = 9.0
    logits[1, 1, 0] = 9.0  # on padding: right, and yet not counted
    found = score_tokens(logits, LABELS)
    assert (found.num_correct.item(), found.num_tokens.item()) == (2, 4)
    assert found.log_loss.dtype == torch.float64
    expected = by_hand(logits.double(), LABELS, 0.0)
    assert found.log_loss.item() == pytest.approx(expected.item(), rel=1e-6)


def test_disagreement_is_the_mean_of_both_divergences():
    logits = torch.randn(4, 3, 7, dtype=torch.float64)
    one, other = (torch.distributions.Categorical(logits=half) for half in logits.chunk(2))
    there = torch.distributions.kl_divergence(one, other)
    back = torch.distributions.kl_divergence(other, one)
    expected = ((there + back) / 2)[LABELS != 0].sum()
    torch.testing.assert_close(rdrop_kl(logits, LABELS), expected, rtol=0, atol=1e-12)
    assert rdrop_kl(torch.cat([logits[:2], logits[:2]]), LABELS).item() == 0.0
