"""What computes: the device, the threads of a CPU, and how they wait for each other.

PyTorch is imported only where a device is resolved: it may not be installed (`has_torch`).
"""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from attendo.core.errors import InputError, MissingTorchError
from attendo.core.message import message

if TYPE_CHECKING:
    import torch
    from torch import Tensor

WAIT_POLICY = "OMP_WAIT_POLICY"
"""The variable of OpenMP, which PyTorch uses on a CPU."""
NUM_THREADS = "OMP_NUM_THREADS"
WITHOUT_FLOAT64 = ("mps",)
"""Kinds of devices that cannot compute in float64."""


DEVICE_NAME = re.compile(r"cpu|mps|(?:cuda|xpu)(?::\d+)?")


def check_device_name(device: str | None) -> str | None:
    """Return the name of a device; raise an error if there is no such kind, without PyTorch."""
    if device is not None and not DEVICE_NAME.fullmatch(device):
        raise InputError(
            message("no device '{device}'", device=device), hint="use cpu, cuda, cuda:1 or mps"
        )
    return device


def has_torch() -> bool:
    """Return whether PyTorch is installed, without importing it."""
    try:
        return "torch" in sys.modules or find_spec("torch") is not None
    except ModuleNotFoundError:  # from an import hook
        return False


def is_torch(module: str | None) -> bool:
    """Return whether a module is PyTorch or a part of it."""
    return module is not None and module.partition(".")[0] == "torch"


def require_torch() -> None:
    """Raise an error that tells how to install PyTorch, unless it is there."""
    if not has_torch():
        raise MissingTorchError


def default_device() -> str:
    """Return the best kind of device that this machine has: cuda, mps (Apple) or cpu."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def resolve_device(device: torch.device | str | None) -> torch.device:
    """Return the given device, or a GPU if there is one; raise an error if it is not available."""
    require_torch()
    import torch

    if isinstance(device, str):
        check_device_name(device)
    try:
        resolved = torch.device(device or default_device())
        torch.zeros(1, device=resolved)
    except (AssertionError, RuntimeError, NotImplementedError):
        hint = "use cpu, or omit the device; attendo doctor --tensors lists GPUs"
        raise InputError(
            message("device '{device}' is not available", device=device), hint=hint
        ) from None
    return resolved


def resolve_device_type(device: torch.device | str | None) -> str:
    """Return the kind of the given device, or of the best one; cpu without PyTorch."""
    if device is None and not has_torch():
        return "cpu"
    if str(device) == "cpu":
        return "cpu"
    return resolve_device(device).type


def accurate_dtype(device: torch.device) -> torch.dtype:
    """Return the type for sums: float64, or float32 on an Apple GPU, which has no float64."""
    import torch

    return torch.float32 if device.type in WITHOUT_FLOAT64 else torch.float64


def to_accurate(values: Tensor) -> Tensor:
    """Return values in the type for sums of their device."""
    return values.to(accurate_dtype(values.device))


def synchronize(device: torch.device) -> None:
    """Wait until a GPU has computed everything that it was asked for."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def empty_device_cache() -> None:
    """Return the memory that PyTorch keeps for later to the GPU."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()


def use_threads(threads: int | None) -> None:
    """Compute with this many CPU threads; None leaves the default."""
    if threads is None:
        return
    if threads < 1:
        raise InputError(
            message("{count} threads", count=threads), hint="use one thread or more, or omit it"
        )
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(threads)
    else:
        os.environ[NUM_THREADS] = str(threads)  # PyTorch reads it when it is loaded


def num_compute_threads() -> int:
    """Return the number of CPU threads that compute, without importing PyTorch."""
    if (torch := sys.modules.get("torch")) is not None:
        count: int = torch.get_num_threads()
        return count
    from attendo.core.hardware import usable_cores

    given = os.environ.get(NUM_THREADS, "")
    return int(given) if given.isdigit() and int(given) > 0 else usable_cores()


def use_passive_waiting() -> None:
    """Let waiting threads sleep instead of spinning, unless the user has chosen otherwise.

    A thread that spins at a barrier occupies a core that another process, or the thread it waits
    for, could use: with another busy process, training was 20 times slower (docs/log.md). OpenMP
    reads the variable when PyTorch loads it, so it has no effect after that.
    """
    if "torch" not in sys.modules:
        os.environ.setdefault(WAIT_POLICY, "PASSIVE")
