"""Options of the recurrent baselines."""

from __future__ import annotations

from typing import Literal

from attendo.core.config import Count, Rate, Seq2SeqConfig

Cell = Literal["lstm", "gru"]


class RnnConfig(Seq2SeqConfig):
    """What the recurrent models share; the defaults suit a corpus of some 30,000 sentence pairs."""

    d_model: Count = 256
    dropout: Rate = 0.3
    """On embeddings, between layers and before the output projection; never along the sequence."""
    cell: Cell = "lstm"
    """How a state follows from the one before: LSTM (three gates and a cell) or GRU (two gates)."""
    num_layers: Count = 1
    """Layers of the encoder, and as many of the decoder. One is what Cho et al. and Bahdanau et al.
    used, and what learns fastest from little text; Sutskever et al. had four."""
    d_state: Count | None = None
    """Width of a recurrent state; d_model when not given."""

    @property
    def state_size(self) -> int:
        """Width of a recurrent state, resolved."""
        return self.d_state or self.d_model


class RnnSeq2SeqConfig(RnnConfig):
    """The encoder-decoder with one context vector (Sutskever et al. 2014, Cho et al. 2014)."""

    reverse_source: bool = True
    """Read the source from its end, so that its first words are the freshest (Sutskever et al.)."""


class RnnAttentionConfig(RnnConfig):
    """The encoder-decoder with attention (Bahdanau et al. 2015, Luong et al. 2015)."""

    attention: Literal["additive", "multiplicative"] = "additive"
    """How well a decoder state and a source position match: Bahdanau's score, or Luong's."""
    input_feeding: bool = False
    """Let what was attended to decide the next state, as both papers do: slow, step by step."""
