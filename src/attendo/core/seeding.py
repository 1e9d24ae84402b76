"""One seed for every source of chance.

A run that is resumed must draw the numbers that it would have drawn. So nothing carries a random
state along: each draw is seeded by its purpose (`derive_seed`), e.g. the step and the process.
"""

from __future__ import annotations

import hashlib
import json
import random

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and PyTorch (CPU and GPUs)."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - libraries draw from the global state
    torch.manual_seed(seed)


def derive_seed(seed: int, *names: str | int) -> int:
    """Give an independent seed for a named purpose, the same on every machine.

    >>> derive_seed(1, "shuffle", 0) != derive_seed(1, "shuffle", 1)
    True
    """
    text = json.dumps([seed, *names])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
