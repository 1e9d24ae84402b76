"""Restricted attention by blocks is the restricted attention of the mask, at a smaller price."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import example, given

from attendo.core.errors import InputError
from attendo.model.attention import MultiHeadAttention, scaled_dot_product
from attendo.model.fast.local_attention import LocalPattern, local_attention
from attendo.model.masks import causal_mask, local_mask

TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-13, torch.bfloat16: 2e-2}


def draw(length: int, *, batch: int = 2, d_v: int = 4, dtype: torch.dtype = torch.float32):
    return [
        torch.randn(batch, 3, length, size, dtype=dtype, requires_grad=True) for size in (4, 4, d_v)
    ]


def by_the_mask(query, key, value, width, mask=None, *, is_causal=False, **options):
    """Say the same with a matrix of all pairs."""
    length = query.size(-2)
    allowed = local_mask(length, width)
    if is_causal:
        allowed = allowed & causal_mask(length)
    if mask is not None:
        allowed = (allowed & mask).unsqueeze(1)
    output, _ = scaled_dot_product(query, key, value, allowed, need_weights=True, **options)
    return output


def check_equal(inputs, width, mask, **options):
    tolerance = {"rtol": 0, "atol": TOLERANCE[inputs[0].dtype]}
    ours = local_attention(*inputs, width, mask, **options)
    expected = by_the_mask(*inputs, width, mask, **options)
    torch.testing.assert_close(ours, expected, **tolerance)
    upstream = torch.randn_like(expected)
    found = torch.autograd.grad(ours, inputs, upstream)
    wanted = torch.autograd.grad(expected, inputs, upstream)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=4 * tolerance["atol"])


@given(
    length=st.integers(1, 150),
    width=st.integers(1, 90),
    is_causal=st.booleans(),
    hidden=st.sampled_from([0.0, 0.3, 0.9]),
    d_v=st.sampled_from([4, 5]),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
    seed=st.integers(0, 1000),
)
@example(64, 1, False, 0.3, 4, torch.float32, 0)
@example(64, 65, True, 0.3, 4, torch.float32, 0)  # the reach is just one block
@example(97, 66, False, 0.0, 4, torch.float32, 0)  # one more than a block
def test_equals_the_mask_path_with_any_keys_hidden(
    length, width, is_causal, hidden, d_v, dtype, seed
):
    torch.manual_seed(seed)
    mask = torch.rand(2, 1, length) >= hidden
    check_equal(draw(length, d_v=d_v, dtype=dtype), width, mask, is_causal=is_causal)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("length", [1, 31, 32, 33, 95, 96, 130])
@pytest.mark.parametrize("width", [1, 2, 3, 32, 33, 64, 100, 1000])
def test_equals_the_mask_path_without_padding(length, width, is_causal):
    check_equal(draw(length), width, None, is_causal=is_causal)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("width", [1, 6, 40])
def test_equals_the_mask_path_on_sentences_of_mixed_lengths(width, is_causal):
    lengths = torch.tensor([100, 0, 1, 33, 64])
    mask = (torch.arange(100) < lengths[:, None])[:, None]  # (B, 1, n)
    inputs = draw(100, batch=5)
    check_equal(inputs, width, mask, is_causal=is_causal)
    output = local_attention(*inputs, width, mask, is_causal=is_causal)
    assert bool((output[1] == 0).all())
    assert bool((output[2, :, 1 + width // 2 :] == 0).all())
    assert bool((output[2, :, 0] != 0).any())
    (output**2).sum().backward()
    assert all(bool(tensor.grad.isfinite().all()) for tensor in inputs)
    assert bool((inputs[2].grad[1] == 0).all())


@pytest.mark.parametrize("width", [1, 2, 7, 80])
@pytest.mark.parametrize("is_causal", [False, True])
def test_the_neighborhood_counted_one_by_one(width, is_causal):
    """With equal scores each position gives the mean of what it sees; 2^j tells which those are."""
    positions = torch.arange(50, dtype=torch.float64)
    value = (2**positions)[None, None, :, None]
    nothing = torch.zeros(1, 1, 50, 1, dtype=torch.float64)
    found = local_attention(nothing, nothing, value, width, is_causal=is_causal).flatten()
    for i in range(50):
        seen = [j for j in range(50) if abs(i - j) <= width // 2 and (j <= i or not is_causal)]
        assert found[i].item() == pytest.approx(sum(2**j for j in seen) / len(seen), rel=1e-12)


@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_equal_finite_differences(is_causal):
    mask = torch.rand(2, 1, 37) > 0.2
    inputs = [torch.randn(2, 1, 37, 2, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    assert torch.autograd.gradcheck(
        lambda *heads: local_attention(*heads, 9, mask, is_causal=is_causal), inputs
    )


def test_a_sentence_never_meets_another_of_its_batch():
    query, key, value = (torch.randn(3, 2, 70, 4) for _ in range(3))
    alone = local_attention(query, key, value, 9)
    for tensor in (query, key, value):
        tensor[1] = torch.nan
    together = local_attention(query, key, value, 9)
    assert torch.equal(together[[0, 2]], alone[[0, 2]])


def test_heads_that_are_side_by_side_in_memory():
    """As the projections give them: (B, n, H, K), seen as (B, H, n, K)."""
    apart = [torch.randn(2, 77, 3, 4).transpose(1, 2) for _ in range(3)]
    whole = [tensor.contiguous() for tensor in apart]
    torch.testing.assert_close(local_attention(*apart, 12), local_attention(*whole, 12))


def test_nothing_gives_nothing():
    assert local_attention(*draw(0), 3).shape == (2, 3, 0, 4)
    assert local_attention(*draw(40, batch=0), 3).shape == (0, 3, 40, 4)


def test_one_mask_may_serve_the_whole_batch():
    inputs, mask = draw(70), torch.rand(1, 1, 70) > 0.3
    torch.testing.assert_close(
        local_attention(*inputs, 9, mask), local_attention(*inputs, 9, mask.expand(2, 1, 70))
    )


def test_scale_multiplies_the_scores():
    inputs = draw(90, dtype=torch.float64)
    check_equal(inputs, 12, None, scale=1.0)
    query, key, value = inputs
    torch.testing.assert_close(
        local_attention(query, key, value, 12, scale=1.0),
        local_attention(2 * query, key, value, 12),  # sqrt(4) = 2
    )
    assert not torch.allclose(
        local_attention(*inputs, 12), local_attention(*inputs, 12, scale=1.0), atol=1e-2
    )


def test_dropout_drops_weights_and_makes_up_for_them():
    query, key = torch.randn(2, 3, 80, 4), torch.randn(2, 3, 80, 4)
    identity = torch.eye(80).expand(2, 3, 80, 80)  # what comes out are the weights themselves
    weights = local_attention(query, key, identity, 21)
    dropped = local_attention(query, key, identity, 21, dropout=0.5)
    is_seen = local_mask(80, 21).expand_as(weights)
    assert bool((weights[is_seen] > 0).all())
    assert bool((dropped[~is_seen] == 0).all())
    is_kept = dropped != 0
    assert 0.45 < is_kept[is_seen].float().mean() < 0.55
    torch.testing.assert_close(dropped[is_kept], 2 * weights[is_kept])


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_no_tensor_of_all_pairs_is_made(watch_largest, is_causal, dropout):
    """Section 4: r n d. Tensors are a few times as large as the input, backward too."""
    length, width, num_heads, size = 4096, 32, 8, 64
    inputs = [torch.randn(1, num_heads, length, size, requires_grad=True) for _ in range(3)]
    mask = torch.ones(1, 1, length, dtype=torch.bool)
    with watch_largest() as largest:
        output = local_attention(*inputs, width, mask, is_causal=is_causal, dropout=dropout)
        output.sum().backward()
    assert num_heads * length * size <= largest.numbers <= 2.5 * num_heads * length * size
    assert largest.numbers < length**2 / 3
    with watch_largest() as largest:
        local_mask(length, width)
    assert largest.numbers == length**2  # it would have been seen


def test_multi_head_attention_by_blocks_equals_that_of_the_mask():
    attention = MultiHeadAttention(8, 2, dropout=0.5, scale=False).double().eval()
    x, mask = torch.randn(2, 70, 8, dtype=torch.float64), torch.rand(2, 1, 70) > 0.3
    masked, weights = attention(x, x, x, mask & local_mask(70, 9), need_weights=True)
    by_blocks, nothing = attention(x, x, x, LocalPattern(9, mask))
    torch.testing.assert_close(by_blocks, masked)
    assert nothing is None
    assert weights.shape == (2, 2, 70, 70)
    attention.train()
    assert not torch.equal(attention(x, x, x, LocalPattern(9, mask))[0], by_blocks)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: local_attention(x, x, x, 0), "width of 0 sees nothing"),
        (lambda x: local_attention(x, x[:, :, :5], x, 3), "lengths 6, 5 and 6"),
        (lambda x: local_attention(x, x, x, 3, torch.ones(2, 1, 6)), "not torch.bool"),
        (
            lambda x: local_attention(x, x, x, 3, torch.ones(2, 6, 6, dtype=torch.bool)),
            r"shape \(2, 6, 6\), which does not broadcast to \(2, 1, 6\)",
        ),
        (
            lambda x: MultiHeadAttention(4, 1)(
                x[:, 0], x[:, 0], x[:, 0], LocalPattern(3), need_weights=True
            ),
            "LocalPattern computes no attention weights",
        ),
    ],
)
def test_bad_input_is_rejected_with_a_hint(call, words):
    with pytest.raises(InputError, match=words) as caught:
        call(torch.randn(2, 3, 6, 4))
    assert caught.value.hint
