from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from attendo.core.errors import ConfigError, InputError
from attendo.model.attention import MultiHeadAttention, scaled_dot_product

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 2e-2}


def random_mask(*shape: int, seed: int) -> torch.Tensor:
    """Any pattern, rows without a single True among them."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator) > 0.5


@given(
    sizes=st.tuples(*[st.integers(1, 5)] * 4),
    d_v=st.integers(1, 6),
    seed=st.integers(0, 1000),
    masked=st.booleans(),
    dtype=st.sampled_from(list(TOLERANCE)),
)
def test_fused_equals_explicit(sizes, d_v, seed, masked, dtype):
    batch, rows, columns, d_k = sizes
    torch.manual_seed(seed)
    inputs = [
        torch.randn(batch, 2, rows, d_k, dtype=dtype, requires_grad=True),
        torch.randn(batch, 2, columns, d_k, dtype=dtype, requires_grad=True),
        torch.randn(batch, 2, columns, d_v, dtype=dtype, requires_grad=True),
    ]
    mask = random_mask(batch, 1, rows, columns, seed=seed) if masked else None
    fused = scaled_dot_product(*inputs, mask)
    explicit, weights = scaled_dot_product(*inputs, mask, need_weights=True)
    close = {"rtol": 0, "atol": TOLERANCE[dtype]}
    torch.testing.assert_close(fused, explicit, **close)
    upstream = torch.randn_like(fused)
    fused_gradients = torch.autograd.grad(fused, inputs, upstream)
    explicit_gradients = torch.autograd.grad(explicit, inputs, upstream)
    for ours, theirs in zip(explicit_gradients, fused_gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=4 * TOLERANCE[dtype])

    allowed = torch.ones(batch, 1, rows, columns, dtype=torch.bool) if mask is None else mask
    allowed = allowed.expand_as(weights)
    assert bool((weights[~allowed] == 0).all())
    sums = torch.where(allowed.any(-1), 1.0, 0.0).to(dtype)
    torch.testing.assert_close(weights.sum(-1), sums, **close)


def test_equals_the_formula_by_hand():
    query, key, value = (
        torch.randn(2, 3, dtype=torch.float64),
        torch.randn(4, 3, dtype=torch.float64),
        torch.randn(4, 5, dtype=torch.float64),
    )
    expected = torch.empty(2, 5, dtype=torch.float64)
    for row in range(2):
        exponentials = [torch.exp(query[row].dot(key[j]) / 3**0.5) for j in range(4)]
        expected[row] = sum(e * value[j] for j, e in enumerate(exponentials)) / sum(exponentials)
    torch.testing.assert_close(scaled_dot_product(query, key, value), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("need_weights", [False, True])
def test_fully_masked_row_gives_zeros_and_clean_gradients(need_weights):
    query, key, value = (torch.randn(1, 3, 4, requires_grad=True) for _ in range(3))
    mask = torch.tensor([[[True, True, False], [False, False, False], [True, True, True]]])
    result = scaled_dot_product(query, key, value, mask, need_weights=need_weights)
    output = result[0] if need_weights else result
    assert bool((output[0, 1] == 0).all())
    assert bool((output[0, [0, 2]] != 0).all())
    output.square().sum().backward()
    for tensor in (query, key, value):
        assert bool(tensor.grad.isfinite().all())
    assert bool((query.grad[0, 1] == 0).all())


@pytest.mark.parametrize(
    ("scale", "shares"), [(True, (0.880797, 0.119203)), (False, (0.982014, 0.017986))]
)
def test_without_scale_the_scores_are_not_divided(scale, shares):
    """Products 4 and 0 with d_k = 4: softmax(2, 0) as in the paper, softmax(4, 0) without."""
    attention = MultiHeadAttention(4, 1, bias=False, scale=scale)
    for projection in (attention.query, attention.key, attention.value, attention.output):
        torch.nn.init.eye_(projection.weight)
    query = torch.tensor([[[2.0, 0.0, 0.0, 0.0]]])
    memory = torch.tensor([[[2.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]])
    expected = torch.tensor([[[2 * shares[0], shares[1], 0.0, 0.0]]])
    fused, _ = attention(query, memory, memory)
    explicit, weights = attention(query, memory, memory, need_weights=True)
    torch.testing.assert_close(fused, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(explicit, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(weights[0, 0, 0], torch.tensor(shares), rtol=0, atol=1e-6)


@pytest.mark.parametrize("scale", [None, 1.0, 0.25])
def test_fused_equals_explicit_at_any_scale(scale):
    query, key, value = (torch.randn(2, 3, 5, 4, dtype=torch.float64) for _ in range(3))
    explicit, _ = scaled_dot_product(query, key, value, need_weights=True, scale=scale)
    torch.testing.assert_close(scaled_dot_product(query, key, value, scale=scale), explicit)
    half = 0.5 if scale is None else scale  # 1 / sqrt(4)
    expected = (half * query @ key.mT).softmax(-1) @ value
    torch.testing.assert_close(explicit, expected)


def test_mask_is_true_where_one_may_attend():
    value = torch.tensor([[1.0], [100.0]])
    output = scaled_dot_product(
        torch.zeros(1, 2), torch.zeros(2, 2), value, torch.tensor([[True, False]])
    )
    assert output.item() == 1.0


def test_dropout_drops_weights_but_returns_the_distribution():
    query, key, value = torch.randn(8, 4), torch.randn(16, 4), torch.eye(16)
    output, weights = scaled_dot_product(query, key, value, need_weights=True, dropout=0.5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(8))
    dropped = output == 0
    assert 0.2 < dropped.float().mean() < 0.8
    torch.testing.assert_close(output[~dropped], 2 * weights[~dropped])


@pytest.mark.parametrize(
    "options", [{}, {"d_k": 3}, {"d_v": 5}, {"d_k": 2, "d_v": 7}, {"bias": False}]
)
def test_multi_head_equals_its_heads_one_by_one(options):
    attention = MultiHeadAttention(8, 2, **options).double()
    query, memory = (
        torch.randn(2, 3, 8, dtype=torch.float64),
        torch.randn(2, 5, 8, dtype=torch.float64),
    )
    mask = random_mask(2, 3, 5, seed=1)
    output, weights = attention(query, memory, memory, mask, need_weights=True)

    d_k, d_v = options.get("d_k", 4), options.get("d_v", 4)
    heads = []
    for head in range(2):
        keys = slice(head * d_k, (head + 1) * d_k)
        values = slice(head * d_v, (head + 1) * d_v)
        single, single_weights = scaled_dot_product(
            attention.query(query)[..., keys],
            attention.key(memory)[..., keys],
            attention.value(memory)[..., values],
            mask,
            need_weights=True,
        )
        torch.testing.assert_close(weights[:, head], single_weights)
        heads.append(single)
    torch.testing.assert_close(output, attention.output(torch.cat(heads, dim=-1)))
    fused, nothing = attention(query, memory, memory, mask)
    assert nothing is None
    torch.testing.assert_close(fused, output)


def test_heads_cost_what_one_head_costs():
    def count(num_heads: int) -> int:
        return sum(p.numel() for p in MultiHeadAttention(512, num_heads).parameters())

    assert count(8) == count(1) == 4 * (512 * 512 + 512)


def test_nothing_is_kept_on_the_module():
    attention = MultiHeadAttention(8, 2)
    before = set(vars(attention))
    x = torch.randn(1, 3, 8)
    attention(x, x, x, need_weights=True)
    assert set(vars(attention)) == before
    assert not list(attention.buffers())


def test_attention_dropout_only_while_training():
    attention = MultiHeadAttention(8, 2, dropout=0.5)
    x = torch.randn(1, 6, 8)
    assert not torch.equal(attention(x, x, x)[0], attention(x, x, x)[0])
    attention.eval()
    assert torch.equal(attention(x, x, x)[0], attention(x, x, x)[0])


def test_width_must_divide_by_heads():
    with pytest.raises(ConfigError, match=r"d_model 512 .* num_heads 7(.|\n)*use num_heads 4 or 8"):
        MultiHeadAttention(512, 7)


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (torch.ones(3, 3), "not torch.bool"),
        (torch.ones(3, 3, dtype=torch.long), "not torch.bool"),
        (torch.ones(3, 4, dtype=torch.bool), "does not broadcast"),
        (torch.ones(5, 3, 3, dtype=torch.bool), "does not broadcast"),
        (torch.ones(1, 1, 1, 1, 3, 3, dtype=torch.bool), "does not broadcast"),
    ],
)
def test_bad_masks_are_rejected(mask, words):
    x = torch.randn(2, 3, 8)
    with pytest.raises(InputError, match=words):
        scaled_dot_product(x, x, x, mask)
    with pytest.raises(InputError, match=words):
        MultiHeadAttention(8, 2)(x, x, x, mask)
