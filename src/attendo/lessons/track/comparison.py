"""Compare what a learner's code returns with what it should, and name typical mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from attendo.lessons.blocks import LocalizedText

    Mistakes = Mapping[str, Tensor]
    """What typical mistakes lead to, by the name of the mistake."""

prose = Prose("attendo.lessons.track")

TOLERANCE = 1e-4
MAX_ROWS, MAX_COLUMNS = 4, 7


class Check(NamedTuple):
    """One test of a step: it calls the learner's module and raises an error, or does nothing."""

    name: str
    run: Callable[[Any], None]


class CheckError(Exception):
    """A test that does not pass, with the reason."""

    def __init__(self, reason: LocalizedText, expected: str = "", found: str = "") -> None:
        super().__init__(reason.en)
        self.reason, self.expected, self.found = reason, expected, found


def compare(
    found: object, expected: Tensor, mistakes: Mistakes | None = None, *, tolerance: float = 0.0
) -> None:
    """Raise an error unless both are equal, with the name of the mistake if it is a known one."""
    if not isinstance(found, Tensor):
        raise CheckError(prose("not-a-tensor", type=type(found).__name__))
    numbers = describe(expected), describe(found)
    for name, wrong in (mistakes or {}).items():
        if _is_equal(found, wrong, tolerance) and not _is_equal(found, expected, tolerance):
            raise CheckError(prose(f"mistake-{name}"), *numbers)
    if found.shape != expected.shape:
        shapes = str(tuple(expected.shape)), str(tuple(found.shape))
        raise CheckError(prose("wrong-shape", expected=shapes[0], found=shapes[1]), *numbers)
    if (found.dtype == torch.bool) != (expected.dtype == torch.bool):
        raise CheckError(prose("wrong-type", expected=expected.dtype, found=found.dtype))
    if not _is_equal(found, expected, tolerance):
        raise CheckError(prose("wrong-numbers"), *numbers)


def _is_equal(found: Tensor, other: Tensor, tolerance: float) -> bool:
    if found.shape != other.shape or (found.dtype == torch.bool) != (other.dtype == torch.bool):
        return False
    return torch.allclose(found.double(), other.double(), rtol=0, atol=tolerance or TOLERANCE)


def compare_number(
    found: object,
    expected: float,
    mistakes: Mapping[str, float] | None = None,
    *,
    tolerance: float = 0.0,
) -> None:
    """Raise an error unless a number, or a tensor of one number, is the expected one."""
    if not isinstance(found, int | float | Tensor):
        raise CheckError(prose("not-a-number", type=type(found).__name__))
    wrong = {name: torch.tensor(value) for name, value in (mistakes or {}).items()}
    compare(torch.as_tensor(found).detach(), torch.tensor(expected), wrong, tolerance=tolerance)


def describe(values: Tensor) -> str:
    """Return a tensor with its shape; of a large one the beginning.

    >>> describe(torch.tensor([[1.0, 0.25], [0.0, 3.0]]))
    '(2, 2) [[1, 0.25], [0, 3]]'
    """
    if values.dim() == 0:
        return _format(values.item())
    shown = values.detach()
    while shown.dim() > 2:
        shown = shown[0]
    corner = shown[:MAX_ROWS, :MAX_COLUMNS] if shown.dim() == 2 else shown[:MAX_COLUMNS]
    return f"{tuple(values.shape)} {_format(corner.tolist())}"


def _format(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_format, value))}]"
    return str(value) if isinstance(value, bool) else f"{value:.5g}"


def load_weights(module: object, weights: Mapping[str, Tensor]) -> None:
    """Copy our weights into the learner's module; raise an error if their names differ."""
    if not isinstance(module, nn.Module):
        raise CheckError(prose("not-a-module", type=type(module).__name__))
    own = module.state_dict()
    _check_names(set(weights) - set(own), set(own) - set(weights), own)
    for name, weight in weights.items():
        if own[name].shape != weight.shape:
            shapes = str(tuple(weight.shape)), str(tuple(own[name].shape))
            raise CheckError(prose("wrong-weight", name=name, expected=shapes[0], found=shapes[1]))
    module.load_state_dict(dict(weights))
    module.eval()


def _check_names(missing: Iterable[str], unknown: Iterable[str], own: Iterable[str]) -> None:
    if missing := sorted(missing):
        found = ", ".join(own) or "–"
        raise CheckError(prose("missing-weights", names=", ".join(missing), found=found))
    if unknown := sorted(unknown):
        raise CheckError(prose("unknown-weights", names=", ".join(unknown)))
