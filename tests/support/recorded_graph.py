"""A CUDA graph without a GPU: the operations of a step are recorded and replayed."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

ATEN = torch.ops.aten
WAITS_FOR_DEVICE = {
    ATEN._local_scalar_dense.default,  # .item()
    ATEN.nonzero.default,
    ATEN.masked_select.default,
    ATEN.equal.default,
    ATEN.lift_fresh.default,  # torch.tensor(...)
}
"""What would make the host wait, or fix in the graph what the host knew."""


class Recording(TorchDispatchMode):
    """Stands for a CUDA graph: it replays the operations of a step on the same addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list = []
        self.is_new = True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert func not in WAITS_FOR_DEVICE, f"{func} in a graph"
        result = func(*args, **(kwargs or {}))
        self.operations.append((func, args, kwargs or {}, result))
        return result

    def replay(self) -> None:
        if self.is_new:  # unlike CUDA's, it has done its work while it was recorded
            self.is_new = False
            return
        for func, args, kwargs, result in self.operations:
            again = func(*args, **kwargs)
            for old, new in zip(tree_leaves(result), tree_leaves(again), strict=True):
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)  # neither a view nor written in place
