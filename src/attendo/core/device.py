"""Choice of the PyTorch device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    import torch


def resolve_device(device: torch.device | str | None) -> torch.device:
    """Return the given device, or a GPU if there is one; raise an error if it is not available."""
    import torch

    try:
        resolved = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.zeros(1, device=resolved)
    except (AssertionError, RuntimeError, NotImplementedError):
        hint = "use cpu, or omit the device; attendo doctor --tensors lists GPUs"
        raise InputError(
            message("device '{device}' is not available", device=device), hint=hint
        ) from None
    return resolved
