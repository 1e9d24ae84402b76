"""Runs on a small synthetic series: training, reports, files and resuming."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from torch import nan

from attendo import Forecaster, Transformer
from attendo.architectures.time_series import SeriesTransformer
from attendo.bundle import get_weights
from attendo.core.errors import ConfigError, InputError
from attendo.core.run_folder import read_json_lines
from attendo.data.batching import Batch
from attendo.tasks.config import RunConfig
from attendo.tasks.forecasting.bundle import load_series_bundle
from attendo.tasks.forecasting.task import ForecastingTask, select_label_logits
from attendo.tasks.registry import task_class_for
from attendo.tasks.request import TrainRequest
from attendo.tasks.run import train_run
from attendo.training.distributed import ProcessGroup
from attendo.training.loss_module import LossModule
from attendo.training.losses import label_smoothed_nll, objective_for, score_numbers, squared_error
from attendo.training.progress import NullReporter
from attendo.training.train_step import ValidationResult, empty_micro_batch, validate

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
SETTINGS = {
    **{f"model.{name}": value for name, value in SIZES.items()},
    "train.max_steps": 12,
    "train.save_every": 3,
    "train.validate_every": 6,
    "train.log_every": 2,
    "train.warmup_steps": 20,
    "train.batch_tokens": 400,
    "train.keep_last": 3,
    "train.average_checkpoints": 2,
    "train.bleu_sentences": 10,
    "train.label_smoothing": 0.0,
}
COLUMNS = {"time": "day", "window": 8, "horizon": 3}


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """Write 300 days of a wave; "high" where it will stand above its middle, with some holes."""
    path = tmp_path_factory.mktemp("series") / "wave.csv"
    probability = np.random.default_rng(1)
    lines = ["day,wave,noise,state,level"]
    for day in range(300):
        wave = math.sin(day / 3) + 0.1 * probability.standard_normal()
        state = "" if day % 50 == 7 else ("high" if math.sin(day / 3) > 0.3 else "low")
        shown = "" if day % 40 == 5 else f"{wave:.4f}"
        level = "" if day % 60 == 9 else f"{100 + 10 * math.sin(day / 3):.3f}"
        date = np.datetime64("2031-01-01") + day
        lines.append(f"{date},{shown},{probability.standard_normal():.4f},{state},{level}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def run(series, tmp_path):
    """Run in the folder `out` with some settings changed (__ for the dot)."""

    def start(out: str = "out", *, targets: str = "state", reporter=None, **changes):
        settings = SETTINGS | {key.replace("__", "."): value for key, value in changes.items()}
        pairs = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
        features = ["wave", "noise"]
        columns = {**COLUMNS, "targets": [targets], "features": features}
        config = TrainRequest(
            settings=pairs, task="series", preset="tiny", series=[series], columns=columns
        ).build_config()
        return train_run(config, tmp_path / out, reporter=reporter)

    return start


class StopAt(NullReporter):
    def __init__(self, step: int) -> None:
        self.at = step

    def step(self, step, total, figures) -> None:  # noqa: ARG002 - a reporter receives more
        if step >= self.at:
            raise KeyboardInterrupt


# -- what is taught


def test_squared_error_is_what_is_known_of_it():
    numbers = torch.tensor([[[1.0, 5.0], [2.0, 0.0]]], requires_grad=True)
    labels = torch.tensor([[[3.0, nan], [nan, -1.0]]])
    loss = squared_error(numbers, labels, smoothing=0.1)
    assert loss.item() == pytest.approx(4.0 + 1.0)
    loss.backward()
    assert numbers.grad.tolist() == [[[-4.0, 0.0], [0.0, 2.0]]]
    found = score_numbers(numbers.detach(), labels)
    assert (found.log_loss.item(), found.num_tokens.item()) == (5.0, 2)


def test_a_model_names_its_objective():
    text = Transformer(vocab_size=9, **SIZES)
    labels = SeriesTransformer(num_features=1, vocab_size=7, **SIZES)
    numbers = SeriesTransformer(num_features=1, num_targets=2, **SIZES)
    assert objective_for(text).loss is objective_for(labels).loss is label_smoothed_nll
    assert objective_for(numbers).loss is squared_error


def test_the_teacher_of_text_gives_the_same_bits():
    """What a model says is looked up once; the loss of labels goes the way it always went."""
    model = Transformer(vocab_size=9, dropout=0.0, **SIZES)
    batch = Batch(*(torch.randint(3, 9, (4, length)) for length in (5, 6, 6)))
    trained = LossModule(model, smoothing=0.1)(batch)
    logits = model(batch.src_ids, batch.tgt_ids)
    by_hand = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1),
        batch.labels.flatten(),
        ignore_index=0,
        label_smoothing=0.1,
        reduction="sum",
    )
    assert torch.equal(trained.loss, by_hand)


@pytest.mark.parametrize("rdrop_weight", [0.0, 2.0])
def test_numbers_are_taught_by_squared_error(rdrop_weight):
    model = SeriesTransformer(num_features=2, num_targets=1, dropout=0.3, **SIZES)
    batch = make_batch()
    torch.manual_seed(4)
    trained = LossModule(model, smoothing=0.1, rdrop_weight=rdrop_weight)(batch)
    torch.manual_seed(4)
    twice = 2 if rdrop_weight else 1
    printed = model(batch.src_ids.repeat(twice, 1, 1), batch.tgt_ids.repeat(twice, 1, 1)).detach()
    known = ~batch.labels.isnan()
    errors = [(one - batch.labels)[known].square().sum() for one in printed.chunk(twice)]
    torch.testing.assert_close(trained.loss, sum(errors) / twice)
    if rdrop_weight:
        one, other = printed.chunk(2)
        apart = (one - other)[known].square().sum() / 2
        assert apart > 0
        torch.testing.assert_close(trained.objective, trained.loss + rdrop_weight * apart)
    trained.objective.backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())


def make_batch() -> Batch:
    labels = torch.randn(4, 3, 1)
    labels[1, 1] = nan
    started = torch.cat([torch.full((4, 1, 1), nan), labels[:, :-1]], dim=1)
    return Batch(torch.randn(4, 5, 2), started, labels)


def test_numbers_are_validated_by_their_errors():
    model = SeriesTransformer(num_features=2, num_targets=1, **SIZES)
    batch = make_batch()
    found = validate(model, [batch], precision=torch.float32, processes=ProcessGroup())
    model.eval()
    errors = (model(batch.src_ids, batch.tgt_ids) - batch.labels)[~batch.labels.isnan()]
    assert found.loss == pytest.approx(errors.square().mean().item(), rel=1e-5)
    assert set(found.metrics) == {"loss"}
    assert set(ValidationResult(0.5, 0.9).metrics) == {"loss", "perplexity", "accuracy"}


def test_an_empty_micro_batch_has_no_gradient():
    model = SeriesTransformer(num_features=2, num_targets=1, **SIZES)
    piece = empty_micro_batch(make_batch())
    assert piece.src_ids.size(0) == 1
    loss = LossModule(model, smoothing=0.0)(piece).loss
    loss.backward()
    assert loss.item() == 0.0
    assert all(not p.grad.any() for p in model.parameters() if p.grad is not None)


def test_the_end_is_left_out_of_the_calibration():
    logits = torch.tensor([[[9.0, 9.0, 9.0, 9.0, 1.0, 2.0], [9.0, 9.0, 9.0, 9.0, 3.0, 0.0]]])
    kept, labels = select_label_logits(logits, torch.tensor([[5, 3]]))
    assert labels.tolist() == [[2, 0]]  # 0 is not scored
    expected = torch.tensor([1.0, 2.0]).softmax(-1)
    torch.testing.assert_close(kept[0, 0].softmax(-1)[1:], expected)
    assert kept[0, 0].softmax(-1)[0] == 0.0


# -- what a run leaves


def test_a_run_on_labels_leaves_all(run, series, tmp_path):
    done = run()
    events = read_json_lines(done.directory / "log.jsonl")
    validations = [event for event in events if event["event"] == "validation"]
    assert [event["step"] for event in validations] == [6, 12]
    for event in validations:
        assert 0 <= event["accuracy"] <= 1
        assert 0 <= event["rarest_f1"] <= 1
        assert event["log_loss"] > 0
    dev = done.report["dev"]
    assert dev["windows"] == done.report["data"]["dev_pairs"] > 20
    assert 0 < dev["brier"] < 1
    assert done.report["calibration"]["temperature"] > 0
    page = (done.directory / "report.md").read_text(encoding="utf-8")
    assert "macro F1" in page
    assert "labels: high" in page
    assert "missing: wave 2.7%" in page
    assert done.usage_hint == f"attendo forecast {tmp_path / 'out'} {series}"
    forecaster = Forecaster.load(done.directory)
    assert forecaster.temperature == done.report["calibration"]["temperature"]
    assert forecaster.codec.labels == ("high", "low")
    assert str(series) not in str(forecaster.about)  # a folder that is shared names no place
    (forecast,) = forecaster.predict_file(series)
    assert forecast.times == ["2031-10-28", "2031-10-29", "2031-10-30"]


def test_samples_show_windows_in_which_something_happens(run):
    done = run()
    lines = read_json_lines(done.directory / "samples.jsonl")
    assert [line["step"] for line in lines] == [6, 12]
    for line in lines:
        assert len(line["samples"]) == 4
        for sample in line["samples"]:
            assert len(sample["times"]) == len(sample["true"]) == len(sample["predicted"]) == 3
            assert set(sample["predicted"]) <= {"high", "low"}
            assert len(set(sample["true"])) > 1
            assert sample["src"] == f"{sample['times'][0]} ... {sample['times'][-1]}"
            assert sample["output"] == " ".join(sample["predicted"])
    assert len({sample["src"] for sample in lines[0]["samples"]}) == 4


def test_a_run_on_numbers_leaves_all(run, series):
    done = run(targets="level", train__rdrop_weight=0.5)
    dev = done.report["dev"]
    assert dev["rmse"] >= dev["mae"] > 0
    assert done.report["calibration"] is None
    assert "MAE" in (done.directory / "report.md").read_text(encoding="utf-8")
    forecaster = Forecaster.load(done.directory)
    (forecast,) = forecaster.predict_file(series)
    assert len(forecast.values) == 3
    samples = read_json_lines(done.directory / "samples.jsonl")[-1]["samples"]
    for sample in samples:
        assert all(60 < value < 140 for row in sample["predicted"] for value in row)


def test_going_on_gives_the_same_bits(run):
    whole = run("whole")
    with pytest.raises(KeyboardInterrupt):
        run("parts", reporter=StopAt(8))
    run("parts", train__max_steps=9)
    parts = run("parts")
    ours, theirs = (load_series_bundle(done.directory) for done in (parts, whole))
    for name, weight in get_weights(theirs.model).items():
        assert torch.equal(get_weights(ours.model)[name], weight), name
    assert ours.about == theirs.about
    assert parts.report["dev"] == whole.report["dev"]


def test_other_data_is_noticed(run, series):
    run()
    text = series.read_text(encoding="utf-8")
    try:
        series.write_text(text.replace("low", "high", 1), encoding="utf-8")
        with pytest.raises(ConfigError, match="has changed since"):
            run(train__max_steps=15)
    finally:
        series.write_text(text, encoding="utf-8")


def test_a_wave_is_learned(run):
    """Dev comes from later days than train; only who reads the wave can tell what follows."""
    done = run(train__max_steps=120, train__warmup_steps=30, train__batch_tokens=800)
    dev = done.report["dev"]
    assert dev["accuracy"] > 0.85
    assert dev["log_loss"] < 0.45  # always saying how often each comes: 0.67


def test_a_run_may_begin_with_another(run, series, tmp_path):
    first = run("first")
    second = run("second", model__init_from=str(first.directory), train__max_steps=3)
    fresh = run("fresh", train__max_steps=3)
    losses = [done.report["dev"]["log_loss"] for done in (first, second, fresh)]
    assert losses[1] < losses[2]
    numbers = run("numbers", targets="level")
    with pytest.raises(ConfigError, match=r"targets: .*'level'.* there, .*'state'.* here"):
        run("wrong", model__init_from=str(numbers.directory))
    assert not (tmp_path / "wrong" / "model").exists()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"train__sequence_packing": True}, "train.sequence_packing applies to text"),
        ({"model__tie_embeddings": "three-way"}, "needs a source of tokens"),
    ],
)
def test_what_does_not_fit_is_rejected(run, changes, reason):
    with pytest.raises(ConfigError, match=reason):
        run(**changes)


def test_only_a_transformer_reads_series(series, tmp_path):
    columns = {**COLUMNS, "targets": ["state"]}
    config = TrainRequest(
        task="series", model="rnn-attention", series=[series], columns=columns
    ).build_config()
    with pytest.raises(ConfigError, match="rnn-attention cannot read time series"):
        train_run(config, tmp_path / "out")


def test_a_series_too_short_is_rejected(run, series, tmp_path):
    short = tmp_path / "short.csv"
    short.write_text("\n".join(series.read_text().splitlines()[:9]))
    pairs = [f"{key}={json.dumps(value)}" for key, value in SETTINGS.items()]
    columns = {**COLUMNS, "targets": ["state"]}
    config = TrainRequest(
        settings=pairs, task="series", preset="tiny", series=[short], columns=columns
    ).build_config()
    with pytest.raises(InputError, match="8 rows"):
        train_run(config, tmp_path / "out")
    assert not (tmp_path / "out" / "model").exists()


def test_the_task_is_chosen_by_the_data(run):
    done = run(train__max_steps=1)
    config = RunConfig.load(done.directory / "config.json")
    assert config.data is None
    assert task_class_for(config) is ForecastingTask
