"""The encoder: a stack of identical layers (section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from attendo.model.local_attention import choose_width
from attendo.model.masks import local_mask

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attendo.model.attention import Mask
    from attendo.model.layers import EncoderLayer


class Encoder(nn.Module):
    """Passes the source through every layer.

    Args:
        layers: the stack, lowest first.
        final_norm: a last layer norm, which only pre-norm stacks need.
        width: restricts self-attention to a neighbourhood.

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
        """Encode x (B, S, D) under its padding mask (B, 1, S), or packed.

        Gives it and, if asked, each layer's attention.
        """
        width = choose_width(self.width, x.size(1), need_weights=need_weights)
        if self.width is not None and width is None and isinstance(mask, Tensor):
            mask = mask & local_mask(x.size(1), self.width, device=x.device)  # (B, S, S)
        attention = []
        for layer in self.layers:
            x, weights = layer(x, mask, need_weights=need_weights, width=width)
            attention.append(weights)
        return self.final_norm(x), tuple(attention) if need_weights else ()
