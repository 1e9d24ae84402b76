"""Tensors of other toolkits and ours: names, shapes, row order, layout of positions.

Hugging Face's Marian and fairseq use the same names for the parts of a layer, so one table serves
both, in both directions. All missing, unknown and misshapen tensors of a file are collected and
reported in one error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import torch

from attendo.core.errors import InputError
from attendo.core.message import message
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
"""Our names of the parts of a layer, and theirs."""
PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
"""The same inside an attention."""
LAYER_NAME = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(\w+(?:\.norm|\.inner|\.outer)?)\.(.+)")
SUPPRESSED_LOGIT = -1000.0
"""The logit of a symbol for which they have no column: its probability is 0 in every precision, and
the label-smoothed loss, which includes every token, stays finite."""

WIDTH_ON_SECOND_AXIS = re.compile(r"(embedding|query|key|value|inner|^output)\.weight$")
"""Tensors whose second axis is d_model; in all others it is the first, except for the next."""
WITHOUT_WIDTH_AXIS = re.compile(r"(query|key|value|inner|^output)\.bias$")


def foreign_layer_name(name: str) -> str | None:
    """Return the foreign name of a parameter of one of our layers, None for any other parameter.

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
    """Raise an error that lists every tensor that does not match the config."""
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
    lines += [f"wrong shape: {line}" for line in sorted(wrong)]
    if lines:
        count = "1 tensor" if len(lines) == 1 else f"{len(lines)} tensors"
        listing = "".join(f"\n  - {line}" for line in lines)
        raise InputError(
            message(
                "{source}: {count} do not match the config{listing}",
                source=source,
                count=count,
                listing=listing,
            ),
            hint="copy the weights and the config of the same model again",
        )


def check_tied(tensors: Mapping[str, Tensor], names: Iterable[str], *, source: str) -> None:
    """Raise an error if matrices that are tied in the config differ in the file."""
    first, *others = [name for name in names if name in tensors]
    if not all(torch.equal(tensors[first], tensors[other]) for other in others):
        reason = message(
            "{source}: {names} are tied in its config but differ",
            source=source,
            names=", ".join((first, *others)),
        )
        raise InputError(reason, hint="take the weights and the config of the same model")


def permute_rows(matrix: Tensor, order: Sequence[int]) -> Tensor:
    """Return the rows (V, ...) of another vocabulary in our order; new rows are zero."""
    indices = torch.tensor(order)
    permuted = matrix.index_select(0, indices.clamp(min=0))
    permuted[indices == NO_FOREIGN_ID] = 0.0
    return permuted


def unpermute_rows(matrix: Tensor, order: Sequence[int]) -> Tensor:
    """Undo `permute_rows`; new rows are dropped."""
    indices = torch.tensor(order)
    known = indices != NO_FOREIGN_ID
    restored = matrix.new_empty(int(indices.max()) + 1, *matrix.shape[1:])
    restored[indices[known]] = matrix[known]
    return restored


def to_split_sinusoids(
    weights: Mapping[str, Tensor], d_model: int, *, inverse: bool = False
) -> dict[str, Tensor]:
    """Permute the d_model axis of all our weights, from interleaved sinusoids to halves.

    The model stays the same except for the order of summation. `inverse` undoes it exactly.
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
