"""Options of the paper's model, and those that every sequence-to-sequence model has.

Layers never see a config: they take plain keyword arguments. This module loads no tensor library.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from attendo.core.config import MAX_SIZE, Config, Count, Natural, Rate, Size
from attendo.core.errors import ConfigError
from attendo.core.message import message


class Seq2SeqConfig(Config):
    """Options of every model that implements `attendo.core.protocols.Seq2SeqModel`."""

    vocab_size: Count
    """Size of the source vocabulary, and of the target's unless `tgt_vocab_size` is given."""
    tgt_vocab_size: Count | None = None
    d_model: Size = 512
    """Width of embeddings and states; the warmup schedule depends on it."""
    dropout: Rate = 0.1
    tie_embeddings: Literal["three-way", "decoder", "none"] = "three-way"
    """Which of source embedding, target embedding and output projection share a matrix
    (section 3.4)."""
    pad_id: Natural = 0

    @model_validator(mode="after")
    def _check_vocabularies(self) -> Self:
        reasons = []
        if self.tie_embeddings == "three-way" and self.tgt_vocab_size not in (
            None,
            self.vocab_size,
        ):
            reasons.append(
                message(
                    "tie_embeddings 'three-way' needs one vocabulary for both sides (leave "
                    "tgt_vocab_size out, or use tie_embeddings 'decoder')"
                )
            )
        smallest = min(self.vocab_size, self.tgt_vocab_size or self.vocab_size)
        if self.pad_id >= smallest:
            reasons.append(
                message(
                    "pad_id {pad_id} is outside the vocabulary of {smallest}",
                    pad_id=self.pad_id,
                    smallest=smallest,
                )
            )
        reasons += self._find_conflicts()
        if reasons:
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        return self

    def _find_conflicts(self) -> list[str]:
        """Return the reasons why a model's own options cannot be combined."""
        return []


class TransformerConfig(Seq2SeqConfig):
    """Options of the model of section 3; the defaults are the paper's base model (Table 3)."""

    kind: ClassVar[str] = "transformer"
    d_ff: Size = 2048
    num_heads: Size = 8
    num_layers: Size = 6
    num_decoder_layers: Size | None = None
    """Decoder layers, if they differ from the encoder's `num_layers`."""
    num_decoder_heads: Size | None = None
    """Heads of the decoder's attentions, if they differ from the encoder's `num_heads`."""
    decoder_d_ff: Size | None = None
    """Width of the decoder's feed-forward networks, if it differs from the encoder's `d_ff`."""
    d_k: Size | None = None
    """Size of a query and a key in one head; d_model / num_heads if not given."""
    d_v: Size | None = None
    """Size of a value in one head; d_model / num_heads if not given."""
    dropout: Rate = 0.1
    """On each sub-layer's output and on both sums of embedding and position (section 5.4)."""
    attention_dropout: Rate = 0.0
    """Departs from the paper: dropout on the attention weights."""
    activation_dropout: Rate = 0.0
    """Departs from the paper: dropout inside the feed-forward network."""
    activation: Literal["relu", "gelu", "swish"] = "relu"
    norm: Literal["post", "pre"] = "post"
    layer_norm_eps: Annotated[float, Field(gt=0.0)] = 1e-5
    positions: Literal["sinusoidal", "learned", "concatenated", "none"] = "sinusoidal"
    position_layout: Literal["interleaved", "halves", "tensor2tensor", "fairseq"] = "interleaved"
    max_length: Size = 1024
    """Longest sequence of learned positions; sinusoids have no limit."""
    attention_width: Size | None = None
    """Restricted self-attention: each position sees only a neighborhood of this width."""
    scale: bool = True
    """Departs from the paper when off: scores are not divided by sqrt(d_k) (section 3.2.1)."""
    residual: bool = True
    """Departs from the paper when off: no residual connections (section 3.1)."""
    bias: bool = True
    """Biases in the four projections of each attention (the paper's formulas have none)."""
    output_bias: bool = False
    """Departs from the paper when on: a bias on the logits, as imported models have it."""
    scale_embeddings: bool = True
    """Departs from the paper when off: embeddings are not multiplied by sqrt(d_model)."""

    @property
    def layer_options(self) -> dict[str, Any]:
        """Return the options of each layer, as `attendo.model.layers.LayerOptions` takes them."""
        names = (
            *("d_k", "d_v", "dropout", "attention_dropout", "activation_dropout", "activation"),
            *("norm", "scale", "residual", "bias"),
        )
        return {**{name: getattr(self, name) for name in names}, "eps": self.layer_norm_eps}

    def _find_conflicts(self) -> list[str]:
        if self.d_k is not None and self.d_v is not None:
            return []
        try:
            for num_heads in {self.num_heads, self.num_decoder_heads or self.num_heads}:
                split_heads_evenly(self.d_model, num_heads)
        except ConfigError as error:
            return [message("{reason} ({hint})", reason=error.reason, hint=error.hint)]
        return []


def split_heads_evenly(d_model: int, num_heads: int) -> int:
    """Return the paper's head size d_model / num_heads; raise an error unless it is whole.

    >>> split_heads_evenly(512, 8)
    64
    """
    if d_model % num_heads == 0:
        return d_model // num_heads
    candidates = range(1, min(d_model, MAX_SIZE) + 1)
    divisors = (count for count in candidates if d_model % count == 0)
    near = nsmallest(2, divisors, key=lambda count: abs(count - num_heads))
    raise ConfigError(
        message(
            "d_model {d_model} cannot be split over num_heads {num_heads}",
            d_model=d_model,
            num_heads=num_heads,
        ),
        hint=message(
            "use num_heads {names}, or set d_k and d_v yourself",
            names=" or ".join(map(str, sorted(near))),
        ),
    )
