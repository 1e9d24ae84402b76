from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attendo import Transformer
from attendo.bench.config import Shape
from attendo.bench.flops import (
    SearchCost,
    count_operations,
    measure_peak_flops,
    measure_read_bandwidth,
)
from attendo.model.config import TransformerConfig


def test_base_by_hand():
    """Per pair of 32 + 32 tokens, as one would count it with the paper at hand."""
    d, f, vocab, n = 512, 2048, 37_000, 32
    encoder = 6 * (n * (4 * d * d + 2 * d * f) + 2 * n * n * d)
    causal, cross = n * (n + 1) // 2, n * n
    decoder = 6 * (n * (8 * d * d + 2 * d * f) + 2 * (causal + cross) * d)
    expected = 6 * (encoder + decoder + n * d * vocab)
    lengths = np.full(1, n)
    found = count_operations(TransformerConfig(vocab_size=vocab), lengths, lengths)
    assert found == expected
    assert found / n == pytest.approx(380.9e6, rel=1e-3)  # a target token
    assert count_operations(TransformerConfig(vocab_size=vocab), *[np.full(7, n)] * 2) == 7 * found


@pytest.mark.parametrize("options", [{}, {"num_decoder_layers": 1}, {"d_k": 3, "d_v": 6}])
def test_equals_the_counter_of_torch(options):
    """It counts the whole square of the decoder's self-attention, we what the mask allows."""
    model = Transformer(50, d_model=16, d_ff=40, num_heads=4, num_layers=2, **options)
    src, tgt = 7, 5
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.explain(torch.randint(1, 50, (1, src)), torch.randint(1, 50, (1, tgt)))
    width = 4 * ((options.get("d_k") or 4) + (options.get("d_v") or 4))
    hidden = (tgt * tgt - tgt * (tgt + 1) // 2) * width * (options.get("num_decoder_layers") or 2)
    found = count_operations(model.config, np.array([src]), np.array([tgt]))
    assert found == 3 * (counter.get_total_flops() - 2 * hidden)


@pytest.mark.parametrize("options", [{}, {"num_decoder_layers": 1}, {"d_k": 3, "d_v": 6}])
@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_search_by_hand(options, beam_size):
    model = Transformer(50, d_model=16, d_ff=40, num_heads=4, num_layers=2, **options)
    num, src, tgt = shape = Shape(3, 7, 5)
    found = SearchCost.from_model(model, shape, beam_size, torch.bfloat16)
    pair = np.array([src]), np.array([tgt])
    reading = count_operations(model.config, pair[0], np.array([0])) // 3  # forward alone
    writing = count_operations(model.config, *pair) // 3 - reading
    assert found.num_operations == num * (reading + beam_size * writing)
    layers = model.decoder.layers
    cross = [layer.cross_attention for layer in layers]
    once = [
        weight for one in cross for part in (one.key, one.value) for weight in part.parameters()
    ]
    weights = sum(weight.numel() for weight in model.decoder.parameters()) + 50 * 16
    weights -= sum(weight.numel() for weight in once)
    assert found.weight_bytes == 2 * weights
    kept = sum(num * (src + beam_size * (step + 1)) for step in range(tgt))
    width = 4 * ((options.get("d_k") or 4) + (options.get("d_v") or 4))
    assert found.num_bytes == 2 * (tgt * weights + len(layers) * kept * width)


def test_the_slower_of_two_ways_is_the_limit():
    search = SearchCost(num_operations=100, weight_bytes=10, num_bytes=60)
    assert search.min_seconds(peak_flops=10.0, read_bandwidth=10.0) == 10.0
    assert search.min_seconds(peak_flops=100.0, read_bandwidth=10.0) == 6.0


def test_long_corpora_do_not_overflow():
    lengths = np.full(100_000, 250, dtype=np.int32)
    config = TransformerConfig(vocab_size=37_000)
    one = count_operations(config, lengths[:1], lengths[:1])
    assert count_operations(config, lengths, lengths) == 100_000 * one


def test_peak_flops_is_positive(monkeypatch):
    monkeypatch.setattr("attendo.bench.flops.CPU_MATRIX_SIZES", (64, 128))
    monkeypatch.setattr("attendo.bench.flops.MIN_SECONDS", 0.0)
    assert 1e7 < measure_peak_flops(torch.device("cpu"), torch.float32) < 1e14
    assert 1e5 < measure_read_bandwidth(torch.device("cpu"), 100_000) < 1e14
