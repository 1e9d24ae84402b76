"""Loads a converted folder with CTranslate2, in the requested or in the faster precision.

Several batches are fastest with one thread each (`get_replicas`); a single batch uses all threads.
Batches are fastest in int8 on nearly all CPUs. For a single text float32 may be faster: both are
timed once on an artificial sentence, when the first single text arrives.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, get_args

from attendo.core.device import num_compute_threads
from attendo.core.errors import AttendoError, ConfigError, suggest
from attendo.core.message import message
from attendo.text.tokenizer import END_ID
from attendo.translator.backends.base import USE_NATIVE_HINT
from attendo.translator.backends.ctranslate2.converter import import_ctranslate2

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Precision = Literal["auto", "int8", "float32", "stored"]
COMPUTE_TYPES = {
    None: ("float32",),
    "int8": ("int8", "float32"),
    "int8_bfloat16": ("int8_bfloat16", "int8_float32", "float32"),
    "float16": ("float16", "float32"),
}
"""The compute types of a quantization, in order of preference; the first supported one is used."""
BYTES_PER_WEIGHT = {"int8": 1, "float32": 4}
TIMING_ROUNDS, TRIAL_TOKENS, TRIAL_BEAM = 2, 8, 4
"""How the two precisions are timed."""
MAX_REPLICAS = 16
"""Batches at the same time, at most: each needs memory for its states."""


class TranslatorPool:
    """Loads a folder lazily, at most once per precision.

    Args:
        folder: written by `attendo.translator.backends.ctranslate2.converter.write`.
        precision: "auto" is int8, and for single texts the faster one; "stored" is the quantization
            of the folder, as far as the CPU supports it.
        quantization: of the folder.
        pieces: the source vocabulary.

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
        self.faster_precision: dict[bool, str] = {}
        """The faster precision of single texts, without and with a beam, once it was timed."""
        self._pieces = pieces
        self._loaded: dict[str, Any] = {}
        self._replicas: dict[str, Any] = {}
        self._lock = threading.RLock()

    @property
    def bytes_per_weight(self) -> int:
        """The bytes per weight of everything that is loaded, about."""
        kinds = (*self._loaded, *self._replicas)
        return sum(BYTES_PER_WEIGHT.get(kind, 4) for kind in kinds)

    @property
    def num_replicas(self) -> int:
        """The number of batches that `get_replicas` translates at the same time."""
        return min(num_compute_threads(), MAX_REPLICAS)

    def get_replicas(self) -> Any:
        """Return a `ctranslate2.Translator` for several batches at the same time."""
        count = self.num_replicas
        if count == 1:
            return self.get(2, is_beam=True)
        with self._lock:
            kind = self.precision
            if kind == "auto":
                kind = "int8" if "int8" in _supported_compute_types() else "float32"
            if kind not in self._replicas:
                self._replicas[kind] = self._open(kind, count, num_compute_threads() // count)
            return self._replicas[kind]

    def get(self, count: int, *, is_beam: bool) -> Any:
        """Return the `ctranslate2.Translator` for a batch of `count` texts."""
        with self._lock:
            if self.precision != "auto":
                return self._load(self.precision)
            if "int8" not in _supported_compute_types():
                return self._load("float32")
            if count > 1:
                return self._load("int8")
            if is_beam not in self.faster_precision:
                self.faster_precision[is_beam] = self._pick_faster(TRIAL_BEAM if is_beam else 1)
                if "float32" not in self.faster_precision.values():
                    self._loaded.pop("float32", None)  # four times as large
            return self._load(self.faster_precision[is_beam])

    def _pick_faster(self, beam_size: int) -> str:
        """Time both precisions alternately on a sentence of tokens from all over the vocabulary."""
        step = max(1, (len(self._pieces) - END_ID - 1) // TRIAL_TOKENS)
        src = [list(self._pieces[END_ID + 1 :: step][:TRIAL_TOKENS])]
        seconds: dict[str, list[float]] = {"int8": [], "float32": []}
        for round_index in range(1 + TIMING_ROUNDS):
            for kind, timings in seconds.items():
                start = perf_counter()
                self._load(kind).translate_batch(
                    src,
                    beam_size=beam_size,
                    min_decoding_length=TRIAL_TOKENS,
                    max_decoding_length=TRIAL_TOKENS,
                )
                if round_index:  # the first round warms up
                    timings.append(perf_counter() - start)
        return min(seconds, key=lambda kind: min(seconds[kind]))

    def _load(self, kind: str) -> Any:
        if kind not in self._loaded:
            self._loaded[kind] = self._open(kind, 1, num_compute_threads())
        return self._loaded[kind]

    def _open(self, kind: str, num_replicas: int, num_threads: int) -> Any:
        try:
            with keep_num_threads():
                return import_ctranslate2().Translator(
                    str(self.folder),
                    device="cpu",
                    compute_type=self._stored_compute_type() if kind == "stored" else kind,
                    inter_threads=num_replicas,
                    intra_threads=num_threads,
                )
        except (RuntimeError, ValueError) as error:
            reason = message(
                "CTranslate2 cannot open {folder} in {kind}: {error}",
                folder=self.folder,
                kind=kind,
                error=error,
            )
            hint = message(
                "delete that folder, it is created again; or {native}", native=USE_NATIVE_HINT
            )
            raise AttendoError(reason, hint=hint) from error

    def _stored_compute_type(self) -> str:
        supported = _supported_compute_types()
        return next(kind for kind in COMPUTE_TYPES[self.quantization] if kind in supported)


@contextmanager
def keep_num_threads() -> Iterator[None]:
    """Restore the number of threads of PyTorch: CTranslate2 changes it when it opens a model."""
    num_threads = num_compute_threads()
    try:
        yield
    finally:
        if (torch := sys.modules.get("torch")) is not None:
            torch.set_num_threads(num_threads)


def check_precision(precision: str) -> None:
    """Raise an error for an unknown precision."""
    if precision not in get_args(Precision):
        hint = suggest(precision, get_args(Precision))
        raise ConfigError(message("no precision '{precision}'", precision=precision), hint=hint)


def _supported_compute_types() -> set[str]:
    """Return the compute types that CTranslate2 supports on this CPU."""
    return set(import_ctranslate2().get_supported_compute_types("cpu"))
