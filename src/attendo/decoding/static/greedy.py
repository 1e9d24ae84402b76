"""Greedy search on static buffers, equal to `attendo.decoding.greedy.greedy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch

from attendo.decoding.hypothesis import SearchResult, truncate_hypothesis
from attendo.decoding.limits import check_finite
from attendo.decoding.static.state import StaticState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.core.protocols import StaticDecoderProtocol
    from attendo.decoding.options import DecodingOptions, SpecialIds


class StaticGreedy(StaticState):
    """One hypothesis per sentence. Rows keep generating after EOS; those tokens are discarded."""

    row_buffers: ClassVar[tuple[str, ...]] = ("last", "is_done")
    step_buffers = ("output_ids", "log_probs")

    def __init__(
        self, decoder: StaticDecoderProtocol, special_ids: SpecialIds, options: DecodingOptions
    ) -> None:
        super().__init__(decoder, special_ids, options)
        self.limits: list[int] = []
        shape = (decoder.max_length, decoder.num_sentences)
        self.last = torch.zeros(shape[1], dtype=torch.long, device=self.device)  # (B,)
        self.output_ids = torch.zeros(shape, dtype=torch.long, device=self.device)  # (T, B)
        self.log_probs = torch.zeros(shape, device=self.device)  # (T, B)

    def load(self, src_ids: Tensor, limits: Sequence[int], options: DecodingOptions) -> None:
        """Store the sources, the maximum lengths and the options of a search."""
        self.decoder.set_sources(src_ids)
        self.limits, self.options = [*limits], options

    def start(self) -> None:
        """Encode the sources; every hypothesis is empty."""
        self.decoder.start()
        self.last.fill_(self.special_ids.start_id)
        self.is_done.zero_()

    def step(self, *, window: int, allow_end: bool) -> None:
        """Append the most likely token to each hypothesis."""
        x = self.decoder.step(self.last, window=window)
        log_probs, tokens = self.top_tokens(x, 1, allow_end=allow_end)
        self.last.copy_(tokens.squeeze(1))
        self.store(self.output_ids, self.last)
        self.store(self.log_probs, log_probs.squeeze(1))
        self._update_done(log_probs.squeeze(1))

    def _update_done(self, _log_probs: Tensor) -> None:
        """Mark sentences that ended, and go to the next position."""
        self.is_done.logical_or_(self.last.eq(self.special_ids.end_id))
        self.decoder.position.add_(1)

    def resume_from(self, other: StaticGreedy, rows: Tensor, *, num_steps: int) -> None:
        """Continue the sentences `rows` (B,) of another state after `num_steps` steps."""
        super().resume_from(other, rows, num_steps=num_steps)
        self.limits = [other.limits[row] for row in rows.tolist()]

    def results(self, rows: Sequence[int], num_steps: int) -> list[SearchResult]:
        """Return the results of the sentences `rows` after `num_steps` steps."""
        output_ids = self.output_ids[:num_steps].t().tolist()
        step_log_probs = self.log_probs[:num_steps].t()
        check_finite(bool(step_log_probs.isnan().any()))
        log_probs = step_log_probs.tolist()
        end_id = self.special_ids.end_id
        hypotheses = [
            truncate_hypothesis(
                output_ids[row], log_probs[row], self.limits[row], end_id, self.options
            )
            for row in rows
        ]
        return [SearchResult([hypothesis]) for hypothesis in hypotheses]
