"""The part of a search's state that greedy and beam search share.

All tensors are preallocated and keep their shapes and addresses, and a step never synchronizes with
the host. A step can therefore be captured as a CUDA graph (`attendo.decoding.static.cuda_graphs`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import torch

from attendo.decoding.limits import suppressed_ids
from attendo.kernels.top_k import top_k_log_probs

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from torch import Tensor

    from attendo.core.protocols import StaticDecoderProtocol
    from attendo.decoding.hypothesis import SearchResult
    from attendo.decoding.options import DecodingOptions, SpecialIds
    from attendo.decoding.static.cuda_graphs import CudaGraphs

MAX_ROWS_PER_CHUNK = {"cpu": 64, "cuda": 4096}
"""Rows whose log-probabilities are computed at once; more rows would not fit a CPU's caches."""


class SearchShape(NamedTuple):
    """The sizes of a search's buffers."""

    num_sentences: int
    width: int
    src_length: int
    max_length: int


class StaticState(ABC):
    """The buffers of one search: the decoder, what each step chose, and who is done."""

    row_buffers: ClassVar[tuple[str, ...]]
    """Names of the tensors (B, ...)."""
    step_buffers: ClassVar[tuple[str, ...]]
    """Names of the tensors (T, B, ...), which each step fills at its position."""

    def __init__(
        self, decoder: StaticDecoderProtocol, special_ids: SpecialIds, options: DecodingOptions
    ) -> None:
        self.decoder, self.special_ids, self.options = decoder, special_ids, options
        self.shape = SearchShape(
            decoder.num_sentences, decoder.width, decoder.src_length, decoder.max_length
        )
        self.device = decoder.position.device
        self.graphs: CudaGraphs | None = None
        """Captures and replays the steps, on a GPU."""
        self.is_done = torch.zeros(decoder.num_sentences, dtype=torch.bool, device=self.device)
        """Sentences (B,) whose search is over."""
        suppressed = suppressed_ids(special_ids, options)
        self.suppressed = torch.tensor(suppressed, dtype=torch.long, device=self.device)
        self.suppressed_or_end = torch.tensor(
            [*suppressed, special_ids.end_id], dtype=torch.long, device=self.device
        )
        self.max_rows = MAX_ROWS_PER_CHUNK[self.device.type]

    @abstractmethod
    def load(self, src_ids: Tensor, limits: Sequence[int], options: DecodingOptions) -> None:
        """Store the sources and settings of a search; unused rows stay idle."""

    @abstractmethod
    def start(self) -> None:
        """Encode the stored sources and reset the hypotheses."""

    @abstractmethod
    def step(self, *, window: int, allow_end: bool) -> None:
        """Append one token to each hypothesis, attending to `window` positions."""

    @abstractmethod
    def results(self, rows: Sequence[int], num_steps: int) -> list[SearchResult]:
        """Return the results of the sentences `rows` after `num_steps` steps."""

    def prepare(self, key: Hashable, work: Callable[[], None]) -> Callable[[], None]:
        """Return what does `work`: the function itself, or the graph captured for `key`."""
        return work if self.graphs is None else self.graphs.prepare(key, work)

    def resume_from(self, other: Self, rows: Tensor, *, num_steps: int) -> None:
        """Continue the sentences `rows` (B,) of another state after `num_steps` steps."""
        self.decoder.copy_rows_from(other.decoder, rows, num_steps=num_steps)
        self.options = other.options
        for name in self.row_buffers:
            torch.index_select(getattr(other, name), 0, rows, out=getattr(self, name))
        for name in self.step_buffers:
            steps = getattr(other, name)[:num_steps]
            getattr(self, name)[:num_steps] = steps.index_select(1, rows)

    def store(self, buffer: Tensor, values: Tensor) -> None:
        """Write values (B, ...) into a buffer (T, B, ...) at the position of the step."""
        buffer.index_copy_(0, self.decoder.position, values[None])

    def top_tokens(self, x: Tensor, num: int, *, allow_end: bool) -> tuple[Tensor, Tensor]:
        """Return the `num` best log-probabilities after x (N, D), float32, and their tokens.

        The rows are processed in chunks, so that the logits of a large batch need not fit memory.
        """
        return self.top_unsuppressed(
            x, num, self.suppressed if allow_end else self.suppressed_or_end
        )

    def top_unsuppressed(self, x: Tensor, num: int, suppressed: Tensor) -> tuple[Tensor, Tensor]:
        """Return the `num` best log-probabilities after x (N, D), and their tokens."""
        chunks = [
            top_k_log_probs(self.decoder.project(rows), num, suppressed)
            for rows in x.split(self.max_rows)
        ]
        if len(chunks) == 1:
            return chunks[0]
        log_probs, tokens = zip(*chunks, strict=True)
        return torch.cat(log_probs), torch.cat(tokens)  # (N, num) each
