"""Sequence to sequence through one vector (Sutskever et al. 2014, Cho et al. 2014).

The encoder reads the source word by word, h_j = f(h_{j-1}, x_j); its state after the last word, c,
is all that the decoder sees of the source, however long that is:

    s_0 = tanh(W c)                     each layer has its own W
    s_i = f(s_{i-1}, y_{i-1}, c)        c with every word, as in Cho et al.
    p(y_i) = softmax(E tanh(V [s_i; c]))

Sutskever et al. found that reading the source backwards helps: the words that are translated first
are then read last. The vector c is the bottleneck that attention removed
(`attendo.architectures.rnn_attention`).
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from attendo.architectures.base import Baseline
from attendo.architectures.config import RnnSeq2SeqConfig
from attendo.architectures.rnn_layers import (
    Bridge,
    CellState,
    RecurrentStack,
    reverse_sequences,
    sequence_lengths,
)
from attendo.core.protocols import Explanation, Memory


class ContextState(NamedTuple):
    """The decoding state: each layer's state, and the source as one vector."""

    layers: tuple[CellState, ...]
    context: Tensor  # (N, E)

    def reorder(self, index: Tensor) -> ContextState:
        """Return the state whose row i is row `index[i]` of this one."""
        layers = tuple(layer.reorder(index) for layer in self.layers)
        return ContextState(layers, self.context.index_select(0, index))


class RnnSeq2Seq(Baseline):
    """An LSTM or GRU encoder-decoder with one context vector.

    Options are the fields of `RnnSeq2SeqConfig`. Source padding is on the right: of a mask with
    gaps only the number of real tokens is used.

    >>> model = RnnSeq2Seq(vocab_size=100, d_model=32, num_layers=2)
    >>> model(torch.tensor([[5, 6, 7]]), torch.tensor([[1, 8]])).shape
    torch.Size([1, 2, 100])
    """

    kind: ClassVar[str] = "rnn-seq2seq"
    config: RnnSeq2SeqConfig

    def __init__(self, vocab_size: int, **options: Any) -> None:
        super().__init__(RnnSeq2SeqConfig(vocab_size=vocab_size, **options))
        config = self.config
        d_model, d_state, num_layers = config.d_model, config.state_size, config.num_layers
        sizes, dropout = (d_state, num_layers), config.dropout
        self.encoder = RecurrentStack(config.cell, d_model, *sizes, dropout=dropout)
        self.bridge = Bridge(config.cell, d_state, *sizes)
        self.decoder = RecurrentStack(config.cell, d_model + d_state, *sizes, dropout=dropout)
        self.combine = nn.Linear(2 * d_state, d_model)  # V

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Memory:
        """Encode the source (B, S); each state is at the position of the last word it has read."""
        x, src_mask = self.embed_source(src_ids, src_mask)
        if not self.config.reverse_source:
            return Memory(self.encoder(x)[0], src_mask)
        lengths = sequence_lengths(src_mask)
        states, _ = self.encoder(reverse_sequences(x, lengths))
        return Memory(reverse_sequences(states, lengths), src_mask)

    def start(self, memory: Memory) -> ContextState:
        """Return the decoding state: of the source it has only the encoder's last state."""
        last = sequence_lengths(memory.mask).sub(1).clamp_min(0)  # (B,)
        if self.config.reverse_source:
            last = torch.zeros_like(last)
        rows = torch.arange(len(last), device=last.device)
        context = memory.states[rows, last]  # (B, E)
        return ContextState(self.bridge(context), context)

    def step(self, ids: Tensor, state: ContextState) -> tuple[Tensor, ContextState]:
        """Feed one target position, ids (N,); return the next logits (N, V) and the new state."""
        logits, state = self._decode(self.embed_step(ids), state)
        return logits.squeeze(1), state

    def reorder(self, state: ContextState, index: Tensor) -> ContextState:
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
        state = self.start(self.encode(src_ids, src_mask))
        x, _ = self.embed_target(tgt_ids, tgt_mask)  # padding comes last: no real token sees it
        return self._decode(x, state)[0]

    def explain(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Explanation:
        """Run the same forward pass; there is no attention to return."""
        return Explanation(self(src_ids, tgt_ids, src_mask, tgt_mask), (), (), ())

    def _decode(self, x: Tensor, state: ContextState) -> tuple[Tensor, ContextState]:
        """Feed all positions of x (N, T, D) in one call per layer; return logits (N, T, V)."""
        context = state.context[:, None].expand(-1, x.size(1), -1)  # (N, T, E)
        hidden, layers = self.decoder(torch.cat((x, context), dim=-1), state.layers)
        combined = torch.tanh(self.combine(torch.cat((hidden, context), dim=-1)))  # (N, T, D)
        logits: Tensor = self.output(self.dropout(combined))
        return logits, state._replace(layers=layers)
