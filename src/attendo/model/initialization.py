"""Initialization of the parameters.

The paper does not describe it. A post-norm stack learns much faster when its sub-layers start small
compared with their residual connections (docs/log.md), so: queries, keys and values are
Xavier-uniform as one stacked matrix, smaller by the root of two than each by itself; the
feed-forward network is uniform within 1 / sqrt(inputs); other projections are Xavier-uniform;
biases are zero, layer norms one and zero. Embeddings are normal with variance 1 / d_model, so that
scaled ones have unit variance and tied logits start small.
"""

from __future__ import annotations

from torch import nn

from attendo.model.attention import MultiHeadAttention
from attendo.model.embeddings import ScaledEmbedding
from attendo.model.feed_forward import FeedForward
from attendo.model.positional_encoding import LearnedPositions

STACKED_GAIN = 2**-0.5


def initialize(model: nn.Module) -> None:
    """Initialize every parameter of `model` from PyTorch's random state."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
    for module in model.modules():
        _initialize_special(module)


def _initialize_special(module: nn.Module) -> None:
    """Initialize the projections that are special once more, and the embeddings last.

    A tied output projection shares the embeddings' matrix and so keeps their distribution.
    """
    match module:
        case MultiHeadAttention():
            for projection in (module.query, module.key, module.value):
                nn.init.xavier_uniform_(projection.weight, gain=STACKED_GAIN)
        case FeedForward():
            for layer in (module.inner, module.outer):
                bound = layer.in_features**-0.5
                nn.init.uniform_(layer.weight, -bound, bound)
        case ScaledEmbedding() | LearnedPositions():
            nn.init.normal_(module.weight, std=module.weight.size(1) ** -0.5)
