"""How a new model's parameters are drawn, all in one place.

The paper does not say. As in its own code: Xavier-uniform for every projection (each of the four of
an attention by its own fans), zero for biases, one and zero for layer norm, and a normal
distribution of variance 1 / d_model for embeddings, so that scaled embeddings have unit variance
and tied logits start small.
"""

from __future__ import annotations

from torch import nn

from attendo.model.embeddings import ScaledEmbedding
from attendo.model.positional import LearnedPositions


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
    # Embeddings last: a tied output projection shares their matrix and keeps their distribution.
    for module in model.modules():
        match module:
            case ScaledEmbedding() | LearnedPositions():
                nn.init.normal_(module.weight, std=module.weight.size(1) ** -0.5)
