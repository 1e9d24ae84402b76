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
    END_NOT_IN_BEAM,
    FORBIDDEN,
    MISSING_REQUIRED,
    Candidate,
    interleave,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from attendo.decoding.options import Constraints, RequiredPhrase
    from attendo.decoding.trace import Fate

    TokenSequences = Sequence[Sequence[int]]

WIDEN_FACTOR = 4
"""Where forbidden phrases leave too few candidates, so many times more are looked at."""


class ScoredCandidate(NamedTuple):
    """A candidate before its fate."""

    parent: int
    token: int
    log_prob: float
    total: float
    rank_score: float
    """What it is ranked by: the total, less the cost of what other groups have chosen."""


class Selection(NamedTuple):
    """What becomes of the candidates of one beam."""

    finished: list[ScoredCandidate]
    kept: list[ScoredCandidate]
    """Each at the place of its slot."""
    pruned: list[tuple[ScoredCandidate, str]]
    """With the reason."""


class DynamicBeamAllocator:
    """Chooses the next hypotheses of one beam by what their texts hold.

    `said` tells what stands in each slot; `log_probs`, `totals` and `worths` (K, V) are of the
    tokens that may follow, of the sequences with them, and what these are ranked by.
    """

    def __init__(self, constraints: Constraints, *, width: int, end_id: int) -> None:
        self.constraints, self.width, self.end_id = constraints, width, end_id
        self.num_required_tokens = sum(len(phrase.tokens) for phrase in constraints.required)

    def select(
        self, sequences: TokenSequences, log_probs: Tensor, totals: Tensor, rank_scores: Tensor
    ) -> Selection:
        """Tell who ends, who goes on, and why the others do not."""
        score_tensors = (log_probs, totals, rank_scores)
        size = 2 * self.width
        while True:
            flat = rank_scores.flatten().topk(min(size, rank_scores.numel())).indices
            top_candidates = self._gather_candidates(flat.tolist(), *score_tensors)
            allowed, pruned = self._filter_candidates(sequences, top_candidates)
            num_continuing = sum(one.token != self.end_id for one in allowed)
            if num_continuing >= self.width or len(top_candidates) < size:
                break
            size *= WIDEN_FACTOR
        known = {(one.parent, one.token) for one in top_candidates}
        proposed = self._gather_candidates(self._propose(sequences, rank_scores), *score_tensors)
        more = [one for one in proposed if (one.parent, one.token) not in known]
        also_allowed, also_pruned = self._filter_candidates(sequences, more)
        ranked = sorted([*allowed, *also_allowed], key=lambda one: -one.rank_score)
        return self._allocate(sequences, ranked, [*pruned, *also_pruned])

    def to_trace(
        self, sequences: TokenSequences, selection: Selection, score: Callable[[float], float]
    ) -> list[Candidate]:
        """Tell the fate of every candidate, best first."""
        fates: list[tuple[ScoredCandidate, int | None, Fate, str]] = [
            *((one, None, "finished", "") for one in selection.finished),
            *((one, slot, "kept", "") for slot, one in enumerate(selection.kept)),
            *((one, None, "pruned", reason) for one, reason in selection.pruned),
        ]
        fates.sort(key=lambda fate: -fate[0].rank_score)
        candidates = []
        for one, slot, fate, why in fates:
            scores = (one.log_prob, one.total, score(one.total))
            num_matched = self._num_satisfied(sequences, one)
            candidates.append(
                Candidate(one.token, one.parent, slot, *scores, fate, why, num_matched)
            )
        return candidates

    def _gather_candidates(
        self, flat_indices: list[int], log_probs: Tensor, totals: Tensor, rank_scores: Tensor
    ) -> list[ScoredCandidate]:
        """Give the candidates at these places of the flattened figures."""
        flat = torch.tensor(flat_indices, dtype=torch.long, device=totals.device)
        columns = (values.flatten()[flat].tolist() for values in (log_probs, totals, rank_scores))
        vocab_size = totals.size(1)
        return [
            ScoredCandidate(flat_index // vocab_size, flat_index % vocab_size, *values)
            for flat_index, *values in zip(flat_indices, *columns, strict=True)
            if values[1] > float("-inf")
        ]

    def _propose(self, sequences: TokenSequences, rank_scores: Tensor) -> list[int]:
        """Give the places of what may have no chance among the best, and must have one.

        Each hypothesis's best continuation and its next token of every phrase that it lacks; of
        those that lack nothing, the best `width`.
        """
        vocab_size = rank_scores.size(1)
        best = rank_scores.max(1)
        alive = [
            slot
            for slot, rank_score in enumerate(best.values.tolist())
            if rank_score > float("-inf")
        ]
        tokens = best.indices.tolist()
        flat_indices = {slot * vocab_size + tokens[slot] for slot in alive}
        for slot in alive:
            for phrase in self.constraints.required:
                num_matched = matched_prefix_length(phrase, sequences[slot])
                if num_matched < len(phrase.tokens):
                    next_tokens = (phrase.tokens[num_matched], phrase.tokens[0])
                    flat_indices |= {slot * vocab_size + token for token in next_tokens}
        complete = [slot for slot in alive if self._is_complete(sequences[slot])]
        complete_scores = rank_scores[complete].flatten()
        for flat_index in complete_scores.topk(
            min(self.width, complete_scores.numel())
        ).indices.tolist():
            flat_indices.add(
                complete[flat_index // vocab_size] * vocab_size + flat_index % vocab_size
            )
        return sorted(flat_indices)

    def _filter_candidates(
        self, sequences: TokenSequences, candidates: list[ScoredCandidate]
    ) -> tuple[list[ScoredCandidate], list[tuple[ScoredCandidate, str]]]:
        allowed, pruned = [], []
        for one in candidates:
            reason = self._rejection_reason(sequences[one.parent], one.token)
            if reason:
                pruned.append((one, reason))
            else:
                allowed.append(one)
        return allowed, pruned

    def _rejection_reason(self, ids: Sequence[int], token: int) -> str:
        if len(ids) < len(self.constraints.prefix):
            return ""  # what is given goes before what is demanded
        if token == self.end_id and not self._is_complete(ids):
            return MISSING_REQUIRED
        violations = (one.violates(ids, token) for one in self.constraints.forbidden)
        return FORBIDDEN if any(violations) else ""

    def _is_complete(self, ids: Sequence[int]) -> bool:
        return all(phrase.is_satisfied(ids) for phrase in self.constraints.required)

    def _allocate(
        self,
        sequences: TokenSequences,
        allowed: list[ScoredCandidate],
        pruned: list[tuple[ScoredCandidate, str]],
    ) -> Selection:
        """Let ends among the best leave; give the slots to the banks in turn, fullest first."""
        banks: dict[int, list[ScoredCandidate]] = {}
        finished: list[ScoredCandidate] = []
        num_complete = 0
        for one in allowed:
            num_matched = self._num_satisfied(sequences, one)
            if one.token != self.end_id:
                banks.setdefault(num_matched, []).append(one)
            elif num_complete < self.width:
                finished.append(one)
            else:
                pruned.append((one, END_NOT_IN_BEAM))
            num_complete += num_matched == self.num_required_tokens
        order = list(interleave([banks[met] for met in sorted(banks, reverse=True)]))
        pruned += [(one, BEAM_FULL) for one in order[self.width :]]
        return Selection(finished, order[: self.width], pruned)

    def _num_satisfied(self, sequences: TokenSequences, one: ScoredCandidate) -> int:
        ids = sequences[one.parent]
        return num_satisfied(
            self.constraints, ids if one.token == self.end_id else [*ids, one.token]
        )


def num_satisfied(constraints: Constraints, ids: Sequence[int]) -> int:
    """Count the tokens of required phrases that are met."""
    return sum(matched_prefix_length(phrase, ids) for phrase in constraints.required)


def matched_prefix_length(phrase: RequiredPhrase, ids: Sequence[int]) -> int:
    """Count the tokens of a phrase that are met: all where it stands, else those at the end.

    A phrase (5, 6, 7) has made two steps in (9, 5, 6), and none in (5, 6, 9).
    """
    tokens = phrase.tokens
    if phrase.is_satisfied(ids):
        return len(tokens)
    for count in range(min(len(tokens) - 1, len(ids)), 0, -1):
        if tuple(ids[-count:]) == tokens[:count]:
            return count
    return 0
