"""Whole runs on the toy corpus: the folder, the report, going on, refusing."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from attendo.bundle import load_bundle
from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.core.run_folder import read_json_lines
from attendo.data.batching import BatchPlan, collate
from attendo.tasks import text_task
from attendo.tasks.report import _median, cleaning_table_lines
from attendo.tasks.request import TrainRequest
from attendo.tasks.run import check_disk_space, train_run
from attendo.training.averaging import average_weights
from attendo.training.checkpoint import CheckpointStore
from attendo.training.progress import NullReporter
from attendo.training.signals import TrainingInterrupted
from attendo.translator import Translator

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
    "train.average_last": 3,
    "train.bleu_sentences": 3,
}


@pytest.fixture(autouse=True)
def _cache(toy, monkeypatch):
    monkeypatch.setenv("ATTENDO_CACHE", str(toy.cache))


@pytest.fixture
def run(toy, tmp_path):
    """Run in the folder `out` with some settings changed (__ for the dot)."""

    def start(out: str = "out", *, force: bool = False, reporter=None, **changes):
        settings = SETTINGS | {key.replace("__", "."): value for key, value in changes.items()}
        pairs = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
        config = TrainRequest(settings=pairs, src=[toy.src], tgt=[toy.tgt]).build_config()
        return train_run(config, tmp_path / out, force=force, reporter=reporter)

    return start


@pytest.fixture(scope="session")
def finished_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("finished") / "out"


@pytest.fixture
def finished(run, finished_folder, tmp_path):
    """A finished run of the fixture's settings in `out`, made once and copied."""
    if not finished_folder.exists():
        run()
        shutil.move(tmp_path / "out", finished_folder)
    shutil.copytree(finished_folder, tmp_path / "out")
    return tmp_path / "out"


class StopAt(NullReporter):
    """Raises an error when a step is reported."""

    def __init__(self, step: int) -> None:
        self.at = step

    def step(self, step, _total, _figures) -> None:
        if step == self.at:
            raise MemoryError("killed")


def weights(folder) -> dict[str, torch.Tensor]:
    return dict(load_bundle(folder).model.named_parameters())


