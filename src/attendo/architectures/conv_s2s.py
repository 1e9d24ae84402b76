"""Convolutions instead of recurrence: ConvS2S (Gehring et al. 2017), just before the Transformer.

All positions of a sentence are processed at once, as in the Transformer and unlike in a recurrent
network. But a convolution of width k sees only k neighbors. A stack of L sees L * (k - 1) + 1
positions (six of width 5: 25), so two words n apart first interact after about n / k layers; with
dilation, where each layer skips more positions than the one below it, after about log_k(n). The
path between two words grows with their distance. In self-attention it is one step at any distance:
Table 1 of "Attention Is All You Need" compares them.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import torch
from torch import Tensor, nn

from attendo.architectures.base import Baseline
from attendo.architectures.config import ConvConfig
from attendo.architectures.conv_layers import (
    SQRT_HALF,
    ConvDecoderLayer,
    ConvEncoderLayer,
    EncoderOutput,
    make_weight_norm_linear,
    scale_gradient,
)
from attendo.core.protocols import Explanation, Memory
from attendo.model.embeddings import check_ids
from attendo.model.masks import resolve_mask
from attendo.model.positional_encoding import LearnedPositions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

EMBEDDING_STD = 0.1


class ConvState(NamedTuple):
    """The decoding state: the last inputs of each layer, the source, the next position."""

    windows: tuple[Tensor, ...]  # each (N, kernel_size - 1, C)
    source: EncoderOutput
    position: int

    def reorder(self, index: Tensor) -> ConvState:
        """Return the state whose row i is row `index[i]` of this one, as beams are reordered."""
        windows = tuple(window.index_select(0, index) for window in self.windows)
        return ConvState(windows, self.source.reorder(index), self.position)


class ConvEncoder(nn.Module):
    """Passes the source through every layer.

    Args:
        layers: the stack, lowest first.
        enter: maps embeddings to the width of the convolutions.
        leave: maps back.
        num_attentions: attentions over the output. Their summed gradient is divided by twice their
            number (section 3.4); that of the embeddings is not.

    """

    def __init__(
        self,
        layers: Iterable[ConvEncoderLayer],
        *,
        enter: nn.Module,
        leave: nn.Module,
        num_attentions: int,
    ) -> None:
        super().__init__()
        self.enter, self.leave = enter, leave
        self.layers = cast("Sequence[ConvEncoderLayer]", nn.ModuleList(layers))
        self.num_attentions = num_attentions

    def forward(self, embedded: Tensor, mask: Tensor) -> Tensor:
        """Return z and (z + e) * sqrt(0.5), concatenated (B, S, 2 D), of embeddings e (B, S, D)."""
        x = self.enter(embedded)
        for layer in self.layers:
            x = layer(x, mask)
        z = scale_gradient(self.leave(x), 1 / (2 * self.num_attentions))
        return torch.cat((z, (z + embedded) * SQRT_HALF), dim=-1)


class ConvDecoder(nn.Module):
    """Passes the target through every layer; each one has its own attention over the source."""

    def __init__(
        self, layers: Iterable[ConvDecoderLayer], *, enter: nn.Module, leave: nn.Module
    ) -> None:
        super().__init__()
        self.enter, self.leave = enter, leave
        self.layers = cast("Sequence[ConvDecoderLayer]", nn.ModuleList(layers))

    def forward(
        self, embedded: Tensor, source: EncoderOutput, mask: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Decode all positions (B, T, D) at once; also return each layer's attention (B, T, S)."""
        x, attention = self.enter(embedded), []
        for layer in self.layers:
            x, weights = layer(x, embedded, source, mask)
            attention.append(weights)
        return self.leave(x), tuple(attention)

    def step(self, embedded: Tensor, state: ConvState) -> tuple[Tensor, ConvState]:
        """Decode one new position (N, 1, D)."""
        x, windows = self.enter(embedded), []
        for layer, window in zip(self.layers, state.windows, strict=True):
            x, new_window = layer.step(x, embedded, state.source, window)
            windows.append(new_window)
        return self.leave(x), ConvState(tuple(windows), state.source, state.position + 1)


