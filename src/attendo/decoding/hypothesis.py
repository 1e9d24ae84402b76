"""The results of a search: sequences with their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from attendo.decoding.options import DecodingOptions, LengthNorm
    from attendo.decoding.trace import Trace


class Hypothesis(NamedTuple):
    """One output sequence."""

    ids: list[int]
    """Without the start and end symbols."""
    log_prob: float
    """Of the whole sequence, including the end symbol if it was generated."""
    score: float
    """`log_prob` divided by the length penalty: hypotheses are ranked by it."""
    token_log_probs: list[float]
    """Of each token, then of the end symbol if it was generated."""
    is_finished: bool
    """False if the limit was reached before the end symbol."""


class SearchResult(NamedTuple):
    """The result of a search for one source sentence."""

    hypotheses: list[Hypothesis]
    """Best first, never empty."""
    trace: Trace | None = None


def length_penalty(length: int, alpha: float, kind: LengthNorm = "paper") -> float:
    """Return the divisor of the log-probability of `length` tokens, including the end symbol.

    Paper: section 6.1 uses that of Wu et al. (2016), equation 14.

    >>> length_penalty(7, 1.0), length_penalty(7, 1.0, "power"), length_penalty(7, 0.0)
    (2.0, 7.0, 1.0)
    """
    base = (5 + length) / 6 if kind == "paper" else length
    return float(base**alpha)


def truncate_hypothesis(
    ids: list[int], log_probs: list[float], limit: int, end_id: int, options: DecodingOptions
) -> Hypothesis:
    """Return the hypothesis of one row: its tokens up to the end symbol, or up to the limit."""
    is_finished = end_id in ids[:limit]
    length = ids.index(end_id) if is_finished else limit
    kept_log_probs = log_probs[: length + is_finished]
    total = sum(kept_log_probs)
    penalty = length_penalty(max(len(kept_log_probs), 1), options.alpha, options.length_norm)
    return Hypothesis(
        ids=ids[:length],
        log_prob=total,
        score=total / penalty,
        token_log_probs=kept_log_probs,
        is_finished=is_finished,
    )
