"""Search with one hypothesis per row: greedy search and sampling.

Each step appends one token: the most likely one, or a sampled one (`attendo.decoding.sampling`).
Everything stays on the model's device until the end; finished rows leave the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import torch

from attendo.core.checkpoints import checkpoint
from attendo.core.device import to_accurate
from attendo.decoding.hypothesis import SearchResult, length_penalty, truncate_hypothesis
from attendo.decoding.limits import check_finite
from attendo.decoding.options import DecodingOptions
from attendo.decoding.sampling import TokenSampler
from attendo.decoding.token_filters import TokenFilter, max_lengths
from attendo.decoding.trace import BEAM_FULL, NOT_SAMPLED, STOP_LIMIT, Candidate, Step, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.decoding.options import Constraints, SpecialIds
    from attendo.decoding.trace import Outcome

StateT = TypeVar("StateT")
NUM_TRACED_CANDIDATES = 5
"""Candidates per step that a trace records."""


def greedy(
    model: Seq2SeqModel[StateT],
    src_ids: Tensor,
    special_ids: SpecialIds,
    options: DecodingOptions | None = None,
    constraints: Sequence[Constraints | None] | None = None,
    *,
    trace: bool = False,
    shrink: bool = True,
) -> list[SearchResult]:
    """Append the most likely token at every step, for each row of a padded batch (B, S)."""
    greedy_options = (options or DecodingOptions()).replace(beam_size=1, n_best=1, num_groups=1)
    return TokenLoop(
        model, src_ids, special_ids, greedy_options, constraints, num_samples=None
    ).run(trace=trace, shrink=shrink)


def sample(
    model: Seq2SeqModel[StateT],
    src_ids: Tensor,
    special_ids: SpecialIds,
    options: DecodingOptions,
    constraints: Sequence[Constraints | None] | None = None,
    *,
    trace: bool = False,
    shrink: bool = True,
) -> list[SearchResult]:
    """Sample `n_best` translations of each row of a padded batch (B, S), in sampling order."""
    loop = TokenLoop(model, src_ids, special_ids, options, constraints, num_samples=options.n_best)
    return loop.run(trace=trace, shrink=shrink)


class TokenLoop:
    """The search of one batch, with one token per row and step."""

    def __init__(
        self,
        model: Seq2SeqModel[StateT],
        src_ids: Tensor,
        special_ids: SpecialIds,
        options: DecodingOptions,
        constraints: Sequence[Constraints | None] | None,
        *,
        num_samples: int | None,
    ) -> None:
        self.model, self.special_ids, self.options = model, special_ids, options
        self.src_ids, device = src_ids, src_ids.device
        self.token_filter = TokenFilter(options, special_ids, constraints, device)
        self.num_samples = num_samples or 1
        limits = max_lengths(src_ids, options, special_ids, constraints)
        self.limits = [limit for limit in limits for _ in range(self.num_samples)]
        sentences = torch.arange(src_ids.size(0), device=device)
        self.sentences = sentences.repeat_interleave(self.num_samples)  # (N,)
        self.sampler = (
            TokenSampler(src_ids, special_ids, options, self.limits) if num_samples else None
        )
        shape = (len(self.limits), max(self.limits, default=0))
        self.output_ids = torch.full(shape, special_ids.end_id, device=device)  # (N, T)
        self.log_probs = torch.zeros(shape, device=device)  # (N, T)
        self.traces: list[Trace] | None = None

    @torch.inference_mode()
    def run(self, *, trace: bool = False, shrink: bool = True) -> list[SearchResult]:
        """Search until every row is finished or at its limit."""
        if trace:
            self._start_traces()
        limits = torch.tensor(self.limits, device=self.output_ids.device)
        state = self.model.start(self.model.encode(self.src_ids))
        if self.num_samples > 1:
            state = self.model.reorder(state, self.sentences)
        rows = torch.arange(len(self.limits), device=self.output_ids.device)  # the active ones
        is_done = torch.zeros_like(rows, dtype=torch.bool)
        last = torch.full_like(rows, self.special_ids.start_id)
        for position in range(self.output_ids.size(1)):
            checkpoint()
            logits, state = self.model.step(last, state)
            ids = self.output_ids[rows, :position] if self.token_filter.needs_ids else None
            log_probs = logits.float().log_softmax(-1)
            filtered = self.token_filter(log_probs, position, self.sentences[rows], ids)
            last = (
                filtered.argmax(-1)
                if self.sampler is None
                else self.sampler(filtered, rows, position)
            )
            last = last.masked_fill(is_done, self.special_ids.end_id)
            self._store_step(rows, is_done, last, filtered, position)
            is_done = is_done | last.eq(self.special_ids.end_id) | limits[rows].le(position + 1)
            open_rows = (~is_done).nonzero().squeeze(1)
            if not len(open_rows):
                break
            if shrink and len(open_rows) < len(rows):
                state = self.model.reorder(state, open_rows)
                rows, last, is_done = rows[open_rows], last[open_rows], is_done[open_rows]
        return self._results()

    def _store_step(
        self, rows: Tensor, is_done: Tensor, tokens: Tensor, filtered: Tensor, position: int
    ) -> None:
        self.output_ids[rows, position] = tokens
        self.log_probs[rows, position] = filtered.gather(1, tokens[:, None]).squeeze(1)
        if self.traces is not None:
            alive = ~is_done & (rows % self.num_samples == 0)  # only the first sample is traced
            self._record_step(self.traces, rows[alive], tokens[alive], filtered[alive], position)

    def _start_traces(self) -> None:
        self.traces = [
            Trace(
                method="greedy" if self.sampler is None else "sampling",
                beam_size=1,
                alpha=self.options.alpha,
                length_norm=self.options.length_norm,
                n_best=1,
                limit=limit,
                end_id=self.special_ids.end_id,
            )
            for limit in self.limits
        ]

    def _record_step(
        self, traces: list[Trace], rows: Tensor, tokens: Tensor, filtered: Tensor, position: int
    ) -> None:
        best = filtered.topk(min(NUM_TRACED_CANDIDATES, filtered.size(1))).indices
        traced = torch.cat(
            [best, tokens[:, None]], dim=1
        )  # a sampled token may not be among the best
        traced_log_probs = filtered.gather(1, traced).tolist()
        before = to_accurate(self.log_probs[rows, :position]).sum(1).tolist()
        penalty = self._penalty(position + 1)
        for index, row in enumerate(rows.tolist()):
            chosen = int(tokens[index])
            log_prob_by_token = dict(
                zip(traced[index].tolist(), traced_log_probs[index], strict=True)
            )
            candidates = []
            for token, log_prob in log_prob_by_token.items():
                if log_prob > float("-inf"):
                    total = before[index] + log_prob
                    slot, outcome, why = self._outcome(token, chosen)
                    candidates.append(
                        Candidate(
                            id=token,
                            parent=0,
                            slot=slot,
                            log_prob=log_prob,
                            total=total,
                            score=total / penalty,
                            outcome=outcome,
                            why=why,
                        )
                    )
            traces[row].steps.append(Step(0, position, candidates))

    def _outcome(self, token: int, chosen: int) -> tuple[int | None, Outcome, str]:
        if token != chosen:
            return None, "pruned", BEAM_FULL if self.sampler is None else NOT_SAMPLED
        return (None, "finished", "") if token == self.special_ids.end_id else (0, "kept", "")

    def _results(self) -> list[SearchResult]:
        check_finite(bool(self.log_probs.isnan().any()))
        rows = zip(
            self.output_ids.tolist(),
            self.log_probs.cpu().double().tolist(),
            self.limits,
            strict=True,
        )
        end_id = self.special_ids.end_id
        hypotheses = [truncate_hypothesis(*row, end_id, self.options) for row in rows]
        results = []
        for first in range(0, len(hypotheses), self.num_samples):
            trace = self.traces[first] if self.traces is not None else None
            if trace:
                trace.hypotheses = hypotheses[first : first + 1]
                trace.stopped = trace.stopped if hypotheses[first].is_finished else STOP_LIMIT
            results.append(SearchResult(hypotheses[first : first + self.num_samples], trace))
        return results

    def _penalty(self, length: int) -> float:
        return length_penalty(length, self.options.alpha, self.options.length_norm)
