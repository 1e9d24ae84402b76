"""Products of float32 on the tensor cores of a GPU (TF32): several times as fast.

Factors are rounded to ten bits, sums are in float32. PyTorch has one switch for the whole process,
which is off unless somebody turns it on.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

import torch

from attendo.kernels.dispatch import has_tensor_core_bf16

if TYPE_CHECKING:
    from collections.abc import Iterator


def supports_tf32(device: torch.device) -> bool:
    """Tell whether a device can do so."""
    return device.type == "cuda" and has_tensor_core_bf16(device.index)


def is_tf32_enabled() -> bool:
    """Tell how products are computed just now."""
    return bool(torch.backends.cuda.matmul.fp32_precision == "tf32")


class _Switch:
    """Turned on by the first who wants it, and back by the last."""

    def __init__(self) -> None:
        self.lock, self.num_users, self.previous = Lock(), 0, "none"

    def acquire(self) -> None:
        with self.lock:
            self.num_users += 1
            if self.num_users == 1:
                self.previous = torch.backends.cuda.matmul.fp32_precision
                if self.previous != "tf32":
                    torch.backends.cuda.matmul.allow_tf32 = True  # the older name: both hear it

    def release(self) -> None:
        with self.lock:
            self.num_users -= 1
            if self.num_users == 0 and self.previous != "tf32":
                torch.backends.cuda.matmul.allow_tf32 = False
                torch.backends.cuda.matmul.fp32_precision = self.previous


_switch = _Switch()


@contextmanager
def use_tf32() -> Iterator[None]:
    """Compute products so for a while; other threads may find theirs computed so too."""
    _switch.acquire()
    try:
        yield
    finally:
        _switch.release()
