"""Calibration against drawn labels, an independent loop in NumPy, and a golden-section search."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from attendo.core.errors import InputError
from attendo.evaluation.calibration import NUM_BINS, Calibration, calibrate

VOCAB = 40


def draw(
    num_tokens: int, temperature: float, *, scale: float = 2.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw logits, and labels 1 ... V - 1 from softmax(logits / temperature)."""
    logits = torch.randn(num_tokens, VOCAB) * scale
    logits[:, 0] = -30.0  # padding is never said
    labels = torch.distributions.Categorical(logits=logits / temperature).sample().clamp(min=1)
    return logits, labels


def as_batches(logits: torch.Tensor, labels: torch.Tensor, *shapes: tuple[int, int]):
    """Cut tokens into batches of these shapes, one after the other."""

    def make():
        begin = 0
        for rows, length in shapes:
            end = begin + rows * length
            yield (
                logits[begin:end].reshape(rows, length, VOCAB),
                labels[begin:end].reshape(rows, length),
            )
            begin = end

    return make


def loss_at(logits: torch.Tensor, labels: torch.Tensor, temperature: float) -> float:
    """Compute the log loss a token in float64, as the formula says."""
    scaled = logits.double().numpy() / temperature
    highest = scaled.max(1)
    total = np.log(np.exp(scaled - highest[:, None]).sum(1)) + highest
    return float((total - scaled[np.arange(len(scaled)), labels.numpy()]).mean())


def golden_section(logits: torch.Tensor, labels: torch.Tensor) -> float:
    """Find the best temperature by narrowing, with the loss alone."""
    low, high, share = 0.05, 20.0, (5**0.5 - 1) / 2
    for _ in range(60):
        left, right = high - share * (high - low), low + share * (high - low)
        if loss_at(logits, labels, left) < loss_at(logits, labels, right):
            high = right
        else:
            low = left
    return (low + high) / 2


def ece_by_loop(logits: torch.Tensor, labels: torch.Tensor, temperature: float) -> float:
    """Put each token into its bin by hand."""
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(15)]
    for row, label in zip(logits.double().numpy() / temperature, labels.tolist(), strict=True):
        probabilities = np.exp(row - row.max())
        probabilities /= probabilities.sum()
        confidence = probabilities.max()
        home = next(m for m in range(15) if m / 15 < confidence <= (m + 1) / 15)
        bins[home].append((confidence, int(row.argmax()) == label))
    return sum(
        len(members)
        / len(labels)
        * abs(np.mean([c for c, _ in members]) - np.mean([right for _, right in members]))
        for members in bins
        if members
    )


@pytest.mark.parametrize("temperature", [2.0, 1.0, 0.5])
def test_labels_drawn_at_a_temperature_ask_for_it(temperature):
    logits, labels = draw(12_000, temperature)
    found = calibrate(as_batches(logits, labels, (120, 100)))
    assert found.temperature == pytest.approx(temperature, rel=0.05)
    assert found.num_tokens == 12_000
    assert found.ece_after < 0.02
    if temperature != 1.0:
        assert found.ece_before > 5 * found.ece_after


@pytest.mark.parametrize("temperature", [0.3, 0.8, 1.15, 3.0, 9.0])
def test_the_temperature_is_the_best_to_a_thousandth(temperature):
    logits, labels = draw(600, temperature, scale=1.0 + temperature)
    found = calibrate(as_batches(logits, labels, (6, 100)))
    best = golden_section(logits, labels)
    assert found.temperature == pytest.approx(best, rel=1e-3)
    assert found.nll_before == pytest.approx(loss_at(logits, labels, 1.0), rel=1e-5)
    assert found.nll_after == pytest.approx(loss_at(logits, labels, best), rel=1e-5)
    assert found.nll_after <= found.nll_before


def test_ece_and_bins_equal_a_loop_over_tokens():
    logits, labels = draw(700, 2.0)
    found = calibrate(as_batches(logits, labels, (7, 100)))
    assert found.ece_before == pytest.approx(ece_by_loop(logits, labels, 1.0), abs=1e-6)
    after = ece_by_loop(logits, labels, found.temperature)
    assert found.ece_after == pytest.approx(after, abs=1e-6)
    for bins in (found.bins_before, found.bins_after):
        assert len(bins) == NUM_BINS == 15
        assert sum(one.count for one in bins) == 700
        for folder, one in enumerate(bins):
            assert not one.count or folder / 15 < one.confidence <= (folder + 1) / 15
    right = sum(one.count * one.accuracy for one in found.bins_before)
    assert right == pytest.approx(int(logits.argmax(1).eq(labels).sum()))


