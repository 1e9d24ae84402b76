"""What training a batch needs, and what the device could do: their share is the utilisation.

Counted are the matrix products of section 3 on real tokens, a multiplication and an addition each,
once forward and twice backward. Padding, recomputation and everything that is no matrix product
count nothing, so that no path gains by doing more than it must.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from attendo.core.config import split_heads_evenly

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attendo.core.config import TransformerConfig

FORMULA = (
    "6 x the multiplications of a forward pass on real tokens (projections, feed-forward, "
    "attention over the pairs that the masks allow, output): 2 operations each, once forward and "
    "twice backward"
)
GPU_SIDES, CPU_SIDES = (4096, 8192), (1024, 2048)
"""Sides of the square matrices; the best one is the ceiling."""
SECONDS = 0.5
NUM_AT_ONCE = 10


def count_operations(
    config: TransformerConfig, src_lengths: NDArray[np.integer], tgt_lengths: NDArray[np.integer]
) -> int:
    """Count the floating-point operations of one training step on pairs of these lengths."""
    src, tgt = src_lengths.astype("int64"), tgt_lengths.astype("int64")
    num_src, num_tgt = int(src.sum()), int(tgt.sum())
    width, d_ff = config.d_model, config.d_ff
    size = split_heads_evenly(config.d_model, config.num_heads)
    keys, values = config.num_heads * (config.d_k or size), config.num_heads * (config.d_v or size)
    num_decoder_layers = config.num_decoder_layers or config.num_layers

    into, out = width * (2 * keys + values), values * width  # W_Q, W_K, W_V; W_O
    forward = config.num_layers * (
        num_src * (into + out + 2 * width * d_ff)
        + int((src * src).sum()) * (keys + values)  # Q K^T and the weighted sum of values
    )
    allowed = int((tgt * (tgt + 1) // 2).sum()) + int((tgt * src).sum())  # causal self; cross
    forward += num_decoder_layers * (
        num_tgt * (into + out + width * keys + out + 2 * width * d_ff)
        + num_src * width * (keys + values)  # the memory's keys and values
        + allowed * (keys + values)
    )
    forward += num_tgt * width * (config.tgt_vocab_size or config.vocab_size)
    return 6 * forward


def measure_ceiling(device: torch.device, precision: torch.dtype) -> float:
    """Multiply large matrices; give the operations a second of the best size."""
    sides = GPU_SIDES if device.type == "cuda" else CPU_SIDES
    return max(_time_product(side, device, precision) for side in sides)


def _time_product(side: int, device: torch.device, precision: torch.dtype) -> float:
    left, right = (torch.randn(side, side, device=device, dtype=precision) for _ in range(2))
    at_once = NUM_AT_ONCE if device.type == "cuda" else 1  # so that launches do not count
    best, begin = float("inf"), time.perf_counter()
    for _ in range(3):
        left @ right
    while best == float("inf") or time.perf_counter() - begin < SECONDS:
        synchronise(device)
        start = time.perf_counter()
        for _ in range(at_once):
            left @ right
        synchronise(device)
        best = min(best, (time.perf_counter() - start) / at_once)
    return 2 * side**3 / best


def synchronise(device: torch.device) -> None:
    """Wait until the device has done what it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
