"""Folders for CTranslate2: written from our weights, opened by CTranslate2 itself.

The writing lies below the translator, which decodes by CTranslate2 too
(`attendo.translator.ctranslate2_spec`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.data.tokenizer import END_ID
from attendo.decoding.options import DecodingOptions, Demands
from attendo.translator.ctranslate2_engine import CTranslate2Engine
from attendo.translator.ctranslate2_spec import why_not, write
from attendo.translator.engine import Engine, Job

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CTranslate2Peer", "open_foreign", "why_not", "write"]


def open_foreign(folder: Path) -> CTranslate2Peer:
    """Open a folder that `write` has filled, by CTranslate2."""
    return CTranslate2Peer(folder)


class CTranslate2Peer:
    """Takes ids of ours and gives ids and log-probabilities of ours; it computes as stored."""

    def __init__(self, folder: Path) -> None:
        self.engine = CTranslate2Engine(folder, precision="stored", open_own=_have_none)

    def logits(self, src: list[list[int]], tgt: list[list[int]]) -> None:  # noqa: ARG002
        """Give none: CTranslate2 tells log-probabilities."""
        return

    def log_probs(self, src: list[list[int]], tgt: list[list[int]]) -> list[list[float]]:
        """Give that of each id of `tgt`, which ends with its end symbol."""
        return self.engine.log_probs(src, tgt)

    def translate(self, src: list[list[int]], beam_size: int) -> list[list[int]]:
        """Give the best translation of each source, the end symbol behind it if it has ended."""
        jobs = [Job("", ids, Demands()) for ids in src]
        found = self.engine.search(jobs, DecodingOptions(beam_size=beam_size))
        best = [one.hypotheses[0] for one in found]
        return [[*one.ids, END_ID] if one.is_finished else one.ids for one in best]


def _have_none() -> Engine:
    raise InputError("a CTranslate2 folder holds no model of ours", remedy="load the model folder")
