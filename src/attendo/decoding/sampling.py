"""Sampling with temperature, top-k and top-p.

A uniform random number decides each token. The numbers of a row depend only on the seed, its source
and the index of the sample, so that a result does not depend on the rest of the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.core.seeding import derive_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.decoding.options import DecodingOptions, SpecialIds


class TokenSampler:
    """Samples tokens with temperature, top-k and top-p."""

    def __init__(
        self,
        src_ids: Tensor,
        special_ids: SpecialIds,
        options: DecodingOptions,
        limits: Sequence[int],
    ) -> None:
        self.options = options
        num_samples = len(limits) // len(src_ids)
        uniforms = torch.zeros(len(limits), max(limits))  # (N, T)
        for row, ids in enumerate(src_ids.tolist()):
            source = [one for one in ids if one != special_ids.pad_id]
            for sample_index in range(num_samples):
                generator = torch.Generator().manual_seed(
                    derive_seed(options.seed, sample_index, *source)
                )
                flat_row = row * num_samples + sample_index
                uniforms[flat_row, : limits[flat_row]] = torch.rand(
                    limits[flat_row], generator=generator
                )
        self.uniforms = uniforms.to(src_ids.device)

    def __call__(self, log_probs: Tensor, rows: Tensor, position: int) -> Tensor:
        """Sample a token for each of `rows` (N,) from its log_probs (N, V)."""
        probs, tokens = apply_temperature_top_k_top_p(
            log_probs,
            temperature=self.options.temperature,
            top_k=self.options.top_k,
            top_p=self.options.top_p,
        )
        cumulative = probs.cumsum(1)
        threshold = self.uniforms[rows, position, None] * cumulative[:, -1:]
        rank = (cumulative <= threshold).sum(1, keepdim=True)
        last = probs.gt(0).sum(1, keepdim=True) - 1  # rounding may exceed the last one
        return tokens.gather(1, torch.minimum(rank, last).clamp(min=0)).squeeze(1)


def apply_temperature_top_k_top_p(
    log_probs: Tensor, *, temperature: float, top_k: int, top_p: float
) -> tuple[Tensor, Tensor]:
    """Return the probabilities to sample from, largest first, and their tokens: (N, C) each.

    Tokens outside the top k are left out; those beyond the probability mass top_p become 0.
    """
    size = log_probs.size(1)
    scaled, tokens = (log_probs / temperature).topk(min(top_k or size, size), dim=1)
    probs = scaled.softmax(1)
    if top_p < 1.0:  # with 1.0, rounding would remove the last ones
        probs = probs.masked_fill(probs.cumsum(1) - probs >= top_p, 0.0)
    return probs, tokens
