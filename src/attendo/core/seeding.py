"""Random seeds.

A resumed run must draw the same random numbers as an uninterrupted one. So no random state is
carried along: each use derives its seed from its purpose (`derive_seed`), such as step and process.
"""

from __future__ import annotations

import hashlib
import json
import random


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and PyTorch (CPU and GPUs)."""
    import numpy as np
    import torch

    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - libraries draw from the global state
    torch.manual_seed(seed)


def derive_seed(seed: int, *names: str | int) -> int:
    """Return an independent seed for a named purpose, the same on every machine.

    >>> derive_seed(1, "shuffle", 0) != derive_seed(1, "shuffle", 1)
    True
    """
    text = json.dumps([seed, *names])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
