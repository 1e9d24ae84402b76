"""Positional encoding (section 3.5): sinusoids of any length, learned vectors, concatenated ones.

A position module takes embedded tokens (B, T, D) and adds the vectors of their positions, which
count up from an offset or are given for each token.
"""

from __future__ import annotations

from math import log
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from attendo.core.device import WITHOUT_FLOAT64
from attendo.core.errors import ConfigError, InputError, suggest
from attendo.core.sinusoids import FAIRSEQ_OFFSET

Layout = Literal["interleaved", "halves", "tensor2tensor"]
AnyLayout = Literal["interleaved", "halves", "tensor2tensor", "fairseq"]
LAYOUTS = get_args(AnyLayout)


class PositionIds(NamedTuple):
    """A position for each token, where they do not simply count up from an offset."""

    ids: Tensor  # (T,) or (B, T), int64
    end: int
    """All ids are below it."""


def sinusoidal(
    length: int,
    d_model: int,
    *,
    layout: AnyLayout = "interleaved",
    offset: int = 0,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(the same).

    Angles are computed in float64: at position 10,000 a float32 angle is already wrong in the third
    digit. Paper: `layout="halves"` departs from it, all sines come first and then all cosines, at
    the same frequencies; `layout="tensor2tensor"` is `get_timing_signal_1d` of tensor2tensor, in
    halves with the frequencies 1 / 10000^(i/(d_model/2 - 1)), which reach 1 / 10000;
    `layout="fairseq"` is the same, but counts from 2.

    >>> sinusoidal(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    >>> sinusoidal(2, 4, layout="tensor2tensor")
    tensor([[0.0000e+00, 0.0000e+00, 1.0000e+00, 1.0000e+00],
            [8.4147e-01, 1.0000e-04, 5.4030e-01, 1.0000e+00]])
    """
    if layout not in LAYOUTS:
        raise ConfigError(f"no position layout '{layout}'", hint=suggest(layout, LAYOUTS))
    device_type = torch.device(device or "cpu").type
    precise = torch.float32 if device_type in WITHOUT_FLOAT64 else torch.float64
    positions = torch.arange(offset, offset + length, dtype=precise, device=device)
    even_dims = torch.arange(0, d_model, 2, dtype=precise, device=device)  # 2i
    frequency_span = d_model
    if layout == "fairseq":
        positions, frequency_span = positions + FAIRSEQ_OFFSET, max(d_model - 2, 1)
    elif layout == "tensor2tensor":
        even_dims = even_dims[: d_model // 2]  # an odd last dimension is 0
        frequency_span = max(2 * len(even_dims) - 2, 1)
    frequencies = torch.exp(even_dims * (-log(10_000.0) / frequency_span))  # (ceil(D / 2),)
    angles = positions[:, None] * frequencies  # (T, ceil(D / 2))
    sines, cosines = angles.sin(), angles.cos()
    if layout == "interleaved":
        table = torch.stack((sines, cosines), dim=-1).flatten(1)[:, :d_model]
    else:
        table = torch.cat((sines, cosines[:, : d_model // 2]), dim=-1)
        table = nn.functional.pad(table, (0, d_model - table.size(1)))
    return table.to(dtype or torch.get_default_dtype())  # (T, D)


class SinusoidalPositions(nn.Module):
    """Adds the sinusoids. It has no parameters and no maximum length."""

    def __init__(self, d_model: int, *, layout: AnyLayout = "interleaved") -> None:
        super().__init__()
        self.d_model = d_model
        self.layout: AnyLayout = layout

    def table(self, embedded: Tensor, positions: int | PositionIds) -> Tensor:
        """Return the vectors (T, D) for the positions of `embedded`."""
        options: dict[str, Any] = {
            "layout": self.layout,
            "dtype": embedded.dtype,
            "device": embedded.device,
        }
        if isinstance(positions, PositionIds):
            table = sinusoidal(positions.end, self.d_model, **options)
            if torch.compiler.is_compiling():
                from attendo.kernels.materialize import materialize

                table = materialize(table)
            return table[positions.ids]
        return sinusoidal(embedded.size(1), self.d_model, offset=positions, **options)

    def forward(self, embedded: Tensor, positions: int | PositionIds = 0) -> Tensor:
        """Add the vector of its position to each token."""
        return embedded + self.table(embedded, positions)


class LearnedPositions(nn.Module):
    """Adds one learned vector per position, up to `max_length` (Table 3, row E)."""

    def __init__(self, d_model: int, max_length: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_length, d_model))

    def forward(self, embedded: Tensor, positions: int | PositionIds = 0) -> Tensor:
        """Add the vector of its position to each token."""
        if isinstance(positions, PositionIds):
            self._check_length(positions.end)
            return embedded + self.weight[positions.ids]
        end = positions + embedded.size(1)
        self._check_length(end)
        return embedded + self.weight[positions:end]

    def _check_length(self, end: int) -> None:
        max_length = self.weight.size(0)
        if end > max_length:
            raise InputError(
                f"a sequence of {end} positions is longer than the {max_length} learned ones",
                hint="split it, train with a larger max_length, or use positions='sinusoidal'",
            )


class ConcatenatedPositions(SinusoidalPositions):
    """Concatenates embedding and sinusoids and projects 2 x d_model back to d_model.

    Paper: departs from it. Adding is the special case in which both halves of the projection are
    the identity; the freedom costs 2 x d_model^2 parameters.
    """

    def __init__(self, d_model: int, *, layout: AnyLayout = "interleaved") -> None:
        super().__init__(d_model, layout=layout)
        self.projection = nn.Linear(2 * d_model, d_model, bias=False)

    def forward(self, embedded: Tensor, positions: int | PositionIds = 0) -> Tensor:
        """Combine each token with the vector of its position."""
        encodings = self.table(embedded, positions).expand_as(embedded)
        mixed: Tensor = self.projection(torch.cat((embedded, encodings), dim=-1))
        return mixed


class NoPositions(nn.Module):
    """Leaves the tokens without positions, to show what positions are for."""

    def forward(self, embedded: Tensor, positions: int | PositionIds = 0) -> Tensor:  # noqa: ARG002
        """Return the tokens unchanged."""
        return embedded


def make_positions(
    kind: Literal["sinusoidal", "learned", "concatenated", "none"],
    d_model: int,
    *,
    layout: AnyLayout = "interleaved",
    max_length: int = 1024,
) -> nn.Module:
    """Return a new position module of this kind."""
    match kind:
        case "sinusoidal":
            return SinusoidalPositions(d_model, layout=layout)
        case "learned":
            return LearnedPositions(d_model, max_length)
        case "concatenated":
            return ConcatenatedPositions(d_model, layout=layout)
        case "none":
            return NoPositions()
