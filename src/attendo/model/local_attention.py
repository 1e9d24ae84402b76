"""Restricted self-attention by blocks (section 4): position i sees |i - j| <= width // 2.

Under a mask it would cost what full attention costs. Here the sequence is cut into blocks, and the
queries of a block meet only its own keys and those within reach on either side: work and memory
grow with r n d instead of n^2 d, where r is the width.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor

from attendo.core.errors import InputError
from attendo.model.masks import check_mask, zero_fully_masked_rows

MIN_BLOCK_SIZE = 32
"""Positions: smaller blocks are so many that their number costs more than their size saves."""
MIN_NUM_BLOCKS = 4
"""Below, the full mask is as quick; both were measured on a CPU at widths from 3 to 256."""


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
    """Attend to the `width` positions centred on each: what `neighbourhood_mask` does, by blocks.

    Args:
        query: (B, H, n, K).
        key: (B, H, n, K).
        value: (B, H, n, K of values).
        width: how many positions each one sees; an even width sees one more, as its mask does.
        mask: padding mask of the keys (B, 1, n), True = may attend. A position that may attend to
            nothing gives zeros.
        is_causal: hide the future too, j <= i.
        dropout: chance to drop a weight.
        scale: what scores are multiplied by; 1 / sqrt(K) when not given.

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
    )  # (B * blocks, H, reach + block + ahead, K)
    valid = _split_blocks(
        mask.expand(batch, 1, length)[..., None], size
    )  # (B, blocks, block, 1, 1)
    allowed = _add_context(valid, half_width, lookahead).flatten(0, 1).permute(
        0, 2, 3, 1
    ) & _band_mask(
        size, half_width, lookahead, device=query.device
    )  # (B * blocks, 1, block, reach + block + ahead)
    heads = F.scaled_dot_product_attention(
        queries, keys, values, attn_mask=allowed, dropout_p=dropout, scale=scale
    )
    heads = zero_fully_masked_rows(heads, allowed).transpose(
        1, 2
    )  # (B * blocks, block, H, K of values)
    joined: Tensor = heads.unflatten(0, valid.shape[:2]).flatten(1, 2)[:, :length]
    return joined.transpose(1, 2)  # (B, H, n, K of values)


def choose_block_size(half_width: int) -> int:
    """Give the size of a block: at least the reach, so that two neighbours hold all it sees."""
    return max(MIN_BLOCK_SIZE, half_width)


def choose_width(width: int | None, length: int, *, need_weights: bool = False) -> int | None:
    """Give the width where self-attention should go by blocks; None where a mask serves it better.

    A short sequence is quicker under the mask. Weights of all pairs need all pairs. An exported
    graph has to serve every length, so it never goes by blocks.
    """
    if width is None or need_weights or torch.compiler.is_exporting():
        return None
    return width if length >= MIN_NUM_BLOCKS * choose_block_size(width // 2) else None


def _split_blocks(heads: Tensor, size: int) -> Tensor:
    """Cut (B, H, n, K) into blocks (B, blocks, block, H, K), the last one filled up with zeros."""
    batch, num_heads, length, width = heads.shape
    num_blocks = (length + size - 1) // size
    filled = F.pad(heads.transpose(1, 2), (0, 0, 0, 0, 0, num_blocks * size - length))
    return filled.reshape(batch, num_blocks, size, num_heads, width)


def _add_context(blocks: Tensor, half_width: int, lookahead: int) -> Tensor:
    """Put before each block the end of the one before it, and after it the start of the next.

    The first and the last have zeros (False in a mask) there: a sequence never meets another one of
    its batch.
    """
    size = blocks.size(2)
    before = F.pad(blocks[:, :, size - half_width :], (0, 0, 0, 0, 0, 0, 1, 0))[:, :-1]
    after = F.pad(blocks[:, :, :lookahead], (0, 0, 0, 0, 0, 0, 0, 1))[:, 1:]
    return torch.cat((before, blocks, after), dim=2)  # (B, blocks, reach + block + ahead, H, K)


def _band_mask(size: int, half_width: int, lookahead: int, *, device: torch.device) -> Tensor:
    """Give what the queries of any block may see of its surroundings."""
    rows = torch.arange(size, device=device)[:, None]
    columns = torch.arange(-half_width, size + lookahead, device=device)[None, :]
    return (columns >= rows - half_width) & (
        columns <= rows + lookahead
    )  # (block, reach + block + ahead)


def _check_inputs(query: Tensor, key: Tensor, value: Tensor, width: int) -> None:
    if width < 1:
        reason = f"an attention width of {width} sees nothing"
        raise InputError(reason, hint="give 1 (each position sees itself) or more")
    if not query.size(-2) == key.size(-2) == value.size(-2):
        lengths = f"{query.size(-2)}, {key.size(-2)} and {value.size(-2)}"
        reason = f"queries, keys and values have lengths {lengths}"
        hint = "only positions of one sequence have neighbours: give equal lengths"
        raise InputError(reason, hint=hint)