def same(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> bool:
    return ours.keys() == theirs.keys() and all(torch.equal(ours[n], theirs[n]) for n in ours)


def test_the_folder_holds_what_is_promised(finished):
    names = {path.name for path in finished.iterdir() if not path.name.startswith(".")}
    assert names == {
        "checkpoints",
        "config.json",
        "data.json",
        "log.jsonl",
        "model",
        "report.json",
        "report.md",
        "samples.jsonl",
        "tensorboard",
    }
    assert (finished / "model" / "model.safetensors").is_file()
    assert len(Translator.load(finished, device="cpu").translate(["ka to", ""])) == 2


def test_the_model_is_the_mean_of_the_last_checkpoints(finished):
    store = CheckpointStore(finished / "checkpoints", keep_last=3, keep_best=1)
    assert store.steps()[-3:] == [4, 6, 8]
    mean = average_weights(map(store.load_weights, (4, 6, 8)))
    assert same(weights(finished), mean)
    assert not same(mean, store.load_weights(8))
    about = load_bundle(finished).about
    assert (about["averaged_steps"], about["step"]) == ([4, 6, 8], 8)


def test_the_exponential_mean_becomes_the_model(run):
    done = run(train__ema_decay=0.9)
    store = CheckpointStore(done.directory / "checkpoints", keep_last=3, keep_best=1)
    saved = store.load(8).optimizer
    means = {n.removeprefix("ema."): t for n, t in saved.items() if n.startswith("ema.")}
    assert same(weights(done.directory), means)
    assert done.report["averaged_steps"] == []


def test_samples_are_written_at_every_validation(finished):
    samples = read_json_lines(finished / "samples.jsonl")
    assert [line["step"] for line in samples] == [4, 8]
    assert all(set(one) == {"src", "output", "ref"} for line in samples for one in line["samples"])
    validations = [e for e in read_json_lines(finished / "log.jsonl") if e["event"] == "validation"]
    assert [event["step"] for event in validations] == [4, 8]
    assert all({"loss", "perplexity", "accuracy", "bleu"} <= set(event) for event in validations)


def test_samples_of_ones_own(run):
    done = run(train__samples=["ka\u2028to", "mi"], train__bleu_sentences=0)
    (first, last) = read_json_lines(done.directory / "samples.jsonl")
    assert [one["src"] for one in first["samples"]] == ["ka\u2028to", "mi"]
    assert "ref" not in last["samples"][0]
    events = read_json_lines(done.directory / "log.jsonl")
    assert all("bleu" not in event for event in events)


def test_report(finished):
    report = json.loads((finished / "report.json").read_text(encoding="utf-8"))
    assert (report["steps"], report["averaged_steps"]) == (8, [4, 6, 8])
    assert report["data"]["pairs"] + report["data"]["dev_pairs"] <= 200
    assert 0 <= report["data"]["padding"]["total"] < 0.2
    assert report["dev"]["bleu_sentences"] == report["data"]["dev_pairs"]
    assert report["dev"]["decoding"] == "greedy"
    assert "tok:13a" in report["dev"]["bleu_signature"]
    text = (finished / "report.md").read_text(encoding="utf-8")
    assert "average of the last 3 checkpoints" in text
    assert f"| {report['dev']['bleu']:.2f} | {report['dev']['perplexity']:.3f} |" in text
    assert "| 4 |" in text
    assert "8 steps" in text


def test_the_calibration_is_that_of_the_finished_model_on_dev(finished, toy):
    """Against the definition: dev in one batch, each pair through the saved model."""
    report = json.loads((finished / "report.json").read_text(encoding="utf-8"))
    bundle = load_bundle(finished)
    saved = bundle.about["calibration"]
    assert saved == report["calibration"]
    losses, best, num_right = [], [], 0
    for index in range(len(toy.prepared.dev)):
        batch = collate([toy.prepared.dev.pair(index)])
        with torch.no_grad():
            chances = bundle.model(batch.src_ids, batch.tgt_ids)[0].double().softmax(-1)
        losses += (-chances.gather(1, batch.labels.T).log()).flatten().tolist()
        best += chances.amax(-1).tolist()
        num_right += int(chances.argmax(-1).eq(batch.labels[0]).sum())
    assert saved["num_tokens"] == len(losses)
    assert saved["nll_before"] == pytest.approx(sum(losses) / len(losses), rel=1e-4)
    assert saved["nll_before"] == pytest.approx(report["dev"]["loss"], rel=1e-4)
    assert saved["nll_after"] < saved["nll_before"]
    told = saved["bins_before"]
    assert sum(one["count"] * one["confidence"] for one in told) == pytest.approx(sum(best))
    assert sum(one["count"] * one["accuracy"] for one in told) == pytest.approx(num_right)
    line = (
        f"Calibration: temperature {saved['temperature']:.2f}, expected calibration error "
        f"{100 * saved['ece_before']:.1f} % -> {100 * saved['ece_after']:.1f} % on "
        f"{len(losses):,} dev tokens (teacher forcing)"
    )
    assert line in (finished / "report.md").read_text(encoding="utf-8").splitlines()


def test_a_large_dev_is_calibrated_on_whole_batches_of_it(finished, toy, monkeypatch):
    model = load_bundle(finished).model.train()
    dev = BatchPlan(toy.prepared.train, batch_tokens=64, seed=0)
    sizes = [int(dev.tgt_lengths[rows].sum()) for rows in dev.epoch(0)]
    assert len(sizes) > 3
    monkeypatch.setattr(text_task, "CALIBRATION_TOKENS", sum(sizes[:3]))
    part = text_task.fit_temperature(model, dev, device=torch.device("cpu"))
    assert part.num_tokens == sum(sizes[:3])
    assert model.training  # as it was found
    monkeypatch.setattr(text_task, "CALIBRATION_BATCH_TOKENS", 10)
    cut = text_task.fit_temperature(model, dev, device=torch.device("cpu"))
    assert cut.temperature == pytest.approx(part.temperature, rel=1e-4)
    monkeypatch.setattr(text_task, "CALIBRATION_TOKENS", 1)
    one = text_task.fit_temperature(model, dev, device=torch.device("cpu"))
    assert one.num_tokens == sizes[0]


def test_the_bundle_tells_the_longest_source_of_training(finished, toy):
    texts = toy.src.read_text(encoding="utf-8").splitlines()
    dev = {pair.src for pair in toy.prepared.dev_pairs}
    longest = max(len(text.split()) for text in texts if text not in dev)
    assert load_bundle(finished).about["max_src_tokens"] == longest + 1  # and the end symbol


def test_the_steps_of_the_report_are_those_trained(run):
    done = run(train__log_every=100, train__max_steps=3)
    assert done.report["steps"] == 3


def test_words_of_the_report():
    assert _median([]) == 0.0
    assert _median([3.0, 1.0, 2.0]) == 2.0
    rows = [{"num_pairs": 1234, "what": "kept", "example": ""}]
    assert cleaning_table_lines({"corpora": [{"rows": rows}]}) == ["      1,234  kept"]


def test_killed_runs_end_alike_and_nothing_is_told_twice(run, finished):
    for step in (2, 6):
        with pytest.raises(MemoryError):
            run("killed", reporter=StopAt(step))
    done = run("killed")
    assert same(weights(done.directory), weights(finished))
    for name in ("log.jsonl", "samples.jsonl"):
        told, expected = (
            [
                (event.get("event"), event["step"])
                for event in read_json_lines(folder / name)
                if event.get("event") not in ("started", "resumed")
            ]
            for folder in (done.directory, finished)
        )
        assert told == expected


def test_a_finished_run_again_changes_nothing(run, finished):
    before = {
        path: path.read_bytes()
        for path in finished.rglob("*")
        if path.is_file() and path.parent.name != "tensorboard"
    }
    done = run()
    assert {path for path in finished.rglob("*") if path.is_file()} >= before.keys()
    assert [p.name for p, data in before.items() if p.read_bytes() != data] == []
    assert done.report["steps"] == 8


def test_more_steps_go_on(run, finished):
    done = run(train__max_steps=12)
    assert done.report["steps"] == 12
    whole = run("whole", train__max_steps=12)
    assert same(weights(done.directory), weights(whole.directory))
    assert json.loads((done.directory / "config.json").read_text())["train"]["max_steps"] == 12


def test_another_run_s_folder_is_refused_with_the_differences(run, finished):
    before = weights(finished)
    with pytest.raises(ConfigError, match="contains another run") as raised:
        run(train__seed=2, model__d_ff=64)
    assert "train.seed: 1 there, 2 here" in raised.value.reason
    assert "model.d_ff: 32 there, 64 here" in raised.value.reason
    assert "--force" in raised.value.hint
    assert same(weights(finished), before)
    assert json.loads((finished / "config.json").read_text())["train"]["seed"] == 1


def test_force_deletes_and_starts_anew(run, finished):
    (finished / "checkpoints" / "step_99").mkdir()
    done = run(train__seed=2, train__max_steps=4, force=True)
    assert not (finished / "checkpoints" / "step_99").exists()
    assert done.report["steps"] == 4
    assert read_json_lines(finished / "log.jsonl")[0]["event"] == "started"
    fresh = run("fresh", train__seed=2, train__max_steps=4)
    assert same(weights(done.directory), weights(fresh.directory))


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_with_other_things_is_left_alone(run, tmp_path, force):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="does not contain a run"):
        run(force=force)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_an_empty_folder_will_do(run, tmp_path):
    (tmp_path / "out").mkdir()
    assert run(train__max_steps=1).report["steps"] == 1


