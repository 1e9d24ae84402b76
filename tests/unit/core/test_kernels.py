"""What `torch.compile` is told of our own operations."""

from __future__ import annotations

from attendo.core.kernels import DEEP_OPERATIONS, tell_compiler


def test_the_compiler_knows_the_operations_that_stand_behind_whole_stacks():
    from torch._inductor.lowering import FALLBACK_ALLOW_LIST

    tell_compiler()
    assert set(DEEP_OPERATIONS) <= set(FALLBACK_ALLOW_LIST)
