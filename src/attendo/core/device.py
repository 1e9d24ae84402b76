"""Choice of the PyTorch device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    import torch


def resolve_device(device: torch.device | str | None) -> torch.device:
    """Take a GPU where there is one; refuse what is not there before anything is read."""
    import torch

    try:
        resolved = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.zeros(1, device=resolved)
    except (AssertionError, RuntimeError, NotImplementedError):
        hint = "take cpu, or leave it out; attendo doctor --tensors tells of GPUs"
        raise InputError(message("no device '{device}' here", device=device), hint=hint) from None
    return resolved
