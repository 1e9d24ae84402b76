"""Weights in PyTorch's own files, loaded without running a line of what they hold.

Such a file is a pickle, and a pickle is a program. PyTorch's weights-only load reads tensors, plain
containers, numbers and texts, and nothing else; a file that needs more is refused here, with the
way to make a safe one of it.
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
"""How PyTorch names what a file wanted to call."""


def load_weights_only(path: Path, *, allowed: Sequence[type] = ()) -> dict[str, Any]:
    """Read a file that holds a table; `allowed` are classes without any behaviour of their own."""
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
        why = str(error).partition("\n")[0] or "it ends too early"
        reason = f"{path} is no PyTorch file, or damaged: {why}"
        raise InputError(reason, hint="copy it again") from None
    if not isinstance(content, dict):
        reason = f"{path} holds a {type(content).__name__}, not a table of tensors"
        raise InputError(reason, hint="give the file in which the toolkit keeps its weights")
    return content


def _unsafe_pickle_error(path: Path, message: str) -> InputError:
    match = REFUSED_GLOBAL.search(message)
    if match is None:
        return InputError(f"{path} is no PyTorch file, or damaged", hint="copy it again")
    return InputError(
        f"{path} is a pickle that would run code: it asks for {match[1]}",
        hint="nothing was run. If you trust it, open it once with the toolkit that made it and "
        "save the weights alone: safetensors.torch.save_file(model.state_dict(), ...), or "
        "torch.save({'model': state['model']}, ...) with the settings in a config.json beside it",
    )
