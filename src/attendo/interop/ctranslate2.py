"""Folders for CTranslate2: written from our weights, opened by CTranslate2 itself.

The writing lies below the translator, which decodes by CTranslate2 too
(`attendo.translator.backends.ctranslate2.converter`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.decoding.options import DecodingOptions
from attendo.text.tokenizer import END_ID
from attendo.translator.backends.ctranslate2.backend import CTranslate2Backend
from attendo.translator.backends.ctranslate2.converter import unsupported_reasons, write
from attendo.translator.backends.pytorch import PyTorchBackend, TranslationItem

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CTranslate2Reference", "load_reference", "unsupported_reasons", "write"]


def load_reference(folder: Path) -> CTranslate2Reference:
    """Open a folder that `write` has filled, by CTranslate2."""
    return CTranslate2Reference(folder)


class CTranslate2Reference:
    """Takes ids of ours and gives ids and log-probabilities of ours; it computes as stored."""

    def __init__(self, folder: Path) -> None:
        self.backend = CTranslate2Backend(
            folder, precision="stored", load_native=_raise_no_native_model
        )

    def logits(self, src: list[list[int]], tgt: list[list[int]]) -> None:  # noqa: ARG002
        """Give none: CTranslate2 tells log-probabilities."""
        return

    def log_probs(self, src: list[list[int]], tgt: list[list[int]]) -> list[list[float]]:
        """Give that of each id of `tgt`, which ends with its end symbol."""
        return self.backend.log_probs(src, tgt)

    def translate(self, src: list[list[int]], beam_size: int) -> list[list[int]]:
        """Give the best translation of each source, the end symbol behind it if it has ended."""
        items = [TranslationItem("", ids) for ids in src]
        results = self.backend.search(items, DecodingOptions(beam_size=beam_size))
        best = [one.hypotheses[0] for one in results]
        return [[*one.ids, END_ID] if one.is_finished else one.ids for one in best]


def _raise_no_native_model() -> PyTorchBackend:
    raise InputError("a CTranslate2 folder holds no model of ours", hint="load the model folder")
