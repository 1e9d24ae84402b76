"""Decoding steps on preallocated tensors of fixed shape, without host synchronization.

`Transformer.start`, `step` and `reorder` return a new state at each step; here one set of tensors
is updated in place, at a position that is itself a tensor. A step is then the same sequence of
kernels every time, so that it can be captured as a CUDA graph.

The `width` hypotheses of a sentence are the queries of one row. All of them read one copy of the
source's keys. The target's keys of all hypotheses stay where they were written, and a mask selects
those of each hypothesis's ancestors: when beams are reordered, only the mask changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor, nn

from attendo.kernels.dispatch import DECODE_STEP_DTYPES, KERNEL_HEAD_SIZES, can_use_kernels
from attendo.model.attention import MultiHeadAttention
from attendo.model.decoder import Decoder
from attendo.model.embeddings import ScaledEmbedding, check_ids
from attendo.model.encoder import Encoder
from attendo.model.fast.fused_weights import FusedDecoder, ResidualStream
from attendo.model.feed_forward import FeedForward
from attendo.model.layers import AddAndNorm, DecoderLayer, EncoderLayer
from attendo.model.masks import padding_mask
from attendo.model.positional_encoding import LearnedPositions, NoPositions, SinusoidalPositions

if TYPE_CHECKING:
    from attendo.model.fast.fused_weights import FusedLayer
    from attendo.model.transformer import Transformer

SUPPORTED_POSITIONS = (SinusoidalPositions, LearnedPositions, NoPositions)
SUPPORTED_MODULES = {
    *SUPPORTED_POSITIONS,
    *(Encoder, Decoder, EncoderLayer, DecoderLayer, MultiHeadAttention, FeedForward, AddAndNorm),
    *(ScaledEmbedding, nn.Linear, nn.LayerNorm, nn.Dropout, nn.Identity, nn.ModuleList),
}
"""Module types that the static decoder replaces; any other, such as a wrapper, rules it out."""


class NonCopyingCache(dict[Any, Any]):
    """Buffers that searches keep with a model; a copy of the model starts with none."""

    def __deepcopy__(self, memo: dict[int, Any]) -> NonCopyingCache:
        return NonCopyingCache()

    def __reduce__(self) -> tuple[type[NonCopyingCache], tuple[()]]:
        return NonCopyingCache, ()


class StaticDecoder:
    """The decoder's state for a batch of sources with `width` hypotheses each, N = B x width rows.

    Args:
        model: in evaluation mode; `supports_static_decoding` must be true for it.
        num_sentences: B.
        width: hypotheses per sentence.
        src_length: S; shorter sources are padded.
        max_length: T, the maximum number of target positions.
        weights: those of another static decoder of the same model, to share them.

    """

    def __init__(
        self,
        model: Transformer,
        *,
        num_sentences: int,
        width: int,
        src_length: int,
        max_length: int,
        weights: FusedDecoder | None = None,
    ) -> None:
        self.model, self.width, self.max_length = model, width, max_length
        self.num_sentences, self.src_length = num_sentences, src_length
        attention = model.decoder.layers[0].self_attention
        self.num_heads, self.scale = attention.num_heads, attention.scale
        self.key_size = attention.query.out_features  # H * K
        weight = model.output.weight
        sizes = (self.key_size // self.num_heads, attention.value.out_features // self.num_heads)
        fits = sizes[0] == sizes[1] and sizes[0] in KERNEL_HEAD_SIZES
        self.uses_kernels = fits and can_use_kernels(weight, DECODE_STEP_DTYPES)
        self.softmax_scale = sizes[0] ** -0.5 if self.scale is None else self.scale
        self.weights = weights or FusedDecoder(
            model.decoder.layers, model.output, activation=model.config.activation
        )
        self.weight_pointers = _weight_pointers(model)
        self.masked_score = torch.finfo(weight.dtype).min
        """Value of additive masks. Not -inf: no row can become NaN."""
        new_zeros = weight.detach().new_zeros
        rows, heads = num_sentences, self.num_heads
        kv_size = self.key_size + attention.value.out_features
        self.self_kv = [new_zeros(rows, max_length, width, kv_size) for _ in self.weights.layers]
        """Per layer: keys and values of the target (B, T, width, H * K + H * K)."""
        self.cross_kv = [
            tuple(new_zeros(rows, heads, src_length, size) for size in sizes)
            for _ in self.weights.layers
        ]
        """Per layer: keys and values of the source (B, H, S, K)."""
        self.cross_mask = new_zeros(rows, 1, 1, src_length)
        self.self_mask = new_zeros(rows, width, max_length, width)
        """Additive mask: sentence, query's slot, position, key's slot."""
        diagonal = new_zeros(width, width).fill_(self.masked_score).fill_diagonal_(0.0)
        self.diagonal_mask = diagonal[:, None].expand(rows, width, 1, width)
        self.position_table = new_zeros(max_length, model.config.d_model)
        self.position = new_zeros(1, dtype=torch.long)
        """The position of the next step; the caller increments it."""
        self.position_ids = torch.arange(max_length, device=weight.device)
        self.src_ids = new_zeros(rows, src_length, dtype=torch.long)
        self.src_lengths: Tensor | None = None
        """Numbers of keys (B,) that the kernels read of each source; None reads all."""
        buffers = [*self.self_kv, *(tensor for pair in self.cross_kv for tensor in pair)]
        self.num_bytes = sum(tensor.nbytes for tensor in buffers)

    def set_sources(self, src_ids: Tensor) -> None:
        """Copy the sources (B', S') into the buffers; unused rows repeat the last one."""
        check_ids(src_ids, self.model.config.vocab_size, name="src_ids")
        num_given, length = src_ids.shape
        self.src_ids.fill_(self.model.config.pad_id)
        self.src_ids[:num_given, :length] = src_ids
        self.src_ids[num_given:, :length] = src_ids[-1]

    def start(self) -> None:
        """Encode the sources, copy the weights and clear all target positions."""
        self.refresh()
        embedded, mask = self._embed_sources(self.src_ids)
        projected = self._project_sources(self.model.encoder(embedded, mask)[0])
        self.cross_mask.fill_(self.masked_score).masked_fill_(mask[:, None], 0.0)
        for kv, pair in zip(self.cross_kv, projected, strict=True):
            for buffer, tensor in zip(kv, pair, strict=True):
                buffer.copy_(tensor)
        self.self_mask.fill_(self.masked_score)
        self.position.zero_()

    def refresh(self) -> None:
        """Copy the weights from the model."""
        self.weights.refresh()
        self._fill_position_table()

    def prepack_weights(self, num_steps: int) -> None:
        """Prepack the weights for about `num_steps` steps on a CPU; call it after `start`."""
        self.weights.prepack(self.num_sentences * self.width, num_steps)

    def step(self, ids: Tensor, *, window: int) -> Tensor:
        """Feed ids (N,) at the next position; return the last layer's output (N, D).

        The first `window` positions are attended to: at least the number of steps so far,
        including this one.
        """
        self._show_new_position()
        embedding = self.model.tgt_embedding
        x = ResidualStream(
            torch.add(
                self._position_vectors(),
                F.embedding(ids, embedding.weight),
                alpha=embedding.scale,
            )
        )
        num_keys = window * self.width
        visible_mask = self.self_mask.flatten(2)[:, None, :, :num_keys]  # (B, 1, width, keys)
        per_layer = zip(self.weights.layers, self.self_kv, self.cross_kv, strict=True)
        for layer, self_kv, cross_kv in per_layer:
            x = self._self_attend(layer, x, self_kv, visible_mask)
            x = self._cross_attend(layer, x, cross_kv)
            x = layer.feed_forward.project_out(x, layer.feed_forward.project_in(x))
        normed: Tensor = self.model.decoder.final_norm(x.normalized())
        return normed

    def project(self, x: Tensor) -> Tensor:
        """Return the logits (N', V) of outputs x (N', D)."""
        return self.weights.output(x)

    def reorder_beams(self, parents: Tensor) -> None:
        """Continue each hypothesis from the one in slot `parents` (B, width) of its sentence."""
        index = parents[:, :, None, None].expand_as(self.self_mask)
        self.self_mask.copy_(self.self_mask.gather(1, index))

    def copy_rows_from(self, other: StaticDecoder, rows: Tensor, *, num_steps: int) -> None:
        """Continue with the sentences `rows` (B,) of another decoder, after `num_steps` steps."""
        for buffer, other_buffer in zip(self.self_kv, other.self_kv, strict=True):
            buffer[:, :num_steps] = other_buffer[:, :num_steps].index_select(0, rows)
        for pair, other_pair in zip(self.cross_kv, other.cross_kv, strict=True):
            for target, tensor in zip(pair, other_pair, strict=True):
                torch.index_select(tensor, 0, rows, out=target)
        torch.index_select(other.cross_mask, 0, rows, out=self.cross_mask)
        torch.index_select(other.self_mask, 0, rows, out=self.self_mask)
        self.position_table.copy_(other.position_table)
        self.position.copy_(other.position)

    def resize(
        self, *, num_sentences: int, width: int, src_length: int, max_length: int
    ) -> StaticDecoder:
        """Return a decoder of another size that shares the weights."""
        return StaticDecoder(
            self.model,
            num_sentences=num_sentences,
            width=width,
            src_length=src_length,
            max_length=max_length,
            weights=self.weights,
        )

    def weights_unchanged(self) -> bool:
        """Return whether the model's weights still have the same addresses."""
        return self.weight_pointers == _weight_pointers(self.model)

    def _embed_sources(self, src_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return the encoder's inputs (B, S, D) and the mask (B, 1, S) of sources."""
        mask = padding_mask(src_ids, self.model.config.pad_id)
        return self.model.src_positions(self.model.src_embedding(src_ids)), mask

    def _project_sources(self, states: Tensor) -> list[tuple[Tensor, ...]]:
        """Return each layer's keys and values (B, H, S, K) of encoded sources (B, S, D)."""
        layers = self.model.decoder.layers
        return [one.cross_attention.project_key_value(states, states) for one in layers]

    def _show_new_position(self) -> None:
        """Let each hypothesis see its own key at the next position, and none that is too old."""
        self.self_mask.index_copy_(2, self.position, self.diagonal_mask)
        if self.model.decoder.width is not None:
            out_of_window = self.position_ids < self.position - self.model.decoder.width // 2
            self.self_mask.masked_fill_(out_of_window[:, None], self.masked_score)

    def _position_vectors(self) -> Tensor:
        """Return the vectors of the next positions (N, D), or (1, D) if they are equal."""
        return self.position_table.index_select(0, self.position)

    def _store_keys_and_values(self, self_kv: Tensor, new: Tensor) -> None:
        """Write new keys and values (B, width, ...) at the next position."""
        self_kv.index_copy_(1, self.position, new[:, None])

    def _fill_position_table(self) -> None:
        """Compute the vector of each position, plus the folded bias of the first sub-layer."""
        length = self.max_length
        learned = getattr(self.model.tgt_positions, "weight", None)
        num_known = length if learned is None else min(length, learned.size(0))
        empty = torch.zeros_like(self.position_table[None, :num_known])
        self.position_table.zero_()
        self.position_table[:num_known] = self.model.tgt_positions(empty)[0]
        if self.weights.folded_bias is not None:
            self.position_table.add_(self.weights.folded_bias)

    def _self_attend(
        self, layer: FusedLayer, x: ResidualStream, self_kv: Tensor, visible_mask: Tensor
    ) -> ResidualStream:
        projected = layer.self_attention.project_in(x)  # (N, H * K + keys and values)
        if self.uses_kernels:
            from attendo.kernels.decode_step import decode_self_attention

            state = (self_kv, self.self_mask, self.position)
            attended = decode_self_attention(
                projected, *state, self.num_heads, scale=self.softmax_scale
            )
            return layer.self_attention.project_out(x, attended)
        queries, new = projected.tensor_split([self.key_size], dim=1)
        self._store_keys_and_values(self_kv, new.view(self.num_sentences, self.width, -1))
        visible = self_kv.flatten(1, 2)[:, : visible_mask.size(-1)]  # (B, keys, keys and values)
        keys, values = visible.tensor_split([self.key_size], dim=2)
        attended = self._attend(
            queries, self._split_heads(keys), self._split_heads(values), visible_mask
        )
        return layer.self_attention.project_out(x, attended)

    def _cross_attend(
        self, layer: FusedLayer, x: ResidualStream, cross_kv: tuple[Tensor, ...]
    ) -> ResidualStream:
        queries, (keys, values) = layer.cross_attention.project_in(x), cross_kv
        if self.uses_kernels:
            from attendo.kernels.decode_step import decode_cross_attention

            attended = decode_cross_attention(
                queries, keys, values, self.cross_mask, self.src_lengths, scale=self.softmax_scale
            )
        else:
            attended = self._attend(queries, keys, values, self.cross_mask)
        return layer.cross_attention.project_out(x, attended)

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """Attend from queries (N, H * K) to keys and values (B, H, S, K): (N, H * K)."""
        query_heads = self._split_heads(queries.unflatten(0, (self.num_sentences, self.width)))
        heads = F.scaled_dot_product_attention(
            query_heads, keys, values, attn_mask=mask, scale=self.scale
        )
        return heads.transpose(1, 2).flatten(2).flatten(0, 1)

    def _split_heads(self, projected: Tensor) -> Tensor:
        heads: Tensor = projected.unflatten(-1, (self.num_heads, -1))
        return heads.transpose(1, 2)  # (B, T, H * K) -> (B, H, T, K)


def supports_static_decoding(model: Transformer, max_length: int) -> bool:
    """Return whether a static decoder is equal to the model's `step`, up to `max_length`.

    It bypasses the modules' `forward`, so that dropout, hooks, autocast, replaced modules and
    subclasses of the Transformer would have no effect.
    """
    from attendo.model.transformer import Transformer

    positions = model.tgt_positions
    if type(model) is not Transformer or model.training:
        return False
    if type(positions) not in SUPPORTED_POSITIONS:
        return False
    if isinstance(positions, LearnedPositions) and max_length > positions.weight.size(0):
        return False
    device = model.src_embedding.weight.device.type
    if device not in ("cpu", "cuda") or torch.is_autocast_enabled(device):
        return False
    return not any(_is_modified(module) for module in _all_modules(model)[1:])


def _is_modified(module: nn.Module) -> bool:
    has_hooks = bool(module._forward_hooks or module._forward_pre_hooks)
    return has_hooks or type(module) not in SUPPORTED_MODULES


def _weight_pointers(model: nn.Module) -> list[int]:
    """Return the address of every weight."""
    weights = (weight for module in _all_modules(model) for weight in module._parameters.values())
    return [weight.data_ptr() for weight in weights if weight is not None]


def _all_modules(model: nn.Module) -> list[nn.Module]:
    """Return all modules; faster than `model.modules()`, since each search needs it twice."""
    modules: list[nn.Module] = [model]
    for module in modules:  # grows while it is iterated
        modules.extend(one for one in module._modules.values() if one is not None)
    return modules
