"""Greedy search of one sentence as a generator: the caller may stop at any token.

`attendo.decoding.greedy.greedy` finds the same for whole batches.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.core.checkpoints import checkpoint
from attendo.core.errors import ConfigError
from attendo.decoding.hypothesis import Hypothesis, length_penalty
from attendo.decoding.limits import check_finite
from attendo.decoding.options import DecodingOptions
from attendo.decoding.token_filters import TokenFilter, max_lengths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.decoding.options import Constraints, SpecialIds


class TokenEvent(NamedTuple):
    """One generated token."""

    id: int
    probability: float
    """At the requested temperature."""


class GreedyStream:
    """Iterates, once, over the output tokens of one source (1, S), without the end symbol.

    After the last token `result` equals that of `greedy`.
    """

    def __init__(
        self,
        model: Seq2SeqModel[Any],
        src_ids: Tensor,
        special_ids: SpecialIds,
        options: DecodingOptions | None = None,
        constraints: Constraints | None = None,
        *,
        temperature: float = 1.0,
    ) -> None:
        self.options = options or DecodingOptions()
        if self.options.do_sample or (constraints is not None and constraints.has_phrases):
            reason = "phrases and sampling are not supported token by token"
            raise ConfigError(reason, hint="search the whole sentence at once")
        self.model, self.src_ids, self.special_ids = model, src_ids, special_ids
        self.temperature = temperature
        self.token_filter = TokenFilter(self.options, special_ids, [constraints], src_ids.device)
        (self.limit,) = max_lengths(src_ids, self.options, special_ids, [constraints])
        self.ids: list[int] = []
        self.log_probs: list[float] = []
        """Of the ids, then of the end symbol if it was generated."""

    @torch.inference_mode()
    def __iter__(self) -> Iterator[TokenEvent]:
        """Yield the most likely token until the end symbol or the limit."""
        device = self.src_ids.device
        state = self.model.start(self.model.encode(self.src_ids))
        row = torch.zeros(1, dtype=torch.long, device=device)
        last = torch.full_like(row, self.special_ids.start_id)
        for position in range(self.limit):
            checkpoint()
            logits, state = self.model.step(last, state)
            log_probs = logits.float().log_softmax(-1)
            output_ids = (
                torch.tensor([self.ids], device=device) if self.token_filter.needs_ids else None
            )
            filtered = self.token_filter(log_probs, position, row, output_ids)
            last = filtered.argmax(-1)
            token, log_prob = int(last), float(filtered[0, last])
            check_finite(math.isnan(log_prob))
            self.log_probs.append(log_prob)
            if token == self.special_ids.end_id:
                return
            self.ids.append(token)
            yield TokenEvent(token, self._token_probability(logits, token))

    def _token_probability(self, logits: Tensor, token: int) -> float:
        return float((logits[0].float() / self.temperature).softmax(-1)[token])

    @property
    def result(self) -> Hypothesis:
        """The hypothesis so far."""
        total = sum(self.log_probs)
        length = max(len(self.log_probs), 1)
        return Hypothesis(
            ids=[*self.ids],
            log_prob=total,
            score=total / length_penalty(length, self.options.alpha, self.options.length_norm),
            token_log_probs=[*self.log_probs],
            is_finished=len(self.log_probs) > len(self.ids),
        )
