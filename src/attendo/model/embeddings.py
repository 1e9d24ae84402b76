"""Token embeddings, scaled by sqrt(d_model) (section 3.4)."""

from __future__ import annotations

from math import sqrt

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor, nn

from attendo.core.errors import InputError


class ScaledEmbedding(nn.Module):
    """Looks up a vector for each id and multiplies it by sqrt(d_model).

    Paper: `scale=False` departs from it, the vectors are not multiplied.
    """

    def __init__(self, vocab_size: int, d_model: int, *, scale: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        self.scale = sqrt(d_model) if scale else 1.0

    def forward(self, ids: Tensor) -> Tensor:
        """Turn ids (B, T) into vectors (B, T, D)."""
        return F.embedding(ids, self.weight) * self.scale


def check_ids(ids: Tensor, vocab_size: int, *, name: str, shape: str = "(batch, length)") -> None:
    """Raise an error for ids of the wrong shape or type, or outside the vocabulary.

    The values are not checked while compiling, since reading them would break the graph.
    """
    hint = f"give a torch.long tensor of shape {shape}"
    if ids.dtype not in (torch.int64, torch.int32):
        raise InputError(f"{name} has type {ids.dtype}, not integers", hint=hint)
    if ids.dim() != shape.count(",") + (0 if shape.endswith(",)") else 1):
        raise InputError(f"{name} has shape {tuple(ids.shape)}, not {shape}", hint=hint)
    if torch.compiler.is_compiling() or ids.numel() == 0:
        return
    low, high = (int(bound) for bound in torch.aminmax(ids))
    if low < 0 or high >= vocab_size:
        outside = low if low < 0 else high
        raise InputError(
            f"{name} holds id {outside}, outside the vocabulary 0 ... {vocab_size - 1}",
            hint="use the tokenizer that belongs to this model, or a larger vocab_size",
        )
