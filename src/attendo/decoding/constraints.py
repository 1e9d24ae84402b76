"""Lexical constraints: phrases that must, and must not, stand in a translation.

Dynamic beam allocation (Post and Vilar 2018): a hypothesis is in the bank of the number of
constraint tokens that it has met, and the slots of a beam go round the banks, from the fullest
down. So a phrase may come where it fits the sentence best, and some hypothesis is always on its way
to have them all. Beside the best continuations, each hypothesis proposes the next token of every
phrase that it lacks. It may end only when it has them all, and if its end is then among the best
`width` continuations of those that have them all: less likely ones that lack a phrase must not keep
it from ending.

Progress is read off the ids each time: a phrase that was left half-way counts only as far as the
end of the sequence still matches its beginning, and one that stands there in other pieces counts as
met, since only the text decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.decoding.trace import (
    BEAM_FULL,
    END_OUTSIDE,
    FORBIDDEN,
    MISSING,
    Candidate,
    interleave,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from attendo.decoding.options import Demands, RequiredPhrase
    from attendo.decoding.trace import Fate

    Said = Sequence[Sequence[int]]

WIDER = 4
"""Where forbidden phrases leave too few candidates, so many times more are looked at."""


class Scored(NamedTuple):
    """A candidate before its fate."""

    parent: int
    token: int
    log_prob: float
    total: float
    worth: float
    """What it is ranked by: the total, less the cost of what other groups have chosen."""


class Chosen(NamedTuple):
    """What becomes of the candidates of one beam."""

    finished: list[Scored]
    kept: list[Scored]
    """Each at the place of its slot."""
    pruned: list[tuple[Scored, str]]
    """With the reason."""


class PhraseChooser:
    """Chooses the next hypotheses of one beam by what their texts hold.

    `said` tells what stands in each slot; `log_probs`, `totals` and `worths` (K, V) are of the
    tokens that may follow, of the sequences with them, and what these are ranked by.
    """

    def __init__(self, demands: Demands, *, width: int, end_id: int) -> None:
        self.demands, self.width, self.end_id = demands, width, end_id
        self.num_tokens = sum(len(phrase.tokens) for phrase in demands.required)

    def choose(self, said: Said, log_probs: Tensor, totals: Tensor, worths: Tensor) -> Chosen:
        """Tell who ends, who goes on, and why the others do not."""
        figures = (log_probs, totals, worths)
        size = 2 * self.width
        while True:
            flat = worths.flatten().topk(min(size, worths.numel())).indices
            pool = self._read(flat.tolist(), *figures)
            allowed, pruned = self._sort_out(said, pool)
            num_going_on = sum(one.token != self.end_id for one in allowed)
            if num_going_on >= self.width or len(pool) < size:
                break
            size *= WIDER
        known = {(one.parent, one.token) for one in pool}
        proposed = self._read(self._propose(said, worths), *figures)
        more = [one for one in proposed if (one.parent, one.token) not in known]
        also_allowed, also_pruned = self._sort_out(said, more)
        ranked = sorted([*allowed, *also_allowed], key=lambda one: -one.worth)
        return self._allocate(said, ranked, [*pruned, *also_pruned])

    def judge(self, said: Said, chosen: Chosen, score: Callable[[float], float]) -> list[Candidate]:
        """Tell the fate of every candidate, best first."""
        fates: list[tuple[Scored, int | None, Fate, str]] = [
            *((one, None, "finished", "") for one in chosen.finished),
            *((one, slot, "kept", "") for slot, one in enumerate(chosen.kept)),
            *((one, None, "pruned", why) for one, why in chosen.pruned),
        ]
        fates.sort(key=lambda fate: -fate[0].worth)
        judged = []
        for one, slot, fate, why in fates:
            figures = (one.log_prob, one.total, score(one.total))
            met = self._count_met(said, one)
            judged.append(Candidate(one.token, one.parent, slot, *figures, fate, why, met))
        return judged

    def _read(
        self, places: list[int], log_probs: Tensor, totals: Tensor, worths: Tensor
    ) -> list[Scored]:
        """Give the candidates at these places of the flattened figures."""
        flat = torch.tensor(places, dtype=torch.long, device=totals.device)
        figures = (values.flatten()[flat].tolist() for values in (log_probs, totals, worths))
        vocab_size = totals.size(1)
        return [
            Scored(place // vocab_size, place % vocab_size, *values)
            for place, *values in zip(places, *figures, strict=True)
            if values[1] > float("-inf")
        ]

    def _propose(self, said: Said, worths: Tensor) -> list[int]:
        """Give the places of what may have no chance among the best, and must have one.

        Each hypothesis's best continuation and its next token of every phrase that it lacks; of
        those that lack nothing, the best `width`.
        """
        vocab_size = worths.size(1)
        best = worths.max(1)
        alive = [slot for slot, worth in enumerate(best.values.tolist()) if worth > float("-inf")]
        tokens = best.indices.tolist()
        places = {slot * vocab_size + tokens[slot] for slot in alive}
        for slot in alive:
            for phrase in self.demands.required:
                done = progress(phrase, said[slot])
                if done < len(phrase.tokens):
                    wanted = (phrase.tokens[done], phrase.tokens[0])
                    places |= {slot * vocab_size + token for token in wanted}
        complete = [slot for slot in alive if self._lacks_nothing(said[slot])]
        own = worths[complete].flatten()
        for place in own.topk(min(self.width, own.numel())).indices.tolist():
            places.add(complete[place // vocab_size] * vocab_size + place % vocab_size)
        return sorted(places)

    def _sort_out(
        self, said: Said, pool: list[Scored]
    ) -> tuple[list[Scored], list[tuple[Scored, str]]]:
        allowed, pruned = [], []
        for one in pool:
            why = self._objection(said[one.parent], one.token)
            if why:
                pruned.append((one, why))
            else:
                allowed.append(one)
        return allowed, pruned

    def _objection(self, ids: Sequence[int], token: int) -> str:
        if len(ids) < len(self.demands.prefix):
            return ""  # what is given goes before what is demanded
        if token == self.end_id and not self._lacks_nothing(ids):
            return MISSING
        broken = (one.would_break(ids, token) for one in self.demands.forbidden)
        return FORBIDDEN if any(broken) else ""

    def _lacks_nothing(self, ids: Sequence[int]) -> bool:
        return all(phrase.is_met(ids) for phrase in self.demands.required)

    def _allocate(
        self, said: Said, allowed: list[Scored], pruned: list[tuple[Scored, str]]
    ) -> Chosen:
        """Let ends among the best leave; give the slots to the banks in turn, fullest first."""
        banks: dict[int, list[Scored]] = {}
        finished: list[Scored] = []
        num_complete = 0
        for one in allowed:
            met = self._count_met(said, one)
            if one.token != self.end_id:
                banks.setdefault(met, []).append(one)
            elif num_complete < self.width:
                finished.append(one)
            else:
                pruned.append((one, END_OUTSIDE))
            num_complete += met == self.num_tokens
        order = list(interleave([banks[met] for met in sorted(banks, reverse=True)]))
        pruned += [(one, BEAM_FULL) for one in order[self.width :]]
        return Chosen(finished, order[: self.width], pruned)

    def _count_met(self, said: Said, one: Scored) -> int:
        ids = said[one.parent]
        return count_met(self.demands, ids if one.token == self.end_id else [*ids, one.token])


def count_met(demands: Demands, ids: Sequence[int]) -> int:
    """Count the tokens of required phrases that are met."""
    return sum(progress(phrase, ids) for phrase in demands.required)


def progress(phrase: RequiredPhrase, ids: Sequence[int]) -> int:
    """Count the tokens of a phrase that are met: all where it stands, else those at the end.

    A phrase (5, 6, 7) has made two steps in (9, 5, 6), and none in (5, 6, 9).
    """
    tokens = phrase.tokens
    if phrase.is_met(ids):
        return len(tokens)
    for count in range(min(len(tokens) - 1, len(ids)), 0, -1):
        if tuple(ids[-count:]) == tokens[:count]:
            return count
    return 0
