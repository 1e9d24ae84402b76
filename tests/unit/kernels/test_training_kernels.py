"""Our own kernels say what the plain path says.

They run on a GPU, or by Triton's interpreter where it is installed (`test_interpreted`):
`TRITON_INTERPRET=1 pytest tests/unit/kernels/test_training_kernels.py`.
"""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from attendo import Transformer
from attendo.kernels import dispatch
from attendo.model.fast.packed_attention import (
    packed_attention,
    varlen_cross_attention,
    varlen_self_attention,
)
from attendo.model.fast.packed_sequences import PackedMask, Packing
from attendo.model.feed_forward import FeedForward
from attendo.model.layers import AddAndNorm
from attendo.training.cuda_graph import CapturedTrainStep
from attendo.training.fused_linear_cross_entropy import _cross_entropy, _cross_entropy_triton
from attendo.training.loss_module import LossModule
from attendo.training.train_step import forward_backward

IS_INTERPRETED = dispatch.IS_INTERPRETED and dispatch.HAS_TRITON
DEVICE, KIND = ("cpu", torch.float32) if IS_INTERPRETED else ("cuda", torch.bfloat16)
where_they_run = pytest.mark.skipif(
    not (IS_INTERPRETED or torch.cuda.is_available()), reason="no CUDA device here"
)
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
MANY = 5 if IS_INTERPRETED else 40
NUM_ROWS = 21 if IS_INTERPRETED else 301
CASES = [
    ([32] * MANY, [32] * MANY, True),
    ([5, 1, 70, 0, 130], [5, 1, 70, 0, 130], True),
    ([5, 1, 70, 3], [90, 20, 1, 64], False),
    ([3, 4], [0, 5], False),
    ([3] * 20 + [50, 33], [3] * 20 + [50, 33], True),
    ([2] * 12 + [40], [30] * 12 + [2], False),
]
HEAD_SIZES = (16, 32, 64, 128)
# By the interpreter, `make test` runs every case with the smallest heads and every head size once.
QUICK = {(16, case) for case in (0, 1, 2, 3, 5)} | {(width, 3) for width in HEAD_SIZES[1:]}
assert IS_INTERPRETED or os.environ.get("TRITON_INTERPRET") != "1", "Triton is missing"


def attention_cases():
    for width in HEAD_SIZES:
        for number, case in enumerate(CASES):
            is_slow = IS_INTERPRETED and (width, number) not in QUICK
            marks = [pytest.mark.slow] if is_slow else []
            yield pytest.param(width, *case, marks=marks, id=f"{width}-{number}")


def test_without_a_gpu_there_are_none(monkeypatch):
    assert not dispatch.can_use_kernels(torch.zeros(1, dtype=torch.bfloat16))
    monkeypatch.setattr(dispatch, "IS_INTERPRETED", False)
    assert not dispatch.can_use_kernels(torch.zeros(1))


@pytest.mark.parametrize(("capability", "has_them"), [((7, 5), False), ((8, 0), True)])
def test_older_gpus_have_none(monkeypatch, capability, has_them):
    monkeypatch.setattr(dispatch, "IS_INTERPRETED", False)
    monkeypatch.setattr(dispatch, "HAS_TRITON", True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _index: capability)
    there = SimpleNamespace(is_cuda=True, dtype=torch.bfloat16, device=torch.device("cuda", 0))
    assert dispatch.can_use_kernels(there) is has_them
    there.dtype = torch.float32
    assert not dispatch.can_use_kernels(there)
    assert dispatch.can_use_kernels(there, dispatch.DECODE_STEP_DTYPES) is has_them


