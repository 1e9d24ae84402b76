"""Weights in PyTorch's file format, loaded without running code from the file.

Such a file is a pickle, and a pickle is a program. PyTorch's weights-only load reads only tensors,
plain containers, numbers and strings; for a file that needs more, the error explains how to make a
safe one.
"""

from __future__ import annotations

import pickle
import re
from typing import TYPE_CHECKING, Any

import torch

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

REFUSED_GLOBAL = re.compile(r"GLOBAL ([\w.]+)")
"""How PyTorch names what a file wants to call."""


def load_weights_only(path: Path, *, allowed: Sequence[type] = ()) -> dict[str, Any]:
    """Read a file that contains a dict; `allowed` are classes without behavior."""
    try:
        with torch.serialization.safe_globals(list(allowed)):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        reason = message(
            "{path} cannot be read: {detail}", path=path, detail=error.strerror or error
        )
        raise InputError(reason, hint="check the path and its permissions") from None
    except pickle.UnpicklingError as error:
        raise _unsafe_pickle_error(path, str(error)) from None
    except (RuntimeError, EOFError, ValueError, KeyError, AttributeError) as error:
        why = str(error).partition("\n")[0] or "it is truncated"
        reason = message("{path} is not a PyTorch file, or damaged: {why}", path=path, why=why)
        raise InputError(reason, hint="copy it again") from None
    if not isinstance(content, dict):
        reason = message(
            "{path} contains a {name}, not a dict of tensors",
            path=path,
            name=type(content).__name__,
        )
        raise InputError(reason, hint="give the file with the weights")
    return content


def _unsafe_pickle_error(path: Path, reason: str) -> InputError:
    match = REFUSED_GLOBAL.search(reason)
    if match is None:
        return InputError(
            message("{path} is not a PyTorch file, or damaged", path=path), hint="copy it again"
        )
    return InputError(
        message(
            "{path} is a pickle that would run code: it calls {match}", path=path, match=match[1]
        ),
        hint="no code was run. If you trust it, load it once with the toolkit that made it and "
        "save only the weights: safetensors.torch.save_file(model.state_dict(), ...), or "
        "torch.save({'model': state['model']}, ...) with the settings in a config.json next to it",
    )
