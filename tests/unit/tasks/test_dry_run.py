"""What a run would do is reported, and nothing is trained or written."""

from __future__ import annotations

import pytest

from attendo.cli.main import run
from attendo.core.errors import ConfigError
from attendo.tasks.dry_run import describe_run
from attendo.tasks.request import TrainRequest
from attendo.training.messages import estimate_message
from attendo.training.progress import NullReporter

SIZES = ("d_model=16", "d_ff=32", "num_heads=2", "num_layers=1")


class Recorder(NullReporter):
    def __init__(self):
        self.messages = []

    def message(self, text):
        self.messages.append(text)


def settings(*more):
    return ["data.tokenizer.kind=word", *(f"model.{size}" for size in SIZES), *more]


def test_the_settings_are_those_of_the_run_and_the_time_is_reported(toy, tmp_path):
    recorder = Recorder()
    request = TrainRequest(src=toy.src, tgt=toy.tgt, settings=settings(), steps=3)
    chosen = describe_run(request.build_config(), cache=tmp_path / "cache", reporter=recorder)
    assert chosen.train.max_steps == 3
    assert chosen.train.warmup_steps
    templates = [getattr(text, "template", None) for text in recorder.messages]
    assert templates.count(estimate_message(3, 1.0, 1).template) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_the_command_needs_no_run_folder(toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = [f"--set={setting}" for setting in settings()]
    files = ["--src", str(toy.src), "--tgt", str(toy.tgt)]
    with pytest.raises(SystemExit) as end:
        run(["train", *files, *options, "--steps", "2", "--dry-run"])
    assert not end.value.code
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SystemExit) as end:
        run(["train", *files, *options])
    assert end.value.code == ConfigError.exit_code


def test_slow_steps_are_measured_only_as_long_as_they_begin_in_time(toy, tmp_path, monkeypatch):
    monkeypatch.setattr("attendo.training.trainer.MAX_TIMED_SECONDS", 0.0)
    recorder = Recorder()
    request = TrainRequest(src=toy.src, tgt=toy.tgt, settings=settings(), steps=7)
    describe_run(request.build_config(), cache=tmp_path / "cache", reporter=recorder)
    template = estimate_message(7, 1.0, 1).template
    (estimate,) = [one for one in recorder.messages if getattr(one, "template", None) == template]
    assert "measured on the first 1;" in str(estimate)
