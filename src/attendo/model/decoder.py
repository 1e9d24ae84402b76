"""The decoder: a stack of identical layers that see only earlier positions (section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from torch import Tensor, nn

from attendo.model.kv_cache import DecoderState
from attendo.model.masks import causal_mask

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attendo.core.protocols import Memory
    from attendo.model.attention import Mask
    from attendo.model.layers import DecoderLayer


class Decoder(nn.Module):
    """Passes the target through every layer; each one attends to the encoder's output.

    Args:
        layers: the stack, lowest first.
        final_norm: a last layer norm, which only pre-norm stacks need.
        width: restricts self-attention to a neighborhood of this width.

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

        Returns the states and, if asked for, each layer's self-attention and cross-attention.
        """
        self_mask: Mask
        if self.width is None:
            self_mask = mask & causal_mask(mask.size(-1), device=mask.device)  # (B, T, T)
        else:
            from attendo.model.fast.local_attention import restrict

            self_mask = restrict(mask, self.width, is_causal=True, need_weights=need_weights)
        return self.run_layers(x, memory.states, self_mask, memory.mask, need_weights=need_weights)

    def run_layers(
        self,
        x: Tensor,
        states: Tensor,
        self_mask: Mask,
        cross_mask: Mask,
        *,
        need_weights: bool = False,
    ) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Run the stack over the encoder's states (B, S, D) under masks that hide the future."""
        self_attention, cross_attention = [], []
        for layer in self.layers:
            x, self_weights, cross_weights = layer(
                x, states, self_mask, cross_mask, need_weights=need_weights
            )
            self_attention.append(self_weights)
            cross_attention.append(cross_weights)
        x = self.final_norm(x)
        return (x, tuple(self_attention), tuple(cross_attention)) if need_weights else (x, (), ())

    def start(self, memory: Memory) -> DecoderState:
        """Return the state before the first position."""
        layers = tuple(layer.start(memory.states) for layer in self.layers)
        return DecoderState(layers, memory.mask, position=0)

    def step(self, x: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Decode one new position x (N, 1, D)."""
        caches = []
        for layer, cache in zip(self.layers, state.layers, strict=True):
            x, extended = layer.step(x, cache, state.cross_mask, width=self.width)
            caches.append(extended)
        return self.final_norm(x), DecoderState(tuple(caches), state.cross_mask, state.position + 1)
