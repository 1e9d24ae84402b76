"""Scores of a decoder state and the source positions: attention before the Transformer.

A score e_ij = a(s_i, h_j) measures how well state s_i and annotation h_j match; a softmax over the
source turns scores into weights alpha_ij that sum to one. There are two kinds of score:

    additive        v^T tanh(W s + U h)   a small network (Bahdanau et al. 2015)
    multiplicative  s^T W h               "general" (Luong et al. 2015), one matrix product

The Transformer took the second, divided it by sqrt(d_k) and gave it many heads (section 3.2.1).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

MAX_ELEMENTS = 2**26
"""Largest intermediate tensor of the additive score: 256 MiB in float32."""


class AdditiveScore(nn.Module):
    """v^T tanh(W s + U h) for every pair of state and annotation.

    Each pair has a vector before the tanh, a tensor (B, T, S, A). If that has more than
    `max_elements`, target positions are processed in chunks, and the vectors are recomputed in the
    backward pass.
    """

    def __init__(
        self, d_query: int, d_key: int, d_score: int, *, max_elements: int = MAX_ELEMENTS
    ) -> None:
        super().__init__()
        self.query = nn.Linear(d_query, d_score, bias=False)  # W
        self.key = nn.Linear(d_key, d_score, bias=False)  # U
        self.energy = nn.Linear(d_score, 1, bias=False)  # v
        self.max_elements = max_elements

    def project_keys(self, annotations: Tensor) -> Tensor:
        """Return the keys U h (B, S, A) of annotations (B, S, D), the same at every step."""
        keys: Tensor = self.key(annotations)
        return keys

    def forward(self, states: Tensor, keys: Tensor) -> Tensor:
        """Score states (B, T, E) against keys (B, S, A): (B, T, S)."""
        queries: Tensor = self.query(states)  # (B, T, A)
        num_positions = max(1, self.max_elements // max(1, keys.numel()))
        if queries.size(1) <= num_positions:
            return self._score(queries, keys)
        chunks = [
            checkpoint(self._score, chunk, keys, use_reentrant=False, preserve_rng_state=False)
            for chunk in queries.split(num_positions, dim=1)
        ]
        return torch.cat(chunks, dim=1)

    def _score(self, queries: Tensor, keys: Tensor) -> Tensor:
        hidden = torch.tanh(queries[:, :, None] + keys[:, None])  # (B, T, S, A)
        scores: Tensor = self.energy(hidden).squeeze(-1)  # (B, T, S)
        return scores


class MultiplicativeScore(nn.Module):
    """s^T W h for every pair of state and annotation."""

    def __init__(self, d_query: int, d_key: int) -> None:
        super().__init__()
        self.key = nn.Linear(d_key, d_query, bias=False)  # W

    def project_keys(self, annotations: Tensor) -> Tensor:
        """Return the keys W h (B, S, E) of annotations (B, S, D), the same at every step."""
        keys: Tensor = self.key(annotations)
        return keys

    def forward(self, states: Tensor, keys: Tensor) -> Tensor:
        """Score states (B, T, E) against keys (B, S, E): (B, T, S)."""
        return states.to(keys.dtype) @ keys.transpose(1, 2)


def attention_weights(scores: Tensor, mask: Tensor) -> Tensor:
    """Turn scores (B, T, S) into weights that sum to one over what the mask (B, 1, S) allows.

    >>> attention_weights(torch.zeros(1, 1, 3), torch.tensor([[[True, True, False]]]))
    tensor([[[0.5000, 0.5000, 0.0000]]])
    """
    # The lowest number, not -inf: a fully masked row stays free of NaN, backward too.
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    precise = torch.promote_types(scores.dtype, torch.float32)
    return scores.softmax(dim=-1, dtype=precise).masked_fill(~mask, 0.0)
