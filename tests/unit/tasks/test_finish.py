"""Runs that are not finished: used as they are, finished early, and resumed after that."""

from __future__ import annotations

import json
import logging
import shutil

import pytest
import torch

from attendo.bundle import load_bundle
from attendo.core.errors import AttendoError, InputError
from attendo.core.run_folder import ModelFolder, RunFolder
from attendo.i18n.messages import translate_message
from attendo.tasks.finish import finish_run
from attendo.tasks.request import TrainRequest
from attendo.tasks.run import train_run
from attendo.training.averaging import average_weights
from attendo.training.checkpoint import CheckpointStore
from attendo.training.progress import NullReporter
from attendo.translator import Translator

SETTINGS = {
    "data.tokenizer.kind": "word",
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.num_heads": 2,
    "model.num_layers": 1,
    "train.max_steps": 8,
    "train.save_every": 2,
    "train.log_every": 2,
    "train.warmup_steps": 20,
    "train.batch_tokens": 192,
    "train.keep_last": 3,
    "train.average": "best",
    "train.average_checkpoints": 2,
    "train.bleu_sentences": 3,
}


class StopAt(NullReporter):
    """Raises an error when a step is reported."""

    def __init__(self, step: int) -> None:
        self.at = step

    def step(self, step, _total, _figures) -> None:
        if step == self.at:
            raise MemoryError("killed")


@pytest.fixture(autouse=True)
def _cache(toy, monkeypatch):
    monkeypatch.setenv("ATTENDO_CACHE", str(toy.cache))


def start(toy, folder, *, reporter=None, **changes):
    settings = SETTINGS | {key.replace("__", "."): value for key, value in changes.items()}
    pairs = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    config = TrainRequest(settings=pairs, src=[toy.src], tgt=[toy.tgt]).build_config()
    return train_run(config, folder, reporter=reporter)


@pytest.fixture(scope="session")
def interrupted_folder(toy, tmp_path_factory):
    """A run that was killed at step 6 of 8, with checkpoints of the steps 2 and 4."""
    folder = tmp_path_factory.mktemp("interrupted") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENDO_CACHE", str(toy.cache))
        with pytest.raises(MemoryError):
            start(toy, folder, reporter=StopAt(6))
    return folder


@pytest.fixture
def interrupted(interrupted_folder, tmp_path):
    return RunFolder(shutil.copytree(interrupted_folder, tmp_path / "run"))


def weights(folder) -> dict[str, torch.Tensor]:
    return dict(load_bundle(folder).model.named_parameters())


def same(ours, theirs) -> bool:
    return ours.keys() == theirs.keys() and all(torch.equal(ours[n], theirs[n]) for n in ours)


def store_of(run: RunFolder) -> CheckpointStore:
    return CheckpointStore(run.checkpoints_dir, keep_last=3, keep_best=1)


def rescore(run: RunFolder, step: int, score: float | None) -> None:
    path = run.checkpoints_dir / f"step_{step}" / "checkpoint.json"
    index = json.loads(path.read_text())
    index["progress"] |= {"dev_score": score, "dev_loss": None if score is None else -score}
    path.write_text(json.dumps(index))


def test_the_best_checkpoint_represents_the_model(interrupted, caplog):
    best = store_of(interrupted).best_steps()[0]
    with caplog.at_level(logging.WARNING):
        translator = Translator.load(interrupted.path, device="cpu")
    assert same(dict(translator.model.named_parameters()), store_of(interrupted).load_weights(best))
    (warning,) = [record.msg for record in caplog.records]
    assert warning.values["run"] == interrupted.path
    assert warning.values["score"].values["step"] == str(best)
    assert warning.values["progress"].values == {"step": "6", "count": "8"}
    assert len(translator.translate(["ka to"])) == 1
    assert translator.familiarity is not None
    assert ModelFolder.find(interrupted.path).run == interrupted


@pytest.mark.parametrize(("scores", "chosen"), [((-1, -2), 2), ((-2, -1), 4), ((None, None), 4)])
def test_the_best_is_that_of_dev_else_the_newest(interrupted, scores, chosen):
    for step, score in zip((2, 4), scores, strict=True):
        rescore(interrupted, step, score)
    assert interrupted.best_checkpoint().step == chosen


def test_a_checkpoint_is_a_model_folder_and_needs_no_warning(interrupted, caplog):
    path = interrupted.checkpoints_dir / "step_2"
    with caplog.at_level(logging.WARNING):
        loaded = weights(path)
    assert same(loaded, store_of(interrupted).load_weights(2))
    assert caplog.records == []


