"""Where a batch is worked out in place: every tensor of a search keeps its shape and its address.

A desk's `advance` is one step of the model and the choice after it, without a word to the host. So
it can be recorded once, as a graph of kernels, and played back (`attendo.decoding.static.graphs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import torch

from attendo.decoding.token_filters import suppressed_ids
from attendo.kernels.top_k import top_k_log_probs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.decoding.hypothesis import SearchResult
    from attendo.decoding.options import DecodingOptions, SpecialIds
    from attendo.decoding.static.contract import StaticDecoderProtocol

MAX_ROWS_PER_CHUNK = {"cpu": 64, "cuda": 4096}
"""Rows whose log-probabilities are there at a time; those of more leave a CPU's caches."""


class SearchShape(NamedTuple):
    """The shape of a desk."""

    num_sentences: int
    width: int
    src_length: int
    max_length: int


class StaticSearchState(Protocol):
    """A batch on its way."""

    decoder: StaticDecoderProtocol
    is_done: Tensor
    """Sentences (B,) whose search is over."""

    def load(self, src_ids: Tensor, limits: Sequence[int], options: DecodingOptions) -> None:
        """Lay down what this search is told; rows that are left over stay idle."""
        ...

    def start(self) -> None:
        """Begin with what was put down."""
        ...

    def step(self, *, window: int, allow_end: bool) -> None:
        """Say one token more, looking back at `window` positions; the end only if `may_end`."""
        ...

    def resume_from(self, other: Self, rows: Tensor, *, num_steps: int) -> None:
        """Go on with the sentences `rows` (B,) of another desk, after `num_steps` steps."""
        ...

    def results(self, rows: Sequence[int], num_steps: int) -> list[SearchResult]:
        """Tell what was found for `rows` in so many steps."""
        ...


class NextTokenScorer:
    """What may be said next, and how likely it is."""

    def __init__(
        self, decoder: StaticDecoderProtocol, special_ids: SpecialIds, options: DecodingOptions
    ) -> None:
        self.decoder, device = decoder, decoder.position.device
        suppressed = suppressed_ids(special_ids, options)
        self.suppressed = torch.tensor(suppressed, dtype=torch.long, device=device)
        suppressed_with_end = [*suppressed, special_ids.end_id]
        self.suppressed_or_end = torch.tensor(suppressed_with_end, dtype=torch.long, device=device)
        self.max_rows = MAX_ROWS_PER_CHUNK[device.type]

    def __call__(self, x: Tensor, num: int, *, allow_end: bool) -> tuple[Tensor, Tensor]:
        """Give the `num` best log-probabilities after x (N, D), float32, and their tokens (N, num).

        Some rows at a time, so that those of a whole batch need not be there at once.
        """
        suppressed = self.suppressed if allow_end else self.suppressed_or_end
        parts = [
            top_k_log_probs(self.decoder.project(rows), num, suppressed)
            for rows in x.split(self.max_rows)
        ]
        if len(parts) == 1:
            return parts[0]
        log_probs, tokens = zip(*parts, strict=True)
        return torch.cat(log_probs), torch.cat(tokens)
