"""The stack of layers that the encoder-only and the decoder-only model share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from attendo.model.encoder import Encoder

if TYPE_CHECKING:
    from attendo.architectures.config import SingleStackConfig
    from attendo.model.layers import EncoderLayer


def make_stack(
    config: SingleStackConfig, layer_class: type[EncoderLayer], *, width: int | None = None
) -> Encoder:
    """Return a new stack of layers, with a last layer norm if it is a pre-norm stack."""
    sizes = (config.d_model, config.d_ff, config.num_heads)
    layers = (layer_class(*sizes, **config.layer_options) for _ in range(config.num_layers))
    if config.norm == "post":
        return Encoder(layers, width=width)
    final_norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
    return Encoder(layers, final_norm=final_norm, width=width)
