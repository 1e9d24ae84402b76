"""Which mixture of old and new weights an adaptation publishes, and what counts as a loss."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from attendo.cli.adapt import adapt
from attendo.core.message import message
from attendo.data.corpus_config import Pair
from attendo.evaluation.bootstrap import Interval
from attendo.tasks.translation import adaptation
from attendo.tasks.translation.adaptation import DEV, HELD_BACK, AdaptRequest, _choose_mixture
from attendo.tasks.translation.adaptation_scores import (
    MIN_LINES,
    Comparison,
    ModelComparer,
    Scores,
    compare,
)

RIGHT, WRONG = "the quick brown fox", "0 0 0 0"


def corrupt(count: int, num_wrong: int) -> list[str]:
    return [WRONG] * num_wrong + [RIGHT] * (count - num_wrong)


def test_a_large_set_counts_every_drop_above_the_limit():
    comparison = Comparison(DEV, 500, Scores(30.0, 50.0), Scores(29.6, 49.4))
    (reason,) = comparison.drops(0.5)
    assert reason == message(
        "{metric} on {set} fell from {before} to {after}",
        metric="chrF", set=message(DEV), before="50.0", after="49.4",
    )  # fmt: skip
    assert len(comparison.drops(0.3)) == 2
    assert comparison.drops(1.0) == []


def test_a_small_set_is_judged_by_chrf_and_its_interval():
    before, after = Scores(30.0, 50.0), Scores(20.0, 48.0)
    uncertain = Comparison(HELD_BACK, 30, before, after, Interval(-4.2, 0.3))
    assert uncertain.drops(0.5) == []
    (reason,) = uncertain._replace(chrf_change=Interval(-4.2, -0.1)).drops(0.5)
    assert "chrF" in str(reason)
    assert uncertain._replace(chrf_change=Interval(-4.2, -0.1)).drops(3.0) == []


@pytest.mark.parametrize(("num_wrong", "is_dropped"), [(1, False), (10, True)])
def test_one_line_of_a_small_set_does_not_refuse_a_model(num_wrong, is_dropped):
    references = [RIGHT] * 30
    comparison = compare(HELD_BACK, references, corrupt(30, 0), corrupt(30, num_wrong))
    assert comparison.chrf_gain < -1.0
    low, high = comparison.chrf_change
    assert low <= comparison.chrf_gain <= high
    assert bool(comparison.drops(0.5)) == is_dropped


def test_large_sets_have_no_interval():
    references = [RIGHT] * MIN_LINES
    comparison = compare(DEV, references, references, references)
    assert comparison.chrf_change is None
    assert comparison.before == comparison.after == Scores(100.0, 100.0)


def test_the_command_has_the_defaults_of_the_library():
    parameters = inspect.signature(adapt).parameters
    fields = AdaptRequest.__dataclass_fields__
    for name in ("replay_share", "max_drop"):
        assert parameters[name].default == fields[name].default


class FakeMixtures:
    """Folders that are named after the share."""

    def write(self, share: float) -> Path:
        return Path(f"{share}")


class FakeModels:
    """Models that are wrong in a number of the 200 lines of dev and of the 20 of the other set."""

    def __init__(self, wrong: dict[str, tuple[int, int]]) -> None:
        self.wrong = {"base": (10, 10), **wrong}
        self.translated: list[tuple[str, int]] = []

    def translate(self, model: Path, sources: list[str]) -> list[str]:
        self.translated.append((str(model), len(sources)))
        return corrupt(len(sources), self.wrong[str(model)][len(sources) == 20])


def choose(wrong: dict[str, tuple[int, int]], monkeypatch, max_drop: float = 0.3):
    monkeypatch.setattr(adaptation, "MIXTURES", tuple(map(float, wrong)))
    models = FakeModels(wrong)
    sets = {DEV: [Pair("x", RIGHT)] * MIN_LINES, HELD_BACK: [Pair("x", RIGHT)] * 20}
    comparer = ModelComparer(sets, models.translate, Path("base"))
    return _choose_mixture(FakeMixtures(), comparer, max_drop), models


def test_the_mixture_with_the_largest_gain_within_the_limit_is_chosen(monkeypatch):
    # The first passes as well, but it gains less.
    chosen, models = choose({"1.0": (10, 8), "0.75": (10, 3), "0.5": (10, 6)}, monkeypatch)
    assert (chosen.share, chosen.reasons) == (0.75, [])
    assert [one.name for one in chosen.comparisons] == [DEV, HELD_BACK]
    assert [one for one in models.translated if one[1] == MIN_LINES] == [
        ("base", MIN_LINES), ("0.75", MIN_LINES),
    ]  # fmt: skip


def test_a_mixture_that_lost_on_dev_is_left_out(monkeypatch):
    chosen, _ = choose({"1.0": (40, 1), "0.75": (30, 3), "0.5": (10, 6)}, monkeypatch)
    assert (chosen.share, chosen.reasons) == (0.5, [])


def test_if_all_lost_the_one_that_lost_least_is_reported(monkeypatch):
    chosen, _ = choose({"1.0": (40, 1), "0.75": (30, 3), "0.5": (20, 6)}, monkeypatch)
    assert chosen.share == 0.5
    assert [str(one)[:4] for one in chosen.reasons] == ["BLEU", "chrF"]
