"""The ONNX backend: graphs run by ONNX Runtime, searched in NumPy. It needs no PyTorch.

Options that the NumPy search does not support are errors. Scores are computed from the same graphs,
so that confidence is calibrated as with PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.checkpoints import checkpoint
from attendo.core.device import num_compute_threads
from attendo.core.errors import ConfigError, InputError
from attendo.core.message import join_messages, message
from attendo.decoding.limits import target_limits
from attendo.decoding.numpy_search import NumpySearch, log_softmax
from attendo.decoding.options import SpecialIds
from attendo.translator.backends.base import ConvertedBackend, LengthBatches
from attendo.translator.backends.onnx.session import (
    DECODER_FILE,
    ENCODER_FILE,
    REQUIRED_KEYS,
    open_session,
    read_info,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from attendo.decoding.hypothesis import SearchResult
    from attendo.decoding.options import DecodingOptions
    from attendo.translator.backends.base import Progress, TranslationItem
    from attendo.translator.constraints import ConstraintRequest

    Array = NDArray[Any]
    Feeds = dict[str, Array]

SCORED_TOKENS = 1024
"""Tokens in a batch that is scored: its logits need memory for each position and word."""


class OnnxState(NamedTuple):
    """The state of a search: what the encoder returned, and the keys and values so far."""

    memory: Feeds
    past: Feeds
    sources: Array
    """The source of each row."""

    @property
    def length(self) -> int:
        """The number of target positions that were fed."""
        return int(next(iter(self.past.values())).shape[2])


class OnnxModel:
    """The two graphs: the encoder runs once per batch, the decoder once per token.

    Args:
        folder: written by `attendo export --to onnx`.
        info: its `onnx.json`.
        num_threads: of each operator.

    """

    def __init__(self, folder: Path, info: dict[str, Any], *, num_threads: int) -> None:
        *symbols, self.max_positions = (info[name] for name in REQUIRED_KEYS)
        self.special_ids = SpecialIds(*symbols)
        self._encoder, self._decoder = (
            open_session(folder / name, num_threads=num_threads)
            for name in (ENCODER_FILE, DECODER_FILE)
        )
        self._memory_names = [one.name for one in self._encoder.get_outputs()]
        self._output_names = [
            one.name
            for one in self._decoder.get_outputs()
            if one.name == "logits" or one.name.startswith(("key_", "value_"))
        ]
        known = {one.name for one in self._decoder.get_inputs()}
        self._memory_names = [name for name in self._memory_names if name in known]
        self._past = {
            one.name: (one.shape[1], one.shape[3])
            for one in self._decoder.get_inputs()
            if one.name.startswith("past_")
        }

    def start(self, sources: Sequence[Sequence[int]]) -> OnnxState:
        """Encode the sources (B, S); return the state with an empty cache."""
        src_ids = self._pad(sources)
        self._check_length(src_ids.shape[1])
        values = self._encoder.run(self._memory_names, {"src_ids": src_ids})
        past = {
            name: np.zeros((len(sources), heads, 0, size), dtype=np.float32)
            for name, (heads, size) in self._past.items()
        }
        memory = dict(zip(self._memory_names, values, strict=True))
        return OnnxState(memory, past, np.arange(len(sources)))

    def step(self, ids: Array, state: OnnxState) -> tuple[Array, OnnxState]:
        """Feed one token per row, ids (N,); return the next logits (N, V) and the new state."""
        logits, state = self.decode(ids[:, None], state)
        return logits[:, 0], state

    def decode(self, ids: Array, state: OnnxState) -> tuple[Array, OnnxState]:
        """Feed ids (N, T); return the logits (N, T, V) and the new state."""
        self._check_length(state.length + ids.shape[1])
        feeds = {"ids": ids.astype(np.int64), **state.memory, **state.past}
        values = self._decoder.run(self._output_names, feeds)
        outputs = dict(zip(self._output_names, values, strict=True))
        logits: Array = outputs.pop("logits")
        return logits, state._replace(past={f"past_{name}": one for name, one in outputs.items()})

    def reorder(self, state: OnnxState, index: Array) -> OnnxState:
        """Return a state whose row i is row `index[i]` of the given one."""
        past = {name: values[index] for name, values in state.past.items()}
        sources = state.sources[index]
        if np.array_equal(sources, state.sources):  # as in most steps: the memory is large
            return OnnxState(state.memory, past, sources)
        memory = {name: values[index] for name, values in state.memory.items()}
        return OnnxState(memory, past, sources)

    def score(
        self, sources: Sequence[list[int]], targets: Sequence[list[int]], temperature: float
    ) -> list[list[float]]:
        """Return the log-probability of each id of each target, which ends with the end symbol."""
        fed = self._pad([[self.special_ids.start_id, *row[:-1]] for row in targets])
        logits, _ = self.decode(fed, self.start(sources))
        log_probs = log_softmax(logits / temperature)
        return [
            rows[np.arange(len(ids)), ids].astype(float).tolist()
            for rows, ids in zip(log_probs, targets, strict=True)
        ]

    def _check_length(self, length: int) -> None:
        if self.max_positions is not None and length > self.max_positions:
            reason = message(
                "a sequence of {length} positions is longer than the {max_positions} learned ones",
                length=length,
                max_positions=self.max_positions,
            )
            raise InputError(reason, hint="split it, or set max_length for the translation")

    def _pad(self, rows: Sequence[Sequence[int]]) -> Array:
        longest = max(map(len, rows))
        pad_id = self.special_ids.pad_id
        padded = [[*row, *[pad_id] * (longest - len(row))] for row in rows]
        return np.array(padded, dtype=np.int64)


class OnnxBackend(ConvertedBackend):
    """Decodes with an exported folder.

    Args:
        folder: written by `attendo export --to onnx`.

    """

    name: str = "onnx"

    def __init__(self, folder: Path) -> None:
        super().__init__("ONNX Runtime", None)
        self.folder, self.info = folder, read_info(folder)
        self.onnx = OnnxModel(folder, self.info, num_threads=num_compute_threads())
        files = [path for path in folder.iterdir() if ".onnx" in path.name and path.is_file()]
        self._num_bytes = sum(path.stat().st_size for path in files)

    @property
    def num_parameters(self) -> int:
        """The number of weights; about, for an export that does not record it."""
        return int(self.info.get("num_parameters") or self._num_bytes // 4)

    @property
    def num_bytes(self) -> int:
        """The size of the graphs, in bytes."""
        return self._num_bytes

    def check_supported(
        self, options: DecodingOptions, request: ConstraintRequest | None, *, trace: bool
    ) -> None:
        """Raise one error with every option that the NumPy search does not support."""
        has_phrases = request is not None and bool(request.required or request.forbidden)
        has_glossary = request is not None and request.glossary is not None
        checks = (
            (message("trace: its search is not recorded"), trace),
            (message("required or forbidden phrases"), has_phrases),
            (message("glossary"), has_glossary),
            (
                message("num_groups = {count}: its beam has no groups", count=options.num_groups),
                options.num_groups > 1,
            ),
            (
                message("unk = 'copy': it does not return attention weights"),
                options.unk == "copy",
            ),
        )
        reasons = [reason for reason, applies in checks if applies]
        if reasons:
            listing = join_messages("\n  - ", ["", *reasons])
            reason = message("engine 'onnx' does not support this{listing}", listing=listing)
            raise ConfigError(reason, hint=self.native_hint, reasons=reasons)

    def search(
        self,
        items: Sequence[TranslationItem],
        options: DecodingOptions,
        *,
        trace: bool = False,  # noqa: ARG002 - check_supported rejects it
        progress: Progress | None = None,
    ) -> list[SearchResult]:
        """Return the result of each item, in order."""
        num_rows = options.n_best if options.do_sample else options.beam_size
        sizes = {index: len(item.ids) * num_rows for index, item in enumerate(items)}
        results: dict[int, SearchResult] = {}
        for batch in LengthBatches(sizes, self.batch_tokens):
            chosen = [items[index] for index in batch]
            lengths = [len(item.ids) for item in chosen]
            limits = target_limits(lengths, options, [item.constraints for item in chosen])
            search = NumpySearch(
                self.onnx,
                [item.ids for item in chosen],
                self.onnx.special_ids,
                options,
                limits,
                [item.prefix for item in chosen],
            )
            results |= dict(zip(batch, search.run(), strict=True))
            if progress is not None:
                progress(len(results), len(items))
        return [results[index] for index in range(len(items))]

    def score(
        self, src: Sequence[list[int]], tgt: Sequence[list[int]], *, temperature: float = 1.0
    ) -> list[list[float]]:
        """Return the log-probability of each id of each target, and of the end after it."""
        end_id = self.onnx.special_ids.end_id
        sizes = {i: max(len(src[i]), len(tgt[i]) + 1) for i in range(len(src))}
        scored: dict[int, list[float]] = {}
        for batch in LengthBatches(sizes, SCORED_TOKENS):
            checkpoint()
            found = self.onnx.score(
                [src[i] for i in batch], [[*tgt[i], end_id] for i in batch], temperature
            )
            scored |= dict(zip(batch, found, strict=True))
        return [scored[index] for index in range(len(src))]
