"""The trace of a search: every candidate of every step, and why it was kept or dropped.

The JSON form (`Trace.to_dict`), version 2 (version 1 had sentences in place of the codes)::

    {"format": "attendo.trace", "version": 2,
     "method": "beam",                 greedy, beam or sampling
     "beam_size": 4, "alpha": 0.6, "length_norm": "paper", "n_best": 1,
     "limit": 57, "end_id": 3,
     "steps": [{"group": 0, "position": 0, "candidates": [
         {"id": 17,                    the next token
          "parent": 0,                 the slot of the hypothesis that it extends
          "slot": 0,                   its new slot, or null
          "log_prob": -0.21,           of the token
          "total": -0.21,              of the sequence with it
          "score": -0.2,               the total divided by the length penalty
          "outcome": "kept",              kept, finished or pruned
          "why": "",                   the code of the reason, if it was pruned
          "met": 0}]}],                matched tokens of required phrases
     "stopped": "best_finished",       the code of the reason
     "hypotheses": [{"ids": [17, 5], "total": -1.2, "score": -0.9, "is_finished": true}]}

Candidates are sorted, best first. The slots of a step are the parents of the next one; at position
0 the only parent is slot 0, the start symbol. Numbers are rounded except for scores, whose last
digits may decide the order of the hypotheses. Only the first of several samples is traced. The
translator adds a `"token"` to each `"id"`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attendo.decoding.hypothesis import Hypothesis

    TokenSequences = list[list[int]]

ItemT = TypeVar("ItemT")

Outcome = Literal["kept", "finished", "pruned"]

VERSION = 2
DIGITS = 6

BEAM_FULL = "beam_full"
"""Better candidates fill the beam."""
END_NOT_IN_BEAM = "end_not_in_beam"
"""The end symbol, but not among the best `beam_size` candidates."""
FORBIDDEN = "forbidden_phrase"
"""The translation would contain a forbidden phrase."""
MISSING_REQUIRED = "missing_required_phrase"
"""The translation would end before a required phrase."""
AFTER_END = "after_end"
"""A required phrase would follow the end of the sentence."""
NOT_SAMPLED = "not_sampled"
STOP_FINISHED = "best_finished"
"""No unfinished hypothesis can become better than the finished ones."""
STOP_LIMIT = "length_limit"
STOP_NO_CONTINUATION = "no_continuation"
"""Every token is ruled out."""


class Candidate(NamedTuple):
    """A hypothesis extended by one token."""

    id: int
    parent: int
    slot: int | None
    log_prob: float
    total: float
    score: float
    outcome: Outcome
    why: str = ""
    met: int = 0


@dataclass
class Step:
    """The candidates of one beam at one position."""

    group: int
    position: int
    candidates: list[Candidate]


@dataclass
class Trace:
    """The trace of one sentence."""

    method: str
    beam_size: int
    alpha: float
    length_norm: str
    n_best: int
    limit: int
    end_id: int
    steps: list[Step] = field(default_factory=list)
    stopped: str = STOP_FINISHED
    hypotheses: list[Hypothesis] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that the module documents."""
        settings = {
            key: getattr(self, key)
            for key in ("method", "beam_size", "alpha", "length_norm", "n_best", "limit", "end_id")
        }
        return {
            "format": "attendo.trace",
            "version": VERSION,
            **settings,
            "steps": [
                {
                    "group": step.group,
                    "position": step.position,
                    "candidates": [_candidate_to_dict(one) for one in step.candidates],
                }
                for step in self.steps
            ],
            "stopped": self.stopped,
            "hypotheses": [
                {
                    "ids": hypothesis.ids,
                    "total": round(hypothesis.log_prob, DIGITS),
                    "score": hypothesis.score,
                    "is_finished": hypothesis.is_finished,
                }
                for hypothesis in self.hypotheses
            ],
        }


def replay(trace: dict[str, Any]) -> list[list[int]]:
    """Return the output sequences that the steps of a trace (its JSON form) lead to, best first.

    Only the candidates are used, so that the stored hypotheses can be checked against them.
    """
    groups = sorted({step["group"] for step in trace["steps"]})
    num_wanted = min(trace["n_best"], trace["beam_size"] // len(groups))
    replayed = [_replay_group(trace["steps"], group) for group in groups]
    ended = [ended[:num_wanted] for ended, _ in replayed]
    alive = [alive if len(ended) < num_wanted else [] for ended, alive in replayed]
    distinct = dict.fromkeys(map(tuple, [*interleave(ended), *interleave(alive)]))
    return [list(ids) for ids in distinct][: trace["n_best"]]


def interleave(groups: list[list[ItemT]]) -> Iterator[ItemT]:
    """Yield the first item of each group, then the second of each, and so on.

    >>> list(interleave([[1, 2, 3], [7, 8]]))
    [1, 7, 2, 8, 3]
    """
    for rank in range(max(map(len, groups), default=0)):
        yield from (group[rank] for group in groups if rank < len(group))


def _replay_group(steps: list[dict[str, Any]], group: int) -> tuple[TokenSequences, TokenSequences]:
    """Return the finished and the unfinished sequences, the best of each first."""
    ids_by_slot: dict[int, list[int]] = {0: []}
    alive: list[dict[str, Any]] = [{"slot": 0}]
    ended: list[tuple[float, list[int]]] = []
    for step in (step for step in steps if step["group"] == group):
        surviving = [one for one in step["candidates"] if one["outcome"] != "pruned"]
        ended += [
            (-one["score"], ids_by_slot[one["parent"]]) for one in surviving if one["slot"] is None
        ]
        kept = [one for one in surviving if one["slot"] is not None]
        if kept or ended:  # else nothing could follow: the sequences stay
            ids_by_slot = {one["slot"]: [*ids_by_slot[one["parent"]], one["id"]] for one in kept}
            alive = sorted(kept, key=lambda one: (-one["met"], -one["score"], one["slot"]))
    ended.sort(key=lambda pair: pair[0])  # stable: the earlier one wins a tie
    return [ids for _, ids in ended], [ids_by_slot[one["slot"]] for one in alive]


def _candidate_to_dict(candidate: Candidate) -> dict[str, Any]:
    rounded = {key: round(getattr(candidate, key), DIGITS) for key in ("log_prob", "total")}
    return {**candidate._asdict(), **rounded}
