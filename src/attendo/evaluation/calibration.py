"""Calibration of a model's probabilities by temperature scaling.

One number T divides all logits so that the log loss on dev is minimal (Guo et al. 2017, "On
Calibration of Modern Neural Networks"); the most likely token stays the same. The loss is convex in
1/T, so Newton's method finds the minimum in a few passes over dev that keep only sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.core.config import Config
from attendo.core.device import to_accurate
from attendo.core.errors import InputError
from attendo.translator.quality import QualityTable  # noqa: TC001 - pydantic reads the annotations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torch import Tensor

    Batches = Callable[[], Iterable[tuple[Tensor, Tensor]]]

NUM_BINS = 15
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.05, 20.0
"""Bounds of the temperature: it tends to 0 if all of dev is correct and to infinity if none is."""
MAX_NEWTON_STEPS, TOLERANCE = 16, 1e-4
CHUNK_TOKENS = 512
"""Tokens processed together; memory holds one copy of their logits."""


class ReliabilityBin(Config):
    """The tokens whose probability fell into one of fifteen bins, and their accuracy."""

    count: int
    confidence: float
    """Mean probability; 0 in an empty bin."""
    accuracy: float


class Calibration(Config):
    """The temperature fitted on dev and its effect; `model_dump(mode="json")` saves it."""

    temperature: float
    ece_before: float
    """Expected calibration error: mean distance of confidence and accuracy, from 0 to 1."""
    ece_after: float
    nll_before: float
    """Log loss per token."""
    nll_after: float
    num_tokens: int
    bins_before: tuple[ReliabilityBin, ...]
    bins_after: tuple[ReliabilityBin, ...]
    quality: QualityTable | None = None
    """From the score of a translation to its quality; None if dev is too small."""


@torch.no_grad()
def calibrate(make_batches: Batches, *, pad_id: int = 0) -> Calibration:
    """Fit the temperature on a dev set that can be iterated several times.

    Each call of `make_batches` yields the same logits (B, T, V) and labels (B, T); labels equal to
    `pad_id` are ignored. Without any token the temperature is 1.
    """
    temperature = _fit_temperature(make_batches, pad_id)
    before, after = _accumulate_reliability(make_batches, pad_id, (1.0, temperature))
    if not after.log_loss < before.log_loss:  # constant logits fit every temperature
        temperature, after = 1.0, before
    return Calibration(
        temperature=temperature,
        ece_before=before.ece,
        ece_after=after.ece,
        nll_before=before.nll,
        nll_after=after.nll,
        num_tokens=before.num_tokens,
        bins_before=before.to_bins(),
        bins_after=after.to_bins(),
    )


def _fit_temperature(make_batches: Batches, pad_id: int) -> float:
    """Return the root of the log loss's derivative by the inverse temperature, by Newton's method.

    The sign of the derivative narrows the range; a step that leaves it is clipped.
    """
    low, high = bounds = 1 / MAX_TEMPERATURE, 1 / MIN_TEMPERATURE
    inverse = 1.0
    for _ in range(MAX_NEWTON_STEPS):
        derivative, curvature = _loss_derivatives(make_batches, pad_id, inverse)
        low, high = (inverse, high) if derivative < 0 else (low, inverse)
        candidate = inverse - derivative / curvature if curvature > 0 else inverse
        if not low < candidate < high:
            candidate = low if candidate <= low else high
            if candidate not in bounds:
                candidate = (low * high) ** 0.5
        if abs(candidate / inverse - 1) < TOLERANCE:
            break
        inverse = candidate
    return 1 / inverse


def _loss_derivatives(make_batches: Batches, pad_id: int, inverse: float) -> tuple[float, float]:
    """Return the sums of the log loss's first and second derivative by 1/T.

    The first is the mean logit minus the label's, the second the variance of the logits.
    """
    derivative = curvature = 0.0
    for logits, labels in _token_chunks(make_batches(), pad_id):
        probabilities = (logits * inverse).softmax(-1)
        mean = torch.einsum("nv,nv->n", probabilities, logits)
        square = torch.einsum("nv,nv->n", probabilities, logits.square())
        label = logits.gather(1, labels[:, None]).squeeze(1)
        derivative += float(to_accurate(mean - label).sum())
        curvature += float(to_accurate(square - mean.square()).sum())
    return derivative, curvature


class _ReliabilitySums(NamedTuple):
    """Sums over dev at one temperature."""

    log_loss: Tensor
    counts: Tensor  # (NUM_BINS,), as the next two
    confidences: Tensor
    num_correct: Tensor

    @classmethod
    def zero(cls) -> _ReliabilitySums:
        return cls(torch.zeros((), dtype=torch.float64), *torch.zeros(3, NUM_BINS).double())

    @property
    def num_tokens(self) -> int:
        return int(self.counts.sum())

    @property
    def nll(self) -> float:
        return float(self.log_loss) / max(1, self.num_tokens)

    @property
    def ece(self) -> float:
        gaps = (self.num_correct - self.confidences).abs()  # of the means, times the counts
        return float(gaps.sum()) / max(1, self.num_tokens)

    def to_bins(self) -> tuple[ReliabilityBin, ...]:
        parts = (self.counts, self.confidences, self.num_correct)
        return tuple(
            ReliabilityBin(
                count=int(count),
                confidence=confidence / max(1.0, count),
                accuracy=num_correct / max(1.0, count),
            )
            for count, confidence, num_correct in zip(*(p.tolist() for p in parts), strict=True)
        )


def _accumulate_reliability(
    make_batches: Batches, pad_id: int, temperatures: tuple[float, ...]
) -> tuple[_ReliabilitySums, ...]:
    """Return the sums of loss and reliability at each temperature, in one pass."""
    totals = tuple(_ReliabilitySums.zero() for _ in temperatures)
    for logits, labels in _token_chunks(make_batches(), pad_id):
        is_correct = logits.argmax(-1).eq(labels)
        for sums, temperature in zip(totals, temperatures, strict=True):
            log_probabilities = (logits / temperature).log_softmax(-1)
            confidence = to_accurate(log_probabilities.amax(-1).exp())
            bin_index = (confidence * NUM_BINS).ceil().long().clamp(1, NUM_BINS) - 1
            label_log_probs = log_probabilities.gather(1, labels[:, None])
            sums.log_loss.sub_(to_accurate(label_log_probs).sum().cpu().double())
            for total, values in zip(
                sums[1:],
                (torch.ones_like(confidence), confidence, to_accurate(is_correct)),
                strict=True,
            ):
                total.index_add_(0, bin_index.cpu(), values.cpu().double())
    return totals


def _token_chunks(
    batches: Iterable[tuple[Tensor, Tensor]], pad_id: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield chunks of the labeled tokens: logits (N, V) minus their maximum, labels (N)."""
    for logits, labels in batches:
        if logits.shape[:-1] != labels.shape:
            reason = f"logits {tuple(logits.shape)} do not fit labels {tuple(labels.shape)}"
            raise InputError(reason, hint="pass logits (B, T, V) with labels (B, T)")
        flat, flat_labels = logits.flatten(0, -2), labels.flatten()
        for piece in flat_labels.ne(pad_id).nonzero().squeeze(1).split(CHUNK_TOKENS):
            chunk_logits = flat[piece].float()
            yield chunk_logits - chunk_logits.amax(-1, keepdim=True), flat_labels[piece]
