"""A converted folder, loaded by CTranslate2 in the precision that is wanted, or that is faster.

Batches are fastest in int8 nearly everywhere. For a text that comes alone float32 may be faster:
both are timed once, on a sentence that is made up, the first time that it matters.
"""

from __future__ import annotations

import threading
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch

from attendo.core.errors import AttendoError, ConfigError, suggest
from attendo.data.tokenizer import END_ID
from attendo.translator.ctranslate2_spec import REMEDY, require

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Precision = Literal["auto", "int8", "float32", "stored"]
STORED = {
    None: ("float32",),
    "int8": ("int8", "float32"),
    "int8_bfloat16": ("int8_bfloat16", "int8_float32", "float32"),
    "float16": ("float16", "float32"),
}
"""What a quantised folder is computed in: the first that this CPU can."""
ROUNDS, TRIAL_TOKENS, TRIAL_BEAM = 2, 8, 4
"""How the two are timed."""


class Runners:
    """Loads a folder when it is first needed, in each precision once.

    Args:
        folder: what `attendo.translator.ctranslate2_spec.write` filled.
        precision: "auto" is int8, and for one text alone what is faster; "stored" is what the
            folder holds, as far as the CPU can compute in it.
        quantization: what the folder was written in.
        pieces: of the source vocabulary.

    """

    def __init__(
        self,
        folder: Path,
        *,
        precision: Precision,
        quantization: str | None,
        pieces: Sequence[str],
    ) -> None:
        check_precision(precision)
        self.folder, self.precision, self.quantization = folder, precision, quantization
        self.faster: dict[bool, str] = {}
        """What one text alone is decoded in, greedily and with a beam, as far as it was timed."""
        self._pieces = pieces
        self._opened: dict[str, Any] = {}
        self._lock = threading.RLock()

    def choose(self, count: int, *, is_beam: bool) -> Any:
        """Give the `ctranslate2.Translator` for a batch of so many texts."""
        with self._lock:
            if self.precision != "auto":
                return self._open(self.precision)
            if "int8" not in _list_possible():
                return self._open("float32")
            if count > 1:
                return self._open("int8")
            if is_beam not in self.faster:
                self.faster[is_beam] = self._find_faster(TRIAL_BEAM if is_beam else 1)
                if "float32" not in self.faster.values():
                    self._opened.pop("float32", None)  # four times as large
            return self._open(self.faster[is_beam])

    def _find_faster(self, beam_size: int) -> str:
        """Time both precisions in turns, on a sentence of words from all over the vocabulary."""
        step = max(1, (len(self._pieces) - END_ID - 1) // TRIAL_TOKENS)
        src = [list(self._pieces[END_ID + 1 :: step][:TRIAL_TOKENS])]
        seconds: dict[str, list[float]] = {"int8": [], "float32": []}
        for number in range(1 + ROUNDS):
            for kind, own in seconds.items():
                begin = perf_counter()
                self._open(kind).translate_batch(
                    src,
                    beam_size=beam_size,
                    min_decoding_length=TRIAL_TOKENS,
                    max_decoding_length=TRIAL_TOKENS,
                )
                if number:  # the first one warms up
                    own.append(perf_counter() - begin)
        return min(seconds, key=lambda kind: min(seconds[kind]))

    def _open(self, kind: str) -> Any:
        if kind not in self._opened:
            try:
                self._opened[kind] = require().Translator(
                    str(self.folder),
                    device="cpu",
                    compute_type=self._find_stored() if kind == "stored" else kind,
                    intra_threads=torch.get_num_threads(),
                )
            except (RuntimeError, ValueError) as error:
                reason = f"CTranslate2 cannot open {self.folder} in {kind}: {error}"
                remedy = f"delete that folder, it is made again; or {REMEDY}"
                raise AttendoError(reason, remedy=remedy) from error
        return self._opened[kind]

    def _find_stored(self) -> str:
        possible = _list_possible()
        return next(kind for kind in STORED[self.quantization] if kind in possible)


def check_precision(precision: str) -> None:
    """Refuse what is none."""
    if precision not in get_args(Precision):
        remedy = suggest(precision, get_args(Precision))
        raise ConfigError(f"no precision '{precision}'", remedy=remedy)


def _list_possible() -> set[str]:
    """Give what CTranslate2 can compute in on this CPU."""
    return set(require().get_supported_compute_types("cpu"))