def test_a_probability_of_exactly_one_is_in_the_last_bin():
    logits = torch.tensor([[[0.0, 0.0, 200.0], [0.0, 200.0, 0.0]]])
    found = calibrate(lambda: [(logits, torch.tensor([[2, 2]]))])
    assert [one.count for one in found.bins_before] == [0] * 14 + [2]
    assert (found.bins_before[14].confidence, found.bins_before[14].accuracy) == (1.0, 0.5)
    assert found.ece_before == 0.5


def test_padding_does_not_count():
    logits, labels = draw(200, 2.0)
    padded_logits = torch.cat([logits.view(10, 20, VOCAB), torch.randn(10, 5, VOCAB) * 9], 1)
    padded_labels = torch.cat([labels.view(10, 20), torch.zeros(10, 5, dtype=torch.long)], 1)
    plain = calibrate(as_batches(logits, labels, (10, 20)))
    assert calibrate(lambda: [(padded_logits, padded_labels)]) == plain
    other = padded_labels.masked_fill(padded_labels == 0, 77)
    assert calibrate(lambda: [(padded_logits, other)], pad_id=77) == plain


def test_how_batches_are_cut_does_not_matter():
    logits, labels = draw(1200, 1.5)
    whole = calibrate(as_batches(logits, labels, (12, 100)))
    cut = calibrate(as_batches(logits, labels, (1, 1), (3, 33), (1, 500), (60, 10)))
    assert cut.num_tokens == whole.num_tokens == 1200
    assert cut.temperature == pytest.approx(whole.temperature, rel=1e-6)
    assert cut.ece_after == pytest.approx(whole.ece_after, abs=1e-6)
    assert cut.nll_after == pytest.approx(whole.nll_after, rel=1e-6)


@pytest.mark.parametrize(
    "batches", [[], [(torch.randn(2, 3, VOCAB), torch.zeros(2, 3, dtype=torch.long))]]
)
def test_nothing_to_learn_from_leaves_the_temperature_at_one(batches):
    found = calibrate(lambda: batches)
    assert (found.temperature, found.num_tokens) == (1.0, 0)
    assert (found.ece_before, found.ece_after, found.nll_before, found.nll_after) == (0, 0, 0, 0)


def test_logits_all_alike_leave_the_temperature_at_one():
    found = calibrate(lambda: [(torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.long))])
    assert found.temperature == 1.0
    assert found.nll_after == pytest.approx(np.log(4))


def test_all_right_and_all_wrong_stay_within_bounds():
    logits = torch.randn(1, 300, VOCAB)
    right = calibrate(lambda: [(logits, logits.argmax(-1))], pad_id=-1)
    assert right.temperature == pytest.approx(0.05)
    wrong = calibrate(lambda: [(logits, logits.argmin(-1))], pad_id=-1)
    assert wrong.temperature == pytest.approx(20.0)
    assert wrong.nll_after < wrong.nll_before


def test_half_precision_is_computed_in_single():
    logits, labels = draw(500, 2.0)
    half = logits.bfloat16()
    found = calibrate(as_batches(half, labels, (5, 100)))
    assert found == calibrate(as_batches(half.float(), labels, (5, 100)))


def test_a_large_shift_of_the_logits_changes_nothing():
    logits, labels = draw(500, 2.0)
    rounded = (logits * 64).round() / 64  # exact also beyond 1000
    plain = calibrate(as_batches(rounded, labels, (5, 100)))
    assert calibrate(as_batches(rounded + 1000, labels, (5, 100))) == plain


def test_no_gradient_is_kept():
    logits, labels = draw(100, 2.0)
    logits.requires_grad_()
    graphs = []

    def make():
        scaled = logits[None] * 1.0
        graphs.append(scaled.grad_fn)
        yield scaled, labels[None]

    calibrate(make)
    assert set(graphs) == {None}


def test_shapes_that_do_not_fit_are_reported():
    with pytest.raises(InputError, match=r"\(2, 3, 5\) do not fit labels \(2, 4\)"):
        calibrate(lambda: [(torch.zeros(2, 3, 5), torch.ones(2, 4, dtype=torch.long))])


def test_saved_as_json_and_read_again():
    logits, labels = draw(300, 2.0)
    found = calibrate(as_batches(logits, labels, (3, 100)))
    assert Calibration(**json.loads(json.dumps(found.model_dump(mode="json")))) == found
