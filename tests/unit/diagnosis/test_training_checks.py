"""What `attendo doctor RUN` says, for logs of every kind."""

from __future__ import annotations

import json
import shlex

import pytest

from attendo.core.run_folder import RunFolder
from attendo.diagnosis import training_checks
from attendo.diagnosis.run_log import TrainingLog
from attendo.diagnosis.training_checks import check_training
from attendo.diagnosis.training_record import RunRecord
from attendo.tasks.config import RunConfig
from attendo.tasks.request import TrainRequest
from attendo.training.early_stopping import EarlyStopping

HEALTHY_DATA = {
    "pairs": 50_000,
    "dev_pairs": 1000,
    "padding": {"total": 0.05},
    "tokens": {"unigram_loss": 6.4, "unknown": {"src": 0.0, "tgt": 0.001}},
    "check": [],
}
LEARNED = {"accuracy": 0.6, "bleu": 25.0}


@pytest.fixture
def diagnose(tmp_path):
    """Return the findings by code for a log, given as the curves of the losses and more scores."""

    def diagnose(
        dev=(), train=(), *, scores=None, stopped=None, event=None, data=None, settings=(), chrf=()
    ):
        folder = RunFolder(tmp_path / "run")
        folder.path.mkdir(exist_ok=True)
        steps = 100 * max(len(dev), len(train), 1)
        defaults = [f"train.max_steps={steps}", "train.warmup_steps=10", "train.peak_lr=1e-3"]
        defaults += ["train.schedule=inverse_sqrt", "model.preset=tiny"]
        request = TrainRequest(src=["a.ko"], tgt=["a.en"], settings=[*defaults, *settings])
        request.build_config().save(folder.config_path)
        folder.data_path.write_text(json.dumps(HEALTHY_DATA | (data or {})))
        events = [{"event": "started", "step": 0, "time": "2026-01-01T00:00:00+00:00"}]
        for number, loss in enumerate(train, 1):
            events.append({"event": "train", "step": 100 * number, "loss": loss})
        for number, loss in enumerate(dev, 1):
            metrics = dict(LEARNED if scores is None else scores)
            metrics |= {"chrf": chrf[number - 1] if chrf else 50.0}
            events.append({"event": "validation", "step": 100 * number, "loss": loss, **metrics})
        events.sort(key=lambda event: event["step"])
        events += [{"event": event, "step": steps}] if event else []
        if stopped:
            events.append({"event": "stopped", "step": steps, "reason": stopped})
            report = {"steps": steps, "averaged_steps": [], "dev": {}}
            report["data"] = HEALTHY_DATA | (data or {})
            folder.report_path.write_text(json.dumps(report))
        folder.log_path.write_text("".join(json.dumps(event) + "\n" for event in events))
        findings = check_training(RunRecord.read(folder))
        assert len({finding.code for finding in findings}) == len(findings)
        return {finding.code: finding for finding in findings}

    return diagnose


def values(finding) -> dict[str, object]:
    return finding.text.values


def test_a_healthy_run_has_nothing_to_fix(diagnose):
    found = diagnose([5.0, 3.0, 2.5, 2.49], [5.5, 3.5, 3.0, 2.9], stopped="max_steps")
    assert [(one.code, one.severity) for one in found.values()] == [("healthy", "good")]


POOR = {"accuracy": 0.07, "bleu": 0.0}
LOSSES = [6.6, 6.38, 6.39, 6.38]


def test_a_collapsed_run(diagnose):
    settings = ["train.schedule=paper", "train.warmup_steps=50"]
    found = diagnose(LOSSES, LOSSES, scores=POOR, settings=settings, stopped="max_steps")
    collapsed = found["collapsed"]
    assert next(iter(found)) == "collapsed"
    assert values(collapsed)["step"] == "200"
    assert values(collapsed)["loss"] == "6.380"
    assert values(collapsed)["level"].values == {"unigram": "6.400"}
    assert found["high_rate"].severity == "error"
    assert values(found["high_rate"])["ratio"] == "8.9"
    words = shlex.split(collapsed.command)
    assert words[:3] == ["attendo", "train", str(words[2])]
    assert "train.schedule=inverse_sqrt" in words
    (rate,) = [float(word.split("=")[1]) for word in words if word.startswith("train.peak_lr=")]
    assert rate < 1.5e-3
    assert "healthy" not in found
    assert "still_improving" not in found


