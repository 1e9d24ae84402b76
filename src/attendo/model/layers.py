"""One encoder layer, one decoder layer, and the residual connection around each sub-layer.

All of it is section 3.1 of the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor, nn

from attendo.kernels.dispatch import can_use_kernels
from attendo.model.attention import MultiHeadAttention
from attendo.model.feed_forward import Activation, FeedForward
from attendo.model.kv_cache import LayerCache

if TYPE_CHECKING:
    from attendo.model.attention import Mask


class AddAndNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))): `pre` before the sub-layer, `post` after it.

    Paper: `norm="pre"` departs from it, x + Dropout(Sublayer(LayerNorm(x))), and so does
    `residual=False`, which leaves out the `x +` of either.
    """

    def __init__(
        self,
        d_model: int,
        *,
        dropout: float,
        norm: Literal["post", "pre"],
        eps: float,
        residual: bool = True,
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=eps)
        self.dropout = nn.Dropout(dropout)
        self.is_pre_norm = norm == "pre"
        self.has_residual = residual

    def pre(self, x: Tensor) -> Tensor:
        """Return the sub-layer's input."""
        normed: Tensor = self.norm(x) if self.is_pre_norm else x
        return normed

    def post(self, x: Tensor, transformed: Tensor) -> Tensor:
        """Add the sub-layer's output to its residual connection."""
        is_fusible = self.has_residual and not self.is_pre_norm
        if self.training and is_fusible and can_use_kernels(transformed):
            from attendo.kernels.add_norm import fused_add_norm

            return fused_add_norm(x, transformed, self.norm, self.dropout)
        added = self.dropout(transformed)
        if self.has_residual:
            added = x + added
        normed: Tensor = added if self.is_pre_norm else self.norm(added)
        return normed


@dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """The keyword arguments of `EncoderLayer` and `DecoderLayer`; the defaults are the paper's."""

    d_k: int | None = None
    d_v: int | None = None
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    activation: Activation = "relu"
    norm: Literal["post", "pre"] = "post"
    eps: float = 1e-5
    scale: bool = True
    residual: bool = True
    bias: bool = True

    def make_attention(self, d_model: int, num_heads: int) -> MultiHeadAttention:
        """Return a new attention."""
        return MultiHeadAttention(
            d_model,
            num_heads,
            d_k=self.d_k,
            d_v=self.d_v,
            dropout=self.attention_dropout,
            scale=self.scale,
            bias=self.bias,
        )

    def make_feed_forward(self, d_model: int, d_ff: int) -> FeedForward:
        """Return a new feed-forward network."""
        dropout = self.activation_dropout
        return FeedForward(d_model, d_ff, activation=self.activation, dropout=dropout)

    def make_add_and_norm(self, d_model: int) -> AddAndNorm:
        """Return a new residual connection with its layer norm."""
        return AddAndNorm(
            d_model, dropout=self.dropout, norm=self.norm, eps=self.eps, residual=self.residual
        )


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward; the keyword arguments are those of `LayerOptions`."""

    def __init__(self, d_model: int, d_ff: int, num_heads: int, **options: Any) -> None:
        super().__init__()
        parts = LayerOptions(**options)
        self.self_attention = parts.make_attention(d_model, num_heads)
        self.self_add = parts.make_add_and_norm(d_model)
        self.feed_forward = parts.make_feed_forward(d_model, d_ff)
        self.feed_forward_add = parts.make_add_and_norm(d_model)

    def forward(
        self, x: Tensor, mask: Mask | None = None, *, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Return the transformed x (B, S, D) and, if asked for, the attention (B, H, S, S)."""
        normed = self.self_add.pre(x)
        attended, weights = self.self_attention(
            normed, normed, normed, mask, need_weights=need_weights
        )
        x = self.self_add.post(x, attended)
        transformed = self.feed_forward(self.feed_forward_add.pre(x))
        return self.feed_forward_add.post(x, transformed), weights


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the encoder's output, then feed-forward.

    The keyword arguments are those of `LayerOptions`.
    """

    def __init__(self, d_model: int, d_ff: int, num_heads: int, **options: Any) -> None:
        super().__init__()
        parts = LayerOptions(**options)
        self.self_attention = parts.make_attention(d_model, num_heads)
        self.self_add = parts.make_add_and_norm(d_model)
        self.cross_attention = parts.make_attention(d_model, num_heads)
        self.cross_add = parts.make_add_and_norm(d_model)
        self.feed_forward = parts.make_feed_forward(d_model, d_ff)
        self.feed_forward_add = parts.make_add_and_norm(d_model)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        self_mask: Mask | None = None,
        cross_mask: Mask | None = None,
        *,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Transform all positions of x (B, T, D) at once, over memory (B, S, D).

        Returns x and, if asked for, self-attention (B, H, T, T) and cross-attention (B, H, T, S).
        """
        normed = self.self_add.pre(x)
        attended, self_weights = self.self_attention(
            normed, normed, normed, self_mask, need_weights=need_weights
        )
        x = self.self_add.post(x, attended)
        attended, cross_weights = self.cross_attention(
            self.cross_add.pre(x), memory, memory, cross_mask, need_weights=need_weights
        )
        x = self.cross_add.post(x, attended)
        return self._apply_feed_forward(x), self_weights, cross_weights

    def start(self, memory: Tensor) -> LayerCache:
        """Project the encoder's output once, for all decoding steps."""
        return LayerCache.start(*self.cross_attention.project_key_value(memory, memory))

    def step(
        self, x: Tensor, cache: LayerCache, cross_mask: Tensor, *, width: int | None = None
    ) -> tuple[Tensor, LayerCache]:
        """Transform one new position x (N, 1, D), given the cached keys and values."""
        normed = self.self_add.pre(x)
        cache = cache.append(*self.self_attention.project_key_value(normed, normed), width=width)
        queries = self.self_attention.project_query(normed)
        attended, _ = self.self_attention.attend(queries, cache.keys, cache.values)
        x = self.self_add.post(x, attended)
        queries = self.cross_attention.project_query(self.cross_add.pre(x))
        cross_kv = (cache.cross_keys, cache.cross_values)
        attended, _ = self.cross_attention.attend(queries, *cross_kv, cross_mask)
        return self._apply_feed_forward(self.cross_add.post(x, attended)), cache

    def _apply_feed_forward(self, x: Tensor) -> Tensor:
        transformed = self.feed_forward(self.feed_forward_add.pre(x))
        return self.feed_forward_add.post(x, transformed)
