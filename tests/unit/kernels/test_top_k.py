from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attendo.kernels.top_k import BLOCK_SIZE, MIN_NUM_BLOCKS, blockwise_argmax, blockwise_topk

LEAST = MIN_NUM_BLOCKS * BLOCK_SIZE
SIZES = [1, 5, LEAST - 1, LEAST, LEAST + 1, LEAST + BLOCK_SIZE - 1, 3 * LEAST + 7]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("num", [1, 2, 8, 32])
def test_finds_the_largest_and_where_they_are(size, num):
    for _ in range(5):
        values = torch.randperm(4 * size).view(4, size).float()
        found, positions = blockwise_topk(values, min(num, size))
        right = values.topk(min(num, size))
        assert torch.equal(found, right.values)
        assert torch.equal(positions, right.indices)
        assert torch.equal(blockwise_argmax(values), values.argmax(1))


@given(st.sampled_from(SIZES[2:]), st.integers(0, 10**6), st.integers(2, 9))
def test_finds_the_largest_at_any_position(size, seed, num):
    """All in one piece, at the very end, or spread; most values are forbidden."""
    draw = torch.Generator().manual_seed(seed)
    values = torch.full((3, size), float("-inf"))
    for row, first in enumerate(
        (0, size - num, int(torch.randint(size - num, (), generator=draw)))
    ):
        values[row, first : first + num] = torch.rand(num, generator=draw)
    found, positions = blockwise_topk(values, num)
    assert torch.equal(found, values.topk(num).values)
    assert torch.equal(values.gather(1, positions), found)
    assert all(len(set(row)) == num for row in positions.tolist())
    assert torch.equal(blockwise_argmax(values), values.argmax(1))


def test_more_hypotheses_are_requested_than_exist():
    """Then some that are forbidden come along, each of them once."""
    values = torch.full((2, LEAST + 9), float("-inf"))
    values[:, [3, LEAST + 4]] = torch.tensor([[1.0, 2.0], [2.0, 1.0]])
    found, positions = blockwise_topk(values, 8)
    assert found[:, :2].tolist() == [[2.0, 1.0], [2.0, 1.0]]
    assert positions[:, :2].tolist() == [[LEAST + 4, 3], [3, LEAST + 4]]
    assert found[:, 2:].isneginf().all()
    assert all(len(set(row)) == 8 for row in positions.tolist())


def test_the_first_of_equals_is_the_likeliest():
    values = torch.zeros(2, LEAST + 9)
    values[0, [70, LEAST - 1, LEAST + 3]] = 1.0
    values[1, [LEAST + 3, LEAST + 5]] = 1.0
    assert blockwise_argmax(values).tolist() == [70, LEAST + 3]


def test_what_is_not_a_number_is_found_first():
    values = torch.zeros(1, LEAST + 9)
    values[0, 2000] = float("nan")
    assert blockwise_topk(values, 4)[0][0, 0].isnan()
    assert blockwise_argmax(values).tolist() == [2000]
