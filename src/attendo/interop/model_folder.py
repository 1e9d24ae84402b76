"""A model folder of Attendo with smaller weights: int8 (a quarter of the size) or float16.

All commands read it like any other model folder. CTranslate2 translates with the stored int8
values; PyTorch computes in float32 with the weights restored from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.bundle import get_weights, load_bundle, save_bundle
from attendo.core.quantization import quantize_weights
from attendo.decoding.options import DecodingOptions
from attendo.text.tokenizer import END_ID
from attendo.translator.backends.base import TranslationItem
from attendo.translator.backends.pytorch import PyTorchBackend

if TYPE_CHECKING:
    from pathlib import Path

    from attendo.bundle import Bundle


def unsupported_reasons(bundle: Bundle) -> list[str]:  # noqa: ARG001 - every model can be stored
    """Return why a model cannot be written."""
    return []


def write(bundle: Bundle, folder: Path, *, quantization: str | None) -> None:
    """Write a model folder; `quantization` is int8, float16, or None for float32."""
    weights = get_weights(bundle.model)
    if quantization == "int8":
        weights = quantize_weights(weights)
    elif quantization == "float16":
        weights = {name: weight.half() for name, weight in weights.items()}
    save_bundle(folder, bundle.model, bundle.tokenizer, about=bundle.about, weights=weights)


def load_reference(folder: Path) -> StoredModel:
    """Open a folder written by `write`."""
    return StoredModel(folder)


class StoredModel:
    """Takes and returns our ids; computes in float32 with the stored weights."""

    def __init__(self, folder: Path) -> None:
        self.backend = PyTorchBackend(load_bundle(folder).model)

    def logits(self, src: list[list[int]], tgt: list[list[int]]) -> None:  # noqa: ARG002
        """Return None: the log-probabilities are compared."""
        return

    def log_probs(self, src: list[list[int]], tgt: list[list[int]]) -> list[list[float]]:
        """Return the log-probability of each id of `tgt`, which ends with the end symbol."""
        return self.backend.score(src, [row[:-1] for row in tgt])

    def translate(self, src: list[list[int]], beam_size: int) -> list[list[int]]:
        """Return the best translation of each source, with the end symbol if it has finished."""
        items = [TranslationItem("", ids) for ids in src]
        results = self.backend.search(items, DecodingOptions(beam_size=beam_size))
        best = [one.hypotheses[0] for one in results]
        return [[*one.ids, END_ID] if one.is_finished else one.ids for one in best]
