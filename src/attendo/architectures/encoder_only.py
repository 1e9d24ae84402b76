"""The encoder half alone (BERT): a stack that reads a whole text in both directions at once.

There is no decoder: a target position reads the encoder's states and nothing of the target. Either
all read the state at the source's end symbol, which learns to sum the text up (a class for a text),
or each reads the source position of its own number (a tag for a word, or the word that was hidden
there: Devlin et al. 2019). The contract `attendo.core.protocols.Seq2SeqModel` is kept whole: a
class is a target of one token and the end symbol, so every search, score and view works on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from attendo.core.config import EncoderConfig
from attendo.core.protocols import Explanation, Memory
from attendo.model.embeddings import ScaledEmbedding, check_ids
from attendo.model.encoder import Encoder
from attendo.model.fast.packed_sequences import PackedMask
from attendo.model.initialization import initialize
from attendo.model.layers import EncoderLayer
from attendo.model.masks import check_mask, padding_mask
from attendo.model.positional_encoding import ConcatenatedPositions, make_positions

if TYPE_CHECKING:
    from attendo.model.fast.packed_sequences import Packing

MASKED_LOGIT = -200.0
"""A logit whose chance is 0 beside any other's: finite, so that smoothed losses stay so too."""


class EncoderState(NamedTuple):
    """What the next step needs: the source's states, and the position to fill."""

    memory: Memory
    position: int

    def reorder(self, index: Tensor) -> EncoderState:
        """Row i becomes row `index[i]`: beams are copied, moved and dropped so."""
        return EncoderState(
            Memory(*(part.index_select(0, index) for part in self.memory)), self.position
        )


class EncoderOnly(nn.Module):
    """A stack of encoder layers and an output projection.

    Options are the fields of `attendo.core.config.EncoderConfig`.

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
        sizes = (config.d_model, config.d_ff, config.num_heads)
        is_pre_norm = config.norm == "pre"
        self.encoder = Encoder(
            (EncoderLayer(*sizes, **config.layer_options) for _ in range(config.num_layers)),
            final_norm=nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
            if is_pre_norm
            else None,
            width=config.attention_width,
        )
        self.uses_summary = config.reads == "summary"
        # Without its place in the target, a summary could not tell the class from the end after it.
        needs_positions = self.uses_summary and config.tgt_length != 1
        self.tgt_positions = ConcatenatedPositions(config.d_model) if needs_positions else None
        initialize(self)

    def num_parameters(self) -> int:
        """Count the parameters; a shared matrix counts once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Tensor:
        """Give logits (B, T, V); of the target (B, T) only the length is read."""
        self._check_target(tgt_ids, tgt_mask)
        return self._logits_at(self.encode(src_ids, src_mask), 0, tgt_ids.size(1))

    @property
    def supports_packing(self) -> bool:
        """Tell whether `pack` can do what this model's options ask for."""
        config = self.config
        uses_default_attention = config.attention_width is None and not config.attention_dropout
        return uses_default_attention and config.tgt_length is None

    def forward_packed(
        self, src_ids: Tensor, tgt_ids: Tensor, src: Packing, tgt: Packing
    ) -> Tensor:
        """Read rows (1, S) of sentences, end to end, for the target's places alone, (1, T, D).

        Gives what the output projection reads. A target may leave places out that nobody asks for,
        as where words are hidden: then no logits are made of the others.
        """
        x = self._embed(src_ids, src)
        states, _ = self.encoder(x, PackedMask(src, src))
        tokens = torch.arange(tgt_ids.size(1), device=tgt_ids.device)
        sentences = torch.searchsorted(tgt.cu_seqlens, tokens.int(), right=True) - 1  # (T,)
        last = src.cu_seqlens[sentences + 1] - 1
        if self.uses_summary:
            return self._summary_states(states[:, last], tgt)
        selected: Tensor = states[:, torch.minimum(src.cu_seqlens[sentences] + tgt.positions, last)]
        return selected

    def explain(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Explanation:
        """Run the same pass and keep every layer's attention; there is no other kind."""
        self._check_target(tgt_ids, tgt_mask)
        x, src_mask = self._embed_source(src_ids, src_mask)
        states, attention = self.encoder(x, src_mask, need_weights=True)
        logits = self._logits_at(Memory(states, src_mask), 0, tgt_ids.size(1))
        return Explanation(logits, encoder_self=attention, decoder_self=(), cross=())

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Memory:
        """Read the source (B, S) once."""
        x, src_mask = self._embed_source(src_ids, src_mask)
        states, _ = self.encoder(x, src_mask)
        return Memory(states, src_mask)

    def start(self, memory: Memory) -> EncoderState:
        """Make the decoding state before the first target position."""
        return EncoderState(memory, position=0)

    def step(self, ids: Tensor, state: EncoderState) -> tuple[Tensor, EncoderState]:
        """Go one target position on, whatever ids (N,) say; give logits (N, V), the new state."""
        check_ids(ids, self.tgt_vocab_size, name="ids", shape="(batch,)")
        logits = self._logits_at(state.memory, state.position, 1)
        return logits.squeeze(1), EncoderState(state.memory, state.position + 1)

    def reorder(self, state: EncoderState, index: Tensor) -> EncoderState:
        """Row i of the new state is row `index[i]` of the old."""
        return state.reorder(index)

    def _logits_at(self, memory: Memory, first: int, count: int) -> Tensor:
        """Give the logits (B, count, V) of target positions from `first` on.

        Behind the source's last token there is nothing to read but that token, in a batch as alone.
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

    def _summary_states(self, states: Tensor, positions: int | Packing) -> Tensor:
        """Give what is said of a summary at each place of the target."""
        summary: Tensor = self.dropout(states)
        return summary if self.tgt_positions is None else self.tgt_positions(summary, positions)

    def _force_end(self, logits: Tensor, is_end: Tensor) -> Tensor:
        """Allow the end symbol where (T,) says so, and nothing else there."""
        ids = torch.arange(logits.size(-1), device=logits.device)
        disallowed = is_end[:, None].ne(ids.eq(self.config.end_id))  # (T, V)
        return logits.masked_fill(disallowed, MASKED_LOGIT)

    def _embed_source(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        check_ids(ids, self.config.vocab_size, name="src_ids")
        mask = padding_mask(ids, self.config.pad_id) if mask is None else mask
        check_mask(mask, (ids.size(0), 1, ids.size(1)), name="src_mask")
        return self._embed(ids), mask.expand(ids.size(0), 1, ids.size(1))

    def _embed(self, ids: Tensor, positions: int | Packing = 0) -> Tensor:
        embedded: Tensor = self.dropout(self.src_positions(self.src_embedding(ids), positions))
        return embedded  # (B, S, D)

    def _check_target(self, ids: Tensor, mask: Tensor | None) -> None:
        check_ids(ids, self.tgt_vocab_size, name="tgt_ids")
        if mask is not None:
            check_mask(mask, (ids.size(0), 1, ids.size(1)), name="tgt_mask")