class ConvS2S(Baseline):
    """The model of "Convolutional Sequence to Sequence Learning".

    Options are the fields of `ConvConfig`. `Memory.states` is the encoder's z and
    (z + e) * sqrt(0.5), concatenated: twice as wide as d_model.

    Paper: the output projection has no bias, embeddings are tied unless `tie_embeddings` changes
    it, and all layers have one width and one kernel size, whereas theirs grow with depth for
    English-German. Linear maps connect d_model and d_hidden even if these are equal, as in the
    authors' code: without them a small model needs 50 % more steps.

    >>> model = ConvS2S(vocab_size=100, d_model=32, num_layers=2)
    >>> src_ids, tgt_ids = torch.tensor([[5, 6, 7]]), torch.tensor([[1, 8]])
    >>> model(src_ids, tgt_ids).shape
    torch.Size([1, 2, 100])
    >>> model.explain(src_ids, tgt_ids).cross[0].shape  # layer 0: batch, one head, target, source
    torch.Size([1, 1, 2, 3])
    """

    kind: ClassVar[str] = "conv-s2s"
    config: ConvConfig

    def __init__(self, vocab_size: int, **options: Any) -> None:
        config = ConvConfig(vocab_size=vocab_size, **options)
        super().__init__(config)
        self.width = width = config.d_hidden or config.d_model
        self.src_positions = LearnedPositions(config.d_model, config.max_length)
        self.tgt_positions = LearnedPositions(config.d_model, config.max_length)
        num_decoder_layers = config.num_decoder_layers or config.num_layers
        keep_prob = 1 - config.dropout
        sizes: dict[str, Any] = {"kernel_size": config.kernel_size, "dropout": config.dropout}
        self.encoder = ConvEncoder(
            (ConvEncoderLayer(width, **sizes) for _ in range(config.num_layers)),
            enter=make_weight_norm_linear(config.d_model, width, gain=keep_prob),
            leave=make_weight_norm_linear(width, config.d_model),
            num_attentions=num_decoder_layers,
        )
        self.decoder = ConvDecoder(
            (ConvDecoderLayer(width, config.d_model, **sizes) for _ in range(num_decoder_layers)),
            enter=make_weight_norm_linear(config.d_model, width, gain=keep_prob),
            leave=make_weight_norm_linear(width, config.d_model),
        )
        self._initialize_embeddings()

    def _initialize_embeddings(self) -> None:
        """Initialize all embeddings with one small deviation, an untied output like other maps."""
        if self.config.tie_embeddings == "none":
            keep_prob = 1 - self.config.dropout
            nn.init.normal_(self.output.weight, std=sqrt(keep_prob / self.config.d_model))
        for table in (self.src_embedding, self.tgt_embedding):
            nn.init.normal_(table.weight, std=EMBEDDING_STD)
        for positions in (self.src_positions, self.tgt_positions):
            nn.init.normal_(positions.weight, std=EMBEDDING_STD)

    def embed_source(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return embeddings with positions (B, S, D) and the padding mask (B, 1, S)."""
        check_ids(ids, self.config.vocab_size, name="src_ids")
        mask = resolve_mask(ids, mask, pad_id=self.config.pad_id, name="src_mask")
        return self.dropout(self.src_positions(self.src_embedding(ids))), mask

    def embed_target(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return embeddings with positions (B, T, D) and the padding mask (B, 1, T)."""
        check_ids(ids, self.tgt_vocab_size, name="tgt_ids")
        mask = resolve_mask(ids, mask, pad_id=self.config.pad_id, name="tgt_mask")
        return self.dropout(self.tgt_positions(self.tgt_embedding(ids))), mask

    def embed_step(self, ids: Tensor, position: int = 0) -> Tensor:
        """Return the embedding (N, 1, D) of ids (N,) at one target position."""
        check_ids(ids, self.tgt_vocab_size, name="ids", shape="(batch,)")
        words = self.tgt_embedding(ids[:, None])
        embedded: Tensor = self.dropout(self.tgt_positions(words, position))
        return embedded

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
        """Run the same forward pass and keep every decoder layer's cross-attention."""
        source = EncoderOutput.from_memory(self.encode(src_ids, src_mask))
        embedded, tgt_mask = self.embed_target(tgt_ids, tgt_mask)
        x, attention = self.decoder(embedded, source, tgt_mask)
        cross = tuple(weights.unsqueeze(1) for weights in attention)  # (B, 1, T, S)
        return Explanation(self.output(self.dropout(x)), (), (), cross)

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Memory:
        """Encode the source (B, S)."""
        embedded, src_mask = self.embed_source(src_ids, src_mask)
        return Memory(self.encoder(embedded, src_mask), src_mask)

    def start(self, memory: Memory) -> ConvState:
        """Return the decoding state before the first target position, whose windows are zero."""
        size = (memory.states.size(0), self.config.kernel_size - 1, self.width)
        windows = tuple(memory.states.new_zeros(size) for _ in self.decoder.layers)
        return ConvState(windows, EncoderOutput.from_memory(memory), position=0)

    def step(self, ids: Tensor, state: ConvState) -> tuple[Tensor, ConvState]:
        """Feed one target position, ids (N,); return the next logits (N, V) and the new state."""
        x, state = self.decoder.step(self.embed_step(ids, state.position), state)
        return self.output(self.dropout(x.squeeze(1))), state

    def reorder(self, state: ConvState, index: Tensor) -> ConvState:
        """Return the state whose row i is row `index[i]` of the given one."""
        return state.reorder(index)
