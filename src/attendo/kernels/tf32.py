"""TF32: float32 matrix products on the tensor cores of a GPU, several times as fast.

Factors are rounded to ten bits, sums are in float32. PyTorch has one switch for the whole process,
which is off by default.
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
    """Return whether a device supports TF32."""
    return device.type == "cuda" and has_tensor_core_bf16(device.index)


def is_tf32_enabled() -> bool:
    """Return whether float32 products use TF32 at the moment."""
    return bool(torch.backends.cuda.matmul.fp32_precision == "tf32")


class _Switch:
    """Turns TF32 on with the first user and restores it with the last."""

    def __init__(self) -> None:
        self.lock, self.num_users, self.previous = Lock(), 0, "none"

    def acquire(self) -> None:
        with self.lock:
            self.num_users += 1
            if self.num_users == 1:
                self.previous = torch.backends.cuda.matmul.fp32_precision
                if self.previous != "tf32":
                    torch.backends.cuda.matmul.allow_tf32 = True  # the older name sets both

    def release(self) -> None:
        with self.lock:
            self.num_users -= 1
            if self.num_users == 0 and self.previous != "tf32":
                torch.backends.cuda.matmul.allow_tf32 = False
                torch.backends.cuda.matmul.fp32_precision = self.previous


_switch = _Switch()


@contextmanager
def use_tf32() -> Iterator[None]:
    """Use TF32 within the context; products of other threads may use it too."""
    _switch.acquire()
    try:
        yield
    finally:
        _switch.release()
