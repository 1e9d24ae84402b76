"""Scaled dot-product attention and multi-head attention (section 3.2).

Two paths compute the same thing: the fused one for speed, and the explicit one that returns every
weight for people who look inside. Tests hold the two equal. Nothing is kept on a module.
"""

from __future__ import annotations

from math import sqrt
from typing import Literal, overload

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor, nn

from attendo.core.config import split_heads_evenly
from attendo.model.masks import check_mask


@overload
def scaled_dot_product(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    need_weights: Literal[False] = False,
    dropout: float = 0.0,
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
) -> tuple[Tensor, Tensor]: ...


def scaled_dot_product(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    need_weights: bool = False,
    dropout: float = 0.0,
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

    >>> query = key = value = torch.eye(2)
    >>> output, weights = scaled_dot_product(query, key, value, need_weights=True)
    >>> weights.sum(-1)
    tensor([1., 1.])

    """
    if mask is not None:
        check_mask(mask, (*query.shape[:-1], key.size(-2)))
    if not need_weights:
        output = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout
        )
        if mask is not None and query.is_cuda:
            # cuDNN's kernel spreads a row that may attend to nothing over everything.
            output = output.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
        return output  # (..., T, d_v)

    scores = query @ key.transpose(-2, -1) / sqrt(query.size(-1))  # (..., T, S)
    if mask is not None:
        # The lowest number, not -inf: a row without any True stays free of NaN, backward too.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    precise = torch.promote_types(scores.dtype, torch.float32)  # as the fused kernels do
    weights = scores.softmax(dim=-1, dtype=precise).to(value.dtype)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return F.dropout(weights, dropout) @ value, weights  # (..., T, d_v), (..., T, S)


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W_O (section 3.2.2).

    head_i = Attention(Q W_Q_i, K W_K_i, V W_V_i). The h projections of a kind lie side by side in
    one matrix, so that eight heads of 64 cost what one head of 512 costs.

    Paper: the formulas write no biases; `bias=True` adds them as every trained model in circulation
    has them.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.dropout = dropout
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
        mask: Tensor | None = None,
        *,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from query (B, T, D) to key and value (B, S, D).

        Gives (B, T, D) and, if asked, the weights (B, H, T, S).
        """
        return self.attend(query, *self.project(key, value), mask, need_weights=need_weights)

    def project(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Project keys and values and split them into heads: the part that a cache keeps."""
        return self._split(self.key(key)), self._split(self.value(value))  # (B, H, S, K) each

    def attend(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        *,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from query (B, T, D) to projected keys and values (B, H, S, K)."""
        if mask is not None and mask.dim() == 3:
            mask = mask.unsqueeze(1)  # (B, T, S) -> (B, 1, T, S)
        queries = self._split(self.query(query))  # (B, H, T, K)
        dropout = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            heads, weights = scaled_dot_product(
                queries, keys, values, mask, need_weights=True, dropout=dropout
            )
        else:
            heads = scaled_dot_product(queries, keys, values, mask, dropout=dropout)
        concatenated = heads.transpose(1, 2).flatten(2)  # (B, H, T, K) -> (B, T, H * K)
        return self.output(concatenated), weights

    def _split(self, projected: Tensor) -> Tensor:
        batch, length, width = projected.shape
        heads = projected.view(batch, length, self.num_heads, width // self.num_heads)
        return heads.transpose(1, 2)  # (B, T, H * K) -> (B, H, T, K)
