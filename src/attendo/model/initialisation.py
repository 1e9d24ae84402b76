"""How a new model's parameters are drawn, all in one place.

The paper does not say. Projections are Xavier-uniform; those of queries, keys and values are drawn as
one stacked matrix, which makes them smaller by the root of two (a post-norm stack learns visibly
faster so: docs/log.md). Biases are zero, layer norm is one and zero. Embeddings are normal with
variance 1 / d_model, so that scaled ones have unit variance and tied logits start small.
"""

from __future__ import annotations

from torch import nn

from attendo.model.attention import MultiHeadAttention
from attendo.model.embeddings import ScaledEmbedding
from attendo.model.positional import LearnedPositions

STACKED_GAIN = 2**-0.5


def initialise(model: nn.Module) -> None:
    """Draw every parameter of `model` from PyTorch's random state."""
    for module in model.modules():
        match module:
            case nn.Linear():
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            case nn.LayerNorm():
                nn.init.ones_(module.weight)
                nn.init.zeros_(module.bias)
    # After all projections: these are special among them. A tied output projection shares the
    # embeddings' matrix and keeps their distribution.
    for module in model.modules():
        match module:
            case MultiHeadAttention():
                for projection in (module.query, module.key, module.value):
                    nn.init.xavier_uniform_(projection.weight, gain=STACKED_GAIN)
            case ScaledEmbedding() | LearnedPositions():
                nn.init.normal_(module.weight, std=module.weight.size(1) ** -0.5)
