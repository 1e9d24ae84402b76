"""Decides where Attendo's Triton kernels replace PyTorch's.

`ATTENDO_KERNELS=off` disables them, for debugging. They need a GPU of compute capability 8 or later
(not a T4 or a V100). With `TRITON_INTERPRET=1` Triton runs them on a CPU, slowly, in float32, to
test them without a GPU.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import torch
from torch import Tensor

OPAQUE_OPS = ("attendo::varlen_cross_attention", "attendo::cross_entropy_from_logits")
"""Custom operators whose inputs depend on a whole stack of layers."""
HALF_DTYPES = (torch.bfloat16, torch.float16)
DECODE_STEP_DTYPES = (*HALF_DTYPES, torch.float32)
"""Dtypes of the decoding kernels, which are limited by memory rather than by tensor cores."""
KERNEL_HEAD_SIZES = (16, 32, 64, 128)
"""Head sizes that the tiles of the attention kernels support."""
HAS_COMPILER = bool(os.environ.get("CC") or which("gcc") or which("clang"))
"""Whether there is a C compiler, with which Triton builds the launchers of its kernels."""
IS_ENABLED = os.environ.get("ATTENDO_KERNELS") != "off"
HAS_TRITON = IS_ENABLED and HAS_COMPILER and find_spec("triton") is not None
IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def can_use_kernels(x: Tensor, dtypes: tuple[torch.dtype, ...] = HALF_DTYPES) -> bool:
    """Return whether the kernels run on the device of x, in one of these dtypes."""
    if IS_INTERPRETED:
        return HAS_TRITON and x.device.type == "cpu" and x.dtype == torch.float32
    return HAS_TRITON and x.is_cuda and x.dtype in dtypes and has_tensor_core_bf16(x.device.index)


def has_tensor_core_bf16(index: int | None) -> bool:
    """Return whether a GPU multiplies bfloat16 and TF32 (compute capability 8, Ampere)."""
    return torch.cuda.get_device_capability(index) >= (8, 0)


def kernel_cache_dir() -> Path:
    """Return the folder in which Triton keeps the kernels that it has built."""
    home = Path(os.environ.get("TRITON_HOME") or Path.home())
    return Path(os.environ.get("TRITON_CACHE_DIR") or home / ".triton" / "cache")


vars(has_tensor_core_bf16)["_dynamo_marked_constant"] = True
"""The effect of `torch.compiler.assume_constant_result`, without importing the compiler."""


def allow_inductor_fallback() -> None:
    """Register the operators that `torch.compile` may leave as they are.

    Before 2.13, `torch.compile` logs the whole graph that leads to an operator without a lowering:
    five times as much text per layer, which takes minutes after six layers.
    """
    with suppress(ImportError):  # a private list, which a later version may not have or need
        from torch._inductor.lowering import FALLBACK_ALLOW_LIST

        FALLBACK_ALLOW_LIST.update(OPAQUE_OPS)