@pytest.mark.parametrize(
    ("losses", "scores"),
    [
        ([6.6, 4.0, 3.5, 3.4], POOR),  # still learning
        ([6.6, 3.0, 3.0, 3.0], POOR),  # flat, but far below the frequencies of tokens
        (LOSSES, LEARNED),
    ],
)
def test_no_collapse(diagnose, losses, scores):
    assert "collapsed" not in diagnose(losses, scores=scores, stopped="max_steps")


def test_collapse_is_seen_in_logs_without_the_unigram_loss(diagnose):
    found = diagnose(LOSSES, scores=POOR, data={"tokens": {}}, stopped="max_steps")
    assert values(found["collapsed"])["level"] == ""
    assert "train.clip_norm=1" in found["collapsed"].command  # the rate is not too high


def test_labels_are_not_called_collapsed(diagnose):
    settings = ["data.tokenizer.shared=false", "data.tokenizer.tgt_kind=label"]
    found = diagnose(LOSSES, scores=POOR, settings=settings, stopped="max_steps")
    assert "collapsed" not in found


def test_a_run_that_diverged(diagnose):
    found = diagnose([3.0], [4.0, float("nan")], event="diverged", settings=["train.peak_lr=0.1"])
    assert values(found["diverged"])["step"] == "200"
    assert found["diverged"].severity == found["high_rate"].severity == "error"
    assert "train.clip_norm=1" in found["diverged"].command


def test_a_high_rate_that_did_no_harm_is_only_reported(diagnose):
    found = diagnose([3.0, 2.5], settings=["train.peak_lr=0.01"], stopped="max_steps")
    assert found["high_rate"].severity == "info"
    assert not found["high_rate"].command


def test_overfitting(diagnose):
    settings = ["train.early_stopping_metric=loss"]
    train = [4.0, 3.0, 2.0, 1.0]
    found = diagnose([4.0, 3.0, 3.5, 4.0], train, settings=settings, stopped="max_steps")
    finding = found["overfitting"]
    assert finding.severity == "warning"
    assert values(finding) == {
        "step": "200", "best": "3.000", "last": "4.000", "before": "3.000", "after": "1.000",
    }  # fmt: skip
    assert "model.dropout=0.3" in finding.command
    flat = diagnose([4.0, 3.0, 3.02, 3.01], train, settings=settings, stopped="max_steps")
    assert "overfitting" not in flat
    worse = diagnose([4.0, 3.0, 3.5, 4.0], [4, 3, 3.5, 4], settings=settings, stopped="max_steps")
    assert "overfitting" not in worse


def test_a_loss_that_rises_while_chrf_improves_is_not_a_fault(diagnose):
    settings = ["train.early_stopping_metric=chrf"]
    curve = {"dev": [4.0, 3.0, 3.5, 4.0], "train": [4.0, 3.0, 2.0, 1.0]}
    found = diagnose(**curve, settings=settings, chrf=[10, 20, 30, 29], stopped="max_steps")
    assert found["overfitting"].severity == "info"
    assert found["overfitting"].hint.values["step"] == "300"
    assert "overfitting" not in found["healthy"].text


def test_early_stopping_names_the_best_step(diagnose):
    settings = ["train.early_stopping_metric=chrf", "train.patience=2", "train.max_steps=900"]
    found = diagnose([3.0] * 4, settings=settings, chrf=[10, 31.25, 30, 29], stopped="patience")
    assert values(found["stopped_early"])["best"] == "200"
    assert values(found["stopped_early"])["value"] == "31.2"
    assert (values(found["stopped_early"])["step"], values(found["stopped_early"])["count"]) == (
        "400",
        "900",
    )


@pytest.mark.parametrize(
    ("chrf", "more"), [([10, 20, 30, 40], 800), ([10, 39, 39.5, 40.0], None), ([10, 40, 30, 20], 0)]
)
def test_still_improving(diagnose, chrf, more):
    settings = ["train.early_stopping_metric=chrf"]
    found = diagnose([3.0] * 4, settings=settings, chrf=chrf, stopped="max_steps")
    assert ("still_improving" in found) == (more != 0)
    if more != 0:
        steps = shlex.split(found["still_improving"].command)[-1]
        assert steps == str(more or 600)  # a small gain: half as many steps again


def test_a_run_that_ends_in_its_warm_up(diagnose):
    settings = ["train.warmup_steps=4000"]
    found = diagnose([6.9, 6.8], scores=POOR, settings=settings, stopped="max_steps")
    assert values(found["within_warmup"])["share"] == "5.0%"
    assert "train.warmup_steps=20" in found["within_warmup"].command
    assert "collapsed" not in found


