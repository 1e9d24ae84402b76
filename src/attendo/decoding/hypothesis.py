"""What a search finds: sequences with their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from attendo.decoding.options import DecodingOptions, LengthNorm
    from attendo.decoding.trace import Trace


class Hypothesis(NamedTuple):
    """One translation."""

    ids: list[int]
    """Without the start and end symbols."""
    log_prob: float
    """Of the whole sequence, the end symbol included where it came."""
    score: float
    """`log_prob` over the length penalty: what hypotheses are ranked by."""
    token_log_probs: list[float]
    """Of each token, and of the end symbol last where it came."""
    is_finished: bool
    """False where the limit came before the end symbol."""


class SearchResult(NamedTuple):
    """All that a search gives for one source sentence."""

    hypotheses: list[Hypothesis]
    """Best first, never empty."""
    trace: Trace | None = None


def length_penalty(length: int, alpha: float, kind: LengthNorm = "paper") -> float:
    """Give what the log-probability of `length` tokens, the end symbol included, is divided by.

    Paper: section 6.1 takes that of Wu et al. (2016), equation 14.

    >>> length_penalty(7, 1.0), length_penalty(7, 1.0, "power"), length_penalty(7, 0.0)
    (2.0, 7.0, 1.0)
    """
    base = (5 + length) / 6 if kind == "paper" else length
    return float(base**alpha)


def truncate_hypothesis(
    ids: list[int], log_probs: list[float], limit: int, end_id: int, options: DecodingOptions
) -> Hypothesis:
    """Make a hypothesis of all that one row has said: up to its end symbol, or to its limit."""
    is_finished = end_id in ids[:limit]
    length = ids.index(end_id) if is_finished else limit
    kept_log_probs = log_probs[: length + is_finished]
    total = sum(kept_log_probs)
    penalty = length_penalty(max(len(kept_log_probs), 1), options.alpha, options.length_norm)
    return Hypothesis(ids[:length], total, total / penalty, kept_log_probs, is_finished)
