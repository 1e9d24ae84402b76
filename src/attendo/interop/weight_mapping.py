"""Tensors of other toolkits and ours: names, shapes, the order of rows, the layout of positions.

Hugging Face's Marian and fairseq name the parts of a layer alike, so one table serves both, in both
directions. Every difference between a file and what its config promises is found before anything is
raised: all missing, unknown and ill-shaped tensors are named in one error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import torch

from attendo.core.errors import InputError
from attendo.text.foreign_tokenizer import NO_FOREIGN_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from torch import Tensor

LAYER_PARTS = {
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "self_add.norm": "self_attn_layer_norm",
    "cross_add.norm": "encoder_attn_layer_norm",
    "feed_forward_add.norm": "final_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
}
"""What we call the parts of a layer, and what they do."""
PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
"""The same inside an attention."""
LAYER_NAME = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(\w+(?:\.norm|\.inner|\.outer)?)\.(.+)")
SUPPRESSED_LOGIT = -1000.0
"""The logit of a symbol that they have no column for: its probability is 0 in every precision, and
smoothed labels, which want a little of every token, are not drowned in it."""

WIDTH_ON_SECOND_AXIS = re.compile(r"(embedding|query|key|value|inner|^output)\.weight$")
"""Tensors whose second axis is d_model; the first one of all others, but for the next."""
WITHOUT_WIDTH_AXIS = re.compile(r"(query|key|value|inner|^output)\.bias$")


def foreign_layer_name(name: str) -> str | None:
    """Return what others call a parameter of one of our layers, None for any other parameter.

    >>> foreign_layer_name("decoder.layers.0.cross_attention.query.weight")
    'decoder.layers.0.encoder_attn.q_proj.weight'
    """
    match = LAYER_NAME.fullmatch(name)
    if match is None:
        return None
    side, number, part, rest = match.groups()
    *projection, last = rest.split(".")
    inner = [PROJECTIONS[one] for one in projection]
    return ".".join([side, "layers", number, LAYER_PARTS[part], *inner, last])


def check_tensors(
    tensors: Mapping[str, Tensor],
    expected: Mapping[str, Sequence[int]],
    *,
    optional: Iterable[str] = (),
    source: str,
) -> None:
    """Refuse a file whose tensors are not those that its config promises; name every one."""
    missing = [name for name in expected if name not in tensors and name not in set(optional)]
    unknown = [name for name in tensors if name not in expected]
    shapes = {name: tuple(tensors[name].shape) for name in expected if name in tensors}
    wrong = [
        f"{name} has the shape {shape}, not {tuple(expected[name])}"
        for name, shape in shapes.items()
        if shape != tuple(expected[name])
    ]
    lines = [f"missing: {name}" for name in sorted(missing)]
    lines += [f"unknown: {name}" for name in sorted(unknown)]
    lines += [f"of another shape: {line}" for line in sorted(wrong)]
    if lines:
        count = "1 tensor" if len(lines) == 1 else f"{len(lines)} tensors"
        listing = "".join(f"\n  - {line}" for line in lines)
        raise InputError(
            f"{source}: {count} not as its config says{listing}",
            hint="take weights and config from the same model, and copy them again",
        )


def check_tied(tensors: Mapping[str, Tensor], names: Iterable[str], *, source: str) -> None:
    """Refuse matrices that are one by the config and differ in the file."""
    first, *others = [name for name in names if name in tensors]
    if not all(torch.equal(tensors[first], tensors[other]) for other in others):
        reason = f"{source}: {', '.join((first, *others))} are one by its config, and differ"
        raise InputError(reason, hint="take weights and config from the same model")


def permute_rows(matrix: Tensor, order: Sequence[int]) -> Tensor:
    """Put the rows (V, ...) of another vocabulary into our order; what is new begins with zeros."""
    indices = torch.tensor(order)
    permuted = matrix.index_select(0, indices.clamp(min=0))
    permuted[indices == NO_FOREIGN_ID] = 0.0
    return permuted


def unpermute_rows(matrix: Tensor, order: Sequence[int]) -> Tensor:
    """Undo `permute_rows`; what was new is left out."""
    indices = torch.tensor(order)
    known = indices != NO_FOREIGN_ID
    restored = matrix.new_empty(int(indices.max()) + 1, *matrix.shape[1:])
    restored[indices[known]] = matrix[known]
    return restored


def to_split_sinusoids(
    weights: Mapping[str, Tensor], d_model: int, *, inverse: bool = False
) -> dict[str, Tensor]:
    """Reorder the axis d_model of every one of our weights, from interleaved positions to halves.

    The model stays the same: sums are taken in another order, nothing else. `inverse` undoes it to the
    bit.
    """
    order = torch.cat((torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)))
    order = order.argsort() if inverse else order
    reordered = {}
    for name, tensor in weights.items():
        axis = (
            None
            if WITHOUT_WIDTH_AXIS.search(name)
            else int(bool(WIDTH_ON_SECOND_AXIS.search(name)))
        )
        reordered[name] = tensor if axis is None else tensor.index_select(axis, order).contiguous()
    return reordered