def test_the_moving_average_represents_the_model(toy, tmp_path):
    with pytest.raises(MemoryError):
        start(toy, tmp_path / "ema", reporter=StopAt(6), train__ema_decay=0.9)
    run = RunFolder(tmp_path / "ema")
    saved = store_of(run).load(run.best_checkpoint().step).optimizer
    means = {n.removeprefix("ema."): t for n, t in saved.items() if n.startswith("ema.")}
    assert means
    assert same(weights(run.path), means)


def test_a_damaged_checkpoint_is_rejected(interrupted):
    path = interrupted.best_checkpoint().model.weights_path
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        load_bundle(interrupted.path)
    assert "checksums" in raised.value.reason.template


def test_without_a_usable_checkpoint_the_error_explains_what_to_do(interrupted):
    for checkpoint in interrupted.checkpoints():
        checkpoint.model.index_path.unlink()  # as those of earlier versions
    with pytest.raises(InputError) as raised:
        Translator.load(interrupted.path)
    assert raised.value.reason.values["progress"] == "step 6 of 8"
    assert raised.value.hint == f"write its model now: attendo finish {interrupted.path}"
    shutil.rmtree(interrupted.checkpoints_dir)
    with pytest.raises(InputError) as raised:
        Translator.load(interrupted.path)
    assert "no checkpoint yet" in raised.value.reason.template


def test_finishing_writes_what_the_run_would_have_written(interrupted):
    kept = {path: path.read_bytes() for path in interrupted.checkpoints_dir.rglob("*.*")}
    done = finish_run(interrupted.path)
    assert done.report["averaged_steps"] in ([2, 4], [2], [4])
    mean = average_weights(map(store_of(interrupted).load_weights, done.report["averaged_steps"]))
    assert same(weights(interrupted.path), mean)
    assert done.report["steps"] == 4
    assert load_bundle(interrupted.path).about["step"] == 4
    assert interrupted.report_page_path.is_file()
    assert interrupted.is_finished()
    assert len(repr(done)) < 300  # without the report
    assert "BLEU" in repr(done)
    assert "탐욕 탐색으로 번역" in translate_message(done.explanation, "ko")
    assert "퍼플렉서티" in translate_message(done.headline, "ko")
    assert {path: path.read_bytes() for path in kept} == kept
    event = interrupted.read_events()[-1]
    assert (event["event"], event["step"], event["reason"]) == ("stopped", 4, "finish")


def test_a_finished_run_is_not_written_again(interrupted):
    finish_run(interrupted.path)
    written = {path: path.read_bytes() for path in interrupted.path.rglob("*.json*")}
    interrupted.model.weights_path.touch()
    before = interrupted.model.weights_path.stat()
    again = finish_run(interrupted.path)
    assert again.report["steps"] == 4
    assert {path: path.read_bytes() for path in written} == written
    assert interrupted.model.weights_path.stat().st_ino == before.st_ino  # not replaced
    shutil.rmtree(interrupted.model.path)
    assert finish_run(interrupted.path).model_dir.is_dir()


def test_a_run_that_was_finished_early_can_still_be_trained_to_its_end(interrupted, toy, tmp_path):
    finish_run(interrupted.path)
    early = weights(interrupted.path)
    done = start(toy, interrupted.path)
    whole = start(toy, tmp_path / "whole")
    assert done.report["steps"] == 8
    assert same(weights(interrupted.path), weights(whole.directory))
    assert not same(early, weights(interrupted.path))


def test_only_the_checkpoint_of_an_interruption(interrupted):
    shutil.rmtree(interrupted.checkpoints_dir / "step_2")
    path = interrupted.checkpoints_dir / "step_4"
    checkpoint = store_of(interrupted).load(4)
    checkpoint.progress["is_regular"] = False
    shutil.rmtree(path)
    store_of(interrupted).save(4, checkpoint)
    assert finish_run(interrupted.path).report["averaged_steps"] == [4]


def test_finishing_rejects_while_a_process_trains(interrupted):
    with interrupted.lock(), pytest.raises(AttendoError) as raised:
        finish_run(interrupted.path)
    assert "Ctrl-C" in raised.value.hint
    assert not interrupted.model.exists()


def test_finishing_what_is_not_a_run_or_has_nothing_yet(interrupted, tmp_path):
    with pytest.raises(InputError, match="nothing does not exist"):
        finish_run(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="not a run folder"):
        finish_run(tmp_path / "empty")
    shutil.rmtree(interrupted.checkpoints_dir)
    with pytest.raises(InputError, match="no checkpoint yet"):
        finish_run(interrupted.path)
