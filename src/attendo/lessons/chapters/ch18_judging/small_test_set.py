"""A small test set with two made-up systems: how sure a score and a difference are."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import NamedTuple

from attendo.evaluation.bootstrap import Interval, confidence_interval
from attendo.evaluation.metrics import build_metrics
from attendo.evaluation.scores import compare_systems, score_outputs
from attendo.synthetic.everyday import synthesize_pairs

NUM_SENTENCES = 20
MAX_SENTENCES = 200
SIZES = (10, 20, 50, 100, MAX_SENTENCES)
ERROR_RATES = {"A": 0.10, "B": 0.12}
"""How often a system replaces a word by a random one."""
SEED = 5
SIGNIFICANCE_LEVEL = 0.05


class SmallTestSet(NamedTuple):
    """References and the outputs of each system."""

    references: list[str]
    outputs: dict[str, list[str]]


class SystemScore(NamedTuple):
    """The BLEU of a system."""

    score: float
    interval: Interval


class SystemComparison(NamedTuple):
    """Two systems on the same sentences."""

    scores: dict[str, SystemScore]
    difference: float
    difference_interval: Interval
    p_value: float


@cache
def make_test_set() -> SmallTestSet:
    """Return sentences of the built-in corpus, and what two systems make of them."""
    references = [pair.en for pair in synthesize_pairs(MAX_SENTENCES, seed=SEED)]
    words = sorted({word for text in references for word in text.split()})
    outputs = {}
    for name, rate in ERROR_RATES.items():
        rng = Random(f"{SEED}-{name}")  # noqa: S311 - nothing secret
        outputs[name] = [_make_errors(text, rate, words, rng) for text in references]
    return SmallTestSet(references, outputs)


def _make_errors(text: str, rate: float, words: list[str], rng: Random) -> str:
    return " ".join(rng.choice(words) if rng.random() < rate else word for word in text.split())


@cache
def compare(num_sentences: int) -> SystemComparison:
    """Return the scores of both systems on the first sentences, and how sure they are."""
    test_set = make_test_set()
    metrics = build_metrics(test_set.references[:num_sentences], requested=["bleu"]).selected
    scored = {
        name: score_outputs(metrics, outputs[:num_sentences])
        for name, outputs in test_set.outputs.items()
    }
    first, second = scored.values()
    (comparison,) = compare_systems(first, second)
    samples = {name: one.bootstrap_scores["bleu"] for name, one in scored.items()}
    first_samples, second_samples = samples.values()
    return SystemComparison(
        {
            name: SystemScore(one.scores[0].value, confidence_interval(samples[name]))
            for name, one in scored.items()
        },
        comparison.difference,
        confidence_interval(first_samples - second_samples),
        float(comparison.p_value or 0.0),
    )
