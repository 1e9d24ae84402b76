"""Beam search: extends the best hypotheses until no finished one can be beaten.

Paper: section 6.1 uses a beam of 4, a length penalty with alpha 0.6, and at most 50 tokens more
than the source. A hypothesis is finished if its end symbol is among the best `beam_size` candidates
of its step. The search of a sentence stops when its `n_best` finished hypotheses are at least as
good as any hypothesis still alive can become: log-probabilities only decrease, and the length
penalty is largest at the limit.

A `SentenceBeam` is the beam of one sentence, or of one of its groups (diverse beam search,
Vijayakumar et al. 2016). All beams step together on the model's device; the choice among the few
candidates of each beam happens on the host, where it can be traced. Finished beams leave the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch

from attendo.core.checkpoints import checkpoint
from attendo.decoding.beam_state import BeamUpdate, SentenceBeam, TopCandidates
from attendo.decoding.constraints import DynamicBeamAllocator, num_satisfied
from attendo.decoding.hypothesis import Hypothesis, SearchResult, length_penalty
from attendo.decoding.limits import NEG_INF, check_finite
from attendo.decoding.options import DecodingOptions
from attendo.decoding.token_filters import TokenFilter, max_lengths
from attendo.decoding.trace import STOP_LIMIT, STOP_NO_CONTINUATION, Step, Trace, interleave

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.decoding.beam_state import Floats, Ints
    from attendo.decoding.options import Constraints, SpecialIds
    from attendo.decoding.trace import Candidate

StateT = TypeVar("StateT")


def beam(
    model: Seq2SeqModel[StateT],
    src_ids: Tensor,
    special_ids: SpecialIds,
    options: DecodingOptions | None = None,
    constraints: Sequence[Constraints | None] | None = None,
    *,
    trace: bool = False,
    shrink: bool = True,
) -> list[SearchResult]:
    """Search the best sequences of each row of a padded batch (B, S).

    `shrink=False` keeps finished sentences in the batch. The shapes of all computations are then
    independent of the other sentences, and so is every bit of a result.
    """
    search = BeamSearch(model, src_ids, special_ids, options or DecodingOptions(), constraints)
    if trace:
        search.start_traces()
    return search.run(shrink=shrink)


class BeamSearch(Generic[StateT]):
    """The search of one batch: L beams (sentences x groups) of K hypotheses each."""

    def __init__(
        self,
        model: Seq2SeqModel[StateT],
        src_ids: Tensor,
        special_ids: SpecialIds,
        options: DecodingOptions,
        constraints: Sequence[Constraints | None] | None,
    ) -> None:
        self.model, self.special_ids, self.options = model, special_ids, options
        self.src_ids, self.device = src_ids, src_ids.device
        self.token_filter = TokenFilter(options, special_ids, constraints, self.device)
        self.width = options.beam_size // options.num_groups
        limits = max_lengths(src_ids, options, special_ids, constraints)
        self.all_beams = [
            SentenceBeam(
                sentence=sentence,
                group=group,
                limit=limit,
                constraints=constraints[sentence] if constraints else None,
                n_best=min(options.n_best, self.width),
            )
            for sentence, limit in enumerate(limits)
            for group in range(options.num_groups)
        ]
        self.beams = self.all_beams
        self.position, self.is_traced = 0, False
        empty = (len(self.beams), self.width, 0)
        self.ids: Ints = np.zeros(empty, dtype=np.int64)  # (L, K, t)
        self.token_log_probs: Floats = np.zeros(empty)  # (L, K, t)
        self.totals: Floats = np.full(empty[:2], NEG_INF)
        self.totals[:, 0] = 0.0  # at first there is one hypothesis, which is empty
        self._index_beams()

    def start_traces(self) -> None:
        """Record every step from now on."""
        traces: dict[int, Trace] = {}
        self.is_traced = True
        for sentence_beam in self.all_beams:
            new_trace = Trace(
                method="beam",
                beam_size=self.options.beam_size,
                alpha=self.options.alpha,
                length_norm=self.options.length_norm,
                n_best=self.options.n_best,
                limit=sentence_beam.limit,
                end_id=self.special_ids.end_id,
            )
            sentence_beam.trace = traces.setdefault(sentence_beam.sentence, new_trace)

    @torch.inference_mode()
    def run(self, *, shrink: bool = True) -> list[SearchResult]:
        """Search until every beam is done, and return one result per sentence."""
        state = self.model.start(self.model.encode(self.src_ids))
        state = self.model.reorder(state, self.sentences)
        last = torch.full_like(self.sentences, self.special_ids.start_id)
        while True:
            checkpoint()
            logits, state = self.model.step(last, state)
            update = self._select(self._next_log_probs(logits))
            self._extend(update)
            self._close_beams()
            if self.is_done.all():
                return self._results()
            open_rows = np.flatnonzero(~self.is_done) if shrink else np.arange(len(self.beams))
            index = open_rows[:, None] * self.width + update.parents[open_rows]
            state = self.model.reorder(state, self._to_device(index.reshape(-1)))
            last = self._to_device(update.tokens[open_rows].reshape(-1))
            if len(open_rows) < len(self.beams):
                self._keep_beams(open_rows)

    def _next_log_probs(self, logits: Tensor) -> Tensor:
        output_ids = self.ids.reshape(len(self.beams) * self.width, self.position)
        ids = self._to_device(output_ids) if self.token_filter.needs_ids else None
        log_probs = logits.float().log_softmax(-1)
        filtered = self.token_filter(log_probs, self.position, self.sentences, ids)
        return filtered.view(len(self.beams), self.width, -1)  # (L, K, V)

    def _select(self, log_probs: Tensor) -> BeamUpdate:
        """Fill the slots of every beam."""
        update = BeamUpdate.empty((len(self.beams), self.width), self.special_ids.end_id)
        if self.options.num_groups == 1:
            self._select_rows(np.arange(len(self.beams)), log_probs, None, update)
        else:
            self._select_groups(log_probs, update)
        is_stuck = ~self.is_done & (update.totals.max(1) == NEG_INF)
        for row in np.flatnonzero(is_stuck).tolist():
            if not self.beams[row].finished:
                self._truncate(row, STOP_NO_CONTINUATION)
        return update

    def _select_groups(self, log_probs: Tensor, update: BeamUpdate) -> None:
        """Fill the slots group by group; each group avoids the tokens of the earlier ones."""
        counts = torch.zeros(self.src_ids.size(0), log_probs.size(-1), device=self.device)
        for group in range(self.options.num_groups):
            rows = np.flatnonzero(self.groups == group)
            row_index = self._to_device(rows)
            sentences = self.sentences[row_index * self.width]
            penalties = self.options.diversity_penalty * counts[sentences]
            self._select_rows(rows, log_probs[row_index], penalties, update)
            is_continuing = (update.totals[rows] > NEG_INF) & ~self.is_done[rows, None]
            tokens = self._to_device(update.tokens[rows])
            weights = self._to_device(is_continuing.astype(np.float32))
            counts.index_put_((sentences[:, None], tokens), weights, accumulate=True)

    def _select_rows(
        self, rows: Ints, log_probs: Tensor, penalties: Tensor | None, update: BeamUpdate
    ) -> None:
        """Fill the slots of the beams `rows`; `penalties` (R, V) are for tokens of other groups."""
        before = self._to_device(self.totals[rows].astype(np.float32))
        totals = log_probs + before[:, :, None]  # (R, K, V)
        rank_scores = totals if penalties is None else totals - penalties[:, None]
        candidates = self._top_candidates(log_probs, totals, rank_scores)
        ends, order = candidates.split_finished(self.special_ids.end_id, self.width)
        num_kept = order.shape[1]
        for name in ("parents", "tokens", "log_probs", "totals"):
            kept = np.take_along_axis(getattr(candidates, name), order, axis=1)
            getattr(update, name)[rows, :num_kept] = kept
        is_open = ~self.is_done[rows]
        is_unconstrained = is_open & ~self.has_phrases[rows]
        for index, rank in np.argwhere(ends & is_unconstrained[:, None]):
            self._finish(
                rows[index],
                candidates.parents[index, rank],
                candidates.log_probs[index, rank],
                candidates.totals[index, rank],
            )
        for index in np.flatnonzero(is_unconstrained).tolist() if self.is_traced else ():
            trace_candidates = candidates.to_trace(
                index, ends[index], order[index], self.special_ids.end_id, self._score_next
            )
            self._record_step(rows[index], trace_candidates)
        for index in np.flatnonzero(is_open & self.has_phrases[rows]).tolist():
            checkpoint()
            self._select_constrained(
                rows[index], log_probs[index], totals[index], rank_scores[index], update
            )

    def _top_candidates(
        self, log_probs: Tensor, totals: Tensor, rank_scores: Tensor
    ) -> TopCandidates:
        vocab_size = log_probs.size(-1)
        num = min(2 * self.width, self.width * vocab_size)
        flat = rank_scores.flatten(1).topk(num).indices  # (R, C)
        gathered = [values.flatten(1).gather(1, flat) for values in (log_probs, totals)]
        token_log_probs, sums = torch.stack(gathered).cpu().double().numpy()
        check_finite(bool(np.isnan(token_log_probs).any()))  # topk ranks NaN above every number
        flat_indices = flat.cpu().numpy()
        return TopCandidates(
            flat_indices // vocab_size, flat_indices % vocab_size, token_log_probs, sums
        )

    def _select_constrained(
        self, row: int, log_probs: Tensor, totals: Tensor, rank_scores: Tensor, update: BeamUpdate
    ) -> None:
        sentence_beam = self.beams[row]
        if sentence_beam.constraints is None:
            return
        allocator = DynamicBeamAllocator(
            sentence_beam.constraints, width=self.width, end_id=self.special_ids.end_id
        )
        sequences = self.ids[row].tolist()
        selection = allocator.select(sequences, log_probs, totals, rank_scores)
        for one in selection.finished:
            self._finish(row, one.parent, one.log_prob, one.total)
        update.totals[row] = NEG_INF
        for slot, one in enumerate(selection.kept):
            update.parents[row, slot] = one.parent
            update.tokens[row, slot] = one.token
            update.log_probs[row, slot] = one.log_prob
            update.totals[row, slot] = one.total
        if sentence_beam.trace:
            self._record_step(row, allocator.to_trace(sequences, selection, self._score_next))

    def _record_step(self, row: int, candidates: list[Candidate]) -> None:
        sentence_beam = self.beams[row]
        if sentence_beam.trace:
            sentence_beam.trace.steps.append(Step(sentence_beam.group, self.position, candidates))

    def _finish(self, row: int, parent: int, log_prob: float, total: float) -> None:
        """Add the hypothesis in the slot `parent`, followed by the end symbol, to the finished."""
        sentence_beam = self.beams[row]
        sentence_beam.add_finished(
            Hypothesis(
                ids=self.ids[row, parent].tolist(),
                log_prob=float(total),
                score=self._score_next(float(total)),
                token_log_probs=[*self.token_log_probs[row, parent].tolist(), float(log_prob)],
                is_finished=True,
            )
        )
        self.thresholds[row] = sentence_beam.threshold

    def _extend(self, update: BeamUpdate) -> None:
        parents = update.parents[:, :, None]
        parent_ids = np.take_along_axis(self.ids, parents, axis=1)
        parent_log_probs = np.take_along_axis(self.token_log_probs, parents, axis=1)
        self.ids = np.concatenate([parent_ids, update.tokens[:, :, None]], axis=2)
        self.token_log_probs = np.concatenate(
            [parent_log_probs, update.log_probs[:, :, None]], axis=2
        )
        self.totals = update.totals
        self.position += 1

    def _close_beams(self) -> None:
        """Stop beams whose finished hypotheses cannot be beaten, and those at their limits."""
        best = self.totals.max(1)
        penalty_grows = self.options.alpha > 0
        bound = best / (self.max_penalties if penalty_grows else self._penalty(self.position + 1))
        is_beaten = self.thresholds >= bound
        is_truncated = ~is_beaten & (self.position >= self.limits) & ~self.is_done
        for row in np.flatnonzero(is_truncated).tolist():
            self._truncate(row, STOP_LIMIT)
        self.is_done |= is_beaten | is_truncated

    def _truncate(self, row: int, reason: str) -> None:
        """Store the unfinished hypotheses of a beam, those with most required tokens first."""
        sentence_beam = self.beams[row]
        constraints = sentence_beam.constraints
        penalty = self._penalty(max(self.position, 1))
        for slot in np.flatnonzero(self.totals[row] > NEG_INF):
            total = float(self.totals[row, slot])
            sentence_beam.truncated.append(
                Hypothesis(
                    ids=self.ids[row, slot].tolist(),
                    log_prob=total,
                    score=total / penalty,
                    token_log_probs=self.token_log_probs[row, slot].tolist(),
                    is_finished=False,
                )
            )
        sentence_beam.truncated.sort(
            key=lambda one: (-num_satisfied(constraints, one.ids) if constraints else 0, -one.score)
        )
        if sentence_beam.trace:
            sentence_beam.trace.stopped = reason

    def _keep_beams(self, open_rows: Ints) -> None:
        self.beams = [self.beams[row] for row in open_rows]
        self.ids, self.token_log_probs = self.ids[open_rows], self.token_log_probs[open_rows]
        self.totals = self.totals[open_rows]
        self._index_beams()

    def _index_beams(self) -> None:
        """Gather the properties of the beams in arrays (L,)."""
        self.is_done = np.zeros(len(self.beams), dtype=bool)
        self.groups = np.array([one.group for one in self.beams])
        self.limits = np.array([one.limit for one in self.beams])
        self.max_penalties = np.array([self._penalty(one.limit) for one in self.beams])
        self.thresholds = np.array([one.threshold for one in self.beams])
        self.has_phrases = np.array([one.has_phrases for one in self.beams])
        rows = np.repeat([one.sentence for one in self.beams], self.width)
        self.sentences = self._to_device(rows)  # (L * K,)

    def _results(self) -> list[SearchResult]:
        results = []
        for row in range(self.src_ids.size(0)):
            beams = [
                sentence_beam for sentence_beam in self.all_beams if sentence_beam.sentence == row
            ]
            finished = interleave([one.finished for one in beams])
            fallback = interleave([one.fallback for one in beams])
            distinct: dict[tuple[int, ...], Hypothesis] = {}
            for one in (*finished, *fallback):  # groups may have found the same sentence
                distinct.setdefault(tuple(one.ids), one)
            best = list(distinct.values())[: self.options.n_best]
            trace = beams[0].trace
            if trace:
                trace.hypotheses = best
            results.append(SearchResult(best, trace))
        return results

    def _penalty(self, length: int) -> float:
        return length_penalty(length, self.options.alpha, self.options.length_norm)

    def _score_next(self, total: float) -> float:
        return total / self._penalty(self.position + 1)

    def _to_device(self, values: NDArray[Any]) -> Tensor:
        return torch.from_numpy(values).to(self.device)
