"""Record what goes into W_Q, W_K and W_V during a forward pass.

The model may multiply by several of these matrices at once, so that hooks on them would miss
inputs: the projection methods of the attention are wrapped instead.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from attendo.model.attention import MultiHeadAttention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor, nn

    Record = Callable[[MultiHeadAttention, str, Tensor], None]

PROJECTIONS = {
    "project_query": (("query",),),
    "project_key_value": (("key",), ("value",)),
    "project_qkv": (("query", "key", "value"),),
}
"""Methods of an attention, and for each argument the matrices that it is multiplied by."""


@contextmanager
def record_projections(model: nn.Module, record: Record) -> Iterator[None]:
    """Call `record` with every attention, "query", "key" or "value", and its input (B, T, D)."""
    attentions = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
    for attention in attentions:
        for method in PROJECTIONS:
            setattr(attention, method, _wrap(attention, method, record))
    try:
        yield
    finally:
        for attention in attentions:
            for method in PROJECTIONS:
                delattr(attention, method)  # uncovers the method of the class


def _wrap(attention: MultiHeadAttention, method: str, record: Record) -> Callable[..., Any]:
    original = getattr(attention, method)

    def call(*inputs: Tensor) -> Any:
        for matrices, x in zip(PROJECTIONS[method], inputs, strict=True):
            for matrix in matrices:
                record(attention, matrix, x)
        return original(*inputs)

    return call
