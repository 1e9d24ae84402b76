"""Recurrence with attention (Bahdanau et al. 2015, Luong et al. 2015).

A bidirectional encoder computes an annotation h_j of each source word from the words before and
after it. The decoder attends to all of them for every word that it outputs:

    e_ij = a(s_{i-1}, h_j)              how well state and annotation match
    alpha_ij = softmax over j of e_ij   the attention weights
    c_i = sum over j of alpha_ij h_j    the context
    s_i = f(s_{i-1}, y_{i-1}, c_i)      the next state

These are the equations of Bahdanau et al.; Luong et al. score the new state, e_ij = a(s_i, h_j),
compute the attentional vector tanh(V [s_i; c_i]) for the output, and feed that vector to the next
step ("input feeding"). In both, the next state depends on c, so that a fused kernel cannot process
the whole target at once.

The default departs from this for speed. The first decoder layer reads only the words, in one call
for all positions; its states, like Luong's, are the queries for all contexts at once; further
layers, one call each, and the attentional vector read state and context. The contexts influence
later states through the words they led to and, with two layers or more, through the recurrence of
the upper layers. `input_feeding=True` adds Luong's feedback, one position after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import torch
from torch import Tensor, nn

from attendo.architectures.base import Baseline
from attendo.architectures.config import RnnAttentionConfig
from attendo.architectures.rnn_attention_scores import (
    AdditiveScore,
    MultiplicativeScore,
    attention_weights,
)
from attendo.architectures.rnn_layers import (
    Bridge,
    CellState,
    RecurrentLayer,
    reverse_sequences,
    sequence_lengths,
)
from attendo.core.protocols import Explanation, Memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.architectures.config import Cell


class AttentionState(NamedTuple):
    """The decoding state."""

    layers: tuple[CellState, ...]
    keys: Tensor  # (N, S, A), the annotations projected for the score
    values: Tensor  # (N, S, D), the annotations
    mask: Tensor  # (N, 1, S)
    attentional: Tensor  # (N, 1, D), of the previous position, for input feeding

    def reorder(self, index: Tensor) -> AttentionState:
        """Return the state whose row i is row `index[i]` of this one."""
        layers = tuple(layer.reorder(index) for layer in self.layers)
        return AttentionState(layers, *(tensor.index_select(0, index) for tensor in self[1:]))


class BidirectionalLayer(nn.Module):
    """Reads a sequence in both directions and concatenates the states of each position."""

    def __init__(self, cell: Cell, d_in: int, d_state: int) -> None:
        super().__init__()
        self.ahead = RecurrentLayer(cell, d_in, d_state)
        self.back = RecurrentLayer(cell, d_in, d_state)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Turn x (B, S, I) into states (B, S, 2 E); reading back starts at the last real word."""
        ahead, _ = self.ahead(x)
        back, _ = self.back(reverse_sequences(x, lengths))
        return torch.cat((ahead, reverse_sequences(back, lengths)), dim=-1)


