"""The whole machine (Figure 1): embeddings and positions, encoder, decoder, output projection.

Keeps the contract `attendo.core.protocols.Seq2SeqModel`. Ids in, logits out: text, batches, the
loss and the search for the best sentence belong to other rooms.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from torch import Tensor, nn

from attendo.core.config import TransformerConfig
from attendo.core.protocols import Explanation, Memory
from attendo.model.decoder import Decoder
from attendo.model.embeddings import ScaledEmbedding, check_ids
from attendo.model.encoder import Encoder
from attendo.model.fast.packed_sequences import PackedMask
from attendo.model.fast.static_decoder import (
    NonCopyingCache,
    StaticDecoder,
    supports_static_decoding,
)
from attendo.model.initialization import initialize
from attendo.model.layers import DecoderLayer, EncoderLayer
from attendo.model.masks import check_mask, padding_mask
from attendo.model.positional_encoding import make_positions
from attendo.model.presets import get_preset

if TYPE_CHECKING:
    from attendo.model.fast.packed_sequences import Packing
    from attendo.model.kv_cache import DecoderState


class Transformer(nn.Module):
    """The Transformer of "Attention Is All You Need".

    Options are the fields of `attendo.core.config.TransformerConfig`; each default is the paper's
    base model.

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

        layer_options: dict[str, Any] = {
            "d_k": config.d_k,
            "d_v": config.d_v,
            "dropout": config.dropout,
            "attention_dropout": config.attention_dropout,
            "activation_dropout": config.activation_dropout,
            "activation": config.activation,
            "norm": config.norm,
            "eps": config.layer_norm_eps,
            "scale": config.scale,
            "residual": config.residual,
            "bias": config.bias,
        }
        sizes = (config.d_model, config.d_ff, config.num_heads)
        decoder_sizes = (
            config.d_model,
            config.decoder_d_ff or config.d_ff,
            config.num_decoder_heads or config.num_heads,
        )
        self.encoder = Encoder(
            (EncoderLayer(*sizes, **layer_options) for _ in range(config.num_layers)),
            final_norm=self._make_final_norm(),
            width=config.attention_width,
        )
        num_decoder_layers = config.num_decoder_layers or config.num_layers
        self.decoder = Decoder(
            (DecoderLayer(*decoder_sizes, **layer_options) for _ in range(num_decoder_layers)),
            final_norm=self._make_final_norm(),
            width=config.attention_width,
        )
        self.decoding_cache = NonCopyingCache()
        initialize(self)

    def _make_final_norm(self) -> nn.LayerNorm | None:
        if self.config.norm == "post":
            return None
        return nn.LayerNorm(self.config.d_model, eps=self.config.layer_norm_eps)

    @classmethod
    def from_preset(cls, name: str, **options: Any) -> Self:
        """Build a named size (see `attendo.model.presets`), changed by `options`.

        >>> Transformer.from_preset("base", vocab_size=37000).num_parameters()
        63082496
        """
        return cls(**{**get_preset(name).options, **options})

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
        """Teacher forcing: source (B, S) and decoder input (B, T) give logits (B, T, V)."""
        memory = self.encode(src_ids, src_mask)
        x, tgt_mask = self._embed_target(tgt_ids, tgt_mask)
        x, _, _ = self.decoder(x, memory, tgt_mask)
        logits: Tensor = self.output(x)
        return logits

    @property
    def supports_packing(self) -> bool:
        """Tell whether `pack` can do what this model's options ask for."""
        return self.config.attention_width is None and not self.config.attention_dropout

    def forward_packed(
        self, src_ids: Tensor, tgt_ids: Tensor, src: Packing, tgt: Packing
    ) -> Tensor:
        """Teacher forcing without padding: rows (1, S) and (1, T) of sentences, end to end.

        Gives the decoder's last states (1, T, D), before the output projection: at the size of a
        vocabulary a loss had better not ask for all logits at once.
        """
        x = self._embed(self.src_embedding, self.src_positions, src_ids, src)
        if x.device.type == "cpu":
            src, tgt = src.with_scatter_index(), tgt.with_scatter_index()
        states, _ = self.encoder(x, PackedMask(src, src))
        x = self._embed(self.tgt_embedding, self.tgt_positions, tgt_ids, tgt)
        x, _, _ = self.decoder.run_layers(
            x, states, PackedMask(tgt, tgt, is_causal=True), PackedMask(tgt, src)
        )
        return x

    def explain(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Explanation:
        """Run the same pass by the explicit path and keep every layer's and head's attention."""
        x, src_mask = self._embed_source(src_ids, src_mask)
        states, encoder_self = self.encoder(x, src_mask, need_weights=True)
        x, tgt_mask = self._embed_target(tgt_ids, tgt_mask)
        memory = Memory(states, src_mask)
        x, decoder_self, cross = self.decoder(x, memory, tgt_mask, need_weights=True)
        return Explanation(self.output(x), encoder_self, decoder_self, cross)

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Memory:
        """Read the source (B, S) once."""
        x, src_mask = self._embed_source(src_ids, src_mask)
        states, _ = self.encoder(x, src_mask)
        return Memory(states, src_mask)

    def start(self, memory: Memory) -> DecoderState:
        """Make the decoding state before the first target position."""
        return self.decoder.start(memory)

    def step(self, ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Feed one target position, ids (N,); give the next logits (N, V) and the new state."""
        check_ids(ids, self.tgt_vocab_size, name="ids", shape="(batch,)")
        x = self._embed(self.tgt_embedding, self.tgt_positions, ids[:, None], state.position)
        x, state = self.decoder.step(x, state)
        return self.output(x.squeeze(1)), state

    def reorder(self, state: DecoderState, index: Tensor) -> DecoderState:
        """Row i of the new state is row `index[i]` of the old."""
        return state.reorder(index)

    def supports_static_decoding(self, max_length: int) -> bool:
        """Tell whether `fix` decodes as `step` does just now, up to so many target positions."""
        return type(self) is Transformer and supports_static_decoding(self, max_length)

    def make_static_decoder(
        self, *, num_sentences: int, width: int, src_length: int, max_length: int
    ) -> StaticDecoder:
        """Make what decodes a batch in place, `width` hypotheses of each sentence."""
        return StaticDecoder(
            self,
            num_sentences=num_sentences,
            width=width,
            src_length=src_length,
            max_length=max_length,
        )

    def _embed_source(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        check_ids(ids, self.config.vocab_size, name="src_ids")
        mask = self._resolve_mask(ids, mask, name="src_mask")
        return self._embed(self.src_embedding, self.src_positions, ids), mask

    def _embed_target(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        check_ids(ids, self.tgt_vocab_size, name="tgt_ids")
        mask = self._resolve_mask(ids, mask, name="tgt_mask")
        return self._embed(self.tgt_embedding, self.tgt_positions, ids), mask

    def _resolve_mask(self, ids: Tensor, mask: Tensor | None, *, name: str) -> Tensor:
        if mask is None:
            return padding_mask(ids, self.config.pad_id)
        check_mask(mask, (ids.size(0), 1, ids.size(1)), name=name)
        return mask.expand(ids.size(0), 1, ids.size(1))

    def _embed(
        self,
        embedding: nn.Module,
        positions: nn.Module,
        ids: Tensor,
        token_positions: int | Packing = 0,
    ) -> Tensor:
        embedded: Tensor = self.dropout(positions(embedding(ids), token_positions))  # (B, T, D)
        return embedded
