"""Scores of labels, held against scikit-learn and figures by hand."""

from __future__ import annotations

import random

import pytest

from attendo.core.errors import InputError
from attendo.tasks.classification.metrics import expected_calibration_error, score_labels


def test_scores_are_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    draw = random.Random(3)  # noqa: S311 - a toy
    names = ["spam", "not spam", "표지", "rare"]
    right = draw.choices(names, weights=[50, 30, 20, 1], k=400)
    printed = [
        one if draw.random() < 0.7 else draw.choice([*names, "never there"]) for one in right
    ]
    found = score_labels(printed, right)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(right, printed))
    macro = metrics.f1_score(right, printed, average="macro", zero_division=0)
    assert found.macro_f1 == pytest.approx(macro)
    order = [one.label for one in found.classes]
    table = metrics.precision_recall_fscore_support(right, printed, labels=order, zero_division=0)
    for name, values in zip(("precision", "recall", "f1", "support"), table, strict=True):
        assert [getattr(one, name) for one in found.classes] == pytest.approx(values.tolist())
    assert [one.support for one in found.classes] == sorted(
        (one.support for one in found.classes), reverse=True
    )


def test_the_majority_and_what_is_confused_by_hand():
    found = score_labels(["a", "a", "b", "a", "c"], ["a", "b", "b", "b", "a"])
    assert found.majority == 3 / 5
    assert found.accuracy == 2 / 5
    assert found.confused == [("b", "a", 2), ("a", "c", 1)]
    reported = found.to_dict()
    assert reported["confused"][0] == {"expected": "b", "predicted": "a", "count": 2}
    assert reported["classes"][0] == {
        "label": "b",
        "support": 3,
        "precision": 1.0,
        "recall": 0.333333,
        "f1": 0.5,
    }


def test_a_label_that_was_never_seen_is_wrong_and_reported():
    found = score_labels(["a", "b"], ["a", "new"], known_labels=["a", "b"])
    assert found.unseen == {"new": 1}
    assert found.accuracy == 0.5
    assert any("'new' does not occur in the training data" in line for line in found.to_lines())
    assert score_labels(["a"], ["a"]).unseen is None


def test_lines_for_the_terminal_begin_with_what_people_want():
    lines = score_labels(["a", "b", "b"], ["a", "b", "a"], confidences=[0.9, 0.8, 0.6]).to_lines()
    assert lines[0].startswith("accuracy 66.67%, macro F1 0.667, ECE ")
    assert "majority class: 66.67%" in lines[0]
    assert len(lines) == 3


def test_calibration_error_by_hand():
    # bins of 1/15: 0.95 twice (one right), 0.30 once (right)
    found = expected_calibration_error([0.95, 0.95, 0.30], [True, False, True])
    assert found == pytest.approx((abs(1 - 1.9) + abs(1 - 0.3)) / 3)
    assert expected_calibration_error([1.0, 1.0], [True, True]) == 0.0
    assert expected_calibration_error([0.0], [False]) == 0.0


def test_what_cannot_be_compared_is_rejected():
    with pytest.raises(InputError, match="2 predictions for 1 references"):
        score_labels(["a", "b"], ["a"])
    with pytest.raises(InputError, match="no reference"):
        score_labels([], [])
