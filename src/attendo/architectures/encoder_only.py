"""The encoder-only model (BERT): a stack that reads a text in both directions at once.

There is no decoder: a target position reads the encoder's states and nothing of the target. Either
all read the state at the source's end symbol, which learns to summarize the text (classification),
or each reads the source position of the same index (tagging, or masked tokens: Devlin et al. 2019).
The model implements `attendo.core.protocols.Seq2SeqModel`: a class is a target of one token and the
end symbol, so that decoding, scoring and inspection work on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from attendo.architectures.config import EncoderConfig
from attendo.architectures.single_stack import make_stack
from attendo.core.protocols import Explanation, Memory
from attendo.model.embeddings import ScaledEmbedding, check_ids
from attendo.model.fast.packed_sequences import PackedMask
from attendo.model.initialization import initialize
from attendo.model.layers import EncoderLayer
from attendo.model.masks import check_mask, resolve_mask
from attendo.model.positional_encoding import ConcatenatedPositions, make_positions

if TYPE_CHECKING:
    from attendo.model.fast.packed_sequences import Packing
    from attendo.model.positional_encoding import PositionIds

MASKED_LOGIT = -200.0
"""A logit of probability 0 compared with others; finite, so that smoothed losses are finite."""


class EncoderState(NamedTuple):
    """The decoding state: the source's states and the next position."""

    memory: Memory
    position: int

    def reorder(self, index: Tensor) -> EncoderState:
        """Return the state whose row i is row `index[i]` of this one, as beams are reordered."""
        return EncoderState(
            Memory(*(part.index_select(0, index) for part in self.memory)), self.position
        )


