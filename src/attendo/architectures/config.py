"""Options of the models other than the paper's. This module loads no tensor library."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from attendo.core.config import Count, Natural, Rate, Size
from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.model.config import Seq2SeqConfig, TransformerConfig, split_heads_evenly

Cell = Literal["lstm", "gru"]


class RnnConfig(Seq2SeqConfig):
    """Options of the recurrent models; the defaults suit a corpus of about 30,000 pairs."""

    d_model: Size = 256
    dropout: Rate = 0.3
    """On embeddings, between layers and before the output projection, but not over time."""
    cell: Cell = "lstm"
    """The recurrence: LSTM (three gates and a cell) or GRU (two gates)."""
    num_layers: Size = 1
    """Layers of the encoder and of the decoder. One is what Cho et al. and Bahdanau et al. used,
    and what learns fastest from little text; Sutskever et al. had four."""
    d_state: Size | None = None
    """Width of a recurrent state; d_model if not given."""

    @property
    def state_size(self) -> int:
        """The width of a recurrent state, resolved."""
        return self.d_state or self.d_model


class RnnSeq2SeqConfig(RnnConfig):
    """Options of the encoder-decoder with one context vector."""

    reverse_source: bool = True
    """Read the source backwards, so that its first words are the most recent (Sutskever et al.)."""


class RnnAttentionConfig(RnnConfig):
    """Options of the encoder-decoder with attention."""

    attention: Literal["additive", "multiplicative"] = "additive"
    """The score of a decoder state and a source position: Bahdanau's or Luong's."""
    input_feeding: bool = False
    """Let the next state depend on the last context, as in both papers: slow, step by step."""


class ConvConfig(Seq2SeqConfig):
    """Options of the model of Gehring et al. (2017); the sizes are theirs for English-Romanian.

    >>> ConvConfig(vocab_size=100, kernel_size=4)
    Traceback (most recent call last):
    attendo.core.errors.ConfigError: ConvConfig: 1 setting cannot be used
      - kernel_size 4 is even, but the encoder's window needs a center (use kernel_size 3 or 5)
    """

    d_hidden: Size | None = None
    """Width of the convolutions; d_model if not given."""
    num_layers: Size = 20
    num_decoder_layers: Size | None = None
    """Decoder layers, if they differ from the encoder's `num_layers`."""
    kernel_size: Size = 3
    """Positions per convolution: around its own in the encoder, up to it in the decoder."""
    dropout: Rate = 0.1
    """On embeddings with positions, on each convolution's input, on the decoder's output."""
    max_length: Size = 1024
    """Longest sequence, since positions are learned."""

    def _find_conflicts(self) -> list[str]:
        if self.kernel_size % 2:
            return []
        near = f"{self.kernel_size - 1} or {self.kernel_size + 1}"
        return [
            message(
                "kernel_size {kernel_size} is even, but the encoder's window needs a "
                "center (use kernel_size {near})",
                kernel_size=self.kernel_size,
                near=near,
            )
        ]


class SingleStackConfig(Seq2SeqConfig):
    """Options of one stack of layers; the default sizes are those of GPT and BERT.

    The default positions are the paper's sinusoids: GPT's and BERT's are learned, with a maximum
    length.
    """

    d_model: Size = 768
    d_ff: Size = 3072
    num_heads: Size = 12
    num_layers: Size = 12
    attention_dropout: Rate = 0.0
    """Dropout on the attention weights."""
    activation_dropout: Rate = 0.0
    """Dropout inside the feed-forward network."""
    activation: Literal["relu", "gelu", "swish"] = "gelu"
    norm: Literal["post", "pre"] = "post"
    layer_norm_eps: Annotated[float, Field(gt=0.0)] = 1e-5
    positions: Literal["sinusoidal", "learned", "concatenated", "none"] = "sinusoidal"
    max_length: Size = 1024
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
            return [message("{reason} (use a num_heads that divides d_model)", reason=error.reason)]
        return []


class DecoderConfig(SingleStackConfig):
    """Options of the decoder-only model; the default sizes are those of the smallest GPT-2."""

    kind: ClassVar[str] = "decoder"
    norm: Literal["post", "pre"] = "pre"
    max_length: Size = 1024
    """Longest source and target together; only learned positions have this limit."""


class EncoderConfig(SingleStackConfig):
    """Options of the encoder-only model; the default sizes are those of BERT-base."""

    kind: ClassVar[str] = "encoder"
    reads: Literal["summary", "each"] = "summary"
    """What a target position reads: the source's end symbol as a summary of the text
    (classification), or the source position of the same index (tagging, masked tokens)."""
    tgt_length: Size | None = None
    """Tokens of every target if all have the same number (classification: 1). The end symbol then
    follows them by construction; otherwise it is learned like any other token."""
    end_id: Natural = 3
    tie_embeddings: Literal["three-way", "decoder", "none"] = "three-way"
    """The target is not embedded: 'three-way' shares the output projection with the source
    embedding; otherwise it has its own matrix."""
    attention_width: Size | None = None
    """Restricted self-attention: each position sees only a neighborhood of this width."""


class SeriesTransformerConfig(TransformerConfig):
    """Options of a Transformer whose source is numbers over time."""

    kind: ClassVar[str] = "series"
    data_dependent_options: ClassVar[tuple[str, ...]] = (
        "vocab_size",
        "num_features",
        "num_targets",
        "pad_id",
    )
    """Options that follow from the data."""
    vocab_size: Count = 4
    """Label ids, including four special ones; unused if the target is numbers."""
    num_features: Size = 1
    """Numbers per time step of the source."""
    num_targets: Natural = 0
    """Numbers per step of the target; 0: the target is labels."""
    tie_embeddings: Literal["three-way", "decoder", "none"] = "decoder"

    def _find_conflicts(self) -> list[str]:
        reasons = super()._find_conflicts()
        if self.tie_embeddings == "three-way":
            reasons.append(
                message(
                    "tie_embeddings 'three-way' needs a source of tokens (the source of a "
                    "series is numbers: use 'decoder' or 'none')"
                )
            )
        if self.tgt_vocab_size is not None:
            reasons.append(
                message("tgt_vocab_size: labels are the only vocabulary (use vocab_size)")
            )
        return reasons
