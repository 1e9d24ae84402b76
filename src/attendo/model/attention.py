"""Scaled dot-product attention and multi-head attention (section 3.2).

Attention has two paths with equal results: the fused one is fast, the explicit one returns the
weights for inspection. Neither keeps anything on the module.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor, nn

from attendo.core.errors import InputError
from attendo.model.config import split_heads_evenly
from attendo.model.masks import check_mask, zero_fully_masked_rows

if TYPE_CHECKING:
    from collections.abc import Sequence


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
        mask: booleans that broadcast to (..., T, S), True = may attend. The output of a fully
            masked row is zero.
        need_weights: take the explicit path and return (output, weights).
        dropout: probability of dropping a weight; the returned weights are those before dropout.
        scale: factor of the scores; 1 / sqrt(d_k) if not given.

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
        # The lowest number, not -inf: a fully masked row stays free of NaN, backward too.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    precise = torch.promote_types(scores.dtype, torch.float32)  # as the fused kernels do
    weights = scores.softmax(dim=-1, dtype=precise).to(value.dtype)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return F.dropout(weights, dropout) @ value, weights  # (..., T, d_v), (..., T, S)


def attention_scores(query: Tensor, key: Tensor, *, scale: float | None = None) -> Tensor:
    """Return the scores (..., T, S) of queries (..., T, d_k) and keys (..., S, d_k).

    Paper: Q K^T / sqrt(d_k); with `scale` the products are multiplied by it instead.
    """
    products = query @ key.transpose(-2, -1)
    return products / sqrt(query.size(-1)) if scale is None else products * scale


class AttentionPattern(Protocol):
    """Replaces a mask and computes the attention itself; `attendo.model.fast` has two."""

    def attend(
        self, attention: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
    ) -> Tensor:
        """Return what `attention` outputs (B, T, D) for these inputs under this pattern."""
        ...


Mask = Tensor | AttentionPattern
"""Booleans (True = may attend), or a pattern that needs no matrix of all pairs."""


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W_O (section 3.2.2).

    head_i = Attention(Q W_Q_i, K W_K_i, V W_V_i). The h projections of a kind are stacked in one
    matrix, so that eight heads of 64 cost what one head of 512 costs.

    Paper: the formulas have no biases; `bias=True` adds them, as all trained models in circulation
    have them. `scale=False` departs from it: scores are not divided by sqrt(d_k).
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
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from query (B, T, D) to key and value (B, S, D).

        Returns (B, T, D) and, if `need_weights`, the weights (B, H, T, S).
        """
        if mask is not None and not isinstance(mask, Tensor):
            if need_weights:
                reason = f"{type(mask).__name__} computes no attention weights"
                raise InputError(reason, hint="pass a boolean mask instead")
            return mask.attend(self, query, key, value), None
        if query is key and key is value:
            projected = self.project_qkv(query)
        else:
            projected = (self.project_query(query), *self.project_key_value(key, value))
        return self.attend(*projected, mask, need_weights=need_weights)

    def project_query(self, query: Tensor) -> Tensor:
        """Project queries (B, T, D) and split them into heads (B, H, T, K)."""
        return self._split_heads(self.query(query))

    def project_key_value(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Project keys and values (B, S, D) and split them into heads: the part that is cached."""
        if key is value:
            keys, values = self._project(key, self.key, self.value)
            return keys, values
        return self._split_heads(self.key(key)), self._split_heads(self.value(value))

    def project_qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values of the same x (B, T, D), for self-attention."""
        queries, keys, values = self._project(x, self.query, self.key, self.value)
        return queries, keys, values

    def attend(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        *,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from projected queries (B, H, T, K) to keys and values (B, H, S, K)."""
        if mask is not None and mask.dim() == 3:
            mask = mask.unsqueeze(1)  # (B, T, S) -> (B, 1, T, S)
        options: dict[str, Any] = {"dropout": self.dropout_rate, "scale": self.scale}
        weights = None
        if need_weights:
            heads, weights = scaled_dot_product(
                queries, keys, values, mask, need_weights=True, **options
            )
        else:
            heads = scaled_dot_product(queries, keys, values, mask, **options)
        return self.merge_heads(heads), weights

    @property
    def dropout_rate(self) -> float:
        """The dropout on attention weights: 0 outside of training."""
        return self.dropout if self.training else 0.0

    def merge_heads(self, heads: Tensor) -> Tensor:
        """Concatenate heads (B, H, T, K) and project them to (B, T, D)."""
        concatenated = heads.transpose(1, 2).flatten(2)  # (B, H, T, K) -> (B, T, H * K)
        merged: Tensor = self.output(concatenated)
        return merged

    def _project(self, x: Tensor, *projections: nn.Linear) -> list[Tensor]:
        """Project x (B, T, D) by several matrices; split each result into heads (B, H, T, K)."""
        parts: Sequence[Tensor]
        if self.training:  # one large product is faster
            sizes = [projection.out_features for projection in projections]
            parts = stacked_linear(x, *projections).split(sizes, dim=-1)
        else:  # one by one, so that hooks see each of them
            parts = [projection(x) for projection in projections]
        return [self._split_heads(part) for part in parts]

    def _split_heads(self, projected: Tensor) -> Tensor:
        batch, length, width = projected.shape
        heads = projected.view(batch, length, self.num_heads, width // self.num_heads)
        return heads.transpose(1, 2)  # (B, T, H * K) -> (B, H, T, K)


def stacked_linear(x: Tensor, *projections: nn.Linear) -> Tensor:
    """Apply several projections to x as one matrix product; the results are concatenated."""
    weight = torch.cat([projection.weight for projection in projections])
    has_bias = projections[0].bias is not None
    bias = torch.cat([projection.bias for projection in projections]) if has_bias else None
    return F.linear(x, weight, bias)
