"""The decoder-only model (GPT): one stack that predicts the next token from left to right.

A GPT block is an encoder layer under the causal mask: self-attention, then feed-forward, and no
encoder to attend to. Source and target are one sequence, "source, its end symbol, start symbol,
target", so that the model implements `attendo.core.protocols.Seq2SeqModel`: with a source that is
only the end symbol it is a language model, with a real one a prefix language model, which can
translate (Liu et al. 2018).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch
from torch import Tensor, nn

from attendo.architectures.config import DecoderConfig
from attendo.architectures.single_stack import make_stack
from attendo.core.protocols import Explanation, Memory
from attendo.model.embeddings import ScaledEmbedding, check_ids
from attendo.model.initialization import initialize
from attendo.model.kv_cache import DecoderState, LayerCache
from attendo.model.layers import EncoderLayer
from attendo.model.masks import causal_mask, resolve_mask
from attendo.model.positional_encoding import LearnedPositions, PositionIds, make_positions

if TYPE_CHECKING:
    from collections.abc import Sequence


class CausalLayer(EncoderLayer):
    """An encoder layer with a key-value cache."""

    def prefill(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Transform x (B, S, D); also return the keys and values to cache, (B, H, S, K)."""
        queries, keys, values = self.self_attention.project_qkv(self.self_add.pre(x))
        return self._attend(x, queries, keys, values, mask), keys, values

    def step(self, x: Tensor, cache: LayerCache, mask: Tensor) -> tuple[Tensor, LayerCache]:
        """Transform one new position x (N, 1, D), given the cached source and target."""
        queries, *new_kv = self.self_attention.project_qkv(self.self_add.pre(x))
        cache = cache.append(*new_kv)
        keys = torch.cat((cache.cross_keys, cache.keys), dim=2)
        values = torch.cat((cache.cross_values, cache.values), dim=2)
        return self._attend(x, queries, keys, values, mask), cache

    def _attend(
        self, x: Tensor, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor
    ) -> Tensor:
        attended, _ = self.self_attention.attend(queries, keys, values, mask)
        x = self.self_add.post(x, attended)
        return self.feed_forward_add.post(x, self.feed_forward(self.feed_forward_add.pre(x)))


