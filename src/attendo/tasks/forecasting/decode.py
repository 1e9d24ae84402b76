"""Decoding of time series models: greedy labels, label probabilities, values.

The probability of a label at one step depends on the labels of the steps before it. With few labels
all sequences are enumerated, and the marginal probabilities are exact. Otherwise sequences are
sampled, and the probabilities of a step are the mean of what the model predicts along them. That
has less variance than counting sampled labels, and no probability is zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.core.device import accurate_dtype, to_accurate
from attendo.core.errors import AttendoError
from attendo.tasks.forecasting.codec import NUM_SPECIAL_IDS
from attendo.text.tokenizer import START_ID

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.architectures.time_series import SeriesTransformer
    from attendo.model.kv_cache import DecoderState


@torch.inference_mode()
def decode_greedily(model: SeriesTransformer, src: Tensor, horizon: int) -> Tensor:
    """Return the index of the most probable label at each step (B, T), for windows (B, S, F)."""
    state = model.start(model.encode(src))
    last = _start_ids(src.size(0), src)
    label_indices = []
    for _ in range(horizon):
        logits, state = _label_logits(model, last, state)
        label_indices.append(logits.argmax(-1))
        last = label_indices[-1] + NUM_SPECIAL_IDS
    return torch.stack(label_indices, dim=1)


def can_enumerate(num_labels: int, horizon: int, num_samples: int) -> bool:
    """Return whether there are no more sequences than would be sampled.

    The label of the last step has no successor and does not count.

    >>> can_enumerate(2, 7, 200), can_enumerate(3, 7, 200)
    (True, False)
    """
    return bool(num_labels ** (horizon - 1) <= num_samples)


@torch.inference_mode()
def label_probabilities(
    model: SeriesTransformer,
    src: Tensor,
    horizon: int,
    *,
    temperature: float = 1.0,
    uniforms: Tensor | None = None,
) -> Tensor:
    """Return the probability of each label at each step (B, T, L), for windows (B, S, F).

    `uniforms` (B, num_samples, T), random numbers between 0 and 1, choose the sampled labels;
    without them all sequences are enumerated.
    """
    num_sequences = 1 if uniforms is None else uniforms.size(1)
    rows = torch.arange(src.size(0), device=src.device).repeat_interleave(num_sequences)  # (N,)
    state = model.reorder(model.start(model.encode(src)), rows)
    last = _start_ids(len(rows), src)
    weights = torch.full(
        (len(rows), 1), 1 / num_sequences, dtype=accurate_dtype(src.device), device=src.device
    )
    step_probabilities = []
    for position in range(horizon):
        logits, state = _label_logits(model, last, state)
        probabilities = (to_accurate(logits) / temperature).softmax(-1)  # (N, L)
        step_probabilities.append(
            (weights * probabilities).view(src.size(0), -1, probabilities.size(1)).sum(1)
        )
        if uniforms is not None:
            last = (
                _sample_labels(probabilities, uniforms[:, :, position].flatten()) + NUM_SPECIAL_IDS
            )
        elif position + 1 < horizon:  # each sequence continues with each label
            state, last = _branch_by_label(
                model, state, len(probabilities), probabilities.size(1), src
            )
            weights = (weights * probabilities).view(-1, 1)
    return torch.stack(step_probabilities, dim=1)


@torch.inference_mode()
def decode_values(model: SeriesTransformer, src: Tensor, horizon: int) -> Tensor:
    """Return the values of each step (B, T, K) for windows (B, S, F); each is the next input."""
    state = model.start(model.encode(src))
    shape = (src.size(0), model.config.num_targets)
    last = torch.full(shape, torch.nan, dtype=src.dtype, device=src.device)
    values = []
    for _ in range(horizon):
        numbers, state = model.step(last, state)
        last = numbers.to(src.dtype)
        _check_finite(last)
        values.append(last)
    return torch.stack(values, dim=1)


def _start_ids(count: int, src: Tensor) -> Tensor:
    return torch.full((count,), START_ID, dtype=torch.long, device=src.device)


def _label_logits(
    model: SeriesTransformer, last: Tensor, state: DecoderState
) -> tuple[Tensor, DecoderState]:
    """Return the logits of the labels alone: special ids cannot occur within the horizon."""
    logits, state = model.step(last, state)
    _check_finite(logits)
    return logits[:, NUM_SPECIAL_IDS:].float(), state


def _branch_by_label(
    model: SeriesTransformer, state: DecoderState, num_sequences: int, num_labels: int, src: Tensor
) -> tuple[DecoderState, Tensor]:
    sequence_indices = torch.arange(num_sequences, device=src.device).repeat_interleave(num_labels)
    labels = torch.arange(num_labels, device=src.device).repeat(num_sequences)
    return model.reorder(state, sequence_indices), labels + NUM_SPECIAL_IDS


def _sample_labels(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Return a label index for each row of probabilities (N, L), chosen by a number (N,)."""
    cumulative = probabilities.cumsum(1)
    label_indices = (cumulative <= (uniforms * cumulative[:, -1])[:, None]).sum(1)
    return label_indices.clamp(max=probabilities.size(1) - 1)


def _check_finite(output: Tensor) -> None:
    if not bool(output.isfinite().all()):
        raise AttendoError(
            "the model outputs NaN instead of a forecast",
            hint="its training diverged, or its weights are damaged: use an earlier checkpoint",
        )
