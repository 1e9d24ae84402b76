"""The beam of one sentence, and the candidates that a step has to choose from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attendo.decoding.trace import BEAM_FULL, END_NOT_IN_BEAM, Candidate

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from attendo.decoding.hypothesis import Hypothesis
    from attendo.decoding.options import Constraints
    from attendo.decoding.trace import Trace

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

NEG_INF = float("-inf")


@dataclass
class SentenceBeam:
    """What the search of one sentence, or of one group of it, has to keep and has found."""

    sentence: int
    group: int
    limit: int
    constraints: Constraints
    n_best: int
    finished: list[Hypothesis] = field(default_factory=list)
    truncated: list[Hypothesis] = field(default_factory=list)
    """Those that had not ended when the search did."""
    trace: Trace | None = None

    def add_finished(self, hypothesis: Hypothesis) -> None:
        """Take a finished hypothesis in, if it is among the best."""
        self.finished.append(hypothesis)
        self.finished.sort(key=lambda one: -one.score)  # stable: the earlier one wins a tie
        del self.finished[self.n_best :]

    @property
    def fallback(self) -> list[Hypothesis]:
        """What is given after those that have ended, where they are too few."""
        return self.truncated if len(self.finished) < self.n_best else []

    @property
    def threshold(self) -> float:
        """The score that a hypothesis must pass to be given."""
        return self.finished[-1].score if len(self.finished) == self.n_best else NEG_INF


class BeamUpdate(NamedTuple):
    """The hypotheses that go on: for each lane and slot its parent's slot and the new token."""

    parents: Ints  # (L, K)
    tokens: Ints  # (L, K)
    log_probs: Floats  # (L, K), of the tokens
    totals: Floats  # (L, K), of the sequences; minus infinity: the slot is empty

    @classmethod
    def empty(cls, shape: tuple[int, int], end_id: int) -> BeamUpdate:
        """Begin with nothing in any slot."""
        tokens = np.full(shape, end_id, dtype=np.int64)
        return cls(np.zeros_like(tokens), tokens, np.zeros(shape), np.full(shape, NEG_INF))


class TopCandidates(NamedTuple):
    """The best continuations of some lanes, best first."""

    parents: Ints  # (R, C), slots
    tokens: Ints  # (R, C)
    log_probs: Floats  # (R, C), of the tokens
    totals: Floats  # (R, C), of the sequences; minus infinity: no candidate

    def split_finished(self, end_id: int, width: int) -> tuple[Bools, Ints]:
        """Tell which end, (R, C), and the ranks of those that go on, (R, K).

        Each hypothesis ends in one way only, so `width` of twice as many candidates go on.
        """
        is_end = self.tokens == end_id
        ends = is_end & (self.totals > NEG_INF)
        ends[:, width:] = False
        return ends, np.argsort(is_end, axis=1, kind="stable")[:, :width]

    def to_trace(
        self, row: int, ends: Bools, order: Ints, end_id: int, score: Callable[[float], float]
    ) -> list[Candidate]:
        """Tell the fate of every candidate of one lane."""
        slots = {int(rank): slot for slot, rank in enumerate(order)}
        candidates = []
        columns = (self.tokens[row], self.parents[row], self.log_probs[row], self.totals[row])
        for rank, (token, parent, log_prob, total) in enumerate(zip(*columns, strict=True)):
            if total == NEG_INF:
                continue
            scores = (float(log_prob), float(total), score(float(total)))
            token_and_parent = (int(token), int(parent))
            if ends[rank]:
                candidates.append(Candidate(*token_and_parent, None, *scores, "finished"))
            elif rank in slots:
                candidates.append(Candidate(*token_and_parent, slots[rank], *scores, "kept"))
            else:
                reason = END_NOT_IN_BEAM if token == end_id else BEAM_FULL
                candidates.append(Candidate(*token_and_parent, None, *scores, "pruned", reason))
        return candidates
