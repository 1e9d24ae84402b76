"""One seed for every source of chance, and the whole random state as plain tensors.

A run that is resumed must draw the numbers that it would have drawn: `capture` and `restore` carry
the states of Python, NumPy and PyTorch (CPU and each GPU) through a checkpoint, as byte tensors and
without pickle.
"""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any

import numpy as np
import torch
from torch import Tensor


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


def capture() -> dict[str, Tensor]:
    """Take every random state, each as a uint8 tensor."""
    version, internal, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)  # noqa: NPY002
    states = {
        "python": _pack([version, list(internal), gauss]),
        "numpy": _pack([name, np.asarray(keys).tolist(), position, has_gauss, cached]),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        gpus = torch.cuda.get_rng_state_all()
        states |= {f"cuda.{number}": state for number, state in enumerate(gpus)}
    return states


def restore(states: dict[str, Tensor]) -> None:
    """Put back what `capture` took; states of GPUs that are not here are left out."""
    version, internal, gauss = _unpack(states["python"])
    random.setstate((version, tuple(internal), gauss))
    name, keys, position, has_gauss, cached = _unpack(states["numpy"])
    np.random.set_state((name, np.array(keys, dtype=np.uint32), position, has_gauss, cached))  # noqa: NPY002
    torch.set_rng_state(states["torch"])
    for number in range(torch.cuda.device_count()):
        if f"cuda.{number}" in states:
            torch.cuda.set_rng_state(states[f"cuda.{number}"], number)


def _pack(state: list[Any]) -> Tensor:
    return torch.frombuffer(bytearray(json.dumps(state).encode()), dtype=torch.uint8)


def _unpack(packed: Tensor) -> list[Any]:
    state: list[Any] = json.loads(bytes(packed.cpu().numpy()))
    return state
