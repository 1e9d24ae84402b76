"""Decoder steps of fixed shapes, in place: nothing is joined, moved or asked for by the host.

`Transformer.start`, `step` and `reorder` make a new state at each step; here one set of tensors is
written into, at a position that is itself a tensor. A step is then the same list of kernels every
time, which a GPU can be handed as one graph.

The `width` hypotheses of a sentence lie side by side as so many queries of one row. All of them
read one copy of the source's keys. The keys of the target stay where they were written, those of
all hypotheses together, and a mask tells each which ones are its ancestors': when hypotheses are
chosen, only the mask moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor, nn

from attendo.core.kernels import STEP_TYPES, has_kernels
from attendo.model.attention import MultiHeadAttention
from attendo.model.decoder import Decoder
from attendo.model.embeddings import ScaledEmbedding, check_ids
from attendo.model.encoder import Encoder
from attendo.model.feed_forward import FeedForward
from attendo.model.layers import AddAndNorm, DecoderLayer, EncoderLayer
from attendo.model.masks import padding_mask
from attendo.model.packed_attention import KERNEL_WIDTHS
from attendo.model.positional import LearnedPositions, NoPositions, SinusoidalPositions
from attendo.model.prepared import PreparedDecoder, Stream

if TYPE_CHECKING:
    from attendo.model.prepared import PreparedLayer
    from attendo.model.transformer import Transformer

PLAIN_POSITIONS = (SinusoidalPositions, LearnedPositions, NoPositions)
PLAIN_MODULES = {
    *PLAIN_POSITIONS,
    *(Encoder, Decoder, EncoderLayer, DecoderLayer, MultiHeadAttention, FeedForward, AddAndNorm),
    *(ScaledEmbedding, nn.Linear, nn.LayerNorm, nn.Dropout, nn.Identity, nn.ModuleList),
}
"""What a model is made of; in the place of something else, a wrapper say, there is more to do."""


class Kept(dict[Any, Any]):
    """What a model keeps between searches, by whoever searched; a copy of the model has none."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Kept:
        return Kept()

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        return Kept, ()


