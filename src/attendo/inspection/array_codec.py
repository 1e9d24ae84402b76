"""Arrays in JSON: 16 bits per number, little-endian, base64."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

import numpy as np

from attendo.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

WEIGHT_AXES = ("layers", "heads", "rows", "columns")
U16_MAX = 65_535
"""Code of a weight of one."""


def encode_u16(weights: NDArray[np.float32] | None) -> dict[str, Any] | None:
    """Return weights (L, H, T, S) as JSON; every row sums to `U16_MAX`."""
    if weights is None:
        return None
    if not np.isfinite(weights).all():
        raise not_finite_error()
    sums = np.rint(np.cumsum(weights, axis=-1, dtype=np.float64) * U16_MAX)
    values = np.diff(sums, axis=-1, prepend=0).clip(0, U16_MAX).astype("<u2")
    sizes = dict(zip(WEIGHT_AXES, weights.shape, strict=True))
    return {**sizes, "encoding": "u16", "data": base64.b64encode(values.tobytes()).decode()}


def decode_u16(encoded: dict[str, Any] | None) -> NDArray[np.float32] | None:
    """Return the weights that `encode_u16` encoded, within 1 / `U16_MAX`."""
    return (
        None if encoded is None else decode_array(encoded, "u16", WEIGHT_AXES) / np.float32(U16_MAX)
    )


def decode_array(
    encoded: dict[str, Any], encoding: str, axes: Sequence[str]
) -> NDArray[np.float32]:
    """Decode an array; raise `ValueError` if it is malformed."""
    if encoded["encoding"] != encoding:
        raise ValueError(f"the encoding is '{encoded['encoding']}', not '{encoding}'")
    try:
        data = base64.b64decode(encoded["data"], validate=True)
    except binascii.Error:
        raise ValueError("the data is not base64") from None
    shape = [int(encoded[size]) for size in axes]
    if min(shape) < 1:
        raise ValueError(f"the data does not fit the shape {shape}")
    numbers = np.frombuffer(data, "<u2" if encoding == "u16" else "<f2")
    return numbers.reshape(shape).astype(np.float32)


def encode_positions(
    table: NDArray[np.floating[Any]], *, kind: str, layout: str | None
) -> dict[str, Any]:
    """Return the section `positions` for a table (positions, d_model)."""
    num_positions, d_model = table.shape
    return {
        "kind": kind,
        "layout": layout,
        "d_model": d_model,
        "num_positions": num_positions,
        "encoding": "f16",
        "data": base64.b64encode(table.astype("<f2").tobytes()).decode(),
    }


def not_finite_error() -> InputError:
    """Return the error for a model whose outputs are not finite."""
    hint = "the weights of the model are damaged, or its training has diverged"
    return InputError("the record contains a number that is not finite", hint=hint)
