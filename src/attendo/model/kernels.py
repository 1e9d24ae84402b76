"""Where the kernels of our own (Triton) can take the place of PyTorch's.

The environment variable `ATTENDO_KERNELS=off` leaves them out: for finding out whose fault it is.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

import torch
from torch import Tensor

HALF_TYPES = (torch.bfloat16, torch.float16)
HAS_TRITON = find_spec("triton") is not None and os.environ.get("ATTENDO_KERNELS") != "off"


def has_kernels(x: Tensor) -> bool:
    """Tell whether x lies where they run, in a type that they are made for."""
    return HAS_TRITON and x.is_cuda and x.dtype in HALF_TYPES
