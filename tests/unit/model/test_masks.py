from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from attendo.core.errors import InputError
from attendo.model.masks import causal_mask, check_mask, local_mask, padding_mask


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.integers(1, 8))
def test_padding_mask_hides_exactly_the_padding(lengths, extra):
    width = max(lengths) + extra
    ids = torch.zeros(len(lengths), width, dtype=torch.long)
    for row, length in enumerate(lengths):
        ids[row, :length] = 9
    mask = padding_mask(ids)
    assert mask.shape == (len(lengths), 1, width)
    assert mask.sum(-1).flatten().tolist() == lengths


def test_padding_mask_of_another_pad_id_and_of_one_sentence():
    assert padding_mask(torch.tensor([4, 0, 1]), pad_id=1).tolist() == [[True, True, False]]


@given(st.integers(1, 20))
def test_look_ahead_hides_the_future_only(length):
    mask = causal_mask(length)
    for i in range(length):
        for j in range(length):
            assert bool(mask[i, j]) == (j <= i)


@given(st.integers(1, 20), st.integers(1, 9))
def test_neighborhood_is_centered(length, width):
    mask = local_mask(length, width)
    for i in range(length):
        for j in range(length):
            assert bool(mask[i, j]) == (abs(i - j) <= width // 2)
    if width % 2 == 1 and length > width:
        assert int(mask[length // 2].sum()) == width


def test_masks_join():
    mask = padding_mask(torch.tensor([[5, 6, 0]])) & causal_mask(3)
    assert mask.tolist() == [[[True, False, False], [True, True, False], [True, True, False]]]


@pytest.mark.parametrize("shape", [(1,), (4,), (3, 4), (1, 4), (2, 1, 4), (2, 3, 4)])
def test_what_broadcasts_is_accepted(shape):
    check_mask(torch.ones(shape, dtype=torch.bool), (2, 3, 4))


@pytest.mark.parametrize("shape", [(3,), (4, 4), (3, 1, 4), (1, 2, 3, 4)])
def test_what_does_not_broadcast_is_rejected(shape):
    with pytest.raises(InputError, match=r"src_mask has shape .*(2, 3, 4)"):
        check_mask(torch.ones(shape, dtype=torch.bool), (2, 3, 4), name="src_mask")
