"""One encoder layer, one decoder layer, and what stands around each sub-layer (section 3.1)."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from attendo.kernels.dispatch import can_use_kernels
from attendo.model.attention import Mask, MultiHeadAttention
from attendo.model.feed_forward import Activation, FeedForward
from attendo.model.kv_cache import LayerCache


class AddAndNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))): `enter` before the sub-layer, `leave` after it.

    Paper: `norm="pre"` departs from it, x + Dropout(Sublayer(LayerNorm(x))), and `residual=False`,
    which leaves the `x +` out of either.
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
        """Give what the sub-layer reads."""
        normed: Tensor = self.norm(x) if self.is_pre_norm else x
        return normed

    def post(self, x: Tensor, transformed: Tensor) -> Tensor:
        """Add the sub-layer's output to the path that goes around it, where there is one."""
        if (
            self.training
            and self.has_residual
            and not self.is_pre_norm
            and can_use_kernels(transformed)
        ):
            return self._post_fused(x, transformed)
        added = self.dropout(transformed)
        if self.has_residual:
            added = x + added
        normed: Tensor = added if self.is_pre_norm else self.norm(added)
        return normed

    def _post_fused(self, x: Tensor, transformed: Tensor) -> Tensor:
        """Do the same in one kernel."""
        from attendo.kernels.add_norm import add_and_norm

        seed = torch.randint(2**63 - 1, (1,), device=x.device)
        rows = (x.flatten(0, -2), transformed.flatten(0, -2))
        normed: Tensor = add_and_norm(
            *rows, self.norm.weight, self.norm.bias, seed, self.dropout.p, self.norm.eps
        )[0]
        return normed.view_as(transformed)


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        num_heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        activation: Activation = "relu",
        norm: Literal["post", "pre"] = "post",
        eps: float = 1e-5,
        scale: bool = True,
        residual: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        attention = partial(
            MultiHeadAttention,
            d_model,
            num_heads,
            d_k=d_k,
            d_v=d_v,
            dropout=attention_dropout,
            scale=scale,
            bias=bias,
        )
        add = partial(AddAndNorm, d_model, dropout=dropout, norm=norm, eps=eps, residual=residual)
        self.self_attention = attention()
        self.self_add = add()
        self.feed_forward = FeedForward(
            d_model, d_ff, activation=activation, dropout=activation_dropout
        )
        self.feed_forward_add = add()

    def forward(
        self,
        x: Tensor,
        mask: Mask | None = None,
        *,
        need_weights: bool = False,
        width: int | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Transform x (B, S, D); give it and, if asked, the attention (B, H, S, S).

        With a `width` self-attention goes by blocks; `mask` is then the padding mask (B, 1, S).
        """
        normed = self.self_add.pre(x)
        attended, weights = self.self_attention(
            normed, normed, normed, mask, need_weights=need_weights, width=width
        )
        x = self.self_add.post(x, attended)
        transformed = self.feed_forward(self.feed_forward_add.pre(x))
        return self.feed_forward_add.post(x, transformed), weights


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the encoder's output, then feed-forward."""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        num_heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        activation: Activation = "relu",
        norm: Literal["post", "pre"] = "post",
        eps: float = 1e-5,
        scale: bool = True,
        residual: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        attention = partial(
            MultiHeadAttention,
            d_model,
            num_heads,
            d_k=d_k,
            d_v=d_v,
            dropout=attention_dropout,
            scale=scale,
            bias=bias,
        )
        add = partial(AddAndNorm, d_model, dropout=dropout, norm=norm, eps=eps, residual=residual)
        self.self_attention = attention()
        self.self_add = add()
        self.cross_attention = attention()
        self.cross_add = add()
        self.feed_forward = FeedForward(
            d_model, d_ff, activation=activation, dropout=activation_dropout
        )
        self.feed_forward_add = add()

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        self_mask: Mask | None = None,
        cross_mask: Mask | None = None,
        *,
        need_weights: bool = False,
        width: int | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Transform x (B, T, D) over memory (B, S, D), all positions at once.

        Gives it and, if asked, the self-attention (B, H, T, T) and the cross-attention (B, H, T,
        S). With a `width` self-attention goes by blocks and hides the future by itself; `self_mask`
        is then the padding mask (B, 1, T).
        """
        normed = self.self_add.pre(x)
        attended, self_weights = self.self_attention(
            normed,
            normed,
            normed,
            self_mask,
            need_weights=need_weights,
            width=width,
            is_causal=True,
        )
        x = self.self_add.post(x, attended)
        attended, cross_weights = self.cross_attention(
            self.cross_add.pre(x), memory, memory, cross_mask, need_weights=need_weights
        )
        x = self.cross_add.post(x, attended)
        return self._apply_feed_forward(x), self_weights, cross_weights

    def start(self, memory: Tensor) -> LayerCache:
        """Project the encoder's output once, for every step to come."""
        return LayerCache.start(*self.cross_attention.project_key_value(memory, memory))

    def step(
        self, x: Tensor, cache: LayerCache, cross_mask: Tensor, *, width: int | None = None
    ) -> tuple[Tensor, LayerCache]:
        """Transform one new position x (N, 1, D) over what the cache holds of the earlier ones."""
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
