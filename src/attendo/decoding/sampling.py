"""Chance: draws the next token from the likeliest ones.

One number between 0 and 1 decides each draw. A row's numbers come from the seed, its own source and
the number of the draw alone, so that it draws the same in any company.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.core.seeding import derive_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.decoding.options import DecodingOptions, Symbols


class Dice:
    """Draws by temperature, top-k and top-p."""

    def __init__(
        self, src_ids: Tensor, symbols: Symbols, options: DecodingOptions, limits: Sequence[int]
    ) -> None:
        self.options = options
        num_draws = len(limits) // len(src_ids)
        numbers = torch.zeros(len(limits), max(limits))  # (N, T)
        for row, ids in enumerate(src_ids.tolist()):
            source = [one for one in ids if one != symbols.pad_id]
            for draw in range(num_draws):
                own = torch.Generator().manual_seed(derive_seed(options.seed, draw, *source))
                place = row * num_draws + draw
                numbers[place, : limits[place]] = torch.rand(limits[place], generator=own)
        self.numbers = numbers.to(src_ids.device)

    def __call__(self, log_probs: Tensor, rows: Tensor, position: int) -> Tensor:
        """Draw a token for each of `rows` (N,) out of its log_probs (N, V)."""
        kept, tokens = sharpen(
            log_probs,
            temperature=self.options.temperature,
            top_k=self.options.top_k,
            top_p=self.options.top_p,
        )
        heaps = kept.cumsum(1)
        goal = self.numbers[rows, position, None] * heaps[:, -1:]
        place = (heaps <= goal).sum(1, keepdim=True)
        last = kept.gt(0).sum(1, keepdim=True) - 1  # rounding may leave the goal at the very end
        return tokens.gather(1, torch.minimum(place, last).clamp(min=0)).squeeze(1)


def sharpen(
    log_probs: Tensor, *, temperature: float, top_k: int, top_p: float
) -> tuple[Tensor, Tensor]:
    """Give the probabilities that are drawn from, largest first, and their tokens: (N, C) each.

    Those outside the top k, or beyond the fewest that have the probability top_p, are 0.
    """
    size = log_probs.size(1)
    scaled, tokens = (log_probs / temperature).topk(min(top_k or size, size), dim=1)
    probs = scaled.softmax(1)
    if top_p < 1.0:  # else rounding would cut off the last ones
        probs = probs.masked_fill(probs.cumsum(1) - probs >= top_p, 0.0)
    return probs, tokens
