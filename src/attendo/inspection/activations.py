"""The activations of one sentence: vectors and matrices for plots and lessons.

Recorded from the model's modules while it runs, never recomputed, except for the scores:
fused attention does not keep them, so they are the product of its queries and keys.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.core.errors import InputError, suggest
from attendo.inspection.heads import get_attention
from attendo.model.attention import attention_scores
from attendo.model.masks import causal_mask, local_mask

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from attendo.core.protocols import AttentionKind
    from attendo.inspection.teacher_forcing import TeacherForcedPass
    from attendo.model.transformer import Transformer

    Floats = NDArray[np.float32]

SUBLAYERS = {
    "encoder_self": ("encoder", "self"),
    "encoder_feed_forward": ("encoder", "feed_forward"),
    "decoder_self": ("decoder", "self"),
    "cross": ("decoder", "cross"),
    "decoder_feed_forward": ("decoder", "feed_forward"),
}
"""Stack and attribute prefix of each sub-layer."""


class AttentionActivations(NamedTuple):
    """One attention of one layer, all heads; T queries, S keys."""

    query_input: Floats  # (T, D), input of the query projection
    key_value_input: Floats  # (S, D), input of the key and value projections
    queries: Floats  # (H, T, K)
    keys: Floats  # (H, S, K)
    values: Floats  # (H, S, K of values)
    scores: Floats  # (H, T, S), scaled if the model scales them, before the mask
    mask: NDArray[np.bool_]  # (T, S), True = may attend
    weights: Floats  # (H, T, S)
    heads: Floats  # (H, T, K of values), output of each head
    output: Floats  # (T, D), concatenated heads times W_O


class SublayerActivations(NamedTuple):
    """One sub-layer with its residual connection and layer norm."""

    x: Floats  # (T, D), input and residual
    transformed: Floats  # (T, D), Sublayer(x)
    added: Floats  # (T, D), x + Sublayer(x); without a residual path Sublayer(x) alone
    normed: Floats  # (T, D), the layer norm of the sum, or of x in pre-norm models
    is_pre_norm: bool
    has_residual: bool


class InputActivations(NamedTuple):
    """Input of the encoder."""

    embedded: Floats  # (S, D), scaled
    positions: Floats  # (S, D), positional encoding
    total: Floats  # (S, D)


@torch.inference_mode()
def capture_input(model: Transformer, forced_pass: TeacherForcedPass) -> InputActivations:
    """Return embedding, positional encoding and their sum of every source token."""
    embedded = model.src_embedding(forced_pass.src_ids)
    total = model.src_positions(embedded)
    positions = model.src_positions(torch.zeros_like(embedded))
    return InputActivations(_to_numpy(embedded[0]), _to_numpy(positions[0]), _to_numpy(total[0]))


@torch.inference_mode()
def capture_attention(
    model: Transformer, forced_pass: TeacherForcedPass, kind: AttentionKind, layer: int
) -> AttentionActivations:
    """Return the activations of one attention."""
    attention = get_attention(model, kind, layer)
    parts = [attention.query, attention.key, attention.value, attention.output]
    with _recording(parts) as recorded:
        forced_pass(model)
    (query_input, queries), (key_value_input, keys), (_, values), (joined, output) = (
        recorded[part] for part in parts
    )

    def split(concatenated: Tensor) -> Tensor:
        heads: Tensor = concatenated[0].unflatten(-1, (attention.num_heads, -1))
        return heads.transpose(0, 1)

    queries, keys, values = split(queries), split(keys), split(values)
    scores = attention_scores(queries.float(), keys.float(), scale=attention.scale)  # (H, T, S)
    mask = attention_mask(model, kind, *scores.shape[1:]).to(scores.device)
    return AttentionActivations(
        query_input=_to_numpy(query_input[0]),
        key_value_input=_to_numpy(key_value_input[0]),
        queries=_to_numpy(queries),
        keys=_to_numpy(keys),
        values=_to_numpy(values),
        scores=_to_numpy(scores),
        mask=mask.cpu().numpy(),
        weights=_to_numpy(scores.masked_fill(~mask, float("-inf")).softmax(-1)),
        heads=_to_numpy(split(joined)),
        output=_to_numpy(output[0]),
    )


@torch.inference_mode()
def capture_sublayer(
    model: Transformer, forced_pass: TeacherForcedPass, name: str, layer: int
) -> SublayerActivations:
    """Return the input of a sub-layer, its output, their sum and the norm."""
    if name not in SUBLAYERS:
        raise InputError(f"no sub-layer '{name}'", hint=suggest(name, SUBLAYERS))
    stack, prefix = SUBLAYERS[name]
    layers = getattr(model, stack).layers
    if not 0 <= layer < len(layers):
        reason = f"no layer {layer} of the {stack}"
        raise InputError(reason, hint=f"layers are numbered from 0 to {len(layers) - 1}")
    block = layers[layer]
    add = getattr(block, f"{prefix}_add")
    first = last = block.feed_forward
    if prefix != "feed_forward":
        attention = getattr(block, f"{prefix}_attention")
        first, last = attention.query, attention.output
    with _recording([add.norm, first, last]) as recorded:
        forced_pass(model)
    (before, normed), (entered, _), (_, transformed) = (
        recorded[part] for part in (add.norm, first, last)
    )
    x = before if add.is_pre_norm else entered
    return SublayerActivations(
        _to_numpy(x[0]),
        _to_numpy(transformed[0]),
        _to_numpy((x + transformed if add.has_residual else transformed)[0]),
        _to_numpy(normed[0]),
        is_pre_norm=bool(add.is_pre_norm),
        has_residual=bool(add.has_residual),
    )


def attention_mask(
    model: Transformer, kind: AttentionKind, num_rows: int, num_columns: int
) -> Tensor:
    """Return the attention mask of a sentence without padding: (T, S)."""
    mask = torch.ones(num_rows, num_columns, dtype=torch.bool)
    if kind == "decoder_self":
        mask = mask & causal_mask(num_rows)
    if kind != "cross" and model.config.attention_width is not None:
        mask = mask & local_mask(num_rows, model.config.attention_width)
    return mask


@contextmanager
def _recording(modules: Sequence[nn.Module]) -> Iterator[dict[nn.Module, tuple[Tensor, Tensor]]]:
    """Record input and output of each module within the context."""
    recorded: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def record(module: nn.Module, given: tuple[Tensor, ...], result: Tensor) -> None:
        recorded[module] = given[0], result

    with ExitStack() as stack:
        for module in modules:
            stack.callback(module.register_forward_hook(record).remove)
        yield recorded


def _to_numpy(tensor: Tensor) -> Floats:
    numbers: Floats = tensor.detach().float().cpu().numpy()
    return numbers
