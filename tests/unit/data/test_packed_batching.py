"""Batches without padding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attendo import Transformer
from attendo.data import packed_batching
from attendo.data.packed_batching import PackedBatchPlan, PackedShape, pack_pairs
from attendo.text.tokenizer import PAD_ID, START_ID
from attendo.training.distributed import ProcessGroup
from attendo.training.loss_module import LossModule
from attendo.training.train_step import accumulate_gradients, empty_micro_batch


@pytest.fixture
def plan(toy) -> PackedBatchPlan:
    return PackedBatchPlan(toy.prepared.train, batch_tokens=96, seed=1, has_fixed_shape=True)


def test_an_epoch_holds_every_pair_once(plan):
    batches = plan.epoch(0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(plan.src_lengths)))
    assert [rows.tolist() for rows in plan.epoch(0)] == [rows.tolist() for rows in batches]
    assert [rows.tolist() for rows in plan.epoch(1)] != [rows.tolist() for rows in batches]


def test_no_side_of_a_batch_has_too_many_tokens(plan):
    for rows in plan.epoch(0):
        assert plan.src_lengths[rows].sum() <= min(96, plan.shape.src_tokens)
        assert plan.tgt_lengths[rows].sum() <= min(96, plan.shape.tgt_tokens)


def test_all_batches_have_one_shape(plan):
    shapes = {
        tuple(tuple(tensor.shape) for tensor in plan.read_packed(rows).tensors)
        for rows in plan.epoch(0)
    }
    assert len(shapes) == 1
    shape = plan.shape
    expected = ((1, shape.src_tokens), (1, shape.tgt_tokens), (1, shape.tgt_tokens))
    assert shapes.pop()[:3] == expected


def test_no_batch_has_more_sentences_than_there_is_space_for(toy, monkeypatch):
    monkeypatch.setattr(packed_batching, "SIZE_MULTIPLE", 1)  # no room to spare
    plan = PackedBatchPlan(toy.prepared.train, batch_tokens=96, seed=1, has_fixed_shape=True)
    drawn = max(len(rows) for number in range(9) for rows in plan.epoch(number))
    assert drawn <= plan.shape.num_sentences <= drawn + 5
    for number in range(9):
        for rows in plan.epoch(number):
            batch = plan.read_packed(rows)
            assert (
                len(batch.src_cu_seqlens)
                == len(batch.tgt_cu_seqlens)
                == plan.shape.num_sentences + 1
            )
            assert batch.src_cu_seqlens[-1] == plan.shape.src_tokens
            assert batch.num_tokens == plan.tgt_lengths[rows].sum()


def test_ids_are_those_of_the_padded_batch(plan):
    rows = plan.epoch(0)[0]
    padded, packed = plan.read(rows), plan.read_packed(rows)
    for name in ("src_ids", "tgt_ids", "labels"):
        whole = getattr(padded, name)
        assert getattr(packed, name)[getattr(packed, name) != PAD_ID].tolist() == (
            whole[whole != PAD_ID].tolist()
        )
    assert packed.num_tokens == padded.num_tokens
    begins = packed.tgt_cu_seqlens[:-1][packed.tgt_cu_seqlens.diff() > 0][: len(rows)].long()
    assert packed.tgt_ids[0, begins].tolist() == [START_ID] * len(rows)


def test_padding_is_cut_into_sentences_that_are_not_too_long():
    src, tgt = np.array([5, 6, 3]), np.array([7, 3])
    one = (np.array([3]), np.array([2]))
    batch = pack_pairs(
        src,
        tgt,
        *one,
        max_seqlens=(4, 2),
        shape=PackedShape(src_tokens=12, tgt_tokens=8, num_sentences=6),
    )
    assert batch.src_cu_seqlens.diff().tolist() == [3, 4, 4, 1, 0, 0]
    assert batch.tgt_cu_seqlens.diff().tolist() == [2, 2, 2, 2, 0, 0]
    assert batch.labels.tolist() == [[7, 3, 0, 0, 0, 0, 0, 0]]
    assert batch.tgt_ids.tolist() == [[2, 7, 0, 0, 0, 0, 0, 0]]


def test_waste_is_what_is_left_of_the_one_shape(plan, toy):
    batches = plan.epoch(0)
    real = sum(int(plan.tgt_lengths[rows].sum()) for rows in batches)
    assert plan.padding_stats(batches).tgt == pytest.approx(
        1 - real / (len(batches) * plan.shape.tgt_tokens)
    )
    free = PackedBatchPlan(toy.prepared.train, batch_tokens=96, seed=1)
    assert free.padding_stats(free.epoch(0)).mean == 0
    assert not (free.read_packed(free.epoch(0)[0]).src_ids == PAD_ID).any()


def test_packed_and_padded_teach_the_same(plan):
    torch.manual_seed(3)
    vocab_size = 1 + max(int(plan.read(rows).src_ids.max()) for rows in plan.epoch(0)) + 200
    model = Transformer(vocab_size, d_model=16, d_ff=32, num_heads=2, num_layers=1, dropout=0.0)
    teacher = LossModule(model.double(), smoothing=0.1)
    rows = plan.epoch(0)[0]

    def gradients(*pieces) -> torch.Tensor:
        model.zero_grad()
        accumulate_gradients(
            teacher,
            pieces,
            num_tokens=int(plan.tgt_lengths[rows].sum()),
            precision=torch.float32,
            processes=ProcessGroup().single(),
        )
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    padded = gradients(plan.read(rows))
    assert padded.abs().max() > 0.01
    torch.testing.assert_close(gradients(plan.read_packed(rows)), padded, rtol=0, atol=1e-10)
    parts = [plan.read_packed(part, is_micro_batch=True) for part in np.array_split(rows, 3)]
    torch.testing.assert_close(gradients(*parts), padded, rtol=0, atol=1e-10)
    quiet = gradients(*parts, empty_micro_batch(parts[0]))
    torch.testing.assert_close(quiet, padded, rtol=0, atol=1e-10)
    twice = LossModule(model, smoothing=0.1, rdrop_weight=2.0)
    losses = [twice(batch).objective for batch in (plan.read(rows), plan.read_packed(rows))]
    torch.testing.assert_close(losses[0], losses[1])
