"""What a batch needs, and what the device could do: their share is the utilisation.

Counted are the matrix products of section 3 on real tokens, a multiplication and an addition each,
in training once forward and twice backward. Padding, recomputation and everything that is no matrix
product count nothing, so that no path gains by doing more than it must. Decoding also reads all
weights of the decoder for each token, and what it has kept of earlier ones: with few sentences that
is what takes the time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from attendo.model.config import split_heads_evenly

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor

    from attendo.bench.config import Shape
    from attendo.model.config import TransformerConfig
    from attendo.model.transformer import Transformer

FORMULA = (
    "6 x the multiplications of a forward pass on real tokens (projections, feed-forward, "
    "attention over the pairs that the masks allow, output): 2 operations each, once forward and "
    "twice backward"
)
GPU_MATRIX_SIZES, CPU_MATRIX_SIZES = (4096, 8192), (1024, 2048)
"""Sides of the square matrices; the best one is the ceiling."""
MIN_SECONDS = 0.5
CALLS_PER_SYNC = 10


class Widths(NamedTuple):
    """How wide keys and values of all heads are, and how many decoder layers keep them."""

    keys: int
    values: int
    num_decoder_layers: int

    @classmethod
    def from_config(cls, config: TransformerConfig) -> Widths:
        """Find them."""
        size = split_heads_evenly(config.d_model, config.num_heads)
        keys, values = (
            config.num_heads * (head_size or size) for head_size in (config.d_k, config.d_v)
        )
        return cls(keys, values, config.num_decoder_layers or config.num_layers)


def count_operations(
    config: TransformerConfig, src_lengths: NDArray[np.integer], tgt_lengths: NDArray[np.integer]
) -> int:
    """Count the floating-point operations of one training step on pairs of these lengths."""
    src, tgt = src_lengths.astype("int64"), tgt_lengths.astype("int64")
    return 6 * (_encoder_multiplications(config, src) + _decoder_multiplications(config, src, tgt))


def _encoder_multiplications(config: TransformerConfig, src: NDArray[np.int64]) -> int:
    """Count the multiplications of the encoder, and of the memory's keys and values."""
    keys, values, num_decoder_layers = Widths.from_config(config)
    num_src, width = int(src.sum()), config.d_model
    layer = (
        num_src * (width * (2 * keys + values) + values * width + 2 * width * config.d_ff)
        + int((src * src).sum()) * (keys + values)  # Q K^T and the weighted sum of values
    )
    return config.num_layers * layer + num_decoder_layers * num_src * width * (keys + values)


def _decoder_multiplications(
    config: TransformerConfig, src: NDArray[np.int64], tgt: NDArray[np.int64]
) -> int:
    """Count the multiplications of the decoder, and of the output over the vocabulary."""
    keys, values, num_decoder_layers = Widths.from_config(config)
    num_tgt, width = int(tgt.sum()), config.d_model
    into, out = width * (2 * keys + values), values * width  # W_Q, W_K, W_V; W_O
    allowed = int((tgt * (tgt + 1) // 2).sum()) + int((tgt * src).sum())  # causal self; cross
    layer = num_tgt * (into + out + width * keys + out + 2 * width * config.d_ff) + allowed * (
        keys + values
    )
    vocabulary = num_tgt * width * (config.tgt_vocab_size or config.vocab_size)
    return num_decoder_layers * layer + vocabulary


class SearchCost(NamedTuple):
    """What a search needs: operations, and bytes from memory."""

    num_operations: int
    weight_bytes: int
    """The weights that each step reads."""
    num_bytes: int
    """Over all steps, with the keys and values of earlier tokens and of the source."""

    @classmethod
    def from_model(
        cls, model: Transformer, shape: Shape, beam_size: int, precision: torch.dtype
    ) -> SearchCost:
        """Count for sentences of one length, every hypothesis carried from the first step on."""
        config, (num, src, tgt) = model.config, shape
        lengths = np.full(num, src), np.full(num, tgt)
        writing = _decoder_multiplications(config, *lengths)
        operations = 2 * (_encoder_multiplications(config, lengths[0]) + beam_size * writing)
        used_once = ("cross_attention.key.", "cross_attention.value.")
        weights = model.output.weight.numel() + sum(
            weight.numel()
            for name, weight in model.decoder.named_parameters()
            if not any(part in name for part in used_once)
        )
        keys, values, num_layers = Widths.from_config(config)
        num_attended = num * (tgt * src + beam_size * tgt * (tgt + 1) // 2)  # by all steps together
        cache_values = num_layers * (keys + values) * num_attended
        return cls(
            operations,
            weights * precision.itemsize,
            (tgt * weights + cache_values) * precision.itemsize,
        )

    def min_seconds(self, peak_flops: float, read_bandwidth: float) -> float:
        """Give the time below which none gets, by operations and bytes that are done a second."""
        return max(self.num_operations / peak_flops, self.num_bytes / read_bandwidth)


def measure_peak_flops(device: torch.device, precision: torch.dtype) -> float:
    """Multiply large matrices; give the operations a second of the best size."""
    sides = GPU_MATRIX_SIZES if device.type == "cuda" else CPU_MATRIX_SIZES
    return max(_time_product(side, device, precision) for side in sides)


def _time_product(side: int, device: torch.device, precision: torch.dtype) -> float:
    left, right = (torch.randn(side, side, device=device, dtype=precision) for _ in range(2))
    return 2 * side**3 / _time_best(lambda: left @ right, device)


def _time_best(run: Callable[[], Tensor], device: torch.device) -> float:
    """Give the seconds of the fastest call."""
    at_once = CALLS_PER_SYNC if device.type == "cuda" else 1  # so that launches do not count
    best, begin = float("inf"), time.perf_counter()
    for _ in range(3):
        run()
    while best == float("inf") or time.perf_counter() - begin < MIN_SECONDS:
        synchronize(device)
        start = time.perf_counter()
        for _ in range(at_once):
            run()
        synchronize(device)
        best = min(best, (time.perf_counter() - start) / at_once)
    return best


def measure_read_bandwidth(device: torch.device, num_bytes: int) -> float:
    """Read as many bytes again and again, as a search reads its weights; give bytes a second."""
    buffer = torch.ones(max(1, num_bytes // 4), device=device)
    seconds = _time_best(buffer.sum, device)
    return 4 * buffer.numel() / seconds


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
