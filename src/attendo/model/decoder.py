"""The decoder: a stack of identical layers that see only what is already said (section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from torch import Tensor, nn

from attendo.model.kv_cache import DecoderState
from attendo.model.local_attention import choose_width
from attendo.model.masks import causal_mask, local_mask

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attendo.core.protocols import Memory
    from attendo.model.attention import Mask
    from attendo.model.layers import DecoderLayer


class Decoder(nn.Module):
    """Passes the target through every layer; each one reads the last encoder output.

    Args:
        layers: the stack, lowest first.
        final_norm: a last layer norm, which only pre-norm stacks need.
        width: restricts self-attention to a neighbourhood.

    """

    def __init__(
        self,
        layers: Iterable[DecoderLayer],
        *,
        final_norm: nn.LayerNorm | None = None,
        width: int | None = None,
    ) -> None:
        super().__init__()
        self.layers = cast("Sequence[DecoderLayer]", nn.ModuleList(layers))
        self.final_norm = final_norm or nn.Identity()
        self.width = width

    def forward(
        self, x: Tensor, memory: Memory, mask: Tensor, *, need_weights: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Decode all positions of x (B, T, D) at once under its padding mask (B, 1, T).

        Gives it and, if asked, each layer's self-attention and cross-attention.
        """
        width = choose_width(self.width, x.size(1), need_weights=need_weights)
        self_mask = mask if width is not None else self._full_self_mask(mask)
        return self.run_layers(
            x, memory.states, self_mask, memory.mask, need_weights=need_weights, width=width
        )

    def run_layers(
        self,
        x: Tensor,
        states: Tensor,
        self_mask: Mask,
        cross_mask: Mask,
        *,
        need_weights: bool = False,
        width: int | None = None,
    ) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Run the stack over the encoder's states (B, S, D) under masks of all pairs."""
        self_attention, cross_attention = [], []
        for layer in self.layers:
            x, self_weights, cross_weights = layer(
                x, states, self_mask, cross_mask, need_weights=need_weights, width=width
            )
            self_attention.append(self_weights)
            cross_attention.append(cross_weights)
        x = self.final_norm(x)
        return (x, tuple(self_attention), tuple(cross_attention)) if need_weights else (x, (), ())

    def _full_self_mask(self, mask: Tensor) -> Tensor:
        """Join the padding mask (B, 1, T) with what hides the future and what is out of reach."""
        length = mask.size(-1)
        joined = mask & causal_mask(length, device=mask.device)  # (B, T, T)
        if self.width is None:
            return joined
        return joined & local_mask(length, self.width, device=mask.device)

    def start(self, memory: Memory) -> DecoderState:
        """Make the state before the first position."""
        layers = tuple(layer.start(memory.states) for layer in self.layers)
        return DecoderState(layers, memory.mask, position=0)

    def step(self, x: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Decode one new position x (N, 1, D)."""
        caches = []
        for layer, cache in zip(self.layers, state.layers, strict=True):
            x, extended = layer.step(x, cache, state.cross_mask, width=self.width)
            caches.append(extended)
        return self.final_norm(x), DecoderState(tuple(caches), state.cross_mask, state.position + 1)
