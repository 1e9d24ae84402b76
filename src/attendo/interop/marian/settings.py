"""The `config.json` of a Marian folder, and its translation to and from our config.

Hugging Face's Marian is the paper's model with sinusoids in halves: post-norm, biases everywhere,
layer norm with an epsilon of 1e-5. Other configurations cannot be exported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field

from attendo.core.config import Config, Count, Rate
from attendo.core.message import message

if TYPE_CHECKING:
    from attendo.model.config import TransformerConfig

Id = Annotated[int, Field(ge=0)]
Tie = Literal["three-way", "decoder", "none"]
EPS = 1e-5
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
"""Their names of activations, and ours."""
REQUIRED_OPTIONS: dict[str, tuple[Any, str]] = {
    "norm": ("post", "Marian is post-norm"),
    "bias": (True, "Marian's attention has biases"),
    "scale": (True, "Marian divides scores by sqrt(d_k)"),
    "residual": (True, "Marian has residual connections"),
    "positions": ("sinusoidal", "Marian's positions are sinusoids"),
    "attention_width": (None, "Marian's attention is not local"),
    "layer_norm_eps": (EPS, "Marian's layer norm has this epsilon"),
}
"""Our options for which Marian supports only one value."""


class MarianSettings(Config):
    """The relevant settings, with Hugging Face's defaults."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    model_type: Literal["marian"]
    vocab_size: Count = 58101
    decoder_vocab_size: Count | None = None
    max_position_embeddings: Count = 1024
    d_model: Count = 1024
    encoder_layers: Count = 12
    encoder_ffn_dim: Count = 4096
    encoder_attention_heads: Count = 16
    decoder_layers: Count = 12
    decoder_ffn_dim: Count = 4096
    decoder_attention_heads: Count = 16
    activation_function: Literal["relu", "gelu", "swish", "silu"] = "gelu"
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.0
    activation_dropout: Rate = 0.0
    scale_embedding: bool = False
    pad_token_id: Id = 58100
    eos_token_id: Id = 0
    decoder_start_token_id: Id = 58100
    share_encoder_decoder_embeddings: bool = True
    tie_word_embeddings: bool = True

    @property
    def tgt_size(self) -> int:
        """Return the size of the target vocabulary."""
        return self.decoder_vocab_size or self.vocab_size

    @property
    def tie(self) -> Tie:
        """Return which matrices are tied."""
        if not self.tie_word_embeddings:
            return "none"
        return "three-way" if self.share_encoder_decoder_embeddings else "decoder"

    def to_options(self) -> dict[str, Any]:
        """Return our options, except those of the vocabulary."""

        def unless_equal(decoder: int, encoder: int) -> int | None:
            return None if decoder == encoder else decoder

        return {
            "d_model": self.d_model,
            "d_ff": self.encoder_ffn_dim,
            "decoder_d_ff": unless_equal(self.decoder_ffn_dim, self.encoder_ffn_dim),
            "num_heads": self.encoder_attention_heads,
            "num_decoder_heads": unless_equal(
                self.decoder_attention_heads, self.encoder_attention_heads
            ),
            "num_layers": self.encoder_layers,
            "num_decoder_layers": unless_equal(self.decoder_layers, self.encoder_layers),
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation_dropout": self.activation_dropout,
            "activation": ACTIVATIONS[self.activation_function],
            "position_layout": "halves",
            "layer_norm_eps": EPS,
            "max_length": self.max_position_embeddings,
            "tie_embeddings": self.tie,
            "scale_embeddings": self.scale_embedding,
        }

    @classmethod
    def from_config(cls, config: TransformerConfig, **vocabulary: Any) -> MarianSettings:
        """Return the settings of one of our configs; `vocabulary` has its sizes and symbols."""
        return cls(
            model_type="marian",
            max_position_embeddings=config.max_length,
            d_model=config.d_model,
            encoder_layers=config.num_layers,
            encoder_ffn_dim=config.d_ff,
            encoder_attention_heads=config.num_heads,
            decoder_layers=config.num_decoder_layers or config.num_layers,
            decoder_ffn_dim=config.decoder_d_ff or config.d_ff,
            decoder_attention_heads=config.num_decoder_heads or config.num_heads,
            activation_function=config.activation,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            activation_dropout=config.activation_dropout,
            scale_embedding=config.scale_embeddings,
            share_encoder_decoder_embeddings=config.tie_embeddings == "three-way",
            tie_word_embeddings=config.tie_embeddings != "none",
            **vocabulary,
        )


def unsupported_options(config: TransformerConfig) -> list[str]:
    """Return everything in our config that a Marian folder cannot express."""
    reasons = [
        message(
            "{name} = {value!r}: {detail} ({name} = {required!r})",
            name=name,
            value=getattr(config, name),
            detail=reason,
            required=required,
        )
        for name, (required, reason) in REQUIRED_OPTIONS.items()
        if getattr(config, name) != required
    ]
    layout = config.position_layout
    if config.positions == "sinusoidal" and layout in ("fairseq", "tensor2tensor"):
        reasons.append(
            message(
                "position_layout = {layout!r}: Marian's sinusoids have other frequencies",
                layout=layout,
            )
        )
    heads = {config.num_heads, config.num_decoder_heads or config.num_heads}
    for name in ("d_k", "d_v"):
        size = getattr(config, name)
        if size is not None and any(size * count != config.d_model for count in heads):
            reasons.append(
                message(
                    "{name} = {size}: the size of Marian's heads is d_model / num_heads",
                    name=name,
                    size=size,
                )
            )
    return reasons