def test_a_corpus_that_is_missing_leaves_no_folder(toy, tmp_path):
    config = TrainRequest(src=[tmp_path / "nowhere"], tgt=[toy.tgt]).build_config()
    with pytest.raises(InputError, match="nowhere"):
        train_run(config, tmp_path / "out")
    assert not (tmp_path / "out" / "checkpoints").exists()


def test_bug_a_changed_corpus_must_not_go_on_with_the_old_weights(run, finished, toy, tmp_path):
    """The same command, other text in the same files: other ids for the same weights."""
    kept = toy.src.read_text(encoding="utf-8")
    try:
        toy.src.write_text(kept.replace("ka", "zu"), encoding="utf-8")
        with pytest.raises(ConfigError, match="corpora"):
            run(train__max_steps=12)
    finally:
        toy.src.write_text(kept, encoding="utf-8")
    assert run().report["steps"] == 8


def test_early_stopping_ends_in_a_model(run, monkeypatch):
    from attendo.training.train_step import ValidationResult
    from attendo.training.trainer import Trainer

    monkeypatch.setattr(Trainer, "validate", lambda _: ValidationResult(1.0, 0.5))
    done = run(train__patience=1, train__validate_every=3, train__save_every=100)
    assert done.report["steps"] == 6
    assert done.report["averaged_steps"] == [6]
    again = run(train__patience=1, train__validate_every=3, train__save_every=100)
    assert again.report["steps"] == 6


def test_separate_vocabularies_train_too(run):
    done = run(data__tokenizer__shared=False, train__max_steps=2)
    model = load_bundle(done.directory).model
    assert model.src_embedding.weight is not model.tgt_embedding.weight


def test_a_full_disk_at_the_end_keeps_the_checkpoints(run, finished, monkeypatch):
    import safetensors.torch

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    real = safetensors.torch.save_file
    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(AttendoError, match="No space left"):
        run(train__max_steps=10)
    monkeypatch.setattr(safetensors.torch, "save_file", real)
    assert run(train__max_steps=10).report["steps"] == 10


def test_interrupted_leaves_no_model_yet(run, tmp_path):
    import os
    import signal

    class Stop(NullReporter):
        def step(self, *_: object) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(TrainingInterrupted):
        run(reporter=Stop())
    assert not (tmp_path / "out" / "model").exists()
    assert run().report["steps"] == 8


def test_the_command_does_the_same(toy, tmp_path, finished, capsys):
    from attendo.cli.main import run as command

    out = tmp_path / "by-command"
    settings = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    words = ["train", "--src", str(toy.src), "--tgt", str(toy.tgt), "--out", str(out), *settings]
    with pytest.raises(SystemExit) as raised:
        command(words)
    assert raised.value.code == 0
    told = capsys.readouterr().out
    assert "dev BLEU" in told
    assert "training 8/8" in told
    assert str(out / "model") in told
    assert same(weights(out), weights(finished))
    with pytest.raises(SystemExit) as raised:
        command([*words, "--set", "train.sead=2"])
    assert raised.value.code == 2
    assert "did you mean 'seed'" in capsys.readouterr().err


def test_too_little_disk_is_told_before_training(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10**9))
    check_disk_space(tmp_path, 35_000_000)  # 28 bytes a parameter
    with pytest.raises(InputError, match=r"at least 1\.01 GB .* 1\.00 GB are free"):
        check_disk_space(tmp_path, 36_000_000)
