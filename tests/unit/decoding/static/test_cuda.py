"""The fast search on a GPU, with its graphs. Skipped by name where there is none."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attendo import Transformer
from attendo.decoding.beam import beam
from attendo.decoding.greedy import greedy
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.static.pool import GRAPHS_VARIABLE, BufferPool
from attendo.decoding.static.search import search_static
from attendo.kernels.tf32 import use_tf32

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
SYMBOLS = SpecialIds(start_id=2, end_id=3, pad_id=0, unk_id=1)
VOCAB = 5000


def make_model(*, end: float = 2.0, **options) -> Transformer:
    torch.manual_seed(4)
    sizes = {"d_model": 64, "d_ff": 128, "num_heads": 4, "num_layers": 2, "tie_embeddings": "none"}
    model = Transformer(VOCAB, **{**sizes, **options}).eval()
    for name, parameter in model.named_parameters():
        parameter.data.mul_(2.0)
        if name.endswith("bias"):
            parameter.data.add_(torch.randn_like(parameter) * 0.3)
    last = model.decoder.final_norm
    if not isinstance(last, nn.LayerNorm):
        last = model.decoder.layers[-1].feed_forward_add.norm
    last.bias.data.fill_(1.0)  # at a right angle to what a layer norm gives: a bias
    rows = model.output.weight.data
    rows -= rows.mean(1, keepdim=True)
    rows[3] += end / 64
    return model


def make_sources(seed: int, num_sentences: int) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, 20, (num_sentences, 1), generator=draw)
    src_ids = torch.randint(4, VOCAB, (num_sentences, 20), generator=draw)
    return src_ids.masked_fill(torch.arange(20) >= lengths, 0)


def assert_same(found, right) -> None:
    for mine, its in zip(found, right, strict=True):
        assert [one.ids for one in mine.hypotheses] == [one.ids for one in its.hypotheses]
        assert [one.score for one in mine.hypotheses] == pytest.approx(
            [one.score for one in its.hypotheses], abs=1e-3
        )


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("kind", [{}, {"norm": "pre"}, {"attention_width": 5, "bias": False}])
def test_finds_on_the_gpu_what_the_plain_search_finds_on_the_cpu(kind, beam_size):
    """Several searches: kernel by kernel, while graphs are recorded, and played back."""
    model = make_model(**kind).double()
    there = make_model(**kind).double().cuda()
    for seed in range(6):
        src_ids = make_sources(seed, (7, 8, 5)[seed % 3])
        options = DecodingOptions(
            beam_size=beam_size,
            n_best=min(2, beam_size),
            min_length=seed % 2,
            max_extra_tokens=15 - seed,
        )
        plain = greedy if beam_size == 1 else beam
        found = search_static(there, src_ids.cuda(), SYMBOLS, options)
        assert_same(found, plain(model, src_ids, SYMBOLS, options))
    played = [state.graphs for state in BufferPool.for_model(there).states.values()]
    assert all(one.is_enabled for one in played)
    assert any(graph is not None for one in played for graph in one.captured.values())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("beam_size", [1, 4])
def test_graphs_change_no_bit(monkeypatch, dtype, beam_size):
    options = DecodingOptions(beam_size=beam_size, max_extra_tokens=12)
    sources = [make_sources(seed, 9).cuda() for seed in range(3)]
    model = make_model().to("cuda", dtype)
    with_graphs = [search_static(model, one, SYMBOLS, options) for one in (*sources, *sources)]
    monkeypatch.setenv(GRAPHS_VARIABLE, "0")
    model.decoding_cache.clear()
    without = [search_static(model, one, SYMBOLS, options) for one in sources]
    assert with_graphs[3:] == without


def test_changed_weights_are_noticed():
    model, src_ids = make_model().cuda(), make_sources(1, 4).cuda()
    options = DecodingOptions(max_extra_tokens=8)
    for factor in (1.0, 1.02, -1.0):
        for parameter in model.parameters():
            parameter.data.mul_(factor)
        for _ in range(3):
            found = search_static(model, src_ids, SYMBOLS, options)
        assert_same(found, beam(model, src_ids, SYMBOLS, options))


def test_graphs_of_tf32_and_of_all_bits_are_kept_apart():
    model, src_ids = make_model().cuda(), make_sources(1, 4).cuda()
    options = DecodingOptions(max_extra_tokens=8)

    def run() -> list[list[float]]:
        found = [search_static(model, src_ids, SYMBOLS, options) for _ in range(3)]
        assert found[1] == found[2]
        return [[one.score for one in result.hypotheses] for result in found[2]]

    exact = run()
    with use_tf32():
        rounded = run()
    assert run() == exact
    assert rounded != exact
