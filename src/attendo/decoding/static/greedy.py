"""Greedy search in place. It finds what `attendo.decoding.greedy.greedy` finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.decoding.hypothesis import SearchResult, truncate_hypothesis
from attendo.decoding.static.state import NextTokenScorer
from attendo.decoding.token_filters import check_finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.decoding.options import DecodingOptions, SpecialIds
    from attendo.decoding.static.contract import StaticDecoderProtocol


class StaticGreedy:
    """One hypothesis a sentence. After its end it goes on to talk, and nobody listens."""

    def __init__(
        self, decoder: StaticDecoderProtocol, special_ids: SpecialIds, options: DecodingOptions
    ) -> None:
        self.decoder, self.special_ids, self.options = decoder, special_ids, options
        self.next_token = NextTokenScorer(decoder, special_ids, options)
        self.limits: list[int] = []
        device, shape = decoder.position.device, (decoder.max_length, decoder.num_sentences)
        self.last = torch.zeros(shape[1], dtype=torch.long, device=device)  # (B,)
        self.is_done = torch.zeros(shape[1], dtype=torch.bool, device=device)
        self.output_ids = torch.zeros(shape, dtype=torch.long, device=device)  # (T, B)
        self.log_probs = torch.zeros(shape, device=device)  # (T, B)

    def load(self, src_ids: Tensor, limits: Sequence[int], options: DecodingOptions) -> None:
        """Lay down what this search is told."""
        self.decoder.set_sources(src_ids)
        self.limits, self.options = [*limits], options

    def start(self) -> None:
        """Begin with what was put down."""
        self.decoder.start()
        self.last.fill_(self.special_ids.start_id)
        self.is_done.zero_()

    def step(self, *, window: int, allow_end: bool) -> None:
        """Say the likeliest token."""
        x = self.decoder.step(self.last, window=window)
        log_probs, tokens = self.next_token(x, 1, allow_end=allow_end)
        self.last.copy_(tokens.squeeze(1))
        self.output_ids.index_copy_(0, self.decoder.position, tokens.t())
        self.log_probs.index_copy_(0, self.decoder.position, log_probs.t())
        self.is_done.logical_or_(self.last.eq(self.special_ids.end_id))
        self.decoder.position.add_(1)

    def resume_from(self, other: StaticGreedy, rows: Tensor, *, num_steps: int) -> None:
        """Go on with some sentences of another desk."""
        self.decoder.copy_rows_from(other.decoder, rows, num_steps=num_steps)
        torch.index_select(other.last, 0, rows, out=self.last)
        torch.index_select(other.is_done, 0, rows, out=self.is_done)
        for buffer, other_buffer in (
            (self.output_ids, other.output_ids),
            (self.log_probs, other.log_probs),
        ):
            buffer[:num_steps] = other_buffer[:num_steps].index_select(1, rows)
        self.limits, self.options = [other.limits[row] for row in rows.tolist()], other.options

    def results(self, rows: Sequence[int], num_steps: int) -> list[SearchResult]:
        """Tell what was found for `rows` in so many steps."""
        output_ids = self.output_ids[:num_steps].t().tolist()
        step_log_probs = self.log_probs[:num_steps].t()
        check_finite(bool(step_log_probs.isnan().any()))
        log_probs = step_log_probs.tolist()
        end_id, options = self.special_ids.end_id, self.options
        return [
            SearchResult(
                [
                    truncate_hypothesis(
                        output_ids[row], log_probs[row], self.limits[row], end_id, options
                    )
                ]
            )
            for row in rows
        ]
