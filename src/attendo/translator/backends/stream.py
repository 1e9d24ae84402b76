"""Continuous decoding of long inputs: sentences join a search as others leave it.

On a GPU all steps have a few fixed shapes, each captured once as a CUDA graph, and no sentence
waits for the longest of its batch. On a CPU batches take the same time, and are used instead.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from attendo.core.protocols import SupportsSlotDecoding
from attendo.decoding.static.cuda_graphs import GraphCaptures

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from attendo.decoding.inflight.decoder import InflightDecoder
    from attendo.decoding.options import DecodingOptions
    from attendo.translator.backends.pytorch import PyTorchBackend

STREAM_DEVICES = {"cuda"}
"""Devices on which continuous decoding is faster than batches."""
STREAM_ROWS = 2048
"""Hypotheses that are searched at a time."""
TYPICAL_LENGTH = 32
"""Source tokens per sentence by which a limit of batch tokens becomes a number of slots."""


@dataclass
class StreamDecoder:
    """A decoder with its graphs, kept with the model; one stream at a time uses it."""

    lock: Lock = field(default_factory=Lock)
    decoder: InflightDecoder | None = None


@contextmanager
def open_stream(
    backend: PyTorchBackend, options: DecodingOptions, max_src_length: int
) -> Iterator[InflightDecoder | None]:
    """Yield a decoder that no other thread uses; None where batches are used instead.

    Args:
        backend: the model; it is in evaluation mode while the decoder is in use.
        options: of all sentences.
        max_src_length: of any sentence, with its end symbol.

    """
    model = backend.model
    if backend.device.type not in STREAM_DEVICES or not isinstance(model, SupportsSlotDecoding):
        yield None
        return
    num_slots = max(1, STREAM_ROWS // options.beam_size)
    if backend.max_batch_tokens is not None:
        limit = backend.max_batch_tokens // (options.beam_size * TYPICAL_LENGTH)
        num_slots = max(1, min(num_slots, limit))
    key: Hashable = ("stream", options.beam_size, num_slots, max_src_length, backend.is_exact)
    kept: StreamDecoder = model.decoding_cache.setdefault(key, StreamDecoder())
    if not kept.lock.acquire(blocking=False):
        yield None
        return
    try:
        with backend.eval_mode():
            decoder = kept.decoder
            if decoder is None or not decoder.weights_unchanged():
                decoder = kept.decoder = backend.make_inflight(
                    widths=[options.beam_size],
                    max_src_length=max_src_length,
                    num_slots=num_slots,
                    captures=GraphCaptures(),
                )
            else:
                decoder.read_weights()
            if decoder is None or not decoder.supports(options):
                yield None
                return
            try:
                yield decoder
            finally:
                decoder.clear()
    finally:
        kept.lock.release()
