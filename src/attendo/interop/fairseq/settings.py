"""The settings of a fairseq `transformer`, and their translation to our config."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import ConfigDict

from attendo.core.config import Config, Count, Rate
from attendo.core.errors import ConfigError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attendo.interop.marian.settings import Tie

REQUIRED_VALUES: Mapping[str, Any] = {
    "layernorm_embedding": False,
    "adaptive_input": False,
    "adaptive_softmax_cutoff": None,
    "no_cross_attention": False,
    "cross_self_attention": False,
    "no_decoder_final_norm": False,
    "character_embeddings": False,
    "tie_adaptive_weights": False,
}
"""Settings of which only one value is supported; old checkpoints do not store all of them."""
ARCHITECTURE = "transformer"
SHARED_SETTINGS = ("embed_dim", "normalize_before", "learned_pos")
"""Settings of the encoder and the decoder that must be equal."""


class FairseqSettings(Config):
    """The relevant settings; those without a default are required."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    encoder_embed_dim: Count
    encoder_ffn_embed_dim: Count
    encoder_layers: Count
    encoder_attention_heads: Count
    encoder_normalize_before: bool = False
    encoder_learned_pos: bool = False
    decoder_embed_dim: Count
    decoder_ffn_embed_dim: Count
    decoder_layers: Count
    decoder_attention_heads: Count
    decoder_normalize_before: bool = False
    decoder_learned_pos: bool = False
    decoder_output_dim: Count | None = None
    activation_fn: Literal["relu", "gelu", "swish"] = "relu"
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.0
    activation_dropout: Rate = 0.0
    share_all_embeddings: bool = False
    share_decoder_input_output_embed: bool = False
    no_scale_embedding: bool = False
    no_token_positional_embeddings: bool = False
    max_source_positions: Count = 1024
    max_target_positions: Count = 1024

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """Read the settings of a checkpoint; collect everything that is not supported."""
        reasons = [
            message(
                "{key} = {given!r}: only {value!r} can be imported",
                key=key,
                given=given[key],
                value=value,
            )
            for key, value in REQUIRED_VALUES.items()
            if key in given and given[key] not in (value, None, 0)
        ]
        name = given.get("arch") or given.get("_name") or ARCHITECTURE
        if not str(name).startswith(ARCHITECTURE):
            reasons.append(
                message("the architecture {name} is not a {known}", name=name, known=ARCHITECTURE)
            )
        known = {key: value for key, value in given.items() if value is not None}
        try:
            settings = cls(**known)
        except ConfigError as error:
            reasons += error.reasons
        else:
            reasons += settings._unsupported_reasons()
        if reasons:
            raise ConfigError.from_reasons("the fairseq model", reasons)
        return settings

    def _unsupported_reasons(self) -> list[str]:
        reasons = []
        for name in SHARED_SETTINGS:
            one, other = (getattr(self, f"{side}_{name}") for side in ("encoder", "decoder"))
            if one != other:
                reasons.append(
                    message(
                        "{name} is {encoder!r} in the encoder, {decoder!r} in the decoder",
                        name=name,
                        encoder=one,
                        decoder=other,
                    )
                )
        if self.decoder_output_dim not in (None, self.decoder_embed_dim):
            reasons.append(
                message(
                    "decoder_output_dim = {size}: must equal the width",
                    size=self.decoder_output_dim,
                )
            )
        if self.encoder_learned_pos and self.max_source_positions != self.max_target_positions:
            reasons.append(
                message(
                    "learned positions for {src} source and {tgt} target tokens: must be equal",
                    src=self.max_source_positions,
                    tgt=self.max_target_positions,
                )
            )
        return reasons

    @property
    def tie(self) -> Tie:
        """Return which matrices are tied."""
        if self.share_all_embeddings:
            return "three-way"
        return "decoder" if self.share_decoder_input_output_embed else "none"

    @property
    def positions(self) -> Literal["learned", "sinusoidal", "none"]:
        """Return the kind of positions."""
        if self.no_token_positional_embeddings:
            return "none"
        return "learned" if self.encoder_learned_pos else "sinusoidal"

    def to_options(self) -> dict[str, Any]:
        """Return our options, except those of the vocabulary."""

        def unless_equal(decoder: int, encoder: int) -> int | None:
            return None if decoder == encoder else decoder

        return {
            "d_model": self.encoder_embed_dim,
            "d_ff": self.encoder_ffn_embed_dim,
            "decoder_d_ff": unless_equal(self.decoder_ffn_embed_dim, self.encoder_ffn_embed_dim),
            "num_heads": self.encoder_attention_heads,
            "num_decoder_heads": unless_equal(
                self.decoder_attention_heads, self.encoder_attention_heads
            ),
            "num_layers": self.encoder_layers,
            "num_decoder_layers": unless_equal(self.decoder_layers, self.encoder_layers),
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation_dropout": self.activation_dropout,
            "activation": self.activation_fn,
            "norm": "pre" if self.encoder_normalize_before else "post",
            "positions": self.positions,
            "position_layout": "fairseq",
            "max_length": self.max_source_positions,
            "tie_embeddings": self.tie,
            "scale_embeddings": not self.no_scale_embedding,
        }