def test_the_age_of_a_gpu_breaks_no_compiled_graph(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _index=0: (8, 0))

    @torch.compile(backend="eager", fullgraph=True)
    def add(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if dispatch.has_tensor_core_bf16(0) else x

    assert add(torch.zeros(1)) == 1


@where_they_run
@pytest.mark.parametrize(("width", "queries", "keys", "is_causal"), list(attention_cases()))
def test_packed_attention_is_that_of_rows(queries, keys, is_causal, width):
    torch.manual_seed(0)
    draw = lambda count: torch.randn(  # noqa: E731
        count, 3, width, device=DEVICE, dtype=KIND, requires_grad=True
    )
    query, key, value = draw(sum(queries)), draw(sum(keys)), draw(sum(keys))
    sides = [
        Packing.from_lengths(torch.tensor(lengths, device=DEVICE)) for lengths in (queries, keys)
    ]
    mask = PackedMask(*sides, is_causal)
    gradient = torch.randn_like(query)

    def run(output: torch.Tensor) -> list[torch.Tensor]:
        return [output, *torch.autograd.grad(output, (query, key, value), gradient)]

    expected = run(packed_attention(query, key, value, mask))
    found = [run(varlen_cross_attention(query, torch.stack((key, value), 1), mask))]
    if queries == keys:
        found.append(run(varlen_self_attention(torch.stack((query, key, value), 1), mask)))
    for ours in found:
        for mine, its in zip(ours, expected, strict=True):
            torch.testing.assert_close(mine, its, rtol=2e-2, atol=4e-2)


@where_they_run
@pytest.mark.parametrize("vocab_size", [50, 5000, 37000])
def test_the_loss_in_one_kernel(vocab_size):
    torch.manual_seed(0)
    logits = (4 * torch.randn(33, vocab_size, device=DEVICE)).to(KIND)
    labels = torch.randint(1, vocab_size, (33,), device=DEVICE)
    labels[::7] = 0
    loss, gradient = _cross_entropy(logits, labels, 0.1, 0)
    ours, ours_gradient = _cross_entropy_triton(logits.clone(), labels, 0.1, 0)
    torch.testing.assert_close(ours, loss, rtol=1e-5, atol=0)
    torch.testing.assert_close(ours_gradient, gradient, rtol=1e-2, atol=1e-7)
    assert not ours_gradient[::7].any()


@where_they_run
@pytest.mark.parametrize(("width", "num_programs"), [(256, 1056), (600, 3)])
def test_the_inner_layer_in_one_kernel(monkeypatch, width, num_programs):
    from attendo.kernels import linear_relu

    monkeypatch.setattr(linear_relu, "NUM_PROGRAMS", num_programs)
    torch.manual_seed(0)
    network = FeedForward(64, width).to(DEVICE).train()
    x = torch.randn(2, 31, 64, device=DEVICE, dtype=KIND, requires_grad=True)
    leaves = [x, *network.parameters()]

    def run() -> list[torch.Tensor]:
        with torch.autocast(DEVICE, KIND, enabled=torch.bfloat16 == KIND):
            output = network(x)
        return [output, *torch.autograd.grad(output, leaves, torch.ones_like(output))]

    ours = run()
    monkeypatch.setattr(dispatch, "HAS_TRITON", False)
    for found, expected in zip(ours, run(), strict=True):
        torch.testing.assert_close(found.float(), expected.float(), rtol=2e-2, atol=2e-2)


@where_they_run
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("width", [24, 512, 1024])
def test_add_and_norm_in_one_kernel(width, dropout):
    torch.manual_seed(0)
    add = AddAndNorm(width, dropout=dropout, norm="post", eps=1e-5).to(DEVICE).train()
    with torch.no_grad():
        add.norm.weight.normal_()
        add.norm.bias.normal_()
    x, y = (
        torch.randn(2, NUM_ROWS, width, device=DEVICE, dtype=KIND, requires_grad=True)
        for _ in range(2)
    )
    from attendo.kernels.add_norm import add_and_norm

    seed = torch.tensor([123456789012345], device=DEVICE)
    rows = (x.flatten(0, 1), y.flatten(0, 1))
    ours, total, _, _ = add_and_norm(
        *rows, add.norm.weight, add.norm.bias, seed, dropout, add.norm.eps
    )
    kept = _kept(width, seed, dropout, rows[0])
    noise = 4 * (dropout * (1 - dropout) / kept.numel()) ** 0.5  # four standard deviations
    assert float((kept == 0).float().mean()) == pytest.approx(dropout, abs=max(0.01, noise))
    sums = x.flatten(0, 1).float() + y.flatten(0, 1).float() * kept
    torch.testing.assert_close(total.float(), sums, rtol=1e-2, atol=1e-2)
    expected = F.layer_norm(sums, (width,), add.norm.weight, add.norm.bias, add.norm.eps)
    torch.testing.assert_close(ours.float(), expected, rtol=3e-2, atol=6e-2)
    leaves = (x, y, add.norm.weight, add.norm.bias)
    gradient = torch.randn_like(expected)
    for found, wanted in zip(
        torch.autograd.grad(ours, leaves, gradient.to(ours.dtype)),
        torch.autograd.grad(expected, leaves, gradient),
        strict=True,
    ):
        torch.testing.assert_close(found.float(), wanted.float(), rtol=5e-2, atol=1.0)


def _norm(width: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(width, device=DEVICE), torch.zeros(width, device=DEVICE)


def _kept(width: int, seed: torch.Tensor, dropout: float, like: torch.Tensor) -> torch.Tensor:
    """Find what is kept, and how much larger: the sum of nothing and ones."""
    from attendo.kernels.add_norm import add_and_norm

    _, total, _, _ = add_and_norm(
        torch.zeros_like(like), torch.ones_like(like), *_norm(width), seed, dropout, 1e-5
    )
    return torch.where(total > 0, 1.0 / (1.0 - dropout), 0.0).detach()


@on_gpu
def test_a_recorded_step_repeats_what_a_plain_one_does(packed_batches):
    torch.manual_seed(0)
    model = Transformer(120, d_model=32, d_ff=64, num_heads=2, num_layers=2, dropout=0.1).cuda()
    teacher = LossModule(model.train(), smoothing=0.1)

    def run(batch, weight):
        return forward_backward(teacher, batch, weight, precision=torch.bfloat16)

    graph = CapturedTrainStep(run, list(model.parameters()))
    for number, batch in enumerate(packed_batches * 2):
        torch.manual_seed(number)
        recorded = float(graph(batch, 0.01))
        gradients = [p.grad.clone() for p in model.parameters()]
        kept = [p.grad for p in model.parameters()]
        for p in model.parameters():
            p.grad = None
        torch.manual_seed(number)
        plain = float(run(batch.to(torch.device("cuda")), 0.01))
        assert recorded == pytest.approx(plain, rel=1e-5)
        for p, found in zip(model.parameters(), gradients, strict=True):
            torch.testing.assert_close(found, p.grad, rtol=1e-3, atol=1e-5)
        for p, position in zip(model.parameters(), kept, strict=True):
            p.grad = position


@pytest.fixture
def packed_batches():
    import numpy as np

    from attendo.data.packed_batching import PackedShape, pack_pairs

    generator = np.random.default_rng(0)
    batches = []
    for _ in range(3):
        lengths = generator.integers(1, 9, 6), generator.integers(1, 9, 6)
        ids = [generator.integers(4, 120, side.sum()) for side in lengths]
        batches.append(
            pack_pairs(*ids, *lengths, max_seqlens=(9, 9), shape=PackedShape(64, 64, 24))
        )
    return batches
