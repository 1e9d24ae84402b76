"""Scaled dot-product attention and multi-head attention (section 3.2).

Two paths compute the same thing: the fused one for speed, and the explicit one that returns every
weight for people who look inside. Tests hold the two equal. Nothing is kept on a module.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, Literal, overload

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor, nn

from attendo.core.config import split_heads_evenly
from attendo.core.errors import InputError
from attendo.model.fast.packed_attention import (
    packed_attention,
    varlen_cross_attention,
    varlen_self_attention,
)
from attendo.model.fast.packed_sequences import PackedMask
from attendo.model.local_attention import local_attention
from attendo.model.masks import check_mask, zero_fully_masked_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

Mask = Tensor | PackedMask
"""Who may see whom: booleans (True = may attend), or the sentences of packed rows."""


@overload
def scaled_dot_product(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    need_weights: Literal[False] = False,
    dropout: float = 0.0,
    scale: float | None = None,
) -> Tensor: ...


@overload
def scaled_dot_product(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    need_weights: Literal[True],
    dropout: float = 0.0,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]: ...


def scaled_dot_product(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    need_weights: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, equation 1.

    Args:
        query: (..., T, d_k).
        key: (..., S, d_k).
        value: (..., S, d_v).
        mask: booleans that broadcast to (..., T, S), True = may attend. A row that may attend to
            nothing gives zeros.
        need_weights: take the explicit path and return (output, weights).
        dropout: chance to drop a weight; the returned weights are those before it.
        scale: what scores are multiplied by; 1 / sqrt(d_k) when not given.

    >>> query = key = value = torch.eye(2)
    >>> output, weights = scaled_dot_product(query, key, value, need_weights=True)
    >>> weights.sum(-1)
    tensor([1., 1.])

    """
    if mask is not None:
        check_mask(mask, (*query.shape[:-1], key.size(-2)))
    if not need_weights:
        output = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout, scale=scale
        )
        return zero_fully_masked_rows(output, mask)  # (..., T, d_v)

    scores = attention_scores(query, key, scale=scale)  # (..., T, S)
    if mask is not None:
        # The lowest number, not -inf: a row without any True stays free of NaN, backward too.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    precise = torch.promote_types(scores.dtype, torch.float32)  # as the fused kernels do
    weights = scores.softmax(dim=-1, dtype=precise).to(value.dtype)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return F.dropout(weights, dropout) @ value, weights  # (..., T, d_v), (..., T, S)


