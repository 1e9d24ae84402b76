"""One hypothesis a row: greedy search, and sampling.

Each step takes one token: the likeliest, or one drawn by chance (`attendo.decoding.sampling`).
Everything stays on the model's device until the end; rows that are done leave the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import torch

from attendo.decoding.hypothesis import Found, cut_said, length_penalty
from attendo.decoding.options import DecodingOptions, Demands, Symbols
from attendo.decoding.rules import Rules, limits_of, refuse_nan
from attendo.decoding.sampling import Dice
from attendo.decoding.trace import BEAM_FULL, NOT_DRAWN, STOP_LIMIT, Candidate, Step, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.decoding.trace import Fate

StateT = TypeVar("StateT")
NUM_SHOWN = 5
"""Candidates a step that a trace shows."""


def greedy(
    model: Seq2SeqModel[StateT],
    src_ids: Tensor,
    symbols: Symbols,
    options: DecodingOptions | None = None,
    demands: Sequence[Demands] | None = None,
    *,
    trace: bool = False,
    shrink: bool = True,
) -> list[Found]:
    """Take the most likely token at every step, for each row of a padded batch (B, S)."""
    chosen = (options or DecodingOptions()).replace(beam_size=1, n_best=1, num_groups=1)
    return Walk(model, src_ids, symbols, chosen, demands, num_draws=None).run(
        trace=trace, shrink=shrink
    )


def sample(
    model: Seq2SeqModel[StateT],
    src_ids: Tensor,
    symbols: Symbols,
    options: DecodingOptions,
    demands: Sequence[Demands] | None = None,
    *,
    trace: bool = False,
    shrink: bool = True,
) -> list[Found]:
    """Draw `n_best` translations of each row of a padded batch (B, S), in the order drawn."""
    walk = Walk(model, src_ids, symbols, options, demands, num_draws=options.n_best)
    return walk.run(trace=trace, shrink=shrink)


class Walk:
    """A batch on its way, one token a row and step."""

    def __init__(
        self,
        model: Seq2SeqModel[StateT],
        src_ids: Tensor,
        symbols: Symbols,
        options: DecodingOptions,
        demands: Sequence[Demands] | None,
        *,
        num_draws: int | None,
    ) -> None:
        self.model, self.src_ids, self.symbols, self.options = model, src_ids, symbols, options
        device = src_ids.device
        wishes = list(demands or [Demands()] * src_ids.size(0))
        self.rules = Rules(options, symbols, wishes, device)
        self.num_draws = num_draws or 1
        limits = limits_of(src_ids, options, symbols, wishes)
        self.limits = [limit for limit in limits for _ in range(self.num_draws)]
        sentences = torch.arange(src_ids.size(0), device=device)
        self.sentences = sentences.repeat_interleave(self.num_draws)  # (N,)
        self.dice = Dice(src_ids, symbols, options, self.limits) if num_draws else None
        shape = (len(self.limits), max(self.limits, default=0))
        self.said = torch.full(shape, symbols.end_id, device=device)  # (N, T)
        self.log_probs = torch.zeros(shape, device=device)  # (N, T)
        self.traces: list[Trace] | None = None

    @torch.inference_mode()
    def run(self, *, trace: bool = False, shrink: bool = True) -> list[Found]:
        """Go to the end of every row."""
        if trace:
            self._open_traces()
        limits = torch.tensor(self.limits, device=self.said.device)
        state = self.model.start(self.model.encode(self.src_ids))
        if self.num_draws > 1:
            state = self.model.reorder(state, self.sentences)
        rows = torch.arange(len(self.limits), device=self.said.device)  # those that still go on
        is_done = torch.zeros_like(rows, dtype=torch.bool)
        last = torch.full_like(rows, self.symbols.start_id)
        for position in range(self.said.size(1)):
            logits, state = self.model.step(last, state)
            ids = self.said[rows, :position] if self.rules.needs_ids else None
            log_probs = logits.float().log_softmax(-1)
            ruled = self.rules(log_probs, position, self.sentences[rows], ids)
            last = ruled.argmax(-1) if self.dice is None else self.dice(ruled, rows, position)
            last = last.masked_fill(is_done, self.symbols.end_id)
            self._take(rows, is_done, last, ruled, position)
            is_done = is_done | last.eq(self.symbols.end_id) | limits[rows].le(position + 1)
            stay = (~is_done).nonzero().squeeze(1)
            if not len(stay):
                break
            if shrink and len(stay) < len(rows):
                state = self.model.reorder(state, stay)
                rows, last, is_done = rows[stay], last[stay], is_done[stay]
        return self._results()

    def _take(
        self, rows: Tensor, is_done: Tensor, tokens: Tensor, ruled: Tensor, position: int
    ) -> None:
        self.said[rows, position] = tokens
        self.log_probs[rows, position] = ruled.gather(1, tokens[:, None]).squeeze(1)
        if self.traces is not None:
            alive = ~is_done & (rows % self.num_draws == 0)  # of several draws the first is told
            self._record(self.traces, rows[alive], tokens[alive], ruled[alive], position)

    def _open_traces(self) -> None:
        settings = (self.options.alpha, self.options.length_norm, 1)
        method = "greedy" if self.dice is None else "sampling"
        end_id = self.symbols.end_id
        self.traces = [Trace(method, 1, *settings, limit, end_id) for limit in self.limits]

    def _record(
        self, traces: list[Trace], rows: Tensor, tokens: Tensor, ruled: Tensor, position: int
    ) -> None:
        best = ruled.topk(min(NUM_SHOWN, ruled.size(1))).indices
        shown = torch.cat([best, tokens[:, None]], dim=1)  # what was drawn may not be among them
        figures = ruled.gather(1, shown).tolist()
        before = self.log_probs[rows, :position].double().sum(1).tolist()
        penalty = self._penalty(position + 1)
        for place, row in enumerate(rows.tolist()):
            chosen = int(tokens[place])
            own = dict(zip(shown[place].tolist(), figures[place], strict=True))
            candidates = []
            for token, log_prob in own.items():
                if log_prob > float("-inf"):
                    total = before[place] + log_prob
                    numbers = (log_prob, total, total / penalty)
                    fate = self._fate(token, chosen)
                    candidates.append(Candidate(token, 0, fate[0], *numbers, *fate[1:]))
            traces[row].steps.append(Step(0, position, candidates))

    def _fate(self, token: int, chosen: int) -> tuple[int | None, Fate, str]:
        if token != chosen:
            return None, "pruned", BEAM_FULL if self.dice is None else NOT_DRAWN
        return (None, "finished", "") if token == self.symbols.end_id else (0, "kept", "")

    def _results(self) -> list[Found]:
        refuse_nan(bool(self.log_probs.isnan().any()))
        rows = zip(self.said.tolist(), self.log_probs.double().tolist(), self.limits, strict=True)
        end_id = self.symbols.end_id
        found = [cut_said(*row, end_id, self.options) for row in rows]
        results = []
        for first in range(0, len(found), self.num_draws):
            trace = self.traces[first] if self.traces is not None else None
            if trace:
                trace.hypotheses = found[first : first + 1]
                trace.stopped = trace.stopped if found[first].is_finished else STOP_LIMIT
            results.append(Found(found[first : first + self.num_draws], trace))
        return results

    def _penalty(self, length: int) -> float:
        return length_penalty(length, self.options.alpha, self.options.length_norm)
