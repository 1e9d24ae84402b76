"""The beam of one sentence, and the candidates of a step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attendo.decoding.limits import NEG_INF
from attendo.decoding.trace import BEAM_FULL, END_NOT_IN_BEAM, Candidate

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from attendo.decoding.hypothesis import Hypothesis
    from attendo.decoding.options import Constraints
    from attendo.decoding.trace import Outcome, Trace

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@dataclass
class SentenceBeam:
    """The beam of one sentence, or of one of its groups, and its finished hypotheses."""

    sentence: int
    group: int
    limit: int
    constraints: Constraints | None
    n_best: int
    finished: list[Hypothesis] = field(default_factory=list)
    truncated: list[Hypothesis] = field(default_factory=list)
    """Hypotheses that were unfinished when the search stopped."""
    trace: Trace | None = None

    @property
    def has_phrases(self) -> bool:
        """Return whether the candidates must be chosen by their phrases."""
        return self.constraints is not None and self.constraints.has_phrases

    def add_finished(self, hypothesis: Hypothesis) -> None:
        """Add a finished hypothesis if it is among the best."""
        self.finished.append(hypothesis)
        self.finished.sort(key=lambda one: -one.score)  # stable: the earlier one wins a tie
        del self.finished[self.n_best :]

    @property
    def fallback(self) -> list[Hypothesis]:
        """The unfinished hypotheses that are returned if too few have finished."""
        return self.truncated if len(self.finished) < self.n_best else []

    @property
    def threshold(self) -> float:
        """The score that a hypothesis must exceed to be returned."""
        return self.finished[-1].score if len(self.finished) == self.n_best else NEG_INF


class BeamUpdate(NamedTuple):
    """The hypotheses that continue: per beam and slot, the parent's slot and the new token."""

    parents: Ints  # (L, K)
    tokens: Ints  # (L, K)
    log_probs: Floats  # (L, K), of the tokens
    totals: Floats  # (L, K), of the sequences; minus infinity: the slot is empty

    @classmethod
    def empty(cls, shape: tuple[int, int], end_id: int) -> BeamUpdate:
        """Return an update whose slots are all empty."""
        tokens = np.full(shape, end_id, dtype=np.int64)
        return cls(np.zeros_like(tokens), tokens, np.zeros(shape), np.full(shape, NEG_INF))


class TopCandidates(NamedTuple):
    """The best continuations of some beams, best first."""

    parents: Ints  # (R, C), slots
    tokens: Ints  # (R, C)
    log_probs: Floats  # (R, C), of the tokens
    totals: Floats  # (R, C), of the sequences; minus infinity: no candidate

    def split_finished(self, end_id: int, width: int) -> tuple[Bools, Ints]:
        """Return which candidates end, (R, C), and the ranks of those that continue, (R, K).

        A hypothesis has one candidate that ends it, so at least half of the candidates continue.
        """
        is_end = self.tokens == end_id
        ends = is_end & (self.totals > NEG_INF)
        ends[:, width:] = False
        return ends, np.argsort(is_end, axis=1, kind="stable")[:, :width]

    def to_trace(
        self, row: int, ends: Bools, order: Ints, end_id: int, score: Callable[[float], float]
    ) -> list[Candidate]:
        """Return the candidates of one beam with their outcomes."""
        slots = {int(rank): slot for slot, rank in enumerate(order)}
        candidates = []
        for rank, total in enumerate(self.totals[row].tolist()):
            if total == NEG_INF:
                continue
            token = int(self.tokens[row, rank])
            slot, why = slots.get(rank), ""
            outcome: Outcome = "kept"
            if ends[rank]:
                slot, outcome = None, "finished"
            elif slot is None:
                outcome, why = "pruned", END_NOT_IN_BEAM if token == end_id else BEAM_FULL
            candidates.append(
                Candidate(
                    id=token,
                    parent=int(self.parents[row, rank]),
                    slot=slot,
                    log_prob=float(self.log_probs[row, rank]),
                    total=total,
                    score=score(total),
                    outcome=outcome,
                    why=why,
                )
            )
        return candidates
