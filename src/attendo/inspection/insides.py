"""The vectors and matrices on the way of one sentence, as numbers to be drawn or told.

Read off the model's own modules while it runs, never computed in a second way, but for the scores:
fused attention keeps none, so they are the product of the queries and keys that it was given.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.core.errors import InputError, suggest
from attendo.inspection.heads import find_attention
from attendo.model.attention import compare
from attendo.model.masks import look_ahead_mask, neighbourhood_mask

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from attendo.core.protocols import AttentionKind
    from attendo.inspection.forced import Forced
    from attendo.model.transformer import Transformer

    Floats = NDArray[np.float32]

SUBLAYERS = {
    "encoder_self": ("encoder", "self"),
    "encoder_feed_forward": ("encoder", "feed_forward"),
    "decoder_self": ("decoder", "self"),
    "cross": ("decoder", "cross"),
    "decoder_feed_forward": ("decoder", "feed_forward"),
}
"""Where each sub-layer stands, and what its attributes begin with."""


class AttentionInside(NamedTuple):
    """One attention of one layer, all heads; T rows ask, S columns answer."""

    asking: Floats  # (T, D), what queries are made of
    answering: Floats  # (S, D), what keys and values are made of
    queries: Floats  # (H, T, K)
    keys: Floats  # (H, S, K)
    values: Floats  # (H, S, K of values)
    scores: Floats  # (H, T, S), over sqrt(d_k) if the model divides by it, before the mask
    mask: NDArray[np.bool_]  # (T, S), True = may attend
    weights: Floats  # (H, T, S)
    heads: Floats  # (H, T, K of values), what each head gives
    output: Floats  # (T, D), heads side by side, times W_O


class SublayerInside(NamedTuple):
    """One sub-layer and what stands around it."""

    x: Floats  # (T, D), what comes in and goes around
    transformed: Floats  # (T, D), Sublayer(x)
    added: Floats  # (T, D), x + Sublayer(x); without a residual path Sublayer(x) alone
    normed: Floats  # (T, D), the layer norm of the sum; in pre-norm models of x
    is_pre: bool
    has_residual: bool


class InputInside(NamedTuple):
    """What the encoder reads."""

    embedded: Floats  # (S, D), scaled
    positions: Floats  # (S, D), what the places add
    total: Floats  # (S, D)


@torch.inference_mode()
def look_at_input(model: Transformer, forced: Forced) -> InputInside:
    """Give embedding, position and their sum for every source token."""
    embedded = model.src_embedding(forced.src_ids)
    total = model.src_positions(embedded)
    places = model.src_positions(torch.zeros_like(embedded))
    return InputInside(_plain(embedded[0]), _plain(places[0]), _plain(total[0]))


@torch.inference_mode()
def look_at_attention(
    model: Transformer, forced: Forced, kind: AttentionKind, layer: int
) -> AttentionInside:
    """Give all that one attention computes."""
    attention = find_attention(model, kind, layer)
    parts = [attention.query, attention.key, attention.value, attention.output]
    with _watching(parts) as seen:
        forced(model)
    (asking, queries), (answering, keys), (_, values), (joined, output) = (
        seen[part] for part in parts
    )

    def split(side_by_side: Tensor) -> Tensor:
        heads: Tensor = side_by_side[0].unflatten(-1, (attention.num_heads, -1))
        return heads.transpose(0, 1)

    queries, keys, values = split(queries), split(keys), split(values)
    scores = compare(queries.float(), keys.float(), scale=attention.scale)  # (H, T, S)
    mask = find_mask(model, kind, *scores.shape[1:]).to(scores.device)
    return AttentionInside(
        asking=_plain(asking[0]),
        answering=_plain(answering[0]),
        queries=_plain(queries),
        keys=_plain(keys),
        values=_plain(values),
        scores=_plain(scores),
        mask=mask.cpu().numpy(),
        weights=_plain(scores.masked_fill(~mask, float("-inf")).softmax(-1)),
        heads=_plain(split(joined)),
        output=_plain(output[0]),
    )


@torch.inference_mode()
def look_at_sublayer(model: Transformer, forced: Forced, which: str, layer: int) -> SublayerInside:
    """Give what goes into a sub-layer, what it adds, and the norm."""
    if which not in SUBLAYERS:
        raise InputError(f"no sub-layer '{which}'", remedy=suggest(which, SUBLAYERS))
    stack, name = SUBLAYERS[which]
    layers = getattr(model, stack).layers
    if not 0 <= layer < len(layers):
        reason = f"no layer {layer} of the {stack}"
        raise InputError(reason, remedy=f"layers are counted from 0 to {len(layers) - 1}")
    owner = layers[layer]
    add = getattr(owner, f"{name}_add")
    first = last = owner.feed_forward
    if name != "feed_forward":
        attention = getattr(owner, f"{name}_attention")
        first, last = attention.query, attention.output
    with _watching([add.norm, first, last]) as seen:
        forced(model)
    (before, normed), (entered, _), (_, transformed) = (
        seen[part] for part in (add.norm, first, last)
    )
    x = before if add.is_pre else entered
    return SublayerInside(
        _plain(x[0]),
        _plain(transformed[0]),
        _plain((x + transformed if add.has_residual else transformed)[0]),
        _plain(normed[0]),
        is_pre=bool(add.is_pre),
        has_residual=bool(add.has_residual),
    )


def find_mask(model: Transformer, kind: AttentionKind, num_rows: int, num_columns: int) -> Tensor:
    """Give what a sentence without padding may attend to: (T, S)."""
    mask = torch.ones(num_rows, num_columns, dtype=torch.bool)
    if kind == "decoder_self":
        mask = mask & look_ahead_mask(num_rows)
    if kind != "cross" and model.config.attention_width is not None:
        mask = mask & neighbourhood_mask(num_rows, model.config.attention_width)
    return mask


@contextmanager
def _watching(modules: Sequence[nn.Module]) -> Iterator[dict[nn.Module, tuple[Tensor, Tensor]]]:
    """Note what goes into each module and what comes out, for a while."""
    seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def note(module: nn.Module, given: tuple[Tensor, ...], result: Tensor) -> None:
        seen[module] = given[0], result

    with ExitStack() as stack:
        for module in modules:
            stack.callback(module.register_forward_hook(note).remove)
        yield seen


def _plain(tensor: Tensor) -> Floats:
    numbers: Floats = tensor.detach().float().cpu().numpy()
    return numbers
