"""Where a batch is worked out in place: every tensor of a search keeps its shape and its address.

A desk's `advance` is one step of the model and the choice after it, without a word to the host. So
it can be recorded once, as a graph of kernels, and played back (`attendo.decoding.graphs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import torch

from attendo.decoding.best import find_best_tokens
from attendo.decoding.rules import find_unwanted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.decoding.fixed_steps import FixedSteps
    from attendo.decoding.hypothesis import Found
    from attendo.decoding.options import DecodingOptions, Symbols

ROWS_AT_ONCE = {"cpu": 64, "cuda": 4096}
"""Rows whose log-probabilities are there at a time; those of more leave a CPU's caches."""


class Sizes(NamedTuple):
    """The shape of a desk."""

    num_sentences: int
    width: int
    src_length: int
    max_length: int


class Desk(Protocol):
    """A batch on its way."""

    steps: FixedSteps
    is_done: Tensor
    """Sentences (B,) whose search is over."""

    def put(self, src_ids: Tensor, limits: Sequence[int], options: DecodingOptions) -> None:
        """Lay down what this search is told; rows that are left over stay idle."""
        ...

    def start(self) -> None:
        """Begin with what was put down."""
        ...

    def advance(self, *, window: int, may_end: bool) -> None:
        """Say one token more, looking back at `window` positions; the end only if `may_end`."""
        ...

    def take(self, other: Self, rows: Tensor, *, num_steps: int) -> None:
        """Go on with the sentences `rows` (B,) of another desk, after `num_steps` steps."""
        ...

    def harvest(self, rows: Sequence[int], num_steps: int) -> list[Found]:
        """Tell what was found for `rows` in so many steps."""
        ...


class NextToken:
    """What may be said next, and how likely it is."""

    def __init__(self, steps: FixedSteps, symbols: Symbols, options: DecodingOptions) -> None:
        self.steps, device = steps, steps.position.device
        unwanted = find_unwanted(symbols, options)
        self.unwanted = torch.tensor(unwanted, dtype=torch.long, device=device)
        never = [*unwanted, symbols.end_id]
        self.unwanted_or_end = torch.tensor(never, dtype=torch.long, device=device)
        self.num_rows = ROWS_AT_ONCE[device.type]

    def __call__(self, x: Tensor, num: int, *, may_end: bool) -> tuple[Tensor, Tensor]:
        """Give the `num` best log-probabilities after x (N, D), float32, and their tokens (N, num).

        Some rows at a time, so that those of a whole batch need not be there at once.
        """
        never = self.unwanted if may_end else self.unwanted_or_end
        parts = [
            find_best_tokens(self.steps.project(rows), num, never)
            for rows in x.split(self.num_rows)
        ]
        if len(parts) == 1:
            return parts[0]
        log_probs, tokens = zip(*parts, strict=True)
        return torch.cat(log_probs), torch.cat(tokens)
