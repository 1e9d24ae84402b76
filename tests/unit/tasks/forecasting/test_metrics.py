from __future__ import annotations

import json
import math

import numpy as np
import pytest
import sklearn.metrics
import torch

from attendo.core.errors import InputError
from attendo.evaluation.calibration import calibrate
from attendo.tasks.forecasting.metrics import label_metrics, numeric_metrics

LABELS = ("calm", "rain", "storm")


def draw(num_windows=200, num_labels=3, horizon=4):
    random = np.random.default_rng(3)
    probabilities = random.dirichlet(np.ones(num_labels), (num_windows, horizon))
    return random.integers(-1, num_labels, (num_windows, horizon)), probabilities


def test_figures_by_hand():
    truth = np.array([[1, 0], [1, -1], [0, 0]])  # one is missing
    yes = np.array([[0.9, 0.2], [0.4, 0.99], [0.6, 0.1]])
    found = label_metrics(truth, np.stack([1 - yes, yes], axis=-1), ("no", "yes"))
    assert found["num_scored"] == 5
    assert found["accuracy"] == pytest.approx(3 / 5)
    assert found["f1_by_label"] == pytest.approx({"no": 2 * 2 / (3 + 3), "yes": 2 * 1 / (2 + 2)})
    assert found["f1"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert found["brier"] == pytest.approx((0.01 + 0.04 + 0.36 + 0.36 + 0.01) / 5)
    logs = [math.log(0.9), math.log(0.8), math.log(0.4), math.log(0.4), math.log(0.9)]
    assert found["log_loss"] == pytest.approx(-sum(logs) / 5)
    assert found["accuracy_by_step"] == pytest.approx([1 / 3, 1.0])
    assert found["brier_by_step"] == pytest.approx([0.73 / 3, 0.05 / 2])
    # in their fifteenths: 0.9 twice, right; 0.8, right; 0.6 twice, wrong
    assert found["ece"] == pytest.approx((2 * 0.1 + 0.2 + 2 * 0.6) / 5)


@pytest.mark.parametrize("num_labels", [2, 3])
def test_figures_are_those_of_scikit_learn(num_labels):
    truth, probabilities = draw(num_labels=num_labels)
    labels = LABELS[:num_labels]
    found = label_metrics(truth, probabilities, labels)
    known = truth >= 0
    right, own = truth[known], probabilities[known]
    numbers = list(range(num_labels))
    guess = own.argmax(-1)
    metrics = sklearn.metrics
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(right, guess))
    assert found["f1"] == pytest.approx(metrics.f1_score(right, guess, average="macro"))
    by_label = metrics.f1_score(right, guess, average=None)
    assert list(found["f1_by_label"].values()) == pytest.approx(by_label)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(right, own, labels=numbers))
    wanted = metrics.brier_score_loss(right, own[:, 1] if num_labels == 2 else own, labels=numbers)
    assert found["brier"] == pytest.approx(wanted)


def test_calibration_error_is_that_of_text_models():
    truth, probabilities = draw()
    found = label_metrics(truth, probabilities, LABELS)
    logits = torch.from_numpy(np.log(probabilities))
    logits = torch.cat([torch.full_like(logits[..., :1], -1e4), logits], dim=-1)  # padding first
    text = calibrate(lambda: [(logits, torch.from_numpy(truth + 1))])
    assert found["ece"] == pytest.approx(text.ece_before, abs=1e-6)
    assert [one["count"] for one in found["bins"]] == [one.count for one in text.bins_before]


def test_a_chosen_sequence_decides_accuracy_but_not_the_probabilities():
    truth, probabilities = draw()
    plain = label_metrics(truth, probabilities, LABELS)
    forced = label_metrics(truth, probabilities, LABELS, predicted=np.maximum(truth, 0))
    assert forced["accuracy"] == forced["f1"] == 1.0
    assert forced["log_loss"] == plain["log_loss"]
    assert forced["ece"] == plain["ece"]


def test_a_probability_of_zero_costs_much_but_not_infinity_and_json_writes_all():
    truth = np.array([[1, -1]])
    found = label_metrics(truth, np.array([[[1.0, 0.0], [0.5, 0.5]]]), ("no", "yes"))
    assert found["log_loss"] == pytest.approx(-math.log(1e-15))
    assert found["accuracy_by_step"] == [0.0, None]
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_errors_of_numbers_by_hand():
    truth = np.array([[[1.0, 10.0], [2.0, np.nan]], [[3.0, 30.0], [np.nan, 50.0]]])
    values = np.array([[[2.0, 10.0], [5.0, 0.0]], [[3.0, 26.0], [9.0, 50.0]]])
    found = numeric_metrics(truth, values, ["heat", "salt"])
    assert found["num_scored"] == 6
    assert found["mae"] == pytest.approx((1 + 3 + 0 + 0 + 4 + 0) / 6)
    assert found["rmse"] == pytest.approx(math.sqrt((1 + 9 + 16) / 6))
    assert found["mae_by_step"] == pytest.approx([5 / 4, 3 / 2])
    assert found["rmse_by_step"] == pytest.approx([math.sqrt(17 / 4), math.sqrt(9 / 2)])
    assert found["by_target"]["heat"]["mae"] == pytest.approx(4 / 3)
    assert found["by_target"]["salt"]["rmse"] == pytest.approx(math.sqrt(16 / 3))


def test_what_cannot_be_scored_is_rejected():
    truth, probabilities = draw()
    with pytest.raises(InputError, match="do not match"):
        label_metrics(truth, probabilities[:, :2], LABELS)
    with pytest.raises(InputError, match="not to 1"):
        label_metrics(truth, probabilities * 2, LABELS)
    with pytest.raises(InputError, match="no target is known"):
        label_metrics(np.full_like(truth, -1), probabilities, LABELS)
    with pytest.raises(InputError, match="a forecast is NaN"):
        numeric_metrics(np.ones((1, 1, 1)), np.full((1, 1, 1), np.nan))
    with pytest.raises(InputError, match="do not match"):
        numeric_metrics(np.ones((1, 1, 1)), np.ones((1, 2, 1)))