class FixedDecoder:
    """A batch of sources and `width` hypotheses of each, on their way. N = B x width rows.

    Args:
        model: in evaluation mode; `can_fix` says whether it can be decoded so.
        num_sentences: B.
        width: hypotheses of a sentence.
        src_length: S; shorter sources are padded.
        max_length: T, the most target positions.
        weights: those of another one of the same model, to share them.

    """

    def __init__(
        self,
        model: Transformer,
        *,
        num_sentences: int,
        width: int,
        src_length: int,
        max_length: int,
        weights: PreparedDecoder | None = None,
    ) -> None:
        self.model, self.width, self.max_length = model, width, max_length
        self.num_sentences, self.src_length = num_sentences, src_length
        attention = model.decoder.layers[0].self_attention
        self.num_heads, self.scale = attention.num_heads, attention.scale
        self.key_size = attention.query.out_features  # H * K
        weight = model.output.weight
        sizes = (self.key_size // self.num_heads, attention.value.out_features // self.num_heads)
        fits = sizes[0] == sizes[1] and sizes[0] in KERNEL_WIDTHS
        self.has_kernels = fits and has_kernels(weight, STEP_TYPES)
        self.factor = sizes[0] ** -0.5 if self.scale is None else self.scale
        self.weights = weights or PreparedDecoder(
            model.decoder.layers, model.output, activation=model.config.activation
        )
        self.addresses = _find_addresses(model)
        self.hidden = torch.finfo(weight.dtype).min
        """Of a mask that is added to the scores. Not -inf: no row can become NaN."""
        make = weight.detach().new_zeros
        rows, heads = num_sentences, self.num_heads
        stored = self.key_size + attention.value.out_features
        self.earlier = [make(rows, max_length, width, stored) for _ in self.weights.layers]
        """Of each layer: keys and values (B, T, width, H * K + H * K)."""
        self.source = [
            tuple(make(rows, heads, src_length, size) for size in sizes)
            for _ in self.weights.layers
        ]
        """Of each layer: keys and values (B, H, S, K)."""
        self.source_mask = make(rows, 1, 1, src_length)
        self.mask = make(rows, width, max_length, width)  # query's slot, position, key's slot
        self.own = make(width, width).fill_(self.hidden).fill_diagonal_(0.0)[:, None]
        self.own = self.own.expand(rows, width, 1, width)
        self.places = make(max_length, model.config.d_model)
        self.position = make(1, dtype=torch.long)
        """Where the next step writes; whoever steps moves it on."""
        self.times = torch.arange(max_length, device=weight.device)
        self.src_ids = make(rows, src_length, dtype=torch.long)
        kept = [*self.earlier, *(tensor for pair in self.source for tensor in pair)]
        self.num_bytes = sum(tensor.nbytes for tensor in kept)

    def put(self, src_ids: Tensor) -> None:
        """Lay the sources (B', S') down; rows that are left over repeat the last one."""
        check_ids(src_ids, self.model.config.vocab_size, name="src_ids")
        given, length = src_ids.shape
        self.src_ids.fill_(self.model.config.pad_id)
        self.src_ids[:given, :length] = src_ids
        self.src_ids[given:, :length] = src_ids[-1]

    def start(self) -> None:
        """Read the sources that were put down, and the weights; forget every target position."""
        model = self.model
        self.weights.refresh()
        self._place()
        mask = padding_mask(self.src_ids, model.config.pad_id)
        embedded = model.src_positions(model.src_embedding(self.src_ids))
        states, _ = model.encoder(embedded, mask)  # (B, S, D)
        self.source_mask.fill_(self.hidden).masked_fill_(mask[:, None], 0.0)
        for kept, layer in zip(self.source, model.decoder.layers, strict=True):
            projected = layer.cross_attention.project(states, states)
            for place, tensor in zip(kept, projected, strict=True):
                place.copy_(tensor)
        self.mask.fill_(self.hidden)
        self.position.zero_()

    def pack(self, num_steps: int) -> None:
        """Make the weights ready for about so many steps on a CPU; after `start`."""
        self.weights.pack(self.num_sentences * self.width, num_steps)

    def step(self, ids: Tensor, *, window: int) -> Tensor:
        """Feed ids (N,) at the next position; give the last layer's output (N, D).

        `window` positions are looked at: at least as many as there have been steps, this one
        included.
        """
        self.mask.index_copy_(2, self.position, self.own)
        if self.model.decoder.width is not None:
            gone = self.times < self.position - self.model.decoder.width // 2
            self.mask.masked_fill_(gone[:, None], self.hidden)
        embedding = self.model.tgt_embedding
        place = self.places.index_select(0, self.position)
        x = Stream(torch.add(place, F.embedding(ids, embedding.weight), alpha=embedding.scale))
        seen = self.mask.flatten(2)[:, None, :, : window * self.width]  # (B, 1, width, keys)
        kept = zip(self.weights.layers, self.earlier, self.source, strict=True)
        for layer, earlier, source in kept:
            x = self._attend_to_target(layer, x, earlier, seen)
            x = self._attend_to_source(layer, x, source)
            x = layer.feed_forward.leave(x, layer.feed_forward.read(x))
        normed: Tensor = self.model.decoder.final_norm(x.settle())
        return normed

    def project(self, x: Tensor) -> Tensor:
        """Turn the output x (N', D) of any rows into logits (N', V)."""
        return self.weights.output(x)

    def follow(self, parents: Tensor) -> None:
        """Let each hypothesis go on from the one in slot `parents` (B, width) of its sentence."""
        index = parents[:, :, None, None].expand_as(self.mask)
        self.mask.copy_(self.mask.gather(1, index))

    def take(self, other: FixedDecoder, rows: Tensor, *, num_steps: int) -> None:
        """Go on with the sentences `rows` (B,) of another one, after `num_steps` steps."""
        for mine, its in zip(self.earlier, other.earlier, strict=True):
            mine[:, :num_steps] = its[:, :num_steps].index_select(0, rows)
        for pair, its_pair in zip(self.source, other.source, strict=True):
            for place, tensor in zip(pair, its_pair, strict=True):
                torch.index_select(tensor, 0, rows, out=place)
        torch.index_select(other.source_mask, 0, rows, out=self.source_mask)
        torch.index_select(other.mask, 0, rows, out=self.mask)
        self.places.copy_(other.places)
        self.position.copy_(other.position)

    def resize(
        self, *, num_sentences: int, width: int, src_length: int, max_length: int
    ) -> FixedDecoder:
        """Make one of other sizes over the same weights."""
        return FixedDecoder(
            self.model,
            num_sentences=num_sentences,
            width=width,
            src_length=src_length,
            max_length=max_length,
            weights=self.weights,
        )

    def is_current(self) -> bool:
        """Tell whether the model's weights still lie where they did."""
        return self.addresses == _find_addresses(self.model)

    def _place(self) -> None:
        """Write down the vector of each position, with what the first sub-layer wants."""
        length = self.max_length
        learned = getattr(self.model.tgt_positions, "weight", None)
        known = length if learned is None else min(length, learned.size(0))
        empty = torch.zeros_like(self.places[None, :known])
        self.places.zero_()
        self.places[:known] = self.model.tgt_positions(empty)[0]
        if self.weights.shift is not None:
            self.places.add_(self.weights.shift)

    def _attend_to_target(
        self, layer: PreparedLayer, x: Stream, earlier: Tensor, seen: Tensor
    ) -> Stream:
        projected = layer.own.read(x)  # (N, H * K + stored)
        if self.has_kernels:
            from attendo.model.step_kernels import attend_to_target

            places = (earlier, self.mask, self.position)
            attended = attend_to_target(projected, *places, self.num_heads, scale=self.factor)
            return layer.own.leave(x, attended)
        queries, new = projected.tensor_split([self.key_size], dim=1)
        earlier.index_copy_(1, self.position, new.view(self.num_sentences, 1, self.width, -1))
        visible = earlier.flatten(1, 2)[:, : seen.size(-1)]  # (B, keys, stored)
        keys, values = visible.tensor_split([self.key_size], dim=2)
        attended = self._attend(queries, self._split(keys), self._split(values), seen)
        return layer.own.leave(x, attended)

    def _attend_to_source(
        self, layer: PreparedLayer, x: Stream, source: tuple[Tensor, ...]
    ) -> Stream:
        queries, (keys, values) = layer.cross.read(x), source
        if self.has_kernels:
            from attendo.model.step_kernels import attend_to_source

            attended = attend_to_source(queries, keys, values, self.source_mask, scale=self.factor)
        else:
            attended = self._attend(queries, keys, values, self.source_mask)
        return layer.cross.leave(x, attended)

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """Attend from queries (N, H * K) to keys and values (B, H, S, K): (N, H * K)."""
        side_by_side = self._split(queries.unflatten(0, (self.num_sentences, self.width)))
        heads = F.scaled_dot_product_attention(
            side_by_side, keys, values, attn_mask=mask, scale=self.scale
        )
        return heads.transpose(1, 2).flatten(2).flatten(0, 1)

    def _split(self, projected: Tensor) -> Tensor:
        heads: Tensor = projected.unflatten(-1, (self.num_heads, -1))
        return heads.transpose(1, 2)  # (B, T, H * K) -> (B, H, T, K)


def can_fix(model: Transformer, max_length: int) -> bool:
    """Tell whether fixed steps compute what the model's own do, up to so many positions.

    They pass modules by: dropout, hooks, autocast and replaced modules would not be heard.
    """
    positions = model.tgt_positions
    if model.training or type(positions) not in PLAIN_POSITIONS:
        return False
    if isinstance(positions, LearnedPositions) and max_length > positions.weight.size(0):
        return False
    device = model.src_embedding.weight.device.type
    if device not in ("cpu", "cuda") or torch.is_autocast_enabled(device):
        return False
    return not any(_is_changed(module) for module in _walk(model)[1:])


def _is_changed(module: nn.Module) -> bool:
    has_hooks = bool(module._forward_hooks or module._forward_pre_hooks)
    return has_hooks or type(module) not in PLAIN_MODULES


def _find_addresses(model: nn.Module) -> list[int]:
    """Tell where every weight lies."""
    weights = (weight for module in _walk(model) for weight in module._parameters.values())
    return [weight.data_ptr() for weight in weights if weight is not None]


def _walk(model: nn.Module) -> list[nn.Module]:
    """Give all modules, quicker than `model.modules()`: each search asks twice."""
    found: list[nn.Module] = [model]
    for module in found:  # grows on the way
        found.extend(one for one in module._modules.values() if one is not None)
    return found