class DecoderOnly(nn.Module):
    """A language model of causal layers.

    Options are the fields of `DecoderConfig`. `Memory.states` is the keys and values of every
    layer, concatenated. Positions count on from source to target; padding has none.

    >>> model = DecoderOnly(vocab_size=100, d_model=32, d_ff=64, num_heads=4, num_layers=2)
    >>> src_ids, tgt_ids = torch.tensor([[3]]), torch.tensor([[2, 8, 9]])
    >>> model(src_ids, tgt_ids).shape
    torch.Size([1, 3, 100])
    >>> explanation = model.explain(src_ids, tgt_ids)  # one softmax over source and target
    >>> total = explanation.cross[0].sum(-1) + explanation.decoder_self[0].sum(-1)
    >>> total.round().unique().tolist()
    [1.0]
    """

    kind: ClassVar[str] = DecoderConfig.kind
    single_stack: ClassVar[str] = "decoder"

    def __init__(self, vocab_size: int, **options: Any) -> None:
        super().__init__()
        self.config = config = DecoderConfig(vocab_size=vocab_size, **options)
        self.tgt_vocab_size = config.tgt_vocab_size or config.vocab_size
        self.src_embedding = ScaledEmbedding(config.vocab_size, config.d_model)
        self.output = nn.Linear(config.d_model, self.tgt_vocab_size, bias=False)
        if config.tie_embeddings == "three-way":
            self.tgt_embedding = self.src_embedding
        else:
            self.tgt_embedding = ScaledEmbedding(self.tgt_vocab_size, config.d_model)
        if config.tie_embeddings != "none":
            self.output.weight = self.tgt_embedding.weight
        self.src_positions = self.tgt_positions = make_positions(
            config.positions, config.d_model, max_length=config.max_length
        )
        self.dropout = nn.Dropout(config.dropout)
        self.stack = make_stack(config, CausalLayer)
        initialize(self)

    @property
    def layers(self) -> Sequence[CausalLayer]:
        """The stack, lowest first."""
        return cast("Sequence[CausalLayer]", self.stack.layers)

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
        """Teacher forcing: return the logits (B, T, V) of source (B, S) and target input (B, T)."""
        x, mask = self._embed_joint(src_ids, tgt_ids, src_mask, tgt_mask)
        x, _ = self.stack(x, mask)
        logits: Tensor = self.output(x[:, src_ids.size(1) :])
        return logits

    def explain(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Explanation:
        """Run the same forward pass and split each layer's attention where the target begins.

        `cross` and `decoder_self` are the two parts of one softmax: their rows sum to one together.
        """
        x, mask = self._embed_joint(src_ids, tgt_ids, src_mask, tgt_mask)
        x, attention = self.stack(x, mask, need_weights=True)
        end = src_ids.size(1)
        return Explanation(
            logits=self.output(x[:, end:]),
            encoder_self=tuple(weights[:, :, :end, :end] for weights in attention),
            decoder_self=tuple(weights[:, :, end:, end:] for weights in attention),
            cross=tuple(weights[:, :, end:, :end] for weights in attention),
        )

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Memory:
        """Encode the source (B, S) from left to right."""
        x, mask = self._embed_source(src_ids, src_mask)
        allowed = mask & causal_mask(mask.size(-1), device=mask.device)  # (B, S, S)
        kv_states = []
        for layer in self.layers:
            x, *kv = layer.prefill(x, allowed)
            kv_states += [part.transpose(1, 2).flatten(2) for part in kv]  # (B, S, H * K) each
        return Memory(torch.cat(kv_states, dim=-1), mask)

    def start(self, memory: Memory) -> DecoderState:
        """Return the decoding state before the first target position."""
        shape = (2 * self.config.num_layers, self.config.num_heads, -1)
        parts = memory.states.unflatten(-1, shape).permute(2, 0, 3, 1, 4)  # (2 L, B, H, S, K)
        layers = tuple(LayerCache.start(*pair) for pair in parts.unflatten(0, (-1, 2)))
        return DecoderState(layers, memory.mask, position=0)

    def step(self, ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Feed one target position, ids (N,); return the next logits (N, V) and the new state."""
        check_ids(ids, self.tgt_vocab_size, name="ids", shape="(batch,)")
        target_mask = state.cross_mask.new_ones(len(ids), 1, state.position + 1)
        x = self._embed_target(ids[:, None], target_mask[..., :1], state.cross_mask, state.position)
        mask = torch.cat((state.cross_mask, target_mask), dim=-1)  # (N, 1, S + t + 1)
        caches = []
        for layer, cache in zip(self.layers, state.layers, strict=True):
            x, extended = layer.step(x, cache, mask)
            caches.append(extended)
        logits: Tensor = self.output(self.stack.final_norm(x.squeeze(1)))
        return logits, DecoderState(tuple(caches), state.cross_mask, state.position + 1)

    def reorder(self, state: DecoderState, index: Tensor) -> DecoderState:
        """Return the state whose row i is row `index[i]` of the given one."""
        return state.reorder(index)

    def _embed_joint(
        self, src_ids: Tensor, tgt_ids: Tensor, src_mask: Tensor | None, tgt_mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return source and target as one sequence (B, S + T, D) and its mask (B, S + T, S + T)."""
        source, src_mask = self._embed_source(src_ids, src_mask)
        check_ids(tgt_ids, self.tgt_vocab_size, name="tgt_ids")
        tgt_mask = resolve_mask(tgt_ids, tgt_mask, pad_id=self.config.pad_id, name="tgt_mask")
        target = self._embed_target(tgt_ids, tgt_mask, src_mask)
        mask = torch.cat((src_mask, tgt_mask), dim=-1)  # (B, 1, S + T)
        causal = causal_mask(mask.size(-1), device=mask.device)
        return torch.cat((source, target), dim=1), mask & causal

    def _embed_source(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        check_ids(ids, self.config.vocab_size, name="src_ids")
        mask = resolve_mask(ids, mask, pad_id=self.config.pad_id, name="src_mask")
        positions = (mask.squeeze(1).cumsum(-1) - 1).clamp(min=0)  # (B, S)
        return self._add_positions(self.src_embedding(ids), positions, ids.size(1)), mask

    def _embed_target(
        self, ids: Tensor, mask: Tensor, src_mask: Tensor, position: int = 0
    ) -> Tensor:
        """Embed target tokens from `position` on, counted after the source's real tokens."""
        offsets = torch.arange(position, position + ids.size(1), device=ids.device)
        positions = src_mask.squeeze(1).sum(-1, keepdim=True) + offsets  # (B, T)
        # Padding gets any valid position.
        positions = positions.masked_fill(~mask.squeeze(1), 0)
        end = src_mask.size(-1) + position + ids.size(1)
        return self._add_positions(self.tgt_embedding(ids), positions, end)

    def _add_positions(self, embedded: Tensor, positions: Tensor, end: int) -> Tensor:
        """Add positions (B, T) to the tokens (B, T, D); all positions are below `end`."""
        if isinstance(self.src_positions, LearnedPositions) and end > self.config.max_length:
            end = int(positions.max()) + 1  # it may fit without the padding of other rows
        position_ids = PositionIds(positions, end)  # of each token, not of each column
        positioned: Tensor = self.dropout(self.src_positions(embedded, position_ids))
        return positioned
