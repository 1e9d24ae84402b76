"""When training has stopped improving, and which checkpoints are the best."""

from __future__ import annotations

import json

import pytest

from attendo.core.run_folder import CheckpointFolder, rank_checkpoints
from attendo.training.early_stopping import EarlyStopping
from attendo.training.messages import stop_message


def validate(losses_and_scores, patience: int = 3) -> EarlyStopping:
    stopping = EarlyStopping("chrf", patience)
    for number, (loss, score) in enumerate(losses_and_scores, 1):
        stopping.update(number, loss, score)
    return stopping


def test_a_high_score_of_bad_outputs_is_outdated_when_the_loss_has_fallen():
    """English to Korean with 37,725 pairs: it stopped at the ninth validation, for the first."""
    seen = [(7.235, 5.0), (6.674, 1.2), (6.444, 0.4), (6.194, 0.4), (5.928, 0.6), (5.611, 1.0),
            (5.324, 1.9), (5.094, 2.5), (4.917, 3.4)]  # fmt: skip
    stopping = validate(seen)
    assert not stopping.is_exhausted
    assert (stopping.best_step, stopping.num_without_gain) == (9, 0)


def test_it_is_exhausted_without_a_better_score_and_a_lower_loss():
    seen = [(3.0, 20.0), (2.9, 30.0), (2.95, 29.0), (2.89, 29.5), (2.9, 29.0), (3.0, 29.9)]
    assert not validate(seen).is_exhausted  # the fourth loss was the lowest
    stopping = validate([*seen, (3.1, 28.0)])
    assert stopping.is_exhausted
    assert stopping.best_step == 2


def test_a_rising_loss_does_not_make_a_better_score_outdated():
    stopping = validate([(2.0, 30.0), (2.3, 31.0), (2.6, 33.0), (2.9, 32.0)])
    assert (stopping.best_step, stopping.num_without_gain) == (3, 1)


def test_the_state_is_restored():
    stopping = validate([(7.0, 5.0), (6.8, 1.0)])
    other = EarlyStopping("chrf", 3)
    other.restore(json.loads(json.dumps(stopping.to_progress())))
    assert other == stopping
    old = {name: value for name, value in stopping.to_progress().items()
           if name != "best_score_loss"}  # fmt: skip
    other.restore(old)
    other.update(3, 5.0, 0.5)
    assert other.best_step == 1  # an older checkpoint does not say which loss the best one had


def test_outdated_checkpoints_come_last(tmp_path):
    folders = []
    for step, loss, score in ((1, 7.2, 5.0), (2, 6.6, 1.2), (3, 5.0, 3.4), (4, 5.6, 3.5)):
        folder = tmp_path / f"step_{step:08d}"
        folder.mkdir()
        progress = {"step": step, "dev_loss": loss, "dev_score": score}
        (folder / "checkpoint.json").write_text(json.dumps({"progress": progress}))
        folders.append(CheckpointFolder(folder))
    assert rank_checkpoints(folders) == [4, 3, 1, 2]


@pytest.mark.parametrize(("minutes", "shown"), [(0.25, "0.25"), (30.0, "30"), (120.0, "120")])
def test_bug_a_time_limit_of_hours_must_not_be_printed_as_a_power_of_ten(minutes, shown):
    text = stop_message("max_minutes", 7, EarlyStopping("loss", None), minutes)
    assert text.startswith("stopped at step 7")
    assert f" {shown} minutes" in text