class BidirectionalEncoder(nn.Module):
    """Bidirectional layers; a projection turns their states into annotations of width d_model."""

    def __init__(
        self, cell: Cell, d_model: int, d_state: int, num_layers: int, *, dropout: float
    ) -> None:
        super().__init__()
        widths = [d_model, *[2 * d_state] * (num_layers - 1)]
        layers = nn.ModuleList(BidirectionalLayer(cell, width, d_state) for width in widths)
        self.layers = cast("Sequence[BidirectionalLayer]", layers)
        self.dropout = nn.Dropout(dropout)
        self.project = nn.Linear(2 * d_state, d_model)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Annotate x (B, S, D), rows of the given lengths (B,)."""
        for number, layer in enumerate(self.layers):
            x = layer(self.dropout(x) if number else x, lengths)  # (B, S, 2 E)
        annotations: Tensor = self.project(x)  # (B, S, D)
        return annotations


class RnnAttention(Baseline):
    """An LSTM or GRU encoder-decoder with attention.

    Options are the fields of `RnnAttentionConfig`. Source padding is on the right: gaps in a mask
    are hidden from attention, but not from the backward layers.

    >>> model = RnnAttention(vocab_size=100, d_model=32, num_layers=2)
    >>> src_ids, tgt_ids = torch.tensor([[5, 6, 7]]), torch.tensor([[1, 8]])
    >>> model(src_ids, tgt_ids).shape
    torch.Size([1, 2, 100])
    >>> model.explain(src_ids, tgt_ids).cross[0].shape  # one layer, one head
    torch.Size([1, 1, 2, 3])
    """

    kind: ClassVar[str] = "rnn-attention"
    config: RnnAttentionConfig

    def __init__(self, vocab_size: int, **options: Any) -> None:
        super().__init__(RnnAttentionConfig(vocab_size=vocab_size, **options))
        config = self.config
        cell, d_model, d_state = config.cell, config.d_model, config.state_size
        self.encoder = BidirectionalEncoder(
            cell, d_model, d_state, config.num_layers, dropout=config.dropout
        )
        self.bridge = Bridge(cell, d_model, d_state, config.num_layers)
        self.score: AdditiveScore | MultiplicativeScore
        if config.attention == "additive":
            self.score = AdditiveScore(d_state, d_model, d_state)
        else:
            self.score = MultiplicativeScore(d_state, d_model)
        first = 2 * d_model if config.input_feeding else d_model
        widths = [first, *[d_state + d_model] * (config.num_layers - 1)]
        layers = nn.ModuleList(RecurrentLayer(cell, width, d_state) for width in widths)
        self.decoder = cast("Sequence[RecurrentLayer]", layers)
        self.combine = nn.Linear(d_state + d_model, d_model)  # V

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Memory:
        """Encode the source (B, S) as annotations."""
        x, src_mask = self.embed_source(src_ids, src_mask)
        return Memory(self.encoder(x, sequence_lengths(src_mask)), src_mask)

    def start(self, memory: Memory) -> AttentionState:
        """Return the decoding state, from the first annotation as in Bahdanau et al."""
        states, mask = memory
        layers = self.bridge(states[:, 0])
        zeros = torch.zeros_like(states[:, :1])  # (B, 1, D)
        return AttentionState(layers, self.score.project_keys(states), states, mask, zeros)

    def step(self, ids: Tensor, state: AttentionState) -> tuple[Tensor, AttentionState]:
        """Feed one target position, ids (N,); return the next logits (N, V) and the new state."""
        vectors, _, state = self._decode(self.embed_step(ids), state)
        return self.output(vectors.squeeze(1)), state

    def reorder(self, state: AttentionState, index: Tensor) -> AttentionState:
        """Return the state whose row i is row `index[i]` of the given one."""
        return state.reorder(index)

    def forward(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Tensor:
        """Teacher forcing: return logits (B, T, V) of source (B, S) and decoder input (B, T)."""
        return self.explain(src_ids, tgt_ids, src_mask, tgt_mask).logits

    def explain(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Explanation:
        """Run the same forward pass and keep its one attention, (B, 1, T, S)."""
        state = self.start(self.encode(src_ids, src_mask))
        x, _ = self.embed_target(tgt_ids, tgt_mask)  # padding comes last: no real token sees it
        decode = self._decode_stepwise if self.config.input_feeding else self._decode
        vectors, weights, _ = decode(x, state)
        return Explanation(self.output(vectors), (), (), (weights[:, None],))

    def _decode(self, x: Tensor, state: AttentionState) -> tuple[Tensor, Tensor, AttentionState]:
        """Feed all positions of x (N, T, D) in one call per layer; T is 1 under input feeding.

        Returns the attentional vectors (N, T, D), the weights (N, T, S) and the new state.
        """
        if self.config.input_feeding:
            x = torch.cat((x, state.attentional), dim=-1)
        first, *upper = self.decoder
        hidden, last = first(x, state.layers[0])  # (N, T, E)
        weights = attention_weights(self.score(hidden, state.keys), state.mask).to(
            state.values.dtype
        )
        context = weights @ state.values  # (N, T, D)
        layers = [last]
        for layer, layer_state in zip(upper, state.layers[1:], strict=True):
            hidden, last = layer(self.dropout(torch.cat((hidden, context), dim=-1)), layer_state)
            layers.append(last)
        combined = torch.tanh(self.combine(torch.cat((hidden, context), dim=-1)))
        vectors: Tensor = self.dropout(combined)
        state = state._replace(layers=tuple(layers), attentional=vectors[:, -1:])
        return vectors, weights, state

    def _decode_stepwise(
        self, x: Tensor, state: AttentionState
    ) -> tuple[Tensor, Tensor, AttentionState]:
        """Feed x (N, T, D) position by position, each with the last attentional vector."""
        vectors, weights = [], []
        for position in x.split(1, dim=1):
            vector, row, state = self._decode(position, state)
            vectors.append(vector)
            weights.append(row)
        return torch.cat(vectors, dim=1), torch.cat(weights, dim=1), state
