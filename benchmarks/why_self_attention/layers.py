"""The four kinds of layers of Table 1, each (B, n, D) -> (B, n, D), and their complexity there.

For a fair comparison there is no residual, normalization or dropout, and input and output have the
same width. Restricted self-attention has the same four projections as the full one. The recurrent
layer is PyTorch's fused LSTM.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import TYPE_CHECKING

import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from torch import Tensor, nn

from attendo.model.attention import MultiHeadAttention
from attendo.model.fast.local_attention import local_attention

if TYPE_CHECKING:
    from collections.abc import Callable

KERNEL = 3
"""k of the table: the kernel width."""
WIDTH = 32
"""r of the table: the width of restricted self-attention."""


class SelfAttention(nn.Module):
    """Every position attends to every position, with `MultiHeadAttention`."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)

    def forward(self, x: Tensor) -> Tensor:
        """Attend from x to x."""
        mixed, _ = self.attention(x, x, x)
        return mixed  # type: ignore[no-any-return]


class RestrictedSelfAttention(nn.Module):
    """Every position attends to the `WIDTH` positions around it, in blocks."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)

    def forward(self, x: Tensor) -> Tensor:
        """Attend from x to the neighborhood in x."""
        own = self.attention
        queries = own.query(x).unflatten(-1, (own.num_heads, -1)).transpose(1, 2)  # (B, H, n, K)
        heads = local_attention(queries, *own.project_key_value(x, x), WIDTH)
        mixed: Tensor = own.output(heads.transpose(1, 2).flatten(2))
        return mixed


class Recurrent(nn.Module):
    """An LSTM: each state depends on the one before."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Run through all positions in the fused kernel."""
        states, _ = self.lstm(x.transpose(0, 1))
        return states.transpose(0, 1)  # type: ignore[no-any-return]


class Convolutional(nn.Module):
    """A convolution over `KERNEL` positions with zero padding, optionally dilated and causal."""

    def __init__(self, d_model: int, *, dilation: int = 1, is_causal: bool = False) -> None:
        super().__init__()
        self.filter = nn.Conv1d(d_model, d_model, KERNEL, dilation=dilation)
        whole = (KERNEL - 1) * dilation
        self.padding = (whole, 0) if is_causal else (whole // 2, whole // 2)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve x."""
        mixed: Tensor = self.filter(F.pad(x.mT, self.padding))
        return mixed.mT


@dataclass(frozen=True)
class Kind:
    """A row of the table: a layer and its complexity according to the paper."""

    name: str
    make: Callable[[int, int], nn.Module]
    """Takes d_model and the number of heads."""
    complexity: str
    operations: Callable[[int, int], float]
    """Takes n and d; as in the table."""
    in_n: int
    in_d: int
    """The exponents of n and of d in these operations."""
    sequential: str
    path: str
    longest_path: Callable[[int], float]
    path_in_n: int
    crossing: Callable[[int], float] | None = None
    """Takes d; the n from which self-attention has more operations, by the table."""


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
    """Return log_k n, rounded up.

    >>> count_dilated(27), count_dilated(28)
    (3, 4)
    """
    return max(1, ceil(round(log(length, KERNEL), 9)))