class EncoderOnly(nn.Module):
    """A stack of encoder layers and an output projection.

    Options are the fields of `EncoderConfig`.

    >>> model = EncoderOnly(vocab_size=100, d_model=32, d_ff=64, num_heads=4, num_layers=2)
    >>> src_ids, tgt_ids = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 8]])
    >>> model(src_ids, tgt_ids).shape
    torch.Size([1, 2, 100])
    >>> model.explain(src_ids, tgt_ids).encoder_self[0].shape
    torch.Size([1, 4, 3, 3])
    """

    kind: ClassVar[str] = EncoderConfig.kind
    single_stack: ClassVar[str] = "encoder"

    def __init__(self, vocab_size: int, **options: Any) -> None:
        super().__init__()
        self.config = config = EncoderConfig(vocab_size=vocab_size, **options)
        self.tgt_vocab_size = config.tgt_vocab_size or config.vocab_size
        self.src_embedding = ScaledEmbedding(config.vocab_size, config.d_model)
        self.output = nn.Linear(config.d_model, self.tgt_vocab_size, bias=False)
        if config.tie_embeddings == "three-way":
            self.output.weight = self.src_embedding.weight
        self.src_positions = make_positions(
            config.positions, config.d_model, max_length=config.max_length
        )
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = make_stack(config, EncoderLayer, width=config.attention_width)
        self.uses_summary = config.reads == "summary"
        # Without positions, a summary would predict the same at the class and at the end after it.
        needs_positions = self.uses_summary and config.tgt_length != 1
        self.tgt_positions = ConcatenatedPositions(config.d_model) if needs_positions else None
        initialize(self)

    def num_parameters(self) -> int:
        """Return the number of parameters; a shared matrix counts once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Tensor:
        """Return logits (B, T, V); only the length of the target (B, T) matters."""
        self._check_target(tgt_ids, tgt_mask)
        return self._logits_at(self.encode(src_ids, src_mask), 0, tgt_ids.size(1))

    @property
    def supports_packing(self) -> bool:
        """Whether `forward_packed` supports this model's options."""
        config = self.config
        uses_default_attention = config.attention_width is None and not config.attention_dropout
        return uses_default_attention and config.tgt_length is None

    def forward_packed(
        self, src_ids: Tensor, tgt_ids: Tensor, src: Packing, tgt: Packing
    ) -> Tensor:
        """Return the states (1, T, D) at the target's positions, for packed rows (1, S), (1, T).

        These are the input of the output projection. A target may leave out positions that have
        no label, as in masked language modeling: no logits are computed for them.
        """
        x = self._embed(src_ids, src.position_ids)
        states, _ = self.encoder(x, PackedMask(src, src))
        tokens = torch.arange(tgt_ids.size(1), device=tgt_ids.device)
        sentences = torch.searchsorted(tgt.cu_seqlens, tokens.int(), right=True) - 1  # (T,)
        last = src.cu_seqlens[sentences + 1] - 1
        if self.uses_summary:
            return self._summary_states(states[:, last], tgt.position_ids)
        selected: Tensor = states[:, torch.minimum(src.cu_seqlens[sentences] + tgt.positions, last)]
        return selected

    def explain(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Explanation:
        """Run the same forward pass and keep every layer's self-attention."""
        self._check_target(tgt_ids, tgt_mask)
        x, src_mask = self._embed_source(src_ids, src_mask)
        states, attention = self.encoder(x, src_mask, need_weights=True)
        logits = self._logits_at(Memory(states, src_mask), 0, tgt_ids.size(1))
        return Explanation(logits, encoder_self=attention, decoder_self=(), cross=())

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Memory:
        """Encode the source (B, S)."""
        x, src_mask = self._embed_source(src_ids, src_mask)
        states, _ = self.encoder(x, src_mask)
        return Memory(states, src_mask)

    def start(self, memory: Memory) -> EncoderState:
        """Return the decoding state before the first target position."""
        return EncoderState(memory, position=0)

    def step(self, ids: Tensor, state: EncoderState) -> tuple[Tensor, EncoderState]:
        """Return the next logits (N, V), which do not depend on ids (N,), and the new state."""
        check_ids(ids, self.tgt_vocab_size, name="ids", shape="(batch,)")
        logits = self._logits_at(state.memory, state.position, 1)
        return logits.squeeze(1), EncoderState(state.memory, state.position + 1)

    def reorder(self, state: EncoderState, index: Tensor) -> EncoderState:
        """Return the state whose row i is row `index[i]` of the given one."""
        return state.reorder(index)

    def _logits_at(self, memory: Memory, first: int, count: int) -> Tensor:
        """Return the logits (B, count, V) of target positions from `first` on.

        Positions beyond the source's last token read that token, so that padding changes nothing.
        """
        states, mask = memory
        positions = torch.arange(mask.size(-1), device=mask.device)
        last = (positions * mask.squeeze(1)).amax(-1, keepdim=True)  # (B, 1)
        target_positions = torch.arange(first, first + count, device=mask.device)
        index = (
            last.expand(-1, count) if self.uses_summary else torch.minimum(target_positions, last)
        )  # (B, T)
        selected = states.gather(
            1, index.unsqueeze(-1).expand(-1, -1, states.size(-1))
        )  # (B, T, D)
        logits: Tensor = self.output(
            self._summary_states(selected, first) if self.uses_summary else selected
        )
        length = self.config.tgt_length
        return logits if length is None else self._force_end(logits, target_positions.ge(length))

    def _summary_states(self, states: Tensor, positions: int | PositionIds) -> Tensor:
        """Return the summary (B, T, D) with the positions of the target."""
        summary: Tensor = self.dropout(states)
        return summary if self.tgt_positions is None else self.tgt_positions(summary, positions)

    def _force_end(self, logits: Tensor, is_end: Tensor) -> Tensor:
        """Allow only the end symbol where `is_end` (T,) is set, and exclude it elsewhere."""
        ids = torch.arange(logits.size(-1), device=logits.device)
        disallowed = is_end[:, None].ne(ids.eq(self.config.end_id))  # (T, V)
        return logits.masked_fill(disallowed, MASKED_LOGIT)

    def _embed_source(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        check_ids(ids, self.config.vocab_size, name="src_ids")
        mask = resolve_mask(ids, mask, pad_id=self.config.pad_id, name="src_mask")
        return self._embed(ids), mask

    def _embed(self, ids: Tensor, positions: int | PositionIds = 0) -> Tensor:
        embedded: Tensor = self.dropout(self.src_positions(self.src_embedding(ids), positions))
        return embedded  # (B, S, D)

    def _check_target(self, ids: Tensor, mask: Tensor | None) -> None:
        check_ids(ids, self.tgt_vocab_size, name="tgt_ids")
        if mask is not None:
            check_mask(mask, (ids.size(0), 1, ids.size(1)), name="tgt_mask")
