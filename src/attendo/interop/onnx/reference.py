"""An ONNX folder run by ONNX Runtime, as the reference of an export's parity test.

It implements the part of `Seq2SeqModel` that a search needs, so that our beam search can run on
the logits and key-value cache of ONNX Runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.search import search
from attendo.translator.backends.onnx.session import (
    DECODER_FILE,
    ENCODER_FILE,
    REQUIRED_KEYS,
    open_session,
    read_info,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel

    Feeds = dict[str, NDArray[Any]]

BATCH_SIZE = 16
"""Sentences per batch."""


class OnnxReference:
    """Takes and returns ids and logits; made by `attendo.interop.onnx.export.load_reference`."""

    def __init__(self, folder: Path) -> None:
        info = read_info(folder)
        *symbols, self.max_positions = (info[name] for name in REQUIRED_KEYS)
        self.special_ids = SpecialIds(*symbols)
        self._encoder, self._decoder = (
            open_session(folder / name) for name in (ENCODER_FILE, DECODER_FILE)
        )

    def logits(self, src: list[list[int]], tgt: list[list[int]]) -> list[Tensor]:
        """Return the teacher-forced logits (T, V) of each target: one row per token of `tgt`."""
        results: list[Tensor] = []
        for sources, targets in _batches(src, tgt):
            decoder_inputs = [[self.special_ids.start_id, *row[:-1]] for row in targets]
            state = self.start(self.encode(self._pad(sources)))
            logits, _ = self._run(self._pad(decoder_inputs), state)
            results += [rows[: len(row)] for rows, row in zip(logits, targets, strict=True)]
        return results

    def translate(self, src: list[list[int]], beam_size: int) -> list[list[int]]:
        """Return the best translation of each source, with the end symbol if it has finished."""
        options = DecodingOptions(beam_size=beam_size)
        model = cast("Seq2SeqModel[Any]", self)  # a search uses neither forward nor explain
        outputs: list[list[int]] = []
        for (sources,) in _batches(src):
            for one in search(model, self._pad(sources), self.special_ids, options):
                best = one.hypotheses[0]
                outputs.append(
                    [*best.ids, self.special_ids.end_id] if best.is_finished else best.ids
                )
        return outputs

    def encode(self, src_ids: Tensor) -> Feeds:
        """Encode the source (B, S) once."""
        self._check_length(src_ids.size(1))
        names = [value.name for value in self._encoder.get_outputs()]
        values = self._encoder.run(names, {"src_ids": src_ids.numpy()})
        return dict(zip(names, values, strict=True))

    def start(self, memory: Feeds) -> Feeds:
        """Return the state before the first target position: an empty cache."""
        rows = len(memory["src_mask"])
        past = {
            value.name: np.zeros((rows, value.shape[1], 0, value.shape[3]), dtype=np.float32)
            for value in self._decoder.get_inputs()
            if value.name.startswith("past_")
        }
        return memory | past

    def step(self, ids: Tensor, state: Feeds) -> tuple[Tensor, Feeds]:
        """Decode one target position, ids (N,); return the next logits (N, V) and the new state."""
        logits, state = self._run(ids[:, None], state)
        return logits[:, 0], state

    def reorder(self, state: Feeds, index: Tensor) -> Feeds:
        """Return a state whose row i is row `index[i]` of the old one."""
        rows = index.numpy()
        return {name: values[rows] for name, values in state.items()}

    def _run(self, ids: Tensor, state: Feeds) -> tuple[Tensor, Feeds]:
        self._check_length(state["past_key_0"].shape[2] + ids.size(1))
        names = [value.name for value in self._decoder.get_outputs()]
        values = self._decoder.run(names, {"ids": ids.numpy(), **state})
        outputs = dict(zip(names, values, strict=True))
        logits = torch.from_numpy(outputs.pop("logits"))  # (N, T, V)
        return logits, state | {f"past_{name}": cached for name, cached in outputs.items()}

    def _check_length(self, length: int) -> None:
        max_positions = self.max_positions
        if max_positions is not None and length > max_positions:
            reason = message(
                "a sequence of {length} positions is longer than the {max_positions} learned ones",
                length=length,
                max_positions=max_positions,
            )
            raise InputError(reason, hint="split it, or set max_length for the translation")

    def _pad(self, rows: Sequence[Sequence[int]]) -> Tensor:
        longest = max(map(len, rows))
        pad_id = self.special_ids.pad_id
        return torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows])


def _batches(*columns: list[list[int]]) -> Iterator[tuple[list[list[int]], ...]]:
    for first in range(0, len(columns[0]), BATCH_SIZE):
        yield tuple(column[first : first + BATCH_SIZE] for column in columns)
