"""The encoder: a stack of identical layers (section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attendo.model.attention import Mask
    from attendo.model.layers import EncoderLayer


class Encoder(nn.Module):
    """Passes the source through every layer.

    Args:
        layers: the stack, lowest first.
        final_norm: a last layer norm, which only pre-norm stacks need.
        width: restricts self-attention to a neighborhood of this width.

    """

    def __init__(
        self,
        layers: Iterable[EncoderLayer],
        *,
        final_norm: nn.LayerNorm | None = None,
        width: int | None = None,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.final_norm = final_norm or nn.Identity()
        self.width = width

    def forward(
        self, x: Tensor, mask: Mask, *, need_weights: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Encode x (B, S, D) under its padding mask (B, 1, S).

        Returns the states and, if asked for, each layer's attention.
        """
        if self.width is not None and isinstance(mask, Tensor):
            from attendo.model.fast.local_attention import restrict

            mask = restrict(mask, self.width, need_weights=need_weights)
        attention = []
        for layer in self.layers:
            x, weights = layer(x, mask, need_weights=need_weights)
            attention.append(weights)
        return self.final_norm(x), tuple(attention) if need_weights else ()
