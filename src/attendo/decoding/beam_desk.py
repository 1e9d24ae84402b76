"""Beam search in place. It finds what `attendo.decoding.beam` finds, by the same rules.

What a step chose from is written down; who descends from whom is followed up once, on the host, at
the end. Scores that are compared with each other are float64, as there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from attendo.decoding.desk import NextToken
from attendo.decoding.hypothesis import Found, Hypothesis, length_penalty
from attendo.decoding.lane import DEAD
from attendo.decoding.rules import refuse_nan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from attendo.decoding.fixed_steps import FixedSteps
    from attendo.decoding.lane import Floats, Ints
    from attendo.decoding.options import DecodingOptions, Symbols


class BeamDesk:
    """`width` hypotheses a sentence, the best first; of `2 * width` candidates a step they come."""

    def __init__(
        self, steps: FixedSteps, symbols: Symbols, options: DecodingOptions, *, vocab_size: int
    ) -> None:
        self.steps, self.symbols, self.options = steps, symbols, options
        self.vocab_size, self.width = vocab_size, steps.width
        self.next_token = NextToken(steps, symbols, options)
        rows, length, width = steps.num_sentences, steps.max_length, steps.width
        num = 2 * width

        def make(*shape: int, dtype: torch.dtype = torch.long) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=steps.position.device)

        self.ranks = torch.arange(num, device=steps.position.device)
        self.limits = make(rows)
        self.ending = make(length, dtype=torch.float64)
        """What the total of a hypothesis that ends at a position is divided by."""
        self.reach = make(rows, length, dtype=torch.float64)
        """And the best total after a position, to tell what can still become of it."""
        self.last = make(rows, width)
        self.totals = make(rows, width, dtype=torch.float32)
        self.is_done = make(rows, dtype=torch.bool)
        self.best_scores = make(rows, options.n_best, dtype=torch.float64)
        self.best_places = make(rows, options.n_best)
        """Of what has ended: the position times 2 * width, and the rank among the candidates."""
        self.candidates = make(length, rows, num)
        """Slot of the parent times V, and the token."""
        self.log_probs = make(length, rows, num, dtype=torch.float32)
        self.sums = make(length, rows, num, dtype=torch.float32)
        self.kept = make(length, rows, width)
        """The ranks of those that go on."""

    def put(self, src_ids: Tensor, limits: Sequence[int], options: DecodingOptions) -> None:
        """Lay down what this search is told; rows that are left over are done after a step."""
        self.steps.put(src_ids)
        self.options = options
        idle = self.steps.num_sentences - len(limits)
        every = [*limits, *[1] * idle]
        length = self.steps.max_length
        penalties = [
            length_penalty(place, options.alpha, options.length_norm)
            for place in range(1, length + 2)
        ]
        self.limits.copy_(torch.tensor(every))
        self.ending.copy_(torch.tensor(penalties[:-1], dtype=torch.float64))
        if options.alpha > 0:  # the penalty grows with the length
            farthest = torch.tensor([penalties[limit - 1] for limit in every], dtype=torch.float64)
            self.reach.copy_(farthest[:, None].expand_as(self.reach))
        else:
            nearest = torch.tensor(penalties[1:], dtype=torch.float64)
            self.reach.copy_(nearest.expand_as(self.reach))

    def start(self) -> None:
        """Begin with what was put down: one hypothesis, nothing said yet."""
        self.steps.start()
        self.last.fill_(self.symbols.start_id)
        self.totals.fill_(DEAD)
        self.totals[:, 0].zero_()
        self.is_done.zero_()
        self.best_scores.fill_(DEAD)

    def advance(self, *, window: int, may_end: bool) -> None:
        """Choose the hypotheses that are one token longer."""
        x = self.steps.step(self.last.view(-1), window=window)
        num = min(self.ranks.size(0), self.vocab_size)
        found = self.next_token(x, num, may_end=may_end)  # (N, num) each
        log_probs, tokens = (one.view(len(self.last), self.width * num) for one in found)
        totals = log_probs.unflatten(1, (self.width, num)) + self.totals[:, :, None]
        sums, flat = totals.flatten(1).topk(self.ranks.size(0))  # (B, 2 * width)
        said, parents = tokens.gather(1, flat), flat // num
        is_end = said.eq(self.symbols.end_id)
        self._finish(is_end, sums)
        # Each hypothesis ends in one way only, so that `width` of twice as many go on.
        kept = (self.ranks + is_end * self.ranks.size(0)).sort(1).values[:, : self.width]
        self._note(parents * self.vocab_size + said, log_probs.gather(1, flat), sums, kept)
        torch.gather(sums, 1, kept, out=self.totals)
        torch.gather(said, 1, kept, out=self.last)
        self.steps.follow(parents.gather(1, kept))
        self._close()
        self.steps.position.add_(1)

    def _finish(self, is_end: Tensor, sums: Tensor) -> None:
        """Take in what ends among the best `width` candidates, where it is good enough."""
        width, position = self.width, self.steps.position
        ends = is_end[:, :width] & ~self.is_done[:, None]
        scores = sums[:, :width].double() / self.ending.index_select(0, position)
        places = (position * self.ranks.size(0) + self.ranks[:width]).expand(len(ends), width)
        scores = torch.cat((self.best_scores, scores.masked_fill(~ends, DEAD)), dim=1)
        ordered, index = scores.sort(dim=1, descending=True, stable=True)  # the earlier wins a tie
        num = self.best_scores.size(1)
        self.best_scores.copy_(ordered[:, :num])
        every = torch.cat((self.best_places, places), dim=1)
        torch.gather(every, 1, index[:, :num], out=self.best_places)

    def _note(self, candidates: Tensor, log_probs: Tensor, sums: Tensor, kept: Tensor) -> None:
        where = self.steps.position
        self.candidates.index_copy_(0, where, candidates[None])
        self.log_probs.index_copy_(0, where, log_probs[None])
        self.sums.index_copy_(0, where, sums[None])
        self.kept.index_copy_(0, where, kept[None])

    def _close(self) -> None:
        """Stop where nothing alive can become better than what is finished, and at the limit."""
        position = self.steps.position
        bound = self.totals[:, :1].double() / self.reach.index_select(1, position)
        is_beaten = self.best_scores[:, -1:] >= bound
        is_cut = self.limits <= position + 1
        self.is_done.logical_or_(is_beaten.squeeze(1) | is_cut)

    def take(self, other: BeamDesk, rows: Tensor, *, num_steps: int) -> None:
        """Go on with some sentences of another desk."""
        self.steps.take(other.steps, rows, num_steps=num_steps)
        self.options = other.options
        self.ending.copy_(other.ending)
        for name in ("limits", "reach", "last", "totals", "is_done", "best_scores", "best_places"):
            torch.index_select(getattr(other, name), 0, rows, out=getattr(self, name))
        for name in ("candidates", "log_probs", "sums", "kept"):
            mine, its = getattr(self, name), getattr(other, name)
            mine[:num_steps] = its[:num_steps].index_select(1, rows)

    def harvest(self, rows: Sequence[int], num_steps: int) -> list[Found]:
        """Tell what was found for `rows` in so many steps."""
        history = (self.candidates, self.log_probs, self.sums, self.kept)
        notes = Notes(self.vocab_size, *(one[:num_steps].cpu().numpy() for one in history))
        refuse_nan(bool(np.isnan(notes.log_probs).any()))
        some = np.array(rows, dtype=np.int64)
        ended = notes.find_ended(
            some, self.best_scores.cpu().numpy()[some], self.best_places.cpu().numpy()[some]
        )
        num_spare = self.best_scores.size(1) - np.bincount(ended.places, minlength=len(some))
        cut = notes.find_cut(some, self.limits.cpu().numpy()[some], num_spare)
        found = [Found([]) for _ in rows]
        for heads in (ended, cut):
            for place, told in zip(heads.places.tolist(), self._tell(heads, notes), strict=True):
                found[place].hypotheses.append(told)
        return found

    def _tell(self, heads: Heads, notes: Notes) -> Iterator[Hypothesis]:
        alpha, length_norm = self.options.alpha, self.options.length_norm
        ids, log_probs = notes.follow(heads)
        for place, length in enumerate(heads.lengths.tolist()):
            figures = log_probs[place, :length].tolist()
            total = float(heads.totals[place])
            if heads.ends is not None:
                figures.append(float(heads.ends[place]))
            score = total / length_penalty(len(figures), alpha, length_norm)
            said = ids[place, :length].tolist()
            yield Hypothesis(said, total, score, figures, is_finished=heads.ends is not None)


class Heads(NamedTuple):
    """Where hypotheses stood when the search was over, those of a sentence best first."""

    places: Ints
    """Of their sentences among those that are asked for."""
    rows: Ints
    """Of their sentences."""
    lengths: Ints
    """Their tokens, the end symbol not counted."""
    slots: Ints
    totals: NDArray[np.float32]
    ends: NDArray[np.float32] | None
    """The log-probabilities of the end symbols, where these have come."""


class Notes(NamedTuple):
    """What was written down at each step."""

    vocab_size: int
    candidates: Ints  # (T, B, 2 * width)
    log_probs: NDArray[np.float32]  # (T, B, 2 * width)
    sums: NDArray[np.float32]  # (T, B, 2 * width)
    kept: Ints  # (T, B, width)

    def find_ended(self, rows: Ints, scores: Floats, best_places: Ints) -> Heads:
        """Give what has ended of `rows` (R,), by scores and places (R, n_best)."""
        places, ranks = np.nonzero(scores > DEAD)
        positions, ranks = np.divmod(best_places[places, ranks], self.candidates.shape[2])
        where = (positions, rows[places], ranks)
        slots = self.candidates[where] // self.vocab_size
        figures = (self.sums[where], self.log_probs[where])
        return Heads(places, rows[places], positions, slots, *figures)

    def find_cut(self, rows: Ints, limits: Ints, num_wanted: Ints) -> Heads:
        """Give the best `num_wanted` (R,) of `rows` (R,) that had not ended at their limits.

        Only a sentence of which too little had ended went on to its limit.
        """
        (few,) = np.nonzero(num_wanted)
        last, some = np.minimum(limits[few], len(self.kept)) - 1, rows[few]
        ranks = self.kept[last, some]  # (R', width)
        totals = self.sums[last[:, None], some[:, None], ranks]
        alive = totals > DEAD
        wanted, slots = np.nonzero(alive & (alive.cumsum(1) <= num_wanted[few, None]))
        places = few[wanted]
        return Heads(places, rows[places], limits[places], slots, totals[wanted, slots], None)

    def follow(self, heads: Heads) -> tuple[Ints, Floats]:
        """Give the ids and log-probabilities (H, T) of each, from its first token on."""
        shape = (len(heads.rows), int(heads.lengths.max(initial=0)))
        ids: Ints = np.zeros(shape, dtype=np.int64)
        figures: Floats = np.zeros(shape)
        slots = heads.slots.copy()
        for position in reversed(range(shape[1])):
            (some,) = np.nonzero(heads.lengths > position)
            rows = heads.rows[some]
            where = (position, rows, self.kept[position, rows, slots[some]])
            slots[some], ids[some, position] = np.divmod(self.candidates[where], self.vocab_size)
            figures[some, position] = self.log_probs[where]
        return ids, figures
