"""Whether the server can show attention weights of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.serving.unloaded_model import UnloadedBackend
from attendo.text.tokenizer import END_ID, START_ID
from attendo.translator.backends.base import ConvertedBackend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.core.protocols import AttentionKind
    from attendo.translator import Translator


def has_attention(translator: Translator) -> bool:
    """Return whether the server can show any attention weights of a model."""
    if isinstance(translator.backend, UnloadedBackend):
        return translator.backend.has_attention
    if isinstance(translator.backend, ConvertedBackend):  # of a Transformer
        return translator.backend.has_native
    import torch

    from attendo.inspection.record import KINDS

    with torch.inference_mode():
        return _has_weights(translator, KINDS)


def _has_weights(translator: Translator, kinds: Sequence[AttentionKind]) -> bool:
    """Run the shortest input, and return whether there are attention weights."""
    pad = translator.backend.pad
    explanation = translator.model.explain(pad([[END_ID]]), pad([[START_ID]]))
    return any(explanation[kind] for kind in kinds)
