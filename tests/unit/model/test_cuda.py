"""What must hold on a GPU too, where other kernels run. Skipped by name where there is none."""

from __future__ import annotations

import pytest
import torch

from attendo.core.errors import InputError
from attendo.model.attention import scaled_dot_product
from attendo.model.fast.local_attention import local_attention
from attendo.model.masks import causal_mask, local_mask

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 3e-2, torch.float16: 4e-3, torch.float64: 1e-10}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("width", [8, 64])
def test_fused_equals_explicit_and_masked_rows_are_zero(dtype, width):
    inputs = [
        torch.randn(4, 8, length, width, device="cuda", dtype=dtype, requires_grad=True)
        for length in (33, 47, 47)
    ]
    mask = torch.rand(4, 1, 33, 47, device="cuda") > 0.5
    mask[1, :, 5] = False
    mask[2] = False
    fused = scaled_dot_product(*inputs, mask)
    explicit, _ = scaled_dot_product(*inputs, mask, need_weights=True)
    assert bool((fused[1, :, 5] == 0).all())
    assert bool((fused[2] == 0).all())
    torch.testing.assert_close(fused, explicit, rtol=0, atol=TOLERANCE[dtype])
    upstream = torch.randn_like(fused)
    ours = torch.autograd.grad(explicit, inputs, upstream)
    theirs = torch.autograd.grad(fused, inputs, upstream)
    for a, b in zip(ours, theirs, strict=True):
        assert bool(b.isfinite().all())
        torch.testing.assert_close(a, b, rtol=0, atol=4 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("is_causal", [False, True])
def test_blocks_equal_the_mask_and_masked_rows_are_zero(dtype, is_causal):
    inputs = [
        torch.randn(3, 8, 150, 64, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3)
    ]
    mask = torch.rand(3, 1, 150, device="cuda") > 0.5
    mask[1] = False
    blocks = local_attention(*inputs, 32, mask, is_causal=is_causal)
    allowed = mask & local_mask(150, 32, device="cuda")
    if is_causal:
        allowed = allowed & causal_mask(150, device="cuda")
    explicit, _ = scaled_dot_product(*inputs, allowed[:, None], need_weights=True)
    assert bool((blocks[1] == 0).all())
    torch.testing.assert_close(blocks, explicit, rtol=0, atol=TOLERANCE[dtype])
    upstream = torch.randn_like(blocks)
    ours = torch.autograd.grad(blocks, inputs, upstream)
    theirs = torch.autograd.grad(explicit, inputs, upstream)
    for a, b in zip(ours, theirs, strict=True):
        assert bool(a.isfinite().all())
        torch.testing.assert_close(a, b, rtol=0, atol=4 * TOLERANCE[dtype])


def test_gpu_equals_cpu(make_model, make_ids):
    model = make_model(torch.float64)
    src_ids, tgt_ids = make_ids(3, 9, lengths=[9, 4, 1]), make_ids(3, 7)
    expected = model(src_ids, tgt_ids)
    there = model.to("cuda")(src_ids.cuda(), tgt_ids.cuda())
    torch.testing.assert_close(there.cpu(), expected, rtol=0, atol=1e-10)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_whole_on_the_gpu(make_model, make_ids, dtype):
    model = make_model(dtype).cuda()
    src_ids, tgt_ids = make_ids(3, 9, lengths=[9, 4, 1]).cuda(), make_ids(3, 7).cuda()
    compiled = torch.compile(model, fullgraph=True)
    torch.testing.assert_close(
        compiled(src_ids, tgt_ids), model(src_ids, tgt_ids), rtol=0, atol=4 * TOLERANCE[dtype]
    )


def test_ids_outside_the_vocabulary_do_not_kill_the_device(make_model):
    model = make_model().cuda()
    with pytest.raises(InputError, match="outside the vocabulary"):
        model.encode(torch.tensor([[99]], device="cuda"))
    assert model.encode(torch.tensor([[9]], device="cuda")).states.isfinite().all()
