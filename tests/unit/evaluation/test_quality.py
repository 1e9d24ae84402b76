"""The fitted table against brute force, and against probabilities that are known."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from attendo.evaluation import quality
from attendo.evaluation.quality import ScoredTranslation, auroc, fit_quality, fit_steps
from attendo.translator.quality import QualityTable

RIGHT, WRONG = "the prince saved the princess", "a"
NEAR = "the prince saved a princess"


def make(rng, num, *, output=WRONG, log_probs=lambda log: [log]):
    """Draw scores, and translations that are right with exactly that probability."""
    scores = rng.uniform(0.02, 0.999, num)
    return [
        ScoredTranslation(
            RIGHT if rng.random() < score else output, log_probs(math.log(score)), RIGHT
        )
        for score in scores
    ]


def test_the_auroc_is_the_share_of_ordered_pairs():
    rng = np.random.default_rng(1)
    scores, is_right = rng.integers(0, 6, 60).astype(float), rng.random(60) < 0.4
    wins = [
        (right > wrong) + 0.5 * (right == wrong)
        for right in scores[is_right]
        for wrong in scores[~is_right]
    ]
    assert auroc(scores, is_right) == pytest.approx(np.mean(wins))
    assert auroc(scores, np.ones(60, bool)) is None


def test_the_steps_are_the_isotonic_regression(monkeypatch):
    """Against max-min: fit(i) = max over a <= i of min over b >= i of mean(a ... b)."""
    monkeypatch.setattr(quality, "GROUP_SIZE", 1)
    rng = np.random.default_rng(2)
    scores = np.arange(40.0)
    is_right = rng.random(40) < scores / 40
    blocks = quality.pool_adjacent_violators(quality._group(scores, is_right))
    starts = [int(block.min_score) for block in blocks]
    for index in range(40):
        expected = max(
            min(is_right[a : b + 1].mean() for b in range(index, 40)) for a in range(index + 1)
        )
        fitted = blocks[np.searchsorted(starts, index, side="right") - 1].share
        assert fitted == pytest.approx(expected)


def test_a_step_is_never_certain_and_never_below_the_one_before():
    rng = np.random.default_rng(3)
    scores = np.round(rng.normal(size=237), 1)  # with equal ones, and a rest of less than a group
    steps = fit_steps(scores, scores + rng.normal(size=237) > 0)
    qualities = [step.quality for step in steps]
    assert qualities == sorted(qualities)
    assert 0 < qualities[0] < qualities[-1] < 1
    assert [step.min_log_score for step in steps] == sorted({s.min_log_score for s in steps})


def test_the_quality_of_new_translations_is_the_share_of_right_ones():
    rng = np.random.default_rng(4)
    table = fit_quality(make(rng, 1000, output=NEAR))
    assert table.min_chrf is None  # half of them equal the reference
    fresh = make(rng, 4000)
    reported = np.array([table.quality(one.log_probs) for one in fresh])
    is_right = np.array([one.text == RIGHT for one in fresh])
    for low, high in ((0.0, 0.3), (0.3, 0.6), (0.6, 0.9), (0.9, 1.0)):
        chosen = (reported >= low) & (reported < high)
        assert is_right[chosen].mean() == pytest.approx(reported[chosen].mean(), abs=0.07)


def test_the_counts_of_the_bands_are_those_of_dev():
    translations = make(np.random.default_rng(5), 300)
    table = fit_quality(translations)
    assert sum(band.count for band in table.bands.values()) == 300
    assert sum(band.num_right for band in table.bands.values()) == sum(
        one.text == RIGHT for one in translations
    )
    for band, counts in table.bands.items():
        assert counts.num_right / counts.count >= table.min_quality[band] - 0.02


@pytest.mark.parametrize(
    ("name", "log_probs"),
    [
        ("probability", lambda log, rng: [log / 2, log / 2, *[0.0] * rng.integers(0, 9)]),
        ("mean_token_probability", lambda log, rng: [log] * rng.integers(1, 9)),
        ("min_token_probability", lambda log, rng: [log, *(log * rng.random(8))]),
    ],
)
def test_the_score_that_separates_best_is_used(name, log_probs):
    rng = np.random.default_rng(6)
    translations = make(rng, 600, log_probs=lambda log: log_probs(log, rng))
    assert fit_quality(translations).score == name


def test_where_few_translations_equal_the_reference_chrf_decides():
    near = [ScoredTranslation(NEAR, [-0.1 - n / 1e4], RIGHT) for n in range(80)]
    wrong = [ScoredTranslation(WRONG, [-3 - n / 1e4], RIGHT) for n in range(40)]
    table = fit_quality(near + wrong)
    assert (table.min_chrf, table.exact_share) == (quality.MIN_CHRF, 0.0)
    assert table.quality([-0.1]) > 0.9 > 0.1 > table.quality([-3.0])
    assert (table.band(0.8), table.band(0.6), table.band(0.3)) == ("high", "check", "low")
    labels = fit_quality(near + wrong, is_exact_only=True)
    assert labels.min_chrf is None
    assert labels.quality([-0.1]) < 0.1  # a class is right or wrong


def test_a_score_below_all_of_dev_is_not_trusted():
    table = fit_quality([ScoredTranslation(RIGHT, [-0.05], RIGHT)] * 200)
    assert table.auroc is None
    assert table.quality([-0.05]) > 0.99
    assert table.quality([-3.0]) == pytest.approx(math.exp(-3.0))


def test_a_small_dev_set_gives_no_table():
    assert fit_quality([ScoredTranslation(RIGHT, [-0.1], RIGHT)] * 99) is None


def test_it_is_saved_as_json():
    table = fit_quality(make(np.random.default_rng(7), 200))
    saved = json.dumps(table.model_dump(mode="json"))
    assert QualityTable(**json.loads(saved)) == table
    assert len(saved) < 4000
