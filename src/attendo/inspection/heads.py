"""The heads of a Transformer, by kind, layer and number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from attendo.core.errors import InputError, suggest
from attendo.core.message import message
from attendo.inspection.record import KINDS
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attendo.core.protocols import AttentionKind
    from attendo.model.attention import MultiHeadAttention


class Head(NamedTuple):
    """One head of a model, counted from 0."""

    kind: AttentionKind
    layer: int
    head: int


def require_transformer(model: Any, *, feature: str) -> Transformer:
    """Return the model if it is a single Transformer; `feature` names what needs one."""
    if isinstance(model, Transformer):
        return model
    if hasattr(model, "models"):
        reason = message(
            "{wanted} belongs to one model, and this is {model}",
            wanted=message(feature),
            model=model_label(model),
        )
        raise InputError(reason, hint="load one of its model folders alone")
    reason = message(
        "{wanted} needs a Transformer, and this is {model}",
        wanted=message(feature),
        model=model_label(model),
    )
    raise InputError(reason, hint="train or load a model of kind 'transformer'")


def model_label(model: Any) -> str:
    """Describe a model.

    >>> model_label(Transformer(9, d_model=4, d_ff=4, num_heads=2, num_layers=1))
    "a model of kind 'transformer'"
    """
    if hasattr(model, "models"):
        return message("an ensemble of {count}", count=len(model.models))
    return message("a model of kind '{kind}'", kind=getattr(model, "kind", type(model).__name__))


def list_heads(model: Transformer, kinds: Iterable[AttentionKind] = KINDS) -> list[Head]:
    """Return every head of these kinds, lowest layer first.

    >>> small = Transformer(9, d_model=4, d_ff=4, num_heads=2, num_layers=1)
    >>> list_heads(small, ["cross"])
    [Head(kind='cross', layer=0, head=0), Head(kind='cross', layer=0, head=1)]
    """
    return [
        Head(kind, layer, head)
        for kind in kinds
        for layer, attention in enumerate(get_attentions(model, kind))
        for head in range(attention.num_heads)
    ]


def get_attentions(model: Transformer, kind: AttentionKind) -> list[MultiHeadAttention]:
    """Return the attention of this kind in every layer, lowest first."""
    if kind not in KINDS:
        raise InputError(f"no kind of attention '{kind}'", hint=suggest(str(kind), KINDS))
    layers = model.encoder.layers if kind == "encoder_self" else model.decoder.layers
    name = "cross_attention" if kind == "cross" else "self_attention"
    return [cast("MultiHeadAttention", getattr(layer, name)) for layer in layers]


def get_attention(model: Transformer, kind: AttentionKind, layer: int) -> MultiHeadAttention:
    """Return the attention of this kind in one layer."""
    attentions = get_attentions(model, kind)
    if 0 <= layer < len(attentions):
        return attentions[layer]
    reason = f"no layer {layer} of {kind} attention"
    raise InputError(reason, hint=f"layers are numbered from 0 to {len(attentions) - 1}")


def check_head(model: Transformer, head: Head) -> None:
    """Raise an error for a head that does not exist."""
    num_heads = get_attention(model, head.kind, head.layer).num_heads
    if not 0 <= head.head < num_heads:
        reason = f"no head {head.head} in layer {head.layer} of {head.kind} attention"
        raise InputError(reason, hint=f"heads are numbered from 0 to {num_heads - 1}")
