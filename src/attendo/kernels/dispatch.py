"""Where the kernels of our own (Triton) can take the place of PyTorch's.

The environment variable `ATTENDO_KERNELS=off` leaves them out: for finding out whose fault it is.
GPUs before compute capability 8 (a T4, a V100) have none of them. With `TRITON_INTERPRET=1` Triton
runs them on a CPU, slowly, in float32: for trying them without a GPU.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.util import find_spec
from shutil import which

import torch
from torch import Tensor

OPAQUE_OPS = ("attendo::varlen_cross_attention", "attendo::cross_entropy_from_logits")
"""Those of ours that stand behind whole stacks: between encoder and decoder, and at the end."""
HALF_DTYPES = (torch.bfloat16, torch.float16)
DECODE_STEP_DTYPES = (*HALF_DTYPES, torch.float32)
"""Of the kernels of a decoding step, which wait for memory rather than for tensor cores."""
HAS_COMPILER = bool(os.environ.get("CC") or which("gcc") or which("clang"))
"""With which Triton builds what launches its kernels."""
IS_ENABLED = os.environ.get("ATTENDO_KERNELS") != "off"
HAS_TRITON = IS_ENABLED and HAS_COMPILER and find_spec("triton") is not None
IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def can_use_kernels(x: Tensor, dtypes: tuple[torch.dtype, ...] = HALF_DTYPES) -> bool:
    """Tell whether x lies where they run, in one of the types that they are made for."""
    if IS_INTERPRETED:
        return HAS_TRITON and x.device.type == "cpu" and x.dtype == torch.float32
    return HAS_TRITON and x.is_cuda and x.dtype in dtypes and has_tensor_core_bf16(x.device.index)


def has_tensor_core_bf16(index: int | None) -> bool:
    """Tell whether a GPU multiplies bfloat16 and TF32 (since Ampere, compute capability 8)."""
    return torch.cuda.get_device_capability(index) >= (8, 0)


vars(has_tensor_core_bf16)["_dynamo_marked_constant"] = True
"""What `torch.compiler.assume_constant_result` does, without loading the compiler for it."""


def allow_inductor_fallback() -> None:
    """Name to `torch.compile` what it may leave as it is.

    Before 2.13 it writes out, for a log that nobody reads, all that leads to an operation which it
    meets for the first time: five times as much with each layer before it, minutes behind six.
    """
    with suppress(ImportError):  # a list of its own, which a later one may not have or need
        from torch._inductor.lowering import FALLBACK_ALLOW_LIST

        FALLBACK_ALLOW_LIST.update(OPAQUE_OPS)
