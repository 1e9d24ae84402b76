"""Greedy search of one sentence, told token by token while it goes on.

`attendo.decoding.greedy.greedy` gives the same at once, for many sentences. Here whoever asks takes
the next token when he wants it, and may stop at any.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.core.errors import ConfigError
from attendo.decoding.hypothesis import Hypothesis, length_penalty
from attendo.decoding.options import Constraints, DecodingOptions, SpecialIds
from attendo.decoding.token_filters import TokenFilter, check_finite, max_lengths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel


class TokenEvent(NamedTuple):
    """One token as it comes."""

    id: int
    probability: float
    """At the temperature that was asked for."""


class GreedyStream:
    """The tokens of one source sentence (1, S), the end symbol left out; iterate once.

    After the last one `result` is what `greedy` would have found.
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
        active_constraints = constraints or Constraints()
        active_options = options or DecodingOptions()
        if active_constraints.has_phrases or active_options.do_sample:
            reason = "phrases and sampling cannot be told token by token"
            raise ConfigError(reason, hint="search for the whole sentence at once")
        self.model, self.src_ids, self.special_ids, self.options = (
            model,
            src_ids,
            special_ids,
            active_options,
        )
        self.temperature = temperature
        self.token_filter = TokenFilter(
            active_options, special_ids, [active_constraints], src_ids.device
        )
        (self.limit,) = max_lengths(src_ids, active_options, special_ids, [active_constraints])
        self.ids: list[int] = []
        self.log_probs: list[float] = []
        """Of the ids, and of the end symbol last where it has come."""

    @torch.inference_mode()
    def __iter__(self) -> Iterator[TokenEvent]:
        """Take the likeliest token until the end symbol or the limit."""
        device = self.src_ids.device
        state = self.model.start(self.model.encode(self.src_ids))
        row = torch.zeros(1, dtype=torch.long, device=device)
        last = torch.full_like(row, self.special_ids.start_id)
        for position in range(self.limit):
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
        """Give what was found so far, whole or cut at the limit."""
        total = sum(self.log_probs)
        length = max(len(self.log_probs), 1)
        score = total / length_penalty(length, self.options.alpha, self.options.length_norm)
        is_finished = len(self.log_probs) > len(self.ids)
        return Hypothesis([*self.ids], total, score, [*self.log_probs], is_finished)
