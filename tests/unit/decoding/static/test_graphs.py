"""Graphs without a GPU: what a step did is written down, and done again without any Python.

A CUDA graph plays the same kernels back on the same addresses. So does this, with the operations
that PyTorch was asked for; and it refuses what would make the host wait, or bake in what the host
knew.
"""

from __future__ import annotations

import pytest
import torch
from support.recorded_graph import Recording

from attendo import Transformer
from attendo.decoding.beam import beam
from attendo.decoding.greedy import greedy
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.static.beam import StaticBeam
from attendo.decoding.static.cuda_graphs import CudaGraphs
from attendo.decoding.static.pool import BufferPool, round_to_bucket
from attendo.decoding.static.search import search_static

SYMBOLS = SpecialIds(start_id=2, end_id=3, pad_id=0, unk_id=1)


@pytest.fixture
def recordings(monkeypatch) -> list[Recording]:
    """Let graphs be on, here; gives those that are made."""
    made = []

    def record(self, key, work):
        recording = self.captured[key] = Recording()
        made.append(recording)
        with recording:
            work()
        return recording

    original = BufferPool.__init__

    def switch_on(self, model, *, reuse) -> None:
        original(self, model, reuse=reuse)
        self.uses_graphs = True

    monkeypatch.setattr(BufferPool, "__init__", switch_on)
    monkeypatch.setattr(CudaGraphs, "_capture", record)
    return made


def make_model(**options) -> Transformer:
    torch.manual_seed(4)
    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 2, "tie_embeddings": "none"}
    model = Transformer(16, **{**sizes, **options}).eval()
    for name, parameter in model.named_parameters():
        parameter.data.mul_(1.5)
        if name.endswith("bias"):
            parameter.data.add_(torch.randn_like(parameter) * 0.3)
    return model


@pytest.mark.parametrize("kind", [{}, {"norm": "pre", "attention_width": 4}])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_played_back_steps_find_the_same(recordings, beam_size, kind):
    """Another batch, other limits, another penalty, other weights: all of it through tensors."""
    model = make_model(**kind)
    for seed in range(14):
        torch.manual_seed(seed)
        src_ids = torch.randint(3, 16, (5 + seed % 2, 6))
        src_ids[1, 2:] = 0
        src_ids[3, 4:] = 0
        options = DecodingOptions(
            beam_size=beam_size,
            n_best=min(2, beam_size),
            alpha=(0.6, 1.0, -0.5)[seed % 3],
            min_length=seed % 3,
            max_extra_tokens=22 - seed,
        )
        plain = greedy if beam_size == 1 else beam
        if seed % 4 == 3:
            for parameter in model.parameters():
                parameter.data.mul_(1.01)
        right = plain(model, src_ids, SYMBOLS, options)
        found = search_static(model, src_ids, SYMBOLS, options, reuse_buffers=True)
        for one, other in zip(found, right, strict=True):
            assert [h.ids for h in one.hypotheses] == [h.ids for h in other.hypotheses]
            assert [h.score for h in one.hypotheses] == pytest.approx(
                [h.score for h in other.hypotheses], abs=1e-4
            )
    assert len(recordings) > 3
    assert not any(one.is_new for one in recordings)


def test_a_step_that_cannot_be_recorded_is_done_anyway(monkeypatch, caplog):
    class Refuses:
        def __init__(self, *_args, **_options) -> None:
            raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(torch.cuda, "graph", Refuses)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    done = []
    runs = CudaGraphs()
    for number in range(4):
        runs.prepare("key", lambda number=number: done.append(number))()
    assert done == [0, 1, 2, 3]
    assert not runs.is_enabled
    assert "no CUDA graph" in caplog.text


def test_states_are_found_again_and_the_oldest_go(monkeypatch):
    model = make_model()
    options = DecodingOptions(beam_size=2, max_extra_tokens=3)

    def run(num_sentences: int) -> None:
        src_ids = torch.randint(4, 16, (num_sentences, 5))
        search_static(model, src_ids, SYMBOLS, options, reuse_buffers=True, shrink=False)

    pool = BufferPool.for_model(model)
    for number in (1, 5, 6, 1):  # five fit where six do
        run(number)
    assert [shape.num_sentences for _, shape in pool.states] == [6, 1]
    assert BufferPool.for_model(model) is pool
    monkeypatch.setattr(pool, "capacity_bytes", 1)
    for number in (3, 8):
        run(number)
    assert [shape.num_sentences for _, shape in pool.states] == [3, 8]
    model.double()
    assert BufferPool.for_model(model) is not pool


def test_memory_that_runs_out_is_given_back(monkeypatch):
    model = make_model()

    def fail(*_args, **_options) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(StaticBeam, "step", fail)
    src_ids = torch.randint(4, 16, (2, 5))
    with pytest.raises(torch.OutOfMemoryError):
        search_static(model, src_ids, SYMBOLS, DecodingOptions(), reuse_buffers=True)
    assert not model.decoding_cache


def test_few_sizes_are_met():
    sizes = {round_to_bucket(number) for number in range(1, 513)}
    assert len(sizes) == 18
    assert all(number <= round_to_bucket(number) <= 1.5 * number for number in range(2, 513))
    assert {size % 8 for size in sizes if size >= 16} == {0}  # attention's kernels ask for it
    pool = BufferPool(make_model(), reuse=True)
    assert [pool.window(position, 96) for position in (0, 15, 16, 40, 95)] == [16, 16, 24, 48, 96]
    assert pool.window(40, 44) == 44
    assert BufferPool(make_model(), reuse=False).window(40, 44) == 41