def attention_scores(query: Tensor, key: Tensor, *, scale: float | None = None) -> Tensor:
    """Score every query (..., T, d_k) against every key (..., S, d_k): (..., T, S).

    Paper: Q K^T / sqrt(d_k); a `scale` is multiplied in the place of the division.
    """
    products = query @ key.transpose(-2, -1)
    return products / sqrt(query.size(-1)) if scale is None else products * scale


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W_O (section 3.2.2).

    head_i = Attention(Q W_Q_i, K W_K_i, V W_V_i). The h projections of a kind lie side by side in
    one matrix, so that eight heads of 64 cost what one head of 512 costs.

    Paper: the formulas write no biases; `bias=True` adds them as every trained model in circulation
    has them. `scale=False` departs from it: scores are not divided by sqrt(d_k).
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        scale: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.dropout = dropout
        self.scale = None if scale else 1.0
        d_k = d_k or split_heads_evenly(d_model, num_heads)
        d_v = d_v or split_heads_evenly(d_model, num_heads)
        self.query = nn.Linear(d_model, num_heads * d_k, bias=bias)  # W_Q
        self.key = nn.Linear(d_model, num_heads * d_k, bias=bias)  # W_K
        self.value = nn.Linear(d_model, num_heads * d_v, bias=bias)  # W_V
        self.output = nn.Linear(num_heads * d_v, d_model, bias=bias)  # W_O

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Mask | None = None,
        *,
        need_weights: bool = False,
        width: int | None = None,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from query (B, T, D) to key and value (B, S, D); options as for `attend`.

        Gives (B, T, D) and, if asked, the weights (B, H, T, S). Where rows are packed (see
        `attendo.model.fast.packed_sequences`) there is one, B = 1.
        """
        if isinstance(mask, PackedMask):
            return self._attend_packed(query, key, value, mask), None
        if query is key and key is value:
            projected = self.project_qkv(query)
        else:
            projected = (self.project_query(query), *self.project_key_value(key, value))
        return self.attend(
            *projected, mask, need_weights=need_weights, width=width, is_causal=is_causal
        )

    def project_query(self, query: Tensor) -> Tensor:
        """Project queries (B, T, D) and split them into heads (B, H, T, K)."""
        return self._split_heads(self.query(query))

    def project_key_value(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Project keys and values and split them into heads: the part that a cache keeps."""
        if key is value:
            keys, values = self._project_fused(key, self.key, self.value)
            return self._split_heads(keys), self._split_heads(values)
        return self._split_heads(self.key(key)), self._split_heads(
            self.value(value)
        )  # (B, H, S, K) each

    def project_qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Give queries, keys and values of the same x (B, T, D): self-attention."""
        queries, keys, values = self._project_fused(x, self.query, self.key, self.value)
        return (
            self._split_heads(queries),
            self._split_heads(keys),
            self._split_heads(values),
        )  # (B, H, T, K) each

    def _project_fused(self, x: Tensor, *projections: nn.Linear) -> Sequence[Tensor]:
        """Multiply x by several matrices, in training at once."""
        if not self.training:  # where each may be looked at
            return [projection(x) for projection in projections]
        sizes = [projection.out_features for projection in projections]
        parts: Sequence[Tensor] = _fused_linear(x, *projections).split(sizes, dim=-1)
        return parts

    def attend(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        *,
        need_weights: bool = False,
        width: int | None = None,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from projected queries (B, H, T, K) to keys and values (B, H, S, K).

        With a `width` each position sees its neighbourhood, by blocks and not by a mask of all
        pairs: `mask` is then that of the padding, (B, 1, S), and `is_causal` hides the future.
        """
        if width is not None and need_weights:
            reason = f"attention of width {width} by blocks keeps no weights"
            raise InputError(reason, hint="join neighbourhood_mask to the mask in its place")
        options: dict[str, Any] = {
            "dropout": self.dropout if self.training else 0.0,
            "scale": self.scale,
        }
        weights = None
        if width is None and mask is not None and mask.dim() == 3:
            mask = mask.unsqueeze(1)  # (B, T, S) -> (B, 1, T, S)
        if need_weights:
            heads, weights = scaled_dot_product(
                queries, keys, values, mask, need_weights=True, **options
            )
        elif width is None:
            heads = scaled_dot_product(queries, keys, values, mask, **options)
        else:
            heads = local_attention(
                queries, keys, values, width, mask, is_causal=is_causal, **options
            )
        concatenated = heads.transpose(1, 2).flatten(2)  # (B, H, T, K) -> (B, T, H * K)
        return self.output(concatenated), weights

    def _attend_packed(self, query: Tensor, key: Tensor, value: Tensor, mask: PackedMask) -> Tensor:
        """Attend from a packed row (1, N, D) to key and value (1, M, D): (1, N, D).

        In training, what is projected together stays together.
        """
        is_fused = self.training and key is value
        if is_fused and self.key.out_features == self.value.out_features:
            width = (self.num_heads, self.key.out_features // self.num_heads)
            if query is key:
                qkv = _fused_linear(query, self.query, self.key, self.value)
                heads = varlen_self_attention(qkv.view(-1, 3, *width), mask, scale=self.scale)
            else:
                kv = _fused_linear(key, self.key, self.value).view(-1, 2, *width)
                queries = self.query(query).view(-1, *width)
                heads = varlen_cross_attention(queries, kv, mask, scale=self.scale)
        else:
            projected = (self.query(query), self.key(key), self.value(value))
            q, k, v = (side.squeeze(0).unflatten(1, (self.num_heads, -1)) for side in projected)
            heads = packed_attention(q, k, v, mask, scale=self.scale)
        attended: Tensor = self.output(heads.flatten(1).unsqueeze(0))
        return attended

    def _split_heads(self, projected: Tensor) -> Tensor:
        batch, length, width = projected.shape
        heads = projected.view(batch, length, self.num_heads, width // self.num_heads)
        return heads.transpose(1, 2)  # (B, T, H * K) -> (B, H, T, K)


def _fused_linear(x: Tensor, *projections: nn.Linear) -> Tensor:
    """Multiply x by several matrices at once: one large product is faster."""
    weight = torch.cat([projection.weight for projection in projections])
    has_bias = projections[0].bias is not None
    bias = torch.cat([projection.bias for projection in projections]) if has_bias else None
    return F.linear(x, weight, bias)
