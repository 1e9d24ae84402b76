"""The table of sinusoidal positions in NumPy, for formats that store it. It needs no PyTorch.

`attendo.model.positional_encoding.sinusoidal` is the same in PyTorch, and documents the layouts.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FAIRSEQ_OFFSET = 2
"""fairseq's position of the first token; its lower positions are reserved for padding."""


def sinusoidal_table(
    length: int,
    d_model: int,
    *,
    layout: Literal["interleaved", "halves", "tensor2tensor", "fairseq"] = "interleaved",
) -> NDArray[Any]:
    """Return the vectors of the first positions, (length, D), in float32.

    >>> sinusoidal_table(2, 4).round(4).tolist()[1][:2]
    [0.8414999842643738, 0.5403000116348267]
    """
    positions = np.arange(length, dtype=np.float64)
    even_dims = np.arange(0, d_model, 2, dtype=np.float64)  # 2i
    frequency_span = d_model
    if layout == "fairseq":
        positions, frequency_span = positions + FAIRSEQ_OFFSET, max(d_model - 2, 1)
    elif layout == "tensor2tensor":
        even_dims = even_dims[: d_model // 2]  # an odd last dimension is 0
        frequency_span = max(2 * len(even_dims) - 2, 1)
    frequencies = np.exp(even_dims * (-log(10_000.0) / frequency_span))  # (ceil(D / 2),)
    angles = positions[:, None] * frequencies  # (T, ceil(D / 2))
    sines, cosines = np.sin(angles), np.cos(angles)
    table = np.zeros((length, d_model))
    if layout == "interleaved":
        table[:, 0::2], table[:, 1::2] = sines, cosines[:, : d_model // 2]
    else:
        width = sines.shape[1]
        table[:, :width] = sines
        table[:, width : width + d_model // 2] = cosines[:, : d_model // 2]
    return table.astype(np.float32)
