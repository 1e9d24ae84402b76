"""The whole model (Figure 1): embeddings and positions, encoder, decoder, output projection.

Implements `attendo.core.protocols.Seq2SeqModel`. Ids in, logits out: text, batching, the loss and
the search for the best sentence belong to other packages.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from torch import Tensor, nn

from attendo.core.protocols import Explanation, Memory
from attendo.model.config import TransformerConfig
from attendo.model.decoder import Decoder
from attendo.model.embeddings import ScaledEmbedding, check_ids
from attendo.model.encoder import Encoder
from attendo.model.fast import FastPaths
from attendo.model.initialization import initialize
from attendo.model.layers import DecoderLayer, EncoderLayer
from attendo.model.masks import resolve_mask
from attendo.model.positional_encoding import make_positions

if TYPE_CHECKING:
    from attendo.model.kv_cache import DecoderState
    from attendo.model.positional_encoding import PositionIds


class Transformer(FastPaths, nn.Module):
    """The Transformer of "Attention Is All You Need".

    Options are the fields of `attendo.model.config.TransformerConfig`; the defaults are the
    paper's base model.

    >>> import torch
    >>> model = Transformer(vocab_size=100, d_model=32, d_ff=64, num_heads=4, num_layers=2)
    >>> src_ids, tgt_ids = torch.tensor([[5, 6, 7]]), torch.tensor([[1, 8]])
    >>> model(src_ids, tgt_ids).shape
    torch.Size([1, 2, 100])
    >>> model.explain(src_ids, tgt_ids).cross[0].shape  # layer 0: batch, heads, target, source
    torch.Size([1, 4, 2, 3])
    """

    kind: ClassVar[str] = TransformerConfig.kind

    def __init__(self, vocab_size: int, **options: Any) -> None:
        super().__init__()
        self.config = config = TransformerConfig(vocab_size=vocab_size, **options)
        embedding = partial(ScaledEmbedding, scale=config.scale_embeddings)
        self.src_embedding = embedding(config.vocab_size, config.d_model)
        self.tgt_vocab_size = config.tgt_vocab_size or config.vocab_size
        self.output = nn.Linear(config.d_model, self.tgt_vocab_size, bias=config.output_bias)
        if config.tie_embeddings == "three-way":
            self.tgt_embedding = self.src_embedding
        else:
            self.tgt_embedding = embedding(self.tgt_vocab_size, config.d_model)
        if config.tie_embeddings != "none":
            self.output.weight = self.tgt_embedding.weight

        positions = partial(
            make_positions,
            config.positions,
            config.d_model,
            layout=config.position_layout,
            max_length=config.max_length,
        )
        self.src_positions, self.tgt_positions = positions(), positions()
        self.dropout = nn.Dropout(config.dropout)

        sizes = (config.d_model, config.d_ff, config.num_heads)
        decoder_sizes = (
            config.d_model,
            config.decoder_d_ff or config.d_ff,
            config.num_decoder_heads or config.num_heads,
        )
        self.encoder = Encoder(
            (EncoderLayer(*sizes, **config.layer_options) for _ in range(config.num_layers)),
            final_norm=self._make_final_norm(),
            width=config.attention_width,
        )
        num_decoder_layers = config.num_decoder_layers or config.num_layers
        self.decoder = Decoder(
            (
                DecoderLayer(*decoder_sizes, **config.layer_options)
                for _ in range(num_decoder_layers)
            ),
            final_norm=self._make_final_norm(),
            width=config.attention_width,
        )
        initialize(self)

    def _make_final_norm(self) -> nn.LayerNorm | None:
        if self.config.norm == "post":
            return None
        return nn.LayerNorm(self.config.d_model, eps=self.config.layer_norm_eps)

    @classmethod
    def from_preset(cls, name: str, **options: Any) -> Self:
        """Build a named size (see `attendo.model.presets`); `options` override its own.

        >>> Transformer.from_preset("base", vocab_size=37000).num_parameters()
        63082496
        """
        from attendo.model.presets import get_preset

        return cls(**{**get_preset(name).options, **options})

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
        """Teacher forcing: return logits (B, T, V) of source (B, S) and decoder input (B, T)."""
        memory = self.encode(src_ids, src_mask)
        x, tgt_mask = self._embed_target(tgt_ids, tgt_mask)
        x, _, _ = self.decoder(x, memory, tgt_mask)
        logits: Tensor = self.output(x)
        return logits

    def explain(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Explanation:
        """Run the same forward pass and keep the attention of every layer and head."""
        x, src_mask = self._embed_source(src_ids, src_mask)
        states, encoder_self = self.encoder(x, src_mask, need_weights=True)
        x, tgt_mask = self._embed_target(tgt_ids, tgt_mask)
        memory = Memory(states, src_mask)
        x, decoder_self, cross = self.decoder(x, memory, tgt_mask, need_weights=True)
        return Explanation(self.output(x), encoder_self, decoder_self, cross)

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Memory:
        """Encode the source (B, S)."""
        x, src_mask = self._embed_source(src_ids, src_mask)
        states, _ = self.encoder(x, src_mask)
        return Memory(states, src_mask)

    def start(self, memory: Memory) -> DecoderState:
        """Return the decoding state before the first target position."""
        return self.decoder.start(memory)

    def step(self, ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Feed one target position, ids (N,); return the next logits (N, V) and the new state."""
        check_ids(ids, self.tgt_vocab_size, name="ids", shape="(batch,)")
        x = self._embed(self.tgt_embedding, self.tgt_positions, ids[:, None], state.position)
        x, state = self.decoder.step(x, state)
        return self.output(x.squeeze(1)), state

    def reorder(self, state: DecoderState, index: Tensor) -> DecoderState:
        """Return the state whose row i is row `index[i]` of the given one."""
        return state.reorder(index)

    def _embed_source(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        check_ids(ids, self.config.vocab_size, name="src_ids")
        mask = resolve_mask(ids, mask, pad_id=self.config.pad_id, name="src_mask")
        return self._embed(self.src_embedding, self.src_positions, ids), mask

    def _embed_target(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        check_ids(ids, self.tgt_vocab_size, name="tgt_ids")
        mask = resolve_mask(ids, mask, pad_id=self.config.pad_id, name="tgt_mask")
        return self._embed(self.tgt_embedding, self.tgt_positions, ids), mask

    def _embed(
        self,
        embedding: nn.Module,
        positions: nn.Module,
        ids: Tensor,
        token_positions: int | PositionIds = 0,
    ) -> Tensor:
        embedded: Tensor = self.dropout(positions(embedding(ids), token_positions))  # (B, T, D)
        return embedded
