"""Restricted self-attention in blocks (section 4): position i sees |i - j| <= width // 2.

Under a mask, restricted attention costs as much as full attention. Here the sequence is split into
blocks, and the queries of a block meet only its own keys and those within reach on either side:
time and memory grow with r n d instead of n^2 d, where r is the width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor

from attendo.core.errors import InputError
from attendo.model.masks import causal_mask, check_mask, local_mask, zero_fully_masked_rows

if TYPE_CHECKING:
    from attendo.model.attention import MultiHeadAttention

MIN_BLOCK_SIZE = 32
"""Positions per block: with smaller blocks, their number costs more than their size saves."""
MIN_NUM_BLOCKS = 4
"""With fewer blocks the full mask is as fast; measured on a CPU at widths from 3 to 256."""


class LocalPattern(NamedTuple):
    """Self-attention to the `width` positions around each; an `AttentionPattern`."""

    width: int
    padding: Tensor | None = None  # (B, 1, n), True = may attend
    is_causal: bool = False

    def attend(
        self, attention: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
    ) -> Tensor:
        """Return the output (B, n, D) of an attention module for its inputs (B, n, D)."""
        if query is key and key is value:
            queries, keys, values = attention.project_qkv(query)
        else:
            queries = attention.project_query(query)
            keys, values = attention.project_key_value(key, value)
        heads = local_attention(
            queries,
            keys,
            values,
            self.width,
            self.padding,
            is_causal=self.is_causal,
            dropout=attention.dropout_rate,
            scale=attention.scale,
        )
        return attention.merge_heads(heads)


def restrict(
    mask: Tensor, width: int, *, is_causal: bool = False, need_weights: bool = False
) -> Tensor | LocalPattern:
    """Restrict a padding mask (B, 1, n) to neighborhoods, and to the past if `is_causal`.

    Long sequences get a pattern of blocks, others a mask (B, n, n). Weights need a mask of all
    pairs. An exported graph has to work for every length, so it never gets blocks.
    """
    length = mask.size(-1)
    is_long = length >= MIN_NUM_BLOCKS * choose_block_size(width // 2)
    if is_long and not need_weights and not torch.compiler.is_exporting():
        return LocalPattern(width, mask, is_causal)
    if is_causal:
        mask = mask & causal_mask(length, device=mask.device)
    return mask & local_mask(length, width, device=mask.device)


def local_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    width: int,
    mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """Attend to the `width` positions centered on each: equal to attention under `local_mask`.

    Args:
        query: (B, H, n, K).
        key: (B, H, n, K).
        value: (B, H, n, K of values).
        width: how many positions each one sees; an even width sees one more, as in `local_mask`.
        mask: padding mask of the keys (B, 1, n), True = may attend. The output at a position that
            may attend to nothing is zero.
        is_causal: hide the future too, j <= i.
        dropout: probability of dropping a weight.
        scale: factor of the scores; 1 / sqrt(K) if not given.

    >>> value = torch.tensor([[[[1.0], [2.0], [6.0], [7.0]]]])
    >>> local_attention(torch.zeros_like(value), torch.zeros_like(value), value, 3).flatten()
    tensor([1.5000, 3.0000, 5.0000, 6.5000])

    """
    _check_inputs(query, key, value, width)
    batch, _, length, _ = query.shape
    if mask is None:
        mask = torch.ones(1, dtype=torch.bool, device=query.device)
    check_mask(mask, (batch, 1, length))
    half_width = min(width // 2, length)
    lookahead = 0 if is_causal else half_width
    size = choose_block_size(half_width)

    queries = _split_blocks(query, size).flatten(0, 1).transpose(1, 2)  # (B * blocks, H, block, K)
    keys, values = (
        _add_context(_split_blocks(heads, size), half_width, lookahead)
        .flatten(0, 1)
        .transpose(1, 2)
        for heads in (key, value)
    )  # (B * blocks, H, behind + block + ahead, K)
    padding = mask.expand(batch, 1, length)[..., None]
    valid = _split_blocks(padding, size)  # (B, blocks, block, 1, 1)
    visible = _add_context(valid, half_width, lookahead).flatten(0, 1).permute(0, 2, 3, 1)
    band = _band_mask(size, half_width, lookahead, device=query.device)
    allowed = visible & band  # (B * blocks, 1, block, behind + block + ahead)
    heads = F.scaled_dot_product_attention(
        queries, keys, values, attn_mask=allowed, dropout_p=dropout, scale=scale
    )
    heads = zero_fully_masked_rows(heads, allowed).transpose(1, 2)  # (B * blocks, block, H, K)
    joined: Tensor = heads.unflatten(0, valid.shape[:2]).flatten(1, 2)[:, :length]
    return joined.transpose(1, 2)  # (B, H, n, K of values)


def choose_block_size(half_width: int) -> int:
    """Return the block size: at least `half_width`, so that two neighbors cover all context."""
    return max(MIN_BLOCK_SIZE, half_width)


def _split_blocks(heads: Tensor, size: int) -> Tensor:
    """Split (B, H, n, K) into blocks (B, blocks, block, H, K), the last one padded with zeros."""
    batch, num_heads, length, width = heads.shape
    num_blocks = (length + size - 1) // size
    filled = F.pad(heads.transpose(1, 2), (0, 0, 0, 0, 0, num_blocks * size - length))
    return filled.reshape(batch, num_blocks, size, num_heads, width)


def _add_context(blocks: Tensor, half_width: int, lookahead: int) -> Tensor:
    """Extend each block by the end of the previous one and the start of the next.

    The first and the last are extended by zeros (False in a mask): sequences of a batch never meet.
    """
    size = blocks.size(2)
    before = F.pad(blocks[:, :, size - half_width :], (0, 0, 0, 0, 0, 0, 1, 0))[:, :-1]
    after = F.pad(blocks[:, :, :lookahead], (0, 0, 0, 0, 0, 0, 0, 1))[:, 1:]
    return torch.cat((before, blocks, after), dim=2)  # (B, blocks, behind + block + ahead, H, K)


def _band_mask(size: int, half_width: int, lookahead: int, *, device: torch.device) -> Tensor:
    """Return the mask (block, behind + block + ahead) of a block's queries and its context."""
    rows = torch.arange(size, device=device)[:, None]
    columns = torch.arange(-half_width, size + lookahead, device=device)[None, :]
    return (columns >= rows - half_width) & (columns <= rows + lookahead)


def _check_inputs(query: Tensor, key: Tensor, value: Tensor, width: int) -> None:
    if width < 1:
        reason = f"an attention width of {width} sees nothing"
        raise InputError(reason, hint="use 1 (each position sees itself) or more")
    if not query.size(-2) == key.size(-2) == value.size(-2):
        lengths = f"{query.size(-2)}, {key.size(-2)} and {value.size(-2)}"
        reason = f"queries, keys and values have lengths {lengths}"
        hint = "restricted attention is self-attention: give equal lengths"
        raise InputError(reason, hint=hint)
