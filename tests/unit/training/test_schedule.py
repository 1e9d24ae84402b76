from __future__ import annotations

from itertools import pairwise

import pytest

from attendo.training import schedule
from attendo.training.config import TrainConfig
from attendo.training.schedule import learning_rate


@pytest.mark.parametrize("step", [1, 2, 399, 400, 401, 1600, 100_000])
def test_paper_is_equation_3(step):
    found = schedule.noam(step, d_model=64, warmup_steps=400, scale=2.0)
    line, root = step / (400 * 400**0.5), 1 / step**0.5
    assert found == pytest.approx(2.0 / 8 * min(line, root), rel=1e-12)


def test_paper_by_hand():
    # d_model 100, warm-up 4: 0.1 * step / 8 up to step 4, then 0.1 / sqrt(step)
    rates = [schedule.noam(step, d_model=100, warmup_steps=4) for step in (1, 2, 4, 16, 100)]
    assert rates == pytest.approx([0.0125, 0.025, 0.05, 0.025, 0.01])


@pytest.mark.parametrize("kind", ["paper", "inverse_sqrt", "cosine"])
def test_peak_is_at_the_end_of_the_warm_up(kind):
    config = TrainConfig(schedule=kind, warmup_steps=40, max_steps=200, peak_lr=0.01)
    rates = [learning_rate(step, config, d_model=16) for step in range(1, 201)]
    assert max(rates) == rates[39]
    assert all(early < late for early, late in pairwise(rates[:40]))
    assert all(early > late for early, late in pairwise(rates[39:]))
    assert rates[0] == pytest.approx(rates[39] / 40)
    if kind != "paper":
        assert rates[39] == pytest.approx(0.01)


def test_ends():
    assert schedule.inverse_sqrt(160, peak=0.01, warmup_steps=40) == pytest.approx(0.005)
    options = {"peak": 0.01, "warmup_steps": 40, "max_steps": 200}
    assert schedule.cosine(120, **options) == pytest.approx(0.005)  # half way
    assert schedule.cosine(200, **options) == pytest.approx(0.0, abs=1e-18)
    assert schedule.cosine(999, **options) == pytest.approx(0.0, abs=1e-18)


def test_cosine_with_a_warm_up_longer_than_the_run():
    rates = [schedule.cosine(s, peak=1.0, warmup_steps=10, max_steps=5) for s in (1, 5, 10, 11)]
    assert rates == pytest.approx([0.1, 0.5, 1.0, 0.0])


def test_options_reach_the_schedule():
    config = TrainConfig(warmup_steps=4, lr_scale=3.0)
    assert learning_rate(4, config, d_model=100) == pytest.approx(0.15)
    config = TrainConfig(schedule="inverse_sqrt", warmup_steps=4, peak_lr=0.2)
    assert learning_rate(16, config, d_model=100) == pytest.approx(0.1)
