"""Path lengths and sequential steps, from gradients (`attendo.inspection.receptive_field`).

The path length is the number of stacked layers until the first input reaches the last output; for
the recurrent layer, where one layer reaches everything, it is the number of states.
"""

from __future__ import annotations

import torch

from attendo.inspection.receptive_field import (
    parallel_steps,
    path_length,
    recurrent_path_length,
    recurrent_steps,
    sequential_operations,
    trace_inputs,
)

from .layers import KERNEL, KINDS, Convolutional, Recurrent

SMALL_D, SMALL_HEADS = 4, 2
"""A small d suffices: neither paths nor steps depend on it."""


def measure_path(key: str, length: int) -> int:
    """Return the maximum path length of a kind of layer."""
    if isinstance(layer := make_small(key), Recurrent):
        return recurrent_path_length(layer.lstm, length)
    return path_length(lambda _: make_small(key), length, SMALL_D)


def measure_dilated_path(length: int) -> int:
    """Return it for causal convolutions with dilation 1, k, k^2, ..., as in ByteNet."""

    def make(depth: int) -> torch.nn.Module:
        return Convolutional(SMALL_D, dilation=KERNEL**depth, is_causal=True).double()

    return path_length(make, length, SMALL_D)


def measure_sequential(key: str, length: int) -> int:
    """Return the number of sequential steps of one layer."""
    layer = make_small(key)
    x = torch.randn(1, length, SMALL_D, dtype=torch.float64)
    step = (
        recurrent_steps(layer.lstm, x) if isinstance(layer, Recurrent) else parallel_steps(layer, x)
    )
    return sequential_operations(step, length)


def count_seen(key: str, length: int) -> int:
    """Return the number of inputs that the middle output of one layer depends on."""
    middle = torch.arange(length) == length // 2
    return int(trace_inputs(make_small(key), middle, SMALL_D).sum())


def make_small(key: str) -> torch.nn.Module:
    """Return a small layer of this kind in float64."""
    return KINDS[key].make(SMALL_D, SMALL_HEADS).double()
