"""Masked-token runs on the toy corpus: the folder, its figures, and the same bits after a kill."""

from __future__ import annotations

import json

import pytest
import torch

from attendo.bundle import load_bundle
from attendo.core.errors import ConfigError
from attendo.core.run_folder import read_json_lines
from attendo.tasks.masked_lm.batching import PackedMaskedBatchPlan
from attendo.tasks.masked_lm.task import MaskedLMTask
from attendo.tasks.registry import task_class_for
from attendo.tasks.request import TrainRequest
from attendo.tasks.run import train_run
from attendo.training.progress import NullReporter

SETTINGS = {
    "data.tokenizer.kind": "word",
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.num_heads": 2,
    "model.num_layers": 1,
    "train.max_steps": 8,
    "train.save_every": 2,
    "train.validate_every": 4,
    "train.log_every": 2,
    "train.warmup_steps": 20,
    "train.batch_tokens": 192,
    "train.keep_last": 3,
    "train.average_checkpoints": 3,
}


@pytest.fixture(autouse=True)
def _cache(toy, monkeypatch):
    monkeypatch.setenv("ATTENDO_CACHE", str(toy.cache))


@pytest.fixture
def configure(toy):
    def make(**changes):
        settings = SETTINGS | {key.replace("__", "."): value for key, value in changes.items()}
        pairs = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
        return TrainRequest(
            settings=pairs, text=[toy.src], model="encoder", preset="tiny"
        ).build_config()

    return make


def test_a_run_leaves_a_model_that_reads_each_position(configure, tmp_path):
    config = configure()
    assert task_class_for(config) is MaskedLMTask
    done = train_run(config, tmp_path / "run")
    bundle = load_bundle(done.model_dir)
    assert bundle.model.kind == "encoder"
    assert bundle.model.config.reads == "each"
    assert bundle.about["task"] == "mask"
    dev = done.report["dev"]
    assert dev["perplexity"] == pytest.approx(torch.tensor(dev["loss"]).exp().item(), rel=1e-4)
    assert 0 <= dev["accuracy"] <= 1
    assert done.report["calibration"]["num_tokens"] == dev["num_hidden"]
    events = read_json_lines(tmp_path / "run/log.jsonl")
    validations = [event for event in events if event["event"] == "validation"]
    assert [event["step"] for event in validations] == [4, 8]
    assert all({"loss", "accuracy", "perplexity"} <= set(event) for event in validations)
    assert "masked tokens of dev" in (tmp_path / "run/report.md").read_text(encoding="utf-8")
    assert done.usage_hint.startswith("attendo fill ")


def test_samples_name_masked_and_predicted_tokens(configure, tmp_path):
    train_run(configure(train__samples=["ka to mi re so lu ka to"]), tmp_path / "run")
    lines = (tmp_path / "run/samples.jsonl").read_text(encoding="utf-8").splitlines()
    (first,), (last,) = (json.loads(line)["samples"] for line in lines)
    assert first["ref"] == "ka to mi re so lu ka to"
    assert first["src"].count("___") == len(first["hidden"]) == 1  # 15 % of 8
    assert first["src"] == last["src"]  # always the same words are hidden
    word = first["hidden"][0]["word"].removeprefix("▁")
    assert first["src"].replace("___", word) == first["ref"]
    printed = last["hidden"][0]["predicted"].removeprefix("▁")
    assert last["output"].split() == last["src"].replace("___", printed).split()


class StopAt(NullReporter):
    def __init__(self, step: int) -> None:
        self.at = step

    def step(self, number, total, figures):  # noqa: ARG002
        if number >= self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("pack", [True, False])
def test_a_killed_run_ends_with_the_same_bits(configure, tmp_path, pack):
    """More than an epoch, so that other words are hidden before the kill and after it."""
    config = configure(train__max_steps=20, train__batch_tokens=320, train__sequence_packing=pack)
    whole = train_run(config, tmp_path / "whole")
    assert load_facts(whole.directory)["batches_per_epoch"] < 10
    for step in (6, 14):
        with pytest.raises(KeyboardInterrupt):
            train_run(config, tmp_path / "killed", reporter=StopAt(step))
    killed = train_run(config, tmp_path / "killed")
    weights = [(run.model_dir / "model.safetensors").read_bytes() for run in (whole, killed)]
    assert weights[0] == weights[1]
    assert whole.report["dev"] == killed.report["dev"]


def load_facts(directory):
    return json.loads((directory / "data.json").read_text(encoding="utf-8"))


def test_batches_are_packed_where_the_model_can_read_them(configure, tmp_path):
    from attendo.training.distributed import ProcessGroup

    for options, is_packed in (({}, True), ({"model__attention_width": 3}, False)):
        task = MaskedLMTask.prepare(
            configure(**options),
            tmp_path,
            processes=ProcessGroup(),
            cache=tmp_path / "cache",
            reporter=NullReporter(),
        )
        plan = task.make_plan(task.build_model(), ProcessGroup())
        assert isinstance(plan, PackedMaskedBatchPlan) == is_packed


def test_hidden_words_cannot_be_read_off_a_summary(configure, tmp_path):
    with pytest.raises(ConfigError, match="needs an output at each position"):
        train_run(configure(model__reads="summary"), tmp_path / "run")
