"""CTranslate2 model folders: written from our weights, opened by CTranslate2.

The converter is in a lower layer, because the translator can decode with CTranslate2 too
(`attendo.translator.backends.ctranslate2.converter`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.decoding.options import DecodingOptions
from attendo.text.tokenizer import END_ID
from attendo.translator.backends.base import TranslationItem
from attendo.translator.backends.ctranslate2.backend import CTranslate2Backend
from attendo.translator.backends.ctranslate2.converter import unsupported_reasons, write

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CTranslate2Reference", "load_reference", "unsupported_reasons", "write"]


def load_reference(folder: Path) -> CTranslate2Reference:
    """Open a folder written by `write` with CTranslate2."""
    return CTranslate2Reference(folder)


class CTranslate2Reference:
    """Takes and returns our ids; computes in the stored precision."""

    def __init__(self, folder: Path) -> None:
        self.backend = CTranslate2Backend(folder, precision="stored", load_native=None)

    def logits(self, src: list[list[int]], tgt: list[list[int]]) -> None:  # noqa: ARG002
        """Return None: CTranslate2 does not return logits."""
        return

    def log_probs(self, src: list[list[int]], tgt: list[list[int]]) -> list[list[float]]:
        """Return the log-probability of each id of `tgt`, which ends with the end symbol."""
        return self.backend.log_probs(src, tgt)

    def translate(self, src: list[list[int]], beam_size: int) -> list[list[int]]:
        """Return the best translation of each source, with the end symbol if it has finished."""
        items = [TranslationItem("", ids) for ids in src]
        results = self.backend.search(items, DecodingOptions(beam_size=beam_size))
        best = [one.hypotheses[0] for one in results]
        return [[*one.ids, END_ID] if one.is_finished else one.ids for one in best]
