from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
import safetensors.torch
import torch

from attendo.core.errors import AttendoError
from attendo.training.checkpoint import (
    INDEX_FILE,
    OPTIMIZER_FILE,
    WEIGHTS_FILE,
    Checkpoint,
    CheckpointStore,
    CorruptCheckpointError,
)


def make(step: int, *, dev_loss: float | None = None, is_regular: bool = True) -> Checkpoint:
    progress = {"step": step, "dev_loss": dev_loss, "is_regular": is_regular}
    weights = {"w": torch.randn(4, 3), "half": torch.randn(2).bfloat16()}
    return Checkpoint(
        weights, {"exp_avg.w": torch.randn(4, 3), "step.w": torch.tensor(3.0)}, progress
    )


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "checkpoints", keep_last=3, keep_best=1)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def test_comes_back_bit_for_bit(store):
    saved = make(5, dev_loss=1.25)
    odd = {"odd": torch.arange(6.0).reshape(2, 3).T.requires_grad_()}
    path = store.save(5, saved._replace(weights={**saved.weights, **odd}))
    assert sorted(file.name for file in path.iterdir()) == sorted(
        [WEIGHTS_FILE, OPTIMIZER_FILE, INDEX_FILE]
    )
    found = store.load(5)
    assert found.progress == saved.progress
    for ours, theirs in ((found.weights, saved.weights | odd), (found.optimizer, saved.optimizer)):
        assert ours.keys() == theirs.keys()
        for name, tensor in ours.items():
            assert tensor.dtype == theirs[name].dtype
            assert torch.equal(tensor, theirs[name])
    assert store.load_weights(5).keys() == found.weights.keys()


@pytest.mark.parametrize("name", [WEIGHTS_FILE, OPTIMIZER_FILE, INDEX_FILE])
@pytest.mark.parametrize("harm", [flip, cut, Path.unlink])
def test_damage_is_found_and_the_one_before_used(store, caplog, harm, name):
    for step in (4, 8):
        store.save(step, make(step))
    harm(store.directory / "step_8" / name)
    with pytest.raises(CorruptCheckpointError, match="step_8"):
        store.load(8)
    with pytest.raises(CorruptCheckpointError):
        store.load_weights(8)
    with caplog.at_level(logging.WARNING, logger="attendo"):
        found = store.load_latest()
    assert found is not None
    assert found.progress["step"] == 4
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "step_8" in caplog.text
    assert store.steps() == [4]
    assert (store.directory / "broken_step_8").is_dir()


def test_every_byte_of_the_index_counts(store):
    store.save(1, make(1, dev_loss=2.5))
    path = store.directory / "step_1" / INDEX_FILE
    text = path.read_text()
    assert '"dev_loss": 2.5' in text
    path.write_text(text.replace('"dev_loss": 2.5', '"dev_loss": 2.4'))
    with pytest.raises(CorruptCheckpointError):
        store.verify(1)
    for nonsense in ("[]", "3", "{}", '{"sum": "x"}', "\udcff"):
        path.write_bytes(nonsense.encode(errors="surrogateescape"))
        with pytest.raises(CorruptCheckpointError):
            store.verify(1)


def test_all_damaged_is_none(store, caplog):
    assert store.load_latest() is None
    for step in (1, 2):
        store.save(step, make(step))
        flip(store.directory / f"step_{step}" / WEIGHTS_FILE)
    (store.directory / "broken_step_2").mkdir()
    assert store.load_latest() is None
    assert len(caplog.records) == 2
    assert store.steps() == []


def test_keeps_the_newest_and_the_best(store):
    losses = {1: 3.0, 2: 0.5, 3: 2.0, 4: 1.9, 5: 1.8, 6: 1.7}
    for step, loss in losses.items():
        store.save(step, make(step, dev_loss=loss))
    assert store.steps() == [2, 4, 5, 6]


def test_an_interruption_is_kept_while_it_is_the_newest_only(store):
    for step in (10, 20, 30):
        store.save(step, make(step, dev_loss=1.0))
    store.save(33, make(33, dev_loss=0.1, is_regular=False))
    assert store.steps() == [10, 20, 30, 33]
    assert store.scheduled_steps() == [10, 20, 30]
    store.save(40, make(40, dev_loss=2.0))
    assert store.steps() == [10, 20, 30, 40]  # 10 is the best: the first of the lowest
    store.save(50, make(50, dev_loss=None))
    assert store.steps() == [10, 30, 40, 50]


def test_order_is_by_number_not_by_name(store):
    for step in (8, 9, 10, 100):
        store.save(step, make(step))
    assert store.steps() == [9, 10, 100]
    assert store.load_latest().progress["step"] == 100


def test_no_best_are_kept_when_none_are_wanted(tmp_path):
    store = CheckpointStore(tmp_path, keep_last=1, keep_best=0)
    for step, loss in ((1, 0.1), (2, 0.2)):
        store.save(step, make(step, dev_loss=loss))
    assert store.steps() == [2]


def test_partial_folders_are_never_seen_and_swept_up(store):
    store.save(1, make(1))
    left = store.directory / ".step_7.partial"
    left.mkdir()
    (left / WEIGHTS_FILE).write_bytes(b"half")
    (store.directory / "step_x").mkdir()
    assert store.steps() == [1]
    assert store.load_latest().progress["step"] == 1
    store.save(2, make(2))
    assert not left.exists()


def test_the_same_step_again_replaces_it(store):
    store.save(1, make(1, dev_loss=1.0))
    store.save(1, make(1, dev_loss=2.0))
    assert store.load(1).progress["dev_loss"] == 2.0


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), safetensors.SafetensorError("os error 28")]
)
@pytest.mark.parametrize("at", [1, 2])
def test_full_disk_loses_no_data(store, monkeypatch, error, at):
    for step in (4, 8):
        store.save(step, make(step))
    kept = store.load(8).weights
    real, calls = safetensors.torch.save_file, []

    def full(tensors, path, *rest) -> None:
        calls.append(path)
        real(tensors, path, *rest)
        if len(calls) == at:
            raise error

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(AttendoError, match="step_12 could not be written") as raised:
        store.save(12, make(12))
    assert "step 8" in raised.value.hint
    assert store.steps() == [4, 8]
    assert [path.name for path in store.directory.glob(".*")] == []
    assert torch.equal(store.load_latest().weights["w"], kept["w"])

    calls.clear()  # nor is a checkpoint lost that was to be written anew
    with pytest.raises(AttendoError):
        store.save(8, make(8))
    assert torch.equal(store.load(8).weights["w"], kept["w"])


def test_full_disk_before_the_first_checkpoint(store, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(AttendoError, match="No space left") as raised:
        store.save(1, make(1))
    assert "goes on" not in raised.value.hint


def test_is_plain_json_and_safetensors(store):
    path = store.save(3, make(3))
    assert json.loads((path / INDEX_FILE).read_text())["progress"]["step"] == 3
    assert set(safetensors.torch.load_file(path / WEIGHTS_FILE)) == {"w", "half"}
