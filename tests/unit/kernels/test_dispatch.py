"""What `torch.compile` is told of our own operations."""

from __future__ import annotations

from attendo.kernels.dispatch import OPAQUE_OPS, allow_inductor_fallback


def test_the_compiler_knows_the_operations_that_stand_behind_whole_stacks():
    from torch._inductor.lowering import FALLBACK_ALLOW_LIST

    allow_inductor_fallback()
    assert set(OPAQUE_OPS) <= set(FALLBACK_ALLOW_LIST)
