"""What the tests of memory look through."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LargestTensor(TorchDispatchMode):
    """Notes how many numbers the largest tensor holds that any operation gives."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                held = leaf.untyped_storage().nbytes() // leaf.element_size()
                self.numbers = max(self.numbers, held)
        return result


@pytest.fixture
def watch_largest() -> type[LargestTensor]:
    """Return a context that notes, in `numbers`, the size of the largest tensor made within it."""
    return LargestTensor
