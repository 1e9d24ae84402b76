"""Greedy search in place. It finds what `attendo.decoding.walk.greedy` finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.decoding.desk import NextToken
from attendo.decoding.hypothesis import Found, cut_said
from attendo.decoding.rules import refuse_nan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.decoding.fixed_steps import FixedSteps
    from attendo.decoding.options import DecodingOptions, Symbols


class GreedyDesk:
    """One hypothesis a sentence. After its end it goes on to talk, and nobody listens."""

    def __init__(self, steps: FixedSteps, symbols: Symbols, options: DecodingOptions) -> None:
        self.steps, self.symbols, self.options = steps, symbols, options
        self.next_token = NextToken(steps, symbols, options)
        self.limits: list[int] = []
        device, shape = steps.position.device, (steps.max_length, steps.num_sentences)
        self.last = torch.zeros(shape[1], dtype=torch.long, device=device)  # (B,)
        self.is_done = torch.zeros(shape[1], dtype=torch.bool, device=device)
        self.said = torch.zeros(shape, dtype=torch.long, device=device)  # (T, B)
        self.log_probs = torch.zeros(shape, device=device)  # (T, B)

    def put(self, src_ids: Tensor, limits: Sequence[int], options: DecodingOptions) -> None:
        """Lay down what this search is told."""
        self.steps.put(src_ids)
        self.limits, self.options = [*limits], options

    def start(self) -> None:
        """Begin with what was put down."""
        self.steps.start()
        self.last.fill_(self.symbols.start_id)
        self.is_done.zero_()

    def advance(self, *, window: int, may_end: bool) -> None:
        """Say the likeliest token."""
        x = self.steps.step(self.last, window=window)
        log_probs, tokens = self.next_token(x, 1, may_end=may_end)
        self.last.copy_(tokens.squeeze(1))
        self.said.index_copy_(0, self.steps.position, tokens.t())
        self.log_probs.index_copy_(0, self.steps.position, log_probs.t())
        self.is_done.logical_or_(self.last.eq(self.symbols.end_id))
        self.steps.position.add_(1)

    def take(self, other: GreedyDesk, rows: Tensor, *, num_steps: int) -> None:
        """Go on with some sentences of another desk."""
        self.steps.take(other.steps, rows, num_steps=num_steps)
        torch.index_select(other.last, 0, rows, out=self.last)
        torch.index_select(other.is_done, 0, rows, out=self.is_done)
        for mine, its in ((self.said, other.said), (self.log_probs, other.log_probs)):
            mine[:num_steps] = its[:num_steps].index_select(1, rows)
        self.limits, self.options = [other.limits[row] for row in rows.tolist()], other.options

    def harvest(self, rows: Sequence[int], num_steps: int) -> list[Found]:
        """Tell what was found for `rows` in so many steps."""
        said = self.said[:num_steps].t().tolist()
        figures = self.log_probs[:num_steps].t()
        refuse_nan(bool(figures.isnan().any()))
        log_probs = figures.tolist()
        end_id, options = self.symbols.end_id, self.options
        return [
            Found([cut_said(said[row], log_probs[row], self.limits[row], end_id, options)])
            for row in rows
        ]
