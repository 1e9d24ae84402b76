"""Position-wise feed-forward network (section 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor, nn

from attendo.kernels.dispatch import can_use_kernels

if TYPE_CHECKING:
    from collections.abc import Callable

Activation = Literal["relu", "gelu", "swish"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "swish": F.silu,
}


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation 2: the same weights at every position.

    Paper: other activations than "relu" and `dropout` > 0 (after the activation) depart from it.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: Activation = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)  # W_1, b_1
        self.outer = nn.Linear(d_ff, d_model)  # W_2, b_2
        self.activation = ACTIVATIONS[activation]
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Transform each position of x (B, T, D) by itself."""
        if self.training and self.activation is F.relu and can_use_kernels(x):
            from attendo.kernels.linear_relu import fused_linear_relu

            hidden = fused_linear_relu(x, self.inner)
        else:
            hidden = self.activation(self.inner(x))  # (B, T, F)
        transformed: Tensor = self.outer(self.dropout(hidden))  # (B, T, D)
        return transformed
