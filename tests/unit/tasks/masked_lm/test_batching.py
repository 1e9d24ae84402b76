"""Hidden words: how many, which, behind what, and the same again after every interruption."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attendo.architectures.encoder_only import EncoderOnly
from attendo.tasks.masked_lm.batching import (
    MASK_ID,
    MaskedBatchPlan,
    PackedMaskedBatchPlan,
    mask_tokens,
    num_masked,
)
from attendo.text.tokenizer import END_ID, PAD_ID
from attendo.training.loss_module import LossModule

VOCAB = 500


def make_texts(lengths: list[int], *, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    ids = np.full((len(lengths), max(lengths)), PAD_ID)
    for row, length in enumerate(lengths):
        ids[row, :length] = [*generator.integers(4, VOCAB, length - 1), END_ID]
    return ids


@given(st.lists(st.integers(2, 80), min_size=1, max_size=12), st.integers(0, 10**6))
def test_each_text_hides_exactly_its_share_and_never_its_end(lengths, seed):
    ids = make_texts(lengths)
    shown, asked = mask_tokens(ids, np.arange(len(lengths)), vocab_size=VOCAB, seed=seed)
    hidden = asked != PAD_ID
    wanted = [max(1, round(0.15 * (length - 1))) for length in lengths]
    assert hidden.sum(1).tolist() == wanted
    assert not hidden[(ids == END_ID) | (ids == PAD_ID)].any()
    assert (asked[hidden] == ids[hidden]).all()
    assert (shown[~hidden] == ids[~hidden]).all()
    assert ((shown == PAD_ID) == (ids == PAD_ID)).all()


def test_a_text_of_only_the_end_symbol_masks_nothing():
    shown, asked = mask_tokens(np.array([[END_ID]]), np.array([3]), vocab_size=VOCAB, seed=1)
    assert shown.tolist() == [[END_ID]]
    assert asked.tolist() == [[PAD_ID]]
    assert num_masked(np.array([1])).tolist() == [0]


def test_80_percent_are_masked_10_random_10_unchanged_at_all_positions():
    ids = np.repeat(make_texts([21]), 20_000, axis=0)
    shown, asked = mask_tokens(ids, np.arange(20_000), vocab_size=VOCAB, seed=7)
    hidden = asked != PAD_ID
    count = int(hidden.sum())
    assert count == 60_000  # 3 of 20
    masked, left = (shown == MASK_ID) & hidden, (shown == asked) & hidden
    random = hidden & ~masked & ~left
    # five standard deviations; a random piece is the true one once in 496
    for found, share in ((masked, 0.8), (random, 0.1), (left, 0.1)):
        deviation = (share * (1 - share) / count) ** 0.5
        assert abs(found.sum() / count - share) < 5 * deviation + 0.1 / 496
    by_position = hidden.mean(0)[:20]
    assert abs(by_position - 0.15).max() < 5 * (0.15 * 0.85 / 20_000) ** 0.5
    drawn = shown[random]
    assert drawn.min() >= 4
    assert drawn.max() < VOCAB
    assert abs(drawn.mean() - (4 + VOCAB - 1) / 2) < 5 * VOCAB / 12**0.5 / len(drawn) ** 0.5
    pairs = hidden[:, 0] & hidden[:, 1]  # two positions are chosen as if by lot: 3/20 * 2/19
    assert abs(pairs.mean() - 6 / 380) < 5 * (6 / 380 / 20_000) ** 0.5


def test_neighbors_and_padding_change_nothing():
    ids = make_texts([9, 30, 4])
    draws = np.array([5, 11, 2])
    together = mask_tokens(ids, draws, vocab_size=VOCAB, seed=3)
    for row, length in enumerate((9, 30, 4)):
        alone = mask_tokens(
            ids[row : row + 1, :length], draws[row : row + 1], vocab_size=VOCAB, seed=3
        )
        for part, whole in zip(alone, together, strict=True):
            assert part[0].tolist() == whole[row, :length].tolist()


@pytest.fixture(params=[MaskedBatchPlan, PackedMaskedBatchPlan])
def make_plan(request, toy):
    def make(seed: int = 1) -> MaskedBatchPlan:
        size = toy.prepared.tokenizer.src_vocab_size
        return request.param(toy.prepared.train, batch_tokens=96, seed=seed, vocab_size=size)

    return make


def test_an_epoch_holds_every_text_once_and_hides_other_words_in_each(make_plan):
    plan = make_plan()
    total = len(plan.src_lengths)
    for number in (0, 3):
        rows = np.concatenate(plan.epoch(number))
        assert sorted(rows.tolist()) == list(range(number * total, (number + 1) * total))
    texts = np.arange(total)
    first, later = plan.read(texts), plan.read(texts + 3 * total)
    assert not torch.equal(first.labels, later.labels)
    whole = [
        torch.where(batch.labels == PAD_ID, batch.src_ids, batch.labels) for batch in (first, later)
    ]
    assert torch.equal(*whole)  # the same texts behind it
    other = make_plan(seed=2).read(texts)
    assert not torch.equal(first.labels, other.labels)


def test_a_new_plan_continues_with_the_same_bits(make_plan):
    """A resumed run makes its plan anew, and may cut a batch into other pieces."""
    plan, again = make_plan(), make_plan()
    rows = plan.epoch(5)[2]
    assert rows.tolist() == again.epoch(5)[2].tolist()
    whole, pieces = plan.read(rows), [again.read(part) for part in np.array_split(rows, 3)]
    shown = [row[row != PAD_ID].tolist() for piece in pieces for row in piece.src_ids]
    assert shown == [row[row != PAD_ID].tolist() for row in whole.src_ids]


def test_labels_are_counted_without_reading(make_plan):
    plan = make_plan()
    for rows in plan.epoch(2):
        assert plan.count_labels(rows) == plan.read(rows).num_tokens


def test_a_packed_batch_asks_the_same_as_a_padded_one(toy):
    size = toy.prepared.tokenizer.src_vocab_size
    plan = PackedMaskedBatchPlan(toy.prepared.train, batch_tokens=96, seed=1, vocab_size=size)
    model = EncoderOnly(
        size, reads="each", d_model=16, d_ff=32, num_heads=2, num_layers=1, dropout=0.0
    ).double()
    teacher = LossModule(model, smoothing=0.1)
    for rows in plan.epoch(1)[:4]:
        padded, packed = plan.read(rows), plan.read_packed(rows)
        assert packed.num_tokens == padded.num_tokens == packed.labels.numel()
        torch.testing.assert_close(teacher(packed).loss, teacher(padded).loss)
