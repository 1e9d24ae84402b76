"""Lexical constraints: phrases that must, and must not, occur in a translation.

Dynamic beam allocation (Post and Vilar 2018): hypotheses are grouped in banks by the number of
constraint tokens that they have matched, and the slots of a beam are assigned to the banks in turn,
starting with the most matched tokens. A phrase can thus occur where it fits the sentence best, and
some hypothesis always makes progress towards all phrases. In addition to the best continuations,
each hypothesis proposes the next token of every missing phrase. It may end only when it has all
phrases, and if its end is among the best `width` continuations of the hypotheses that have them
all: more likely hypotheses that lack a phrase must not prevent it.

Progress is computed from the ids at each step. A phrase that was begun and abandoned counts only as
far as the end of the sequence matches its beginning. A phrase that occurs in another tokenization
counts as matched, since the text decides.

A phrase belongs inside the sentence. Where the model would end after a full stop but a phrase is
missing, the hypothesis is dropped if others contain the phrase or can still take it up.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.decoding.trace import (
    AFTER_END,
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
    from attendo.decoding.trace import Outcome

    TokenSequences = Sequence[Sequence[int]]

CERTAIN_END = math.log(0.5)
"""Above this log-probability of the end symbol, a sentence is over."""
WIDEN_FACTOR = 4
"""If forbidden phrases leave too few candidates, this many times more are considered."""


class ScoredCandidate(NamedTuple):
    """A candidate before the selection."""

    parent: int
    token: int
    log_prob: float
    total: float
    rank_score: float
    """The ranking criterion: the total minus the penalty for tokens of other beam groups."""


class Selection(NamedTuple):
    """The outcome for the candidates of one beam."""

    finished: list[ScoredCandidate]
    kept: list[ScoredCandidate]
    """In the order of their slots."""
    pruned: list[tuple[ScoredCandidate, str]]
    """With their reasons."""


class DynamicBeamAllocator:
    """Chooses the next hypotheses of one beam by the phrases in their texts.

    `sequences` are the ids in each slot. `log_probs` (K, V) are those of the next tokens, `totals`
    (K, V) those of the sequences with them, and `rank_scores` (K, V) the ranking criterion.
    """

    def __init__(self, constraints: Constraints, *, width: int, end_id: int) -> None:
        self.constraints, self.width, self.end_id = constraints, width, end_id
        self.num_required_tokens = sum(len(phrase.tokens) for phrase in constraints.required)

    def select(
        self, sequences: TokenSequences, log_probs: Tensor, totals: Tensor, rank_scores: Tensor
    ) -> Selection:
        """Return the candidates that finish, that continue, and that are pruned."""
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
        ranked, late = self._split_late(sequences, ranked, log_probs)
        return self._allocate(sequences, ranked, [*pruned, *also_pruned, *late])

    def to_trace(
        self, sequences: TokenSequences, selection: Selection, score: Callable[[float], float]
    ) -> list[Candidate]:
        """Return every candidate with its outcome, best first."""
        outcomes: list[tuple[ScoredCandidate, int | None, Outcome, str]] = [
            *((one, None, "finished", "") for one in selection.finished),
            *((one, slot, "kept", "") for slot, one in enumerate(selection.kept)),
            *((one, None, "pruned", reason) for one, reason in selection.pruned),
        ]
        outcomes.sort(key=lambda outcome: -outcome[0].rank_score)
        candidates = []
        for one, slot, outcome, why in outcomes:
            candidates.append(
                Candidate(
                    id=one.token,
                    parent=one.parent,
                    slot=slot,
                    log_prob=one.log_prob,
                    total=one.total,
                    score=score(one.total),
                    outcome=outcome,
                    why=why,
                    met=self._num_satisfied(sequences, one),
                )
            )
        return candidates

    def _gather_candidates(
        self, flat_indices: list[int], log_probs: Tensor, totals: Tensor, rank_scores: Tensor
    ) -> list[ScoredCandidate]:
        """Return the candidates at these indices of the flattened scores."""
        flat = torch.tensor(flat_indices, dtype=torch.long, device=totals.device)
        columns = (values.flatten()[flat].tolist() for values in (log_probs, totals, rank_scores))
        vocab_size = totals.size(1)
        return [
            ScoredCandidate(flat_index // vocab_size, flat_index % vocab_size, *values)
            for flat_index, *values in zip(flat_indices, *columns, strict=True)
            if values[1] > float("-inf")
        ]

    def _propose(self, sequences: TokenSequences, rank_scores: Tensor) -> list[int]:
        """Return the flat indices of candidates that must be considered though not the best.

        They are the best continuation of each hypothesis, the next tokens of its missing phrases,
        and the best `width` continuations of the hypotheses that lack no phrase.
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
            return ""  # the prefix overrides the phrases
        if token == self.end_id and not self._is_complete(ids):
            return MISSING_REQUIRED
        violations = (one.violates(ids, token) for one in self.constraints.forbidden)
        return FORBIDDEN if any(violations) else ""

    def _split_late(
        self, sequences: TokenSequences, candidates: list[ScoredCandidate], log_probs: Tensor
    ) -> tuple[list[ScoredCandidate], list[tuple[ScoredCandidate, str]]]:
        """Separate candidates that continue after the end of a sentence, if there are others."""
        over = {
            slot
            for slot, log_prob in enumerate(log_probs[:, self.end_id].tolist())
            if log_prob > CERTAIN_END
            and self.constraints.ending_ids.intersection(sequences[slot][-1:])
            and not self._is_complete(sequences[slot])
        }
        timely = [one for one in candidates if one.parent not in over]
        if not timely:
            return candidates, []
        return timely, [(one, AFTER_END) for one in candidates if one.parent in over]

    def _is_complete(self, ids: Sequence[int]) -> bool:
        return all(phrase.is_satisfied(ids) for phrase in self.constraints.required)

    def _allocate(
        self,
        sequences: TokenSequences,
        allowed: list[ScoredCandidate],
        pruned: list[tuple[ScoredCandidate, str]],
    ) -> Selection:
        """Finish the best ends; assign slots to the banks in turn, most matched tokens first."""
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
        order = list(interleave([banks[num] for num in sorted(banks, reverse=True)]))
        pruned += [(one, BEAM_FULL) for one in order[self.width :]]
        return Selection(finished, order[: self.width], pruned)

    def _num_satisfied(self, sequences: TokenSequences, one: ScoredCandidate) -> int:
        ids = sequences[one.parent]
        return num_satisfied(
            self.constraints, ids if one.token == self.end_id else [*ids, one.token]
        )


def num_satisfied(constraints: Constraints, ids: Sequence[int]) -> int:
    """Return the number of matched tokens of required phrases."""
    return sum(matched_prefix_length(phrase, ids) for phrase in constraints.required)


def matched_prefix_length(phrase: RequiredPhrase, ids: Sequence[int]) -> int:
    """Return the number of matched tokens of a phrase: all if it occurs, else those at the end.

    The phrase (5, 6, 7) has two matched tokens in (9, 5, 6), and none in (5, 6, 9).
    """
    tokens = phrase.tokens
    if phrase.is_satisfied(ids):
        return len(tokens)
    for count in range(min(len(tokens) - 1, len(ids)), 0, -1):
        if tuple(ids[-count:]) == tokens[:count]:
            return count
    return 0
