"""Scores of pairs by two models, one per direction: how likely each side translates the other.

Dual conditional cross-entropy (Junczys-Dowmunt 2018): of a good pair both models think alike, and
neither thinks it unlikely. The models may have different vocabularies, so that their losses per
token have different means; only what exceeds the mean is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attendo.evaluation.perplexity import BATCH_TOKENS, compute_likelihood

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from attendo.translator import Translator

    Floats = NDArray[np.float64]

GPU_BATCH_TOKENS = 16_384


class PairScores(NamedTuple):
    """Log-probabilities per token, and a score that is higher for better pairs; NaN if empty."""

    forward: Floats
    backward: Floats | None
    score: Floats


def score_pairs(
    sources: Sequence[str],
    targets: Sequence[str],
    forward: Translator,
    backward: Translator | None = None,
    *,
    progress: Callable[[str, int, int], None] | None = None,
) -> PairScores:
    """Score every pair by a model, or by one for each direction."""
    ahead = _log_probs(forward, sources, targets, "forward", progress)
    if backward is None:
        return PairScores(ahead, None, ahead)
    back = _log_probs(backward, targets, sources, "backward", progress)
    return PairScores(ahead, back, dual_score(ahead, back))


def dual_score(forward: Floats, backward: Floats) -> Floats:
    """Return minus the dual conditional cross-entropy.

    >>> dual_score(np.array([-1.0, -1.0, -4.0]), np.array([-1.0, -4.0, -4.0])).round(2).tolist()
    [-2.0, -4.5, -5.0]
    """
    excess = (forward - np.nanmean(forward)) - (backward - np.nanmean(backward))
    scores: Floats = (forward + backward) / 2 - np.abs(excess)
    return scores


def _log_probs(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    name: str,
    progress: Callable[[str, int, int], None] | None,
) -> Floats:
    is_on_gpu = next(iter(translator.model.parameters())).device.type == "cuda"  # type: ignore[attr-defined]
    likelihood = compute_likelihood(
        translator.model,
        translator.tokenizer,
        sources,
        targets,
        batch_tokens=GPU_BATCH_TOKENS if is_on_gpu else BATCH_TOKENS,
        progress=None if progress is None else lambda done, total: progress(name, done, total),
    )
    counts = np.array(likelihood.num_tokens, dtype=np.float64)
    counts[counts == 0] = np.nan
    log_probs: Floats = np.array(likelihood.log_probs) / counts
    return log_probs
