"""Paths and steps of the four kinds, by gradients (`attendo.inspection.receptive_field`), at a small d.

A path is counted in layers that must be stacked until the first input reaches the last output, and
in states for the recurrent layer, where one layer reaches everything.
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
"""Neither paths nor steps depend on d."""


def measure_path(key: str, length: int) -> int:
    """Give the length of the longest path of a kind."""
    if isinstance(layer := make_small(key), Recurrent):
        return recurrent_path_length(layer.lstm, length)
    return path_length(lambda _: make_small(key), length, SMALL_D)


def measure_dilated_path(length: int) -> int:
    """Give it for convolutions with gaps of 1, k, k^2, ... that look back, as ByteNet's decoder."""

    def make(depth: int) -> torch.nn.Module:
        return Convolutional(SMALL_D, dilation=KERNEL**depth, is_causal=True).double()

    return path_length(make, length, SMALL_D)


def measure_sequential(key: str, length: int) -> int:
    """Give how many outputs of one layer must be made one after the other."""
    layer = make_small(key)
    x = torch.randn(1, length, SMALL_D, dtype=torch.float64)
    step = (
        recurrent_steps(layer.lstm, x) if isinstance(layer, Recurrent) else parallel_steps(layer, x)
    )
    return sequential_operations(step, length)


def count_seen(key: str, length: int) -> int:
    """Give how many inputs the output in the middle of one layer sees."""
    middle = torch.arange(length) == length // 2
    return int(trace_inputs(make_small(key), middle, SMALL_D).sum())


def make_small(key: str) -> torch.nn.Module:
    """Make a layer of this kind in float64."""
    return KINDS[key].make(SMALL_D, SMALL_HEADS).double()
