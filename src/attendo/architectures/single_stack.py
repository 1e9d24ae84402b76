"""What the encoder-only and the decoder-only model share: their options and their stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from torch import nn

from attendo.core.config import Count, Rate
from attendo.core.errors import ConfigError
from attendo.model.config import Seq2SeqConfig, split_heads_evenly
from attendo.model.encoder import Encoder

if TYPE_CHECKING:
    from attendo.model.layers import EncoderLayer


class SingleStackConfig(Seq2SeqConfig):
    """Options of one stack of layers; the default sizes are those of GPT and BERT.

    The default positions are the paper's sinusoids: GPT's and BERT's are learned, with a maximum
    length.
    """

    d_model: Count = 768
    d_ff: Count = 3072
    num_heads: Count = 12
    num_layers: Count = 12
    attention_dropout: Rate = 0.0
    """Dropout on the attention weights."""
    activation_dropout: Rate = 0.0
    """Dropout inside the feed-forward network."""
    activation: Literal["relu", "gelu", "swish"] = "gelu"
    norm: Literal["post", "pre"] = "post"
    layer_norm_eps: Annotated[float, Field(gt=0.0)] = 1e-5
    positions: Literal["sinusoidal", "learned", "concatenated", "none"] = "sinusoidal"
    max_length: Count = 1024
    """Longest sequence of learned positions."""
    bias: bool = True
    """Biases in the four projections of each attention."""

    @property
    def layer_options(self) -> dict[str, Any]:
        """Return the options of each layer, as `attendo.model.layers.LayerOptions` takes them."""
        names = ("dropout", "attention_dropout", "activation_dropout", "activation", "norm", "bias")
        return {**{name: getattr(self, name) for name in names}, "eps": self.layer_norm_eps}

    def _find_conflicts(self) -> list[str]:
        try:
            split_heads_evenly(self.d_model, self.num_heads)
        except ConfigError as error:
            return [f"{error.reason} (use a num_heads that divides d_model)"]
        return []


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
