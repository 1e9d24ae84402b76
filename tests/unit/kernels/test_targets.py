"""Our kernels compile for GPUs that are not here, and fit into the memory that a program has there.

Every kernel is called as on a GPU, in bfloat16, those of decoding in float32 and TF32 too; what
would be launched is written down, and then compiled for each generation by Triton, which needs no
GPU for it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import torch

from attendo.kernels import dispatch
from attendo.kernels.tf32 import use_tf32

if os.environ.get("CI") != "true":
    pytest.importorskip("triton", reason="triton is not installed")

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

pytestmark = pytest.mark.skipif(dispatch.IS_INTERPRETED, reason="interpreted: nothing is compiled")
TARGETS = {86: 99, 90: 227, 100: 227}
"""By compute capability (RTX 30, H100, B200): KiB of memory that a program may share."""
TIGHTEST = 86
KINDS = {
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.int64: "*i64",
    torch.int32: "*i32",
}
NUM_HEADS = 8
NUM_KERNELS = 11


class Launch(NamedTuple):
    """A kernel and what it was called with."""

    kernel: Any
    values: tuple[Any, ...]
    num_warps: int

    def compile(self, capability: int) -> Any:
        from triton import compile as compile_kernel
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        signature, constants, hints = {}, {}, {}
        for index, (parameter, value) in enumerate(
            zip(self.kernel.params, self.values, strict=True)
        ):
            is_constant = parameter.is_constexpr or value is None
            signature[parameter.name] = "constexpr" if is_constant else name_type(value)
            if is_constant:
                constants[(index,)] = value
            elif isinstance(value, torch.Tensor) or (isinstance(value, int) and value % 16 == 0):
                hints[(index,)] = [["tt.divisibility", 16]]
        source = ASTSource(self.kernel, signature, constexprs=constants, attrs=hints)
        target = GPUTarget("cuda", capability, 32)
        return compile_kernel(source, target=target, options={"num_warps": self.num_warps})


def name_type(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return KINDS[value.dtype]
    if isinstance(value, int):
        return "i32" if abs(value) < 2**31 else "i64"
    return "fp32"


@pytest.fixture(scope="module")
def launches(tmp_path_factory) -> Iterator[list[Launch]]:
    """Call everything, and write down what would run."""
    from triton.runtime.jit import JITFunction

    found: dict[tuple[object, ...], Launch] = {}

    def write_down(kernel: Any, _grid: object) -> Any:
        def launch(*values: Any, num_warps: int) -> None:
            reported = [(v.dtype if isinstance(v, torch.Tensor) else v) for v in values]
            found[(kernel, num_warps, *reported)] = Launch(kernel, values, num_warps)

        return launch

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        patch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
        patch.setattr(JITFunction, "__getitem__", write_down)
        call_training()
        call_decoding(torch.bfloat16)
        call_decoding(torch.float32)
        with use_tf32():
            call_decoding(torch.float32)
        yield list(found.values())


def halves(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.bfloat16)


def call_training() -> None:
    from attendo.kernels.add_norm import add_and_norm, add_and_norm_backward
    from attendo.kernels.cross_entropy import cross_entropy_with_gradient
    from attendo.kernels.linear_relu import relu_backward
    from attendo.kernels.varlen_attention_triton import varlen_attention, varlen_attention_backward

    for lengths, width in (([32] * 8, 64), ([3] * 30 + [100], 64), ([50] * 4, 64), ([50] * 4, 128)):
        starts = (torch.zeros(len(lengths) + 1, dtype=torch.int32),) * 2
        longest, joined = (max(lengths),) * 2, halves(sum(lengths), 3, NUM_HEADS, width)
        sides = joined[:, 0], joined[:, 1:]
        output, sums = varlen_attention(*sides, starts, longest, True, 0.125)
        varlen_attention_backward(
            output, *sides, output, sums, *sides, starts, longest, True, 0.125
        )
    for width in (512, 1024):
        rows, vector = halves(4, width), torch.zeros(width)
        seed = torch.zeros(1, dtype=torch.int64)
        _, total, means, rates = add_and_norm(rows, rows, vector, vector, seed, 0.1, 1e-5)
        add_and_norm_backward(rows, total, vector, seed, means, rates, 0.1, rows.dtype)
        relu_backward(halves(8, 4 * width), halves(8, 4 * width))
    cross_entropy_with_gradient(halves(2, 37000), torch.zeros(2, dtype=torch.int64), 0.1, 0)


def call_decoding(kind: torch.dtype) -> None:
    from attendo.kernels.decode_step import (
        decode_cross_attention,
        decode_self_attention,
        fused_linear,
        layer_norm,
    )
    from attendo.kernels.top_k_triton import fused_top_k_log_probs
    from attendo.model.fast.fused_weights import LayerNormWeights, ResidualStream

    def zeros(*shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=kind)

    size = NUM_HEADS * 64
    for width in (1, 4):
        projected, position = zeros(2 * width, 3 * size), torch.zeros(1, dtype=torch.int64)
        earlier, mask = zeros(2, 32, width, 2 * size), zeros(2, width, 32, width)
        decode_self_attention(projected, earlier, mask, position, NUM_HEADS, scale=0.125)
        keys = zeros(2, NUM_HEADS, 32, 64)
        decode_cross_attention(projected[:, :size], keys, keys, zeros(2, 1, 1, 32), scale=0.125)
    norm = LayerNormWeights(zeros(size), zeros(size), 1e-5)
    layer_norm(zeros(2, size), *norm)
    for num_rows in (1, 8):
        x, inner = zeros(num_rows, size), zeros(num_rows, 4 * size)
        fused_linear(x, zeros(3 * size, size), zeros(3 * size), norm=norm)
        fused_linear(x, zeros(4 * size, size), zeros(4 * size), norm=norm, is_relu=True)
        fused_linear(inner, zeros(size, 4 * size), residual=ResidualStream(x, norm))
        fused_linear(inner, zeros(size, 4 * size), zeros(size), residual=ResidualStream(x))
    for num in (1, 8):
        fused_top_k_log_probs(zeros(2, 37000), num, torch.zeros(3, dtype=torch.int64))


def compile_and_measure(launches: Iterable[Launch], capability: int) -> None:
    for launch in launches:
        reported = f"{launch.kernel.__name__} for sm_{capability}"
        assert launch.compile(capability).metadata.shared <= TARGETS[capability] * 1024, reported


def test_every_kernel_compiles_and_fits_the_smallest_memory(launches):
    one_of_each = {launch.kernel: launch for launch in launches}
    assert len(one_of_each) == NUM_KERNELS
    compile_and_measure(one_of_each.values(), TIGHTEST)


@pytest.mark.slow
@pytest.mark.parametrize("capability", TARGETS)
def test_every_launch_compiles_and_fits(launches, capability):
    compile_and_measure(launches, capability)
