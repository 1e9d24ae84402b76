"""The four kinds of layer that Table 1 compares, each (B, n, D) -> (B, n, D), and what it says.

All are plain and fair: no residual, no normalisation, no dropout, the same width in and out. The
restricted self-attention has the same four projections as the full one. The recurrent layer is
PyTorch's fused LSTM, the strongest that the paper's rivals used.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import TYPE_CHECKING

import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor, nn

from attendo.model.attention import MultiHeadAttention
from attendo.model.fast.local_attention import local_attention

if TYPE_CHECKING:
    from collections.abc import Callable

KERNEL = 3
"""k of the table: positions that a filter covers."""
WIDTH = 32
"""r of the table: positions that restricted self-attention sees."""


class SelfAttention(nn.Module):
    """Every position attends to every position, through the house's own layer."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)

    def forward(self, x: Tensor) -> Tensor:
        """Attend from x to x."""
        mixed, _ = self.attention(x, x, x)
        return mixed  # type: ignore[no-any-return]


class RestrictedSelfAttention(nn.Module):
    """Every position attends to the `WIDTH` around it, by blocks."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)

    def forward(self, x: Tensor) -> Tensor:
        """Attend from x to what of x is near."""
        own = self.attention
        queries = own.query(x).unflatten(-1, (own.num_heads, -1)).transpose(1, 2)  # (B, H, n, K)
        heads = local_attention(queries, *own.project_key_value(x, x), WIDTH)
        mixed: Tensor = own.output(heads.transpose(1, 2).flatten(2))
        return mixed


class Recurrent(nn.Module):
    """An LSTM: each state is made from the one before."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Run through all positions in the fused kernel."""
        states, _ = self.lstm(x.transpose(0, 1))
        return states.transpose(0, 1)  # type: ignore[no-any-return]


class Convolutional(nn.Module):
    """A filter of `KERNEL` positions, zeros beyond the ends; with gaps (dilation) it looks back."""

    def __init__(self, d_model: int, *, dilation: int = 1, is_causal: bool = False) -> None:
        super().__init__()
        self.filter = nn.Conv1d(d_model, d_model, KERNEL, dilation=dilation)
        whole = (KERNEL - 1) * dilation
        self.padding = (whole, 0) if is_causal else (whole // 2, whole // 2)

    def forward(self, x: Tensor) -> Tensor:
        """Slide the filter over all positions."""
        mixed: Tensor = self.filter(F.pad(x.mT, self.padding))
        return mixed.mT


@dataclass(frozen=True)
class Kind:
    """A row of the table: how to make its layer, and what the paper says about it."""

    name: str
    make: Callable[[int, int], nn.Module]
    """From d_model and the number of heads."""
    complexity: str
    operations: Callable[[int, int], float]
    """Of n and d, as the table has them."""
    in_n: int
    in_d: int
    """The exponents of n and of d in these operations."""
    sequential: str
    path: str
    longest_path: Callable[[int], float]
    path_in_n: int
    crossing: Callable[[int], float] | None = None
    """From which n on self-attention does more, by the table; of d."""


KINDS: dict[str, Kind] = {
    "self_attention": Kind(
        name="self-attention",
        make=SelfAttention,
        complexity="n² d",
        operations=lambda n, d: n * n * d,
        in_n=2,
        in_d=1,
        sequential="1",
        path="1",
        longest_path=lambda n: 1,  # noqa: ARG005
        path_in_n=0,
    ),
    "recurrent": Kind(
        name="recurrent",
        make=lambda d_model, _: Recurrent(d_model),
        complexity="n d²",
        operations=lambda n, d: n * d * d,
        in_n=1,
        in_d=2,
        sequential="n",
        path="n",
        longest_path=lambda n: n,
        path_in_n=1,
        crossing=lambda d: d,
    ),
    "convolutional": Kind(
        name="convolutional",
        make=lambda d_model, _: Convolutional(d_model),
        complexity="k n d²",
        operations=lambda n, d: KERNEL * n * d * d,
        in_n=1,
        in_d=2,
        sequential="1",
        path="n / k",
        longest_path=lambda n: n / KERNEL,
        path_in_n=1,
        crossing=lambda d: KERNEL * d,
    ),
    "restricted": Kind(
        name="restricted",
        make=RestrictedSelfAttention,
        complexity="r n d",
        operations=lambda n, d: WIDTH * n * d,
        in_n=1,
        in_d=1,
        sequential="1",
        path="n / r",
        longest_path=lambda n: n / WIDTH,
        path_in_n=1,
        crossing=lambda d: WIDTH,  # noqa: ARG005
    ),
}


def count_dilated(length: int) -> int:
    """Give log_k n as whole layers.

    >>> count_dilated(27), count_dilated(28)
    (3, 4)
    """
    return max(1, ceil(round(log(length, KERNEL), 9)))
