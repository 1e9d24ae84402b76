"""Beam search: the best hypotheses of each length go on, until what is finished cannot be beaten.

Paper: section 6.1 uses a beam of 4, a length penalty with alpha 0.6, and at most 50 tokens more
than the source. A hypothesis that has ended leaves the beam if its end symbol is among the best
`beam_size` candidates of its step. The search for a sentence stops when its `n_best` finished
hypotheses are at least as good as anything alive can still become: log-probabilities only fall, and
the length penalty is largest at the limit.

A lane is the beam of one sentence, or of one of its groups (diverse beam search, Vijayakumar et al.
2016). All lanes step together on the model's device; choosing among the few candidates of each lane
happens here, on the host, where it can be recorded. Lanes that are done leave the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch

from attendo.decoding.constraints import PhraseChooser, count_met
from attendo.decoding.hypothesis import Found, Hypothesis, length_penalty
from attendo.decoding.lane import DEAD, Candidates, Choice, Lane
from attendo.decoding.options import DecodingOptions, Demands, Symbols
from attendo.decoding.rules import Rules, limits_of, refuse_nan
from attendo.decoding.trace import STOP_LIMIT, STOP_STUCK, Step, Trace, interleave

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.decoding.lane import Floats, Ints
    from attendo.decoding.trace import Candidate

StateT = TypeVar("StateT")


def beam(
    model: Seq2SeqModel[StateT],
    src_ids: Tensor,
    symbols: Symbols,
    options: DecodingOptions | None = None,
    demands: Sequence[Demands] | None = None,
    *,
    trace: bool = False,
    shrink: bool = True,
) -> list[Found]:
    """Search the best sequences for each row of a padded batch (B, S).

    `shrink=False` keeps sentences that are done in the batch: the shapes of all computations are
    then the same whatever the company, and so is every bit of the result.
    """
    wishes = list(demands or [Demands()] * src_ids.size(0))
    search = BeamSearch(model, src_ids, symbols, options or DecodingOptions(), wishes)
    if trace:
        search.open_traces()
    return search.run(shrink=shrink)


class BeamSearch(Generic[StateT]):
    """One batch on its way."""

    def __init__(
        self,
        model: Seq2SeqModel[StateT],
        src_ids: Tensor,
        symbols: Symbols,
        options: DecodingOptions,
        demands: Sequence[Demands],
    ) -> None:
        self.model, self.symbols, self.options = model, symbols, options
        self.src_ids, self.device = src_ids, src_ids.device
        self.rules = Rules(options, symbols, demands, self.device)
        self.width = options.beam_size // options.num_groups
        limits = limits_of(src_ids, options, symbols, demands)
        self.all_lanes = [
            Lane(row, group, limit, wish, min(options.n_best, self.width))
            for row, (limit, wish) in enumerate(zip(limits, demands, strict=True))
            for group in range(options.num_groups)
        ]
        self.lanes = self.all_lanes
        self.position, self.is_traced = 0, False
        empty = (len(self.lanes), self.width, 0)
        self.ids: Ints = np.zeros(empty, dtype=np.int64)  # (L, K, t)
        self.token_log_probs: Floats = np.zeros(empty)  # (L, K, t)
        self.totals: Floats = np.full(empty[:2], DEAD)
        self.totals[:, 0] = 0.0  # at first there is one hypothesis: nothing said yet
        self._index_lanes()

    def open_traces(self) -> None:
        """Record every step from now on."""
        options = self.options
        settings = (options.beam_size, options.alpha, options.length_norm, options.n_best)
        traces: dict[int, Trace] = {}
        self.is_traced = True
        for lane in self.all_lanes:
            fresh = Trace("beam", *settings, lane.limit, self.symbols.end_id)
            lane.trace = traces.setdefault(lane.sentence, fresh)

    @torch.inference_mode()
    def run(self, *, shrink: bool = True) -> list[Found]:
        """Search to the end."""
        state = self.model.start(self.model.encode(self.src_ids))
        state = self.model.reorder(state, self.sentences)
        last = torch.full_like(self.sentences, self.symbols.start_id)
        while True:
            logits, state = self.model.step(last, state)
            choice = self._choose(self._next_log_probs(logits))
            self._extend(choice)
            self._close_lanes()
            if self.is_done.all():
                return self._results()
            stay = np.flatnonzero(~self.is_done) if shrink else np.arange(len(self.lanes))
            index = stay[:, None] * self.width + choice.parents[stay]
            state = self.model.reorder(state, self._to_device(index.reshape(-1)))
            last = self._to_device(choice.tokens[stay].reshape(-1))
            if len(stay) < len(self.lanes):
                self._keep(stay)

    def _next_log_probs(self, logits: Tensor) -> Tensor:
        said = self.ids.reshape(len(self.lanes) * self.width, self.position)
        ids = self._to_device(said) if self.rules.needs_ids else None
        log_probs = logits.float().log_softmax(-1)
        ruled = self.rules(log_probs, self.position, self.sentences, ids)
        return ruled.view(len(self.lanes), self.width, -1)  # (L, K, V)

    def _choose(self, log_probs: Tensor) -> Choice:
        """Fill the slots of every lane."""
        choice = Choice.empty((len(self.lanes), self.width), self.symbols.end_id)
        if self.options.num_groups == 1:
            self._choose_rows(np.arange(len(self.lanes)), log_probs, None, choice)
        else:
            self._choose_groups(log_probs, choice)
        is_stuck = ~self.is_done & (choice.totals.max(1) == DEAD)
        for row in np.flatnonzero(is_stuck).tolist():
            if not self.lanes[row].finished:
                self._cut(row, STOP_STUCK)
        return choice

    def _choose_groups(self, log_probs: Tensor, choice: Choice) -> None:
        """Fill the slots of one group after the other, each away from those before."""
        counts = torch.zeros(self.src_ids.size(0), log_probs.size(-1), device=self.device)
        for group in range(self.options.num_groups):
            rows = np.flatnonzero(self.groups == group)
            where = self._to_device(rows)
            sentences = self.sentences[where * self.width]
            costs = self.options.diversity * counts[sentences]
            self._choose_rows(rows, log_probs[where], costs, choice)
            goes_on = (choice.totals[rows] > DEAD) & ~self.is_done[rows, None]
            says = self._to_device(choice.tokens[rows])
            weights = self._to_device(goes_on.astype(np.float32))
            counts.index_put_((sentences[:, None], says), weights, accumulate=True)

    def _choose_rows(
        self, rows: Ints, log_probs: Tensor, costs: Tensor | None, choice: Choice
    ) -> None:
        """Fill the slots of some lanes; `costs` (R, V) are of what other groups have taken."""
        before = self._to_device(self.totals[rows].astype(np.float32))
        totals = log_probs + before[:, :, None]  # (R, K, V)
        worths = totals if costs is None else totals - costs[:, None]
        found = self._best(log_probs, totals, worths)
        ends, order = found.split(self.symbols.end_id, self.width)
        for slots, values in zip(choice, found, strict=True):
            slots[rows, : order.shape[1]] = np.take_along_axis(values, order, axis=1)
        is_open = ~self.is_done[rows]
        is_plain = is_open & ~self.has_phrases[rows]
        for place, rank in np.argwhere(ends & is_plain[:, None]):
            figures = (values[place, rank] for values in (found.log_probs, found.totals))
            self._finish(rows[place], found.parents[place, rank], *figures)
        for place in np.flatnonzero(is_plain).tolist() if self.is_traced else ():
            fates = (ends[place], order[place])
            judged = found.judge(place, *fates, self.symbols.end_id, self._score_next)
            self._record(rows[place], judged)
        for place in np.flatnonzero(is_open & self.has_phrases[rows]).tolist():
            figures_of_lane = (log_probs[place], totals[place], worths[place])
            self._choose_by_phrases(rows[place], *figures_of_lane, choice)

    def _best(self, log_probs: Tensor, totals: Tensor, worths: Tensor) -> Candidates:
        vocab_size = log_probs.size(-1)
        num = min(2 * self.width, self.width * vocab_size)
        flat = worths.flatten(1).topk(num).indices  # (R, C)
        figures = [values.flatten(1).gather(1, flat) for values in (log_probs, totals)]
        own, sums = torch.stack(figures).cpu().double().numpy()
        refuse_nan(bool(np.isnan(own).any()))  # a NaN is greater than every number
        places = flat.cpu().numpy()
        return Candidates(places // vocab_size, places % vocab_size, own, sums)

    def _choose_by_phrases(
        self, row: int, log_probs: Tensor, totals: Tensor, worths: Tensor, choice: Choice
    ) -> None:
        lane = self.lanes[row]
        chooser = PhraseChooser(lane.demands, width=self.width, end_id=self.symbols.end_id)
        said = self.ids[row].tolist()
        chosen = chooser.choose(said, log_probs, totals, worths)
        for one in chosen.finished:
            self._finish(row, one.parent, one.log_prob, one.total)
        choice.totals[row] = DEAD
        for slot, one in enumerate(chosen.kept):
            values = (one.parent, one.token, one.log_prob, one.total)
            for slots, value in zip(choice, values, strict=True):
                slots[row, slot] = value
        if lane.trace:
            self._record(row, chooser.judge(said, chosen, self._score_next))

    def _record(self, row: int, judged: list[Candidate]) -> None:
        lane = self.lanes[row]
        if lane.trace:
            lane.trace.steps.append(Step(lane.group, self.position, judged))

    def _finish(self, row: int, parent: int, log_prob: float, total: float) -> None:
        """Let the hypothesis in a slot end."""
        lane = self.lanes[row]
        figures = [*self.token_log_probs[row, parent].tolist(), float(log_prob)]
        score = self._score_next(float(total))
        said = self.ids[row, parent].tolist()
        lane.add(Hypothesis(said, float(total), score, figures, is_finished=True))
        self.bars[row] = lane.bar

    def _extend(self, choice: Choice) -> None:
        parents = choice.parents[:, :, None]
        said = np.take_along_axis(self.ids, parents, axis=1)
        figures = np.take_along_axis(self.token_log_probs, parents, axis=1)
        self.ids = np.concatenate([said, choice.tokens[:, :, None]], axis=2)
        self.token_log_probs = np.concatenate([figures, choice.log_probs[:, :, None]], axis=2)
        self.totals = choice.totals
        self.position += 1

    def _close_lanes(self) -> None:
        """Stop where nothing alive can become better than what is finished, and at the limit."""
        best = self.totals.max(1)
        grows = self.options.alpha > 0  # the penalty, with the length
        bound = best / (self.farthest if grows else self._penalty(self.position + 1))
        is_beaten = self.bars >= bound
        is_cut = ~is_beaten & (self.position >= self.limits) & ~self.is_done
        for row in np.flatnonzero(is_cut).tolist():
            self._cut(row, STOP_LIMIT)
        self.is_done |= is_beaten | is_cut

    def _cut(self, row: int, why: str) -> None:
        """Give up the hypotheses of a lane as they stand, those that meet most demands first."""
        lane = self.lanes[row]
        penalty = self._penalty(max(self.position, 1))
        for slot in np.flatnonzero(self.totals[row] > DEAD):
            total = float(self.totals[row, slot])
            said, figures = self.ids[row, slot].tolist(), self.token_log_probs[row, slot].tolist()
            lane.cut.append(Hypothesis(said, total, total / penalty, figures, is_finished=False))
        lane.cut.sort(key=lambda one: (-count_met(lane.demands, one.ids), -one.score))
        if lane.trace:
            lane.trace.stopped = why

    def _keep(self, stay: Ints) -> None:
        self.lanes = [self.lanes[row] for row in stay]
        self.ids, self.token_log_probs = self.ids[stay], self.token_log_probs[stay]
        self.totals = self.totals[stay]
        self._index_lanes()

    def _index_lanes(self) -> None:
        """Lay the facts of the lanes side by side, to be compared at once."""
        self.is_done = np.zeros(len(self.lanes), dtype=bool)
        self.groups = np.array([lane.group for lane in self.lanes])
        self.limits = np.array([lane.limit for lane in self.lanes])
        self.farthest = np.array([self._penalty(lane.limit) for lane in self.lanes])
        self.bars = np.array([lane.bar for lane in self.lanes])
        self.has_phrases = np.array([lane.demands.has_phrases for lane in self.lanes])
        rows = np.repeat([lane.sentence for lane in self.lanes], self.width)
        self.sentences = self._to_device(rows)  # (L * K,)

    def _results(self) -> list[Found]:
        found = []
        for row in range(self.src_ids.size(0)):
            lanes = [lane for lane in self.all_lanes if lane.sentence == row]
            ended = interleave([lane.finished for lane in lanes])
            spare = interleave([lane.spare for lane in lanes])
            distinct: dict[tuple[int, ...], Hypothesis] = {}
            for one in (*ended, *spare):  # groups may have come to the same sentence
                distinct.setdefault(tuple(one.ids), one)
            best = list(distinct.values())[: self.options.n_best]
            trace = lanes[0].trace
            if trace:
                trace.hypotheses = best
            found.append(Found(best, trace))
        return found

    def _penalty(self, length: int) -> float:
        return length_penalty(length, self.options.alpha, self.options.length_norm)

    def _score_next(self, total: float) -> float:
        return total / self._penalty(self.position + 1)

    def _to_device(self, values: NDArray[Any]) -> Tensor:
        return torch.from_numpy(values).to(self.device)