def test_a_run_that_is_not_finished(diagnose, tmp_path):
    settings = ["train.max_steps=900"]
    assert "resumes" in diagnose([3.0, 2.0], settings=settings)["unfinished"].hint
    (tmp_path / "run" / "checkpoints" / "step_100").mkdir(parents=True)
    found = diagnose([3.0, 2.0], settings=settings)
    assert values(found["unfinished"]) == {"step": "200", "count": "900"}
    assert found["unfinished"].command == f"attendo finish {tmp_path / 'run'}"


def test_what_the_data_check_found_is_reported_again(diagnose):
    stored = [
        {"code": "few_pairs", "severity": "warning", "figures": {"count": "7"}, "example": ""},
        {"code": "duplicates", "severity": "info", "figures": {"count": 1, "share": "1%"},
         "example": ""},
    ]  # fmt: skip
    found = diagnose([3.0, 2.5], data={"check": stored, "pairs": 7}, stopped="max_steps")
    assert set(found) == {"few_pairs", "healthy"}
    assert values(found["few_pairs"]) == {"count": "7"}


def test_the_counts_of_runs_from_before_the_data_check(diagnose):
    data = {"pairs": 600, "dev_pairs": 30, "cleaning": {"dev": {"num_in_train": 20}}}
    found = diagnose([3.0, 2.5], data=data, stopped="max_steps")
    assert {"dev_in_train", "small_dev", "few_pairs"} <= set(found)


def test_padding_and_unknown_tokens(diagnose):
    data = {"padding": {"total": 0.5}, "tokens": {"unknown": {"src": 0.08, "tgt": 0.001}}}
    found = diagnose([3.0, 2.5], data=data, stopped="max_steps")
    assert values(found["padding"])["share"] == "50%"
    assert values(found["unknown_tokens"])["share"] == "8.0%"
    assert values(found["unknown_tokens"])["side"] == "source"


def test_a_log_without_validations(diagnose):
    assert set(diagnose(event="started")) == {"unfinished"}


def test_bug_a_run_of_twenty_steps_must_not_be_called_collapsed(diagnose, monkeypatch):
    monkeypatch.setattr(training_checks, "MIN_STEPS", 401)
    found = diagnose(LOSSES, scores=POOR, stopped="max_steps")
    assert "collapsed" not in found
    command = found["few_steps"].command
    assert "--steps 1000" in command
    # What was chosen for few steps does not suit more of them; the warm-up was given.
    assert "train.save_every=50" in command
    assert "warmup_steps" not in command
    assert "max_minutes" not in command


def test_bug_the_command_for_more_steps_must_not_keep_the_time_limit(diagnose, tmp_path):
    limited = {"stopped": "max_minutes", "settings": ["train.max_minutes=5"]}
    found = diagnose([5.0, 4.5, 4.0, 3.5, 3.0], chrf=[10.0, 20.0, 30.0, 40.0, 50.0], **limited)
    words = shlex.split(found["still_improving"].command)
    assert words[-2:] == ["--set", "train.max_minutes=null"]
    settings = [words[index + 1] for index, word in enumerate(words) if word == "--set"]
    steps = int(words[words.index("--steps") + 1])
    config = TrainRequest(config=words[2], steps=steps, settings=settings).build_config()
    assert (config.train.max_minutes, config.train.max_steps) == (None, steps)
    stored = RunConfig(**RunFolder(tmp_path / "run").read_config())
    assert config.differences(stored) == []  # it resumes the run


def test_bug_the_best_validation_must_be_that_of_the_run_itself(tmp_path):
    """As in `EarlyStopping`: the chrF of an early validation is outdated by a much lower loss."""
    folder = RunFolder(tmp_path)
    folder.config_path.write_text('{"train": {"early_stopping_metric": "chrf"}}')
    curve = [(8.0, 6.0), (7.9, 6.5), (6.0, 5.0), (5.9, 6.2), (5.8, 6.2)]
    stopping = EarlyStopping("chrf", patience=None)
    lines = []
    for step, (loss, chrf) in enumerate(curve, 1):
        stopping.update(step, loss, chrf)
        lines.append(
            json.dumps({"event": "validation", "step": step, "loss": loss, "chrf": chrf}) + "\n"
        )
    folder.log_path.write_text("".join(lines))
    best = TrainingLog.read(folder).best
    assert best == (stopping.best_step, stopping.best_score) == (4, 6.2)
