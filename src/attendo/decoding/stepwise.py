"""Greedy search of one sentence, told token by token while it goes on.

`attendo.decoding.walk.greedy` gives the same at once, for many sentences. Here whoever asks takes
the next token when he wants it, and may stop at any.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.core.errors import ConfigError
from attendo.decoding.hypothesis import Hypothesis, length_penalty
from attendo.decoding.options import DecodingOptions, Demands, Symbols
from attendo.decoding.rules import Rules, limits_of, refuse_nan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel


class Said(NamedTuple):
    """One token as it comes."""

    id: int
    probability: float
    """At the temperature that was asked for."""


class Stepwise:
    """The tokens of one source sentence (1, S), the end symbol left out; iterate once.

    After the last one `result` is what `greedy` would have found.
    """

    def __init__(
        self,
        model: Seq2SeqModel[Any],
        src_ids: Tensor,
        symbols: Symbols,
        options: DecodingOptions | None = None,
        demands: Demands | None = None,
        *,
        temperature: float = 1.0,
    ) -> None:
        wishes = demands or Demands()
        chosen = options or DecodingOptions()
        if wishes.has_phrases or chosen.sample:
            reason = "phrases and sampling cannot be told token by token"
            raise ConfigError(reason, remedy="search for the whole sentence at once")
        self.model, self.src_ids, self.symbols, self.options = model, src_ids, symbols, chosen
        self.temperature = temperature
        self.rules = Rules(chosen, symbols, [wishes], src_ids.device)
        (self.limit,) = limits_of(src_ids, chosen, symbols, [wishes])
        self.ids: list[int] = []
        self.log_probs: list[float] = []
        """Of the ids, and of the end symbol last where it has come."""

    @torch.inference_mode()
    def __iter__(self) -> Iterator[Said]:
        """Take the likeliest token until the end symbol or the limit."""
        device = self.src_ids.device
        state = self.model.start(self.model.encode(self.src_ids))
        row = torch.zeros(1, dtype=torch.long, device=device)
        last = torch.full_like(row, self.symbols.start_id)
        for position in range(self.limit):
            logits, state = self.model.step(last, state)
            log_probs = logits.float().log_softmax(-1)
            said = torch.tensor([self.ids], device=device) if self.rules.needs_ids else None
            ruled = self.rules(log_probs, position, row, said)
            last = ruled.argmax(-1)
            number, log_prob = int(last), float(ruled[0, last])
            refuse_nan(math.isnan(log_prob))
            self.log_probs.append(log_prob)
            if number == self.symbols.end_id:
                return
            self.ids.append(number)
            yield Said(number, self._soften(logits, number))

    def _soften(self, logits: Tensor, number: int) -> float:
        return float((logits[0].float() / self.temperature).softmax(-1)[number])

    @property
    def result(self) -> Hypothesis:
        """Give what was found so far, whole or cut at the limit."""
        total = sum(self.log_probs)
        length = max(len(self.log_probs), 1)
        score = total / length_penalty(length, self.options.alpha, self.options.length_norm)
        is_finished = len(self.log_probs) > len(self.ids)
        return Hypothesis([*self.ids], total, score, [*self.log_probs], is_finished)
