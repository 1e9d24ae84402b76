"""BLEU and chrF by sacreBLEU; BLEU with the signature that describes how it was computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Bleu(NamedTuple):
    """A score from 0 to 100."""

    score: float
    signature: str


def bleu(outputs: Sequence[str], references: Sequence[str]) -> Bleu:
    """Score translations against one reference each: cased, 13a tokenization.

    >>> bleu(["the prince saved the princess"], ["the prince saved the princess"]).score
    100.0
    """
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU()
    result = metric.corpus_score(list(outputs), [list(references)])
    return Bleu(round(result.score, 4), str(metric.get_signature()))


def chrf(outputs: Sequence[str], references: Sequence[str]) -> float:
    """Score translations by character n-grams, from 0 to 100.

    >>> chrf(["the prince saved the princess"], ["the prince saved the princess"])
    100.0
    """
    from sacrebleu.metrics.chrf import CHRF

    return round(float(CHRF().corpus_score(list(outputs), [list(references)]).score), 4)
