"""Memory of attention: keys and values of a cache, and the scores that fused attention avoids."""

from __future__ import annotations

from math import ceil, log10
from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.lessons.blocks import Table
from attendo.lessons.prose import Prose
from attendo.model.attention import attention_scores, scaled_dot_product
from attendo.model.config import TransformerConfig
from attendo.model.kv_cache import LayerCache
from attendo.model.layers import DecoderLayer

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label

    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch22_since_2017")

BYTES_PER_NUMBER = 2
"""Numbers of 16 bits, as large models are served."""
GIB = 2**30
MIB = 2**20
LENGTHS = (512, 4096, 32_768)
COMPARED_LENGTH = 256
SEED = 1


class CacheShape(NamedTuple):
    """What the size of a key-value cache depends on."""

    num_layers: int
    num_heads: int
    num_kv_heads: int
    d_k: int

    def numbers_per_token(self) -> int:
        """Return how many numbers the cache holds for each token: keys and values.

        >>> CacheShape(num_layers=6, num_heads=8, num_kv_heads=8, d_k=64).numbers_per_token()
        6144
        """
        return 2 * self.num_layers * self.num_kv_heads * self.d_k

    def gibibytes(self, length: int) -> float:
        """Return the memory for a text."""
        return self.numbers_per_token() * length * BYTES_PER_NUMBER / GIB


LARGE = CacheShape(num_layers=80, num_heads=64, num_kv_heads=8, d_k=128)
"""Llama 2 70B (Touvron et al., 2023)."""


def measure_numbers_per_token() -> int:
    """Return what the cache of the paper's base model holds per token, counted on its tensors."""
    config = TransformerConfig(vocab_size=1)
    with torch.device("meta"):
        layer = DecoderLayer(config.d_model, config.d_ff, config.num_heads, **config.layer_options)
        x = torch.empty(1, 1, config.d_model)
    keys, values = layer.self_attention.project_key_value(x, x)
    cache = LayerCache.start(keys, values).append(keys, values)
    return (cache.keys.numel() + cache.values.numel()) * config.num_layers


def cache_table(length: int) -> Table:
    """Return the memory of the cache by the number of key-value heads."""
    rows: Rows = []
    for label, num_kv_heads in (
        (prose("multi-head"), LARGE.num_heads),
        (prose("grouped-query"), LARGE.num_kv_heads),
        (prose("multi-query"), 1),
    ):
        shape = LARGE._replace(num_kv_heads=num_kv_heads)
        rows.append([label, num_kv_heads, shape.numbers_per_token(), shape.gibibytes(length)])
    return Table(
        [prose("attention-kind"), prose("kv-heads"), prose("numbers-per-token"), "GiB"],
        rows,
        digits=3,
        title=prose("cache-title", length=length),
    )


def fused_difference() -> float:
    """Return the largest difference between fused attention and the one with weights."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(SEED)
        config = TransformerConfig(vocab_size=1)
        size = (1, config.num_heads, COMPARED_LENGTH, config.d_model // config.num_heads)
        query, key, value = (torch.randn(size) for _ in range(3))
        fused = scaled_dot_product(query, key, value)
        explicit, _ = scaled_dot_product(query, key, value, need_weights=True)
    return float((fused - explicit).abs().max())


def fused_bound() -> float:
    """Return the power of ten above the difference, which is the same on every machine."""
    return float(10.0 ** ceil(log10(max(fused_difference(), torch.finfo(torch.float32).tiny))))


def score_memory_table() -> Table:
    """Return the memory of inputs and scores of one attention of the base model, by length."""
    config = TransformerConfig(vocab_size=1)
    rows: Rows = []
    for length in LENGTHS:
        size = (1, config.num_heads, length, config.d_model // config.num_heads)
        query = torch.empty(size, device="meta")
        scores = attention_scores(query, query)  # (1, H, n, n), without data
        inputs = 4 * query.numel() * BYTES_PER_NUMBER / MIB  # Q, K, V and the output
        rows.append(
            [length, "×".join(map(str, scores.shape[1:])), inputs,
             scores.numel() * BYTES_PER_NUMBER / MIB]
        )  # fmt: skip
    return Table(
        [prose("length"), prose("score-shape"), prose("inputs-memory"), prose("score-memory")],
        rows,
        digits=1,
        title=prose("score-memory-title"),
    )
