"""From windows to what comes next, by the contract alone: labels, chances of labels, numbers.

The chance of a label at one step of the horizon depends on what was said at the steps before it.
Where there are few labels every sequence is walked, and the chances are exact. Else some sequences
are drawn, and each step's chances are the mean of what the model gives along them: that wavers less
than counting what was drawn, and no label's chance is ever zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.core.errors import AttendoError
from attendo.data.series.codec import NUM_SPECIALS
from attendo.data.tokenizer import START_ID

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.model.cache import DecoderState
    from attendo.model.series import SeriesTransformer


@torch.inference_mode()
def walk_greedily(model: SeriesTransformer, src: Tensor, horizon: int) -> Tensor:
    """Say the likeliest label at each step; windows (B, S, F) give places of labels (B, T)."""
    state = model.start(model.encode(src))
    last = _start(src.size(0), src)
    said = []
    for _ in range(horizon):
        logits, state = _step(model, last, state)
        said.append(logits.argmax(-1))
        last = said[-1] + NUM_SPECIALS
    return torch.stack(said, dim=1)


def is_countable(num_labels: int, horizon: int, num_samples: int) -> bool:
    """Tell whether all sequences that matter are no more than those that would be drawn.

    The last step's label is not walked on from.

    >>> is_countable(2, 7, 200), is_countable(3, 7, 200)
    (True, False)
    """
    return bool(num_labels ** (horizon - 1) <= num_samples)


@torch.inference_mode()
def find_chances(
    model: SeriesTransformer,
    src: Tensor,
    horizon: int,
    *,
    temperature: float = 1.0,
    draws: Tensor | None = None,
) -> Tensor:
    """Give the chance of each label at each step: windows (B, S, F) give (B, T, L).

    `draws` (B, num_samples, T), numbers between 0 and 1, decide each draw; without them every
    sequence is walked.
    """
    num_lanes = 1 if draws is None else draws.size(1)
    rows = torch.arange(src.size(0), device=src.device).repeat_interleave(num_lanes)  # (N,)
    state = model.reorder(model.start(model.encode(src)), rows)
    last = _start(len(rows), src)
    weights = torch.full((len(rows), 1), 1 / num_lanes, dtype=torch.float64, device=src.device)
    found = []
    for position in range(horizon):
        logits, state = _step(model, last, state)
        chances = (logits.double() / temperature).softmax(-1)  # (N, L)
        found.append((weights * chances).view(src.size(0), -1, chances.size(1)).sum(1))
        if draws is not None:
            last = _draw(chances, draws[:, :, position].flatten()) + NUM_SPECIALS
        elif position + 1 < horizon:  # every lane goes on by every label
            state, last = _branch(model, state, len(chances), chances.size(1), src)
            weights = (weights * chances).view(-1, 1)
    return torch.stack(found, dim=1)


@torch.inference_mode()
def walk_numbers(model: SeriesTransformer, src: Tensor, horizon: int) -> Tensor:
    """Say the numbers of each step, each fed back for the next: (B, S, F) give (B, T, K)."""
    state = model.start(model.encode(src))
    shape = (src.size(0), model.config.num_targets)
    last = torch.full(shape, torch.nan, dtype=src.dtype, device=src.device)
    said = []
    for _ in range(horizon):
        numbers, state = model.step(last, state)
        last = numbers.to(src.dtype)
        _refuse_broken(last)
        said.append(last)
    return torch.stack(said, dim=1)


def _start(count: int, src: Tensor) -> Tensor:
    return torch.full((count,), START_ID, dtype=torch.long, device=src.device)


def _step(
    model: SeriesTransformer, last: Tensor, state: DecoderState
) -> tuple[Tensor, DecoderState]:
    """Give the logits of the labels alone: within the horizon nothing else may be said."""
    logits, state = model.step(last, state)
    _refuse_broken(logits)
    return logits[:, NUM_SPECIALS:].float(), state


def _branch(
    model: SeriesTransformer, state: DecoderState, num_lanes: int, num_labels: int, src: Tensor
) -> tuple[DecoderState, Tensor]:
    lanes = torch.arange(num_lanes, device=src.device).repeat_interleave(num_labels)
    labels = torch.arange(num_labels, device=src.device).repeat(num_lanes)
    return model.reorder(state, lanes), labels + NUM_SPECIALS


def _draw(chances: Tensor, numbers: Tensor) -> Tensor:
    """Draw a place for each row of chances (N, L) by its number (N,)."""
    heaps = chances.cumsum(1)
    places = (heaps <= (numbers * heaps[:, -1])[:, None]).sum(1)
    return places.clamp(max=chances.size(1) - 1)


def _refuse_broken(said: Tensor) -> None:
    if not bool(said.isfinite().all()):
        raise AttendoError(
            "the model gives NaN in place of a forecast",
            remedy="its training has diverged, or its weights are damaged: use an earlier "
            "checkpoint",
        )
