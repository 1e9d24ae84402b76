from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from attendo.core.errors import InputError
from attendo.data.batching import BatchPlan, collate, shard_rows, split_micro_batches
from attendo.model.transformer import Transformer
from attendo.training.distributed import ProcessGroup
from attendo.training.loss_module import LossModule
from attendo.training.train_step import accumulate_gradients, empty_micro_batch

lengths = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=60)


class FakeCorpus:
    """Sentences of given lengths; every one begins with the number of its pair."""

    def __init__(self, sizes: list[tuple[int, int]], first: int = 0) -> None:
        self.src_lengths = np.array([src for src, _ in sizes], dtype=np.int32)
        self.tgt_lengths = np.array([tgt for _, tgt in sizes], dtype=np.int32)
        self.first = first

    def __len__(self) -> int:
        return len(self.src_lengths)

    def pair(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        begin = 4 + self.first + index
        return tuple(
            np.arange(begin, begin + sizes[index], dtype=np.int64)
            for sizes in (self.src_lengths, self.tgt_lengths)
        )


def make_plan(*corpora: tuple[list[tuple[int, int]], float], tokens: int = 24, seed: int = 1):
    return BatchPlan(
        [(FakeCorpus(sizes), weight) for sizes, weight in corpora], batch_tokens=tokens, seed=seed
    )


def count(batches: list[np.ndarray]) -> Counter[int]:
    return Counter(np.concatenate(batches).tolist())


@given(sizes=lengths, tokens=st.integers(12, 100), seed=st.integers(0, 99))
def test_every_pair_exactly_once_and_within_the_budget(sizes, tokens, seed):
    plan = make_plan((sizes, 1.0), tokens=tokens, seed=seed)
    batches = plan.epoch(0)
    assert count(batches) == Counter(range(len(sizes)))
    for rows in batches:
        batch = plan.read(rows)
        assert batch.src_ids.numel() <= tokens
        assert batch.tgt_ids.numel() <= tokens


@pytest.mark.parametrize("part", [0.5, 0.75])
@given(sizes=lengths, more=lengths)
def test_weights_are_counted(part, sizes, more):
    plan = make_plan((sizes, 2 + part), (more, part))
    found = count(plan.epoch(3))
    first = [found[row] for row in range(len(sizes))]
    second = [found[len(sizes) + row] for row in range(len(more))]
    extra, drawn = (max(1, round(part * len(corpus))) for corpus in (sizes, more))
    assert sorted(first) == [2] * (len(sizes) - extra) + [3] * extra
    assert sorted(second) == [0] * (len(more) - drawn) + [1] * drawn


def test_a_fraction_takes_another_part_in_another_epoch():
    plan = make_plan(([(3, 3)] * 40, 0.5))
    parts = {frozenset(count(plan.epoch(number))) for number in range(5)}
    assert len(parts) == 5


def test_the_plan_depends_on_seed_and_epoch_alone():
    sizes = [(1 + n % 7, 1 + n % 5) for n in range(80)]

    def plan(seed: int, epoch: int) -> list[list[int]]:
        np.random.seed(seed + epoch)  # noqa: NPY002 - the global state must not matter
        return [rows.tolist() for rows in make_plan((sizes, 1.0), seed=seed).epoch(epoch)]

    assert plan(1, 0) == plan(1, 0)
    others = [plan(1, 0), plan(1, 1), plan(1, 2), plan(2, 0)]
    assert all(a != b for i, a in enumerate(others) for b in others[:i])
    composed = [{frozenset(rows) for rows in one} for one in others]
    assert composed[0] != composed[1]  # not the same batches in another order
    again = make_plan((sizes, 1.0))
    again.epoch(5)
    assert [rows.tolist() for rows in again.epoch(1)] == others[1]


@given(rows=st.integers(0, 40), processes=st.integers(1, 7), pieces=st.integers(1, 9))
def test_sharing_loses_and_doubles_nothing(rows, processes, pieces):
    whole = np.random.default_rng(0).permutation(rows)
    parts = [shard_rows(whole, rank, processes) for rank in range(processes)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(rows))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for part in parts:
        cut = split_micro_batches(part, pieces)
        assert all(len(piece) for piece in cut)
        assert len(cut) == min(pieces, len(part))
        assert [row for piece in cut for row in piece] == part.tolist()


def test_pieces_give_the_gradient_of_the_whole():
    torch.manual_seed(3)
    model = Transformer(80, d_model=16, d_ff=32, num_heads=2, num_layers=1, dropout=0.0).double()
    plan = make_plan(([(1 + n % 7, 1 + n % 9) for n in range(12)], 1.0), tokens=500)
    (rows,) = plan.epoch(0)

    def gradients(pieces: list) -> torch.Tensor:
        model.zero_grad()
        accumulate_gradients(
            LossModule(model, smoothing=0.1),
            pieces,
            num_tokens=int(plan.tgt_lengths[rows].sum()),
            precision=torch.float32,
            processes=ProcessGroup().single(),
        )
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    whole = gradients([plan.read(rows)])
    assert whole.abs().max() > 0.01
    for num_pieces in (2, 5, 12):
        pieces = [plan.read(part) for part in split_micro_batches(rows, num_pieces)]
        torch.testing.assert_close(gradients(pieces), whole, rtol=0, atol=1e-10)
    pieces.append(
        empty_micro_batch(pieces[0])
    )  # what a process without a row is given teaches nothing
    torch.testing.assert_close(gradients(pieces), whole, rtol=0, atol=1e-10)


def test_waste_is_the_share_of_padding():
    plan = make_plan(([(2, 5), (4, 5), (3, 1)], 1.0))
    waste = plan.padding_stats([np.array([0, 1]), np.array([2])])
    assert waste.src == pytest.approx(1 - 9 / 11)
    assert waste.tgt == 0.0
    assert waste.mean == pytest.approx((1 - 9 / 11) / 2)
    padded = [plan.read(np.array(rows)) for rows in ([0, 1], [2])]
    real = sum(int(batch.src_ids.ne(0).sum()) for batch in padded)
    assert waste.src == pytest.approx(1 - real / sum(b.src_ids.numel() for b in padded))


def test_a_long_sentence_does_not_make_the_later_batches_small():
    plan = make_plan(([(10, 1)] * 2 + [(1, 1)] * 20, 1.0), tokens=20)
    assert sorted(len(rows) for rows in plan.epoch(0)) == [2, 20]


def test_similar_lengths_meet():
    draw = np.random.default_rng(1)
    src = draw.integers(1, 60, 3000)
    tgt = np.clip(src + draw.integers(-3, 4, 3000), 1, None)
    plan = make_plan((list(zip(src.tolist(), tgt.tolist(), strict=True)), 1.0), tokens=1000)
    assert plan.padding_stats(plan.epoch(0)).mean < 0.1
    unsorted = plan.padding_stats(np.array_split(np.arange(3000), 100)).mean
    assert unsorted > 0.3


def test_shifted_targets():
    batch = make_plan(([(2, 3), (3, 1)], 1.0)).read(np.array([0, 1]))
    assert batch.src_ids.tolist() == [[4, 5, 0], [5, 6, 7]]
    assert batch.labels.tolist() == [[4, 5, 6], [5, 0, 0]]
    assert batch.tgt_ids.tolist() == [[2, 4, 5], [2, 0, 0]]
    assert batch.num_tokens == 4
    assert {tensor.dtype for tensor in batch} == {torch.int64}
    assert batch.to(torch.device("cpu")).labels.tolist() == batch.labels.tolist()


def test_rows_find_their_corpus():
    corpora = [FakeCorpus([(2, 2)] * 3), FakeCorpus([(2, 2)] * 2, first=100)]
    plan = BatchPlan([(corpus, 1.0) for corpus in corpora], batch_tokens=100, seed=1)
    batch = plan.read(np.array([4, 0, 2, 3]))
    assert batch.src_ids[:, 0].tolist() == [105, 4, 6, 104]


def test_real_shards_come_back(toy):
    corpus = toy.prepared.train[0][0]
    plan = BatchPlan(toy.prepared.train, batch_tokens=64, seed=1)
    rows = plan.epoch(0)[0]
    assert len(rows) > 1
    expected = collate([corpus.pair(int(row)) for row in rows])
    found = plan.read(rows)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert bool((found.labels.eq(3).sum(1) == 1).all())  # each target has its end


def test_an_empty_batch_has_no_gradient():
    batch = make_plan(([(2, 3), (3, 1)], 1.0)).read(np.array([0, 1]))
    quiet = empty_micro_batch(batch)
    assert quiet.num_tokens == 0
    assert quiet.src_ids.tolist() == batch.src_ids[:1].tolist()


def test_what_cannot_be_batched_is_reported():
    with pytest.raises(InputError, match=r"30 tokens exceeds batch_tokens 24"):
        make_plan(([(1, 30)], 1.0))
    with pytest.raises(InputError, match="empty"):
        make_plan(([], 1.0))
