"""Scores of the trained systems: BLEU with intervals, by length, over time, selected on val."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from attendo.evaluation.bootstrap import (
    bootstrap_scores,
    confidence_interval,
    paired_bootstrap_p_value,
)
from attendo.evaluation.breakdown import by_source_length
from attendo.evaluation.metrics import TokenizedReference, build_metrics
from attendo.text.lines import read_lines

from .study import SETS, corpus_file, result_file
from .systems import SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attendo.evaluation.bootstrap import Values
    from attendo.evaluation.metrics import Metric

NUM_SAMPLES = 1000
LEVELS = (10, 20, 25, 30, 35, 38, 40)
"""BLEU levels of validation (200 sentences of val, greedy) whose first step is reported."""
REFERENCE = "transformer"
"""The family that all others are compared with."""


def find_all(folder: Path, corpus: Path, speeds: dict[str, Any]) -> dict[str, Any]:
    """Return the scores of all finished systems, and the best variant of each family."""
    names = [name for name in SYSTEMS if result_file(folder, name).exists()]
    val, test = SETS
    references = {part: list(read_lines(corpus_file(corpus, part, "de"))) for part in SETS}
    sources = list(read_lines(corpus_file(corpus, test, "en")))
    metrics = {part: _tokenized_bleu(texts) for part, texts in references.items()}
    found, samples = {}, {}
    for name in names:
        result = json.loads(result_file(folder, name).read_text(encoding="utf-8"))
        outputs = result.pop("outputs")
        on_val, on_test = (metrics[part].sentence_counts(outputs[part]) for part in SETS)
        samples[name] = bootstrap_scores(on_test, metrics[test].score, NUM_SAMPLES)
        lengths = by_source_length(metrics[test], on_test, sources, num_samples=NUM_SAMPLES)
        system = SYSTEMS[name]
        found[name] = {
            **result,
            "family": system.family,
            "title": system.title,
            "is_ablation": system.is_ablation,
            "settings": {**system.model, **system.train},
            "val": metrics[val].score(on_val.sum(axis=0)),
            "test": metrics[test].score(on_test.sum(axis=0)),
            "interval": list(confidence_interval(samples[name])),
            "by_length": [one._asdict() for one in lengths.buckets if one.low is not None],
            "speed": speeds.get(system.family),
        }
    chosen = choose(found)
    for name in chosen:
        found[name]["reached"] = first_reached(found[name])
        found[name]["p_value"] = _compare(found, samples, name, chosen)
    return {"chosen": chosen, "systems": found, "signature": metrics[test].signature(NUM_SAMPLES)}


def _tokenized_bleu(references: Sequence[str]) -> Metric:
    given = TokenizedReference(references, ("as-is",))
    (metric,) = build_metrics(references, requested=["bleu-tok"], tokenized=given).selected
    return metric


def choose(found: dict[str, Any]) -> list[str]:
    """Return the variant of each family that is best on val, in the order of the list.

    >>> choose({"a-1": {"family": "a", "val": 1.0}, "a-2": {"family": "a", "val": 2.0}})
    ['a-2']
    """
    best: dict[str, str] = {}
    for name, figures in found.items():
        rival = best.get(figures["family"])
        if rival is None or figures["val"] > found[rival]["val"]:
            best[figures["family"]] = name
    return list(best.values())


def first_reached(figures: dict[str, Any]) -> dict[int, dict[str, float | None]]:
    """Return the step at which each level was reached, and the seconds of training alone.

    >>> figures = {"validations": [{"step": 10, "bleu": 12.0}, {"step": 20, "bleu": 26.0}],
    ...            "speed": {"step_seconds": 0.5}}
    >>> first_reached(figures)[25]
    {'step': 20, 'seconds': 10.0}
    """
    speed = figures.get("speed") or {}
    reached: dict[int, dict[str, float | None]] = {}
    for level in LEVELS:
        steps = [one["step"] for one in figures["validations"] if one.get("bleu", 0.0) >= level]
        if steps:
            seconds = speed and steps[0] * speed["step_seconds"]
            reached[level] = {"step": steps[0], "seconds": seconds or None}
    return reached


def _compare(
    found: dict[str, Any], samples: dict[str, Values], name: str, chosen: Sequence[str]
) -> float | None:
    """Return the paired p-value of a system against the Transformer."""
    rival = next((one for one in chosen if found[one]["family"] == REFERENCE), None)
    if rival in (None, name):
        return None
    assert rival is not None  # noqa: S101 - for the type checker
    difference = found[name]["test"] - found[rival]["test"]
    return paired_bootstrap_p_value(samples[name], samples[rival], difference)
