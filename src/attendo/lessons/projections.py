"""Watch what goes into W_Q, W_K and W_V while a model works, however it multiplies by them.

Several of these matrices may be multiplied by at once, so that hooks on them would see nothing:
attention is watched where it is given what it projects.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from attendo.model.attention import MultiHeadAttention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor, nn

    Note = Callable[[MultiHeadAttention, str, Tensor], None]

FED = {
    "project_query": (("query",),),
    "project_key_value": (("key",), ("value",)),
    "project_qkv": (("query", "key", "value"),),
}
"""Methods of an attention, and for each of their arguments the matrices that it goes into."""


@contextmanager
def watching(model: nn.Module, note: Note) -> Iterator[None]:
    """Call `note` with every attention, "query", "key" or "value", and what goes in there (B, T, D)."""
    attentions = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
    for attention in attentions:
        for method in FED:
            setattr(attention, method, _listen(attention, method, note))
    try:
        yield
    finally:
        for attention in attentions:
            for method in FED:
                delattr(attention, method)  # that of the class is seen again


def _listen(attention: MultiHeadAttention, method: str, note: Note) -> Callable[..., Any]:
    original = getattr(attention, method)

    def call(*given: Tensor) -> Any:
        for matrices, x in zip(FED[method], given, strict=True):
            for matrix in matrices:
                note(attention, matrix, x)
        return original(*given)

    return call
