"""The copy of a run folder at another address: complete or not there, and fetched again."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest
import torch
from fsspec.implementations.memory import MemoryFileSystem

from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.core.run_folder import RunFolder
from attendo.training.checkpoint import Checkpoint, CheckpointStore
from attendo.training.remote_run import RemoteRun

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS = "memory://bucket/runs/mine"
WAIT_SECONDS = 60.0


@pytest.fixture(autouse=True)
def _empty_memory():
    MemoryFileSystem.store.clear()
    yield
    MemoryFileSystem.store.clear()


@pytest.fixture(params=[ADDRESS, "local"])
def address(request, tmp_path) -> str:
    return str(tmp_path / "copy") if request.param == "local" else request.param


class Run:
    """A run folder to which checkpoints are saved."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)
        self.store = CheckpointStore(self.folder.checkpoints_dir, keep_last=2, keep_best=0)

    def save(self, step: int) -> None:
        self.folder.config_path.write_text(json.dumps({"train": {}}))
        with self.folder.log_path.open("a") as file:
            file.write(json.dumps({"event": "train", "step": step}) + "\n")
        weights = {"w": torch.full((3,), float(step))}
        progress = {"step": step, "is_regular": True}
        self.store.save(step, Checkpoint(weights, {"m.w": torch.zeros(3)}, progress))


def open_remote(address: str, folder: RunFolder) -> tuple[RemoteRun, list[str]]:
    messages: list[str] = []
    return RemoteRun(address, folder, messages.append), messages


def copied_files(remote: RemoteRun) -> dict[str, bytes]:
    return {name: remote.remote.read(name) for name in remote.remote.names()}


def files_of(path: Path) -> dict[str, bytes]:
    return {
        one.relative_to(path).as_posix(): one.read_bytes()
        for one in path.rglob("*")
        if one.is_file() and one.name != ".lock"
    }


def test_a_run_comes_back_on_another_machine(tmp_path, address):
    run = Run(tmp_path / "run")
    remote, messages = open_remote(address, run.folder)
    assert remote.read_config() is None
    for step in (10, 20, 30):
        run.save(step)
        remote.request_copy()
    remote.close(is_complete=True)
    assert copied_files(remote) == files_of(tmp_path / "run")  # also: step 10 is gone from both
    elsewhere = RunFolder(tmp_path / "elsewhere")
    again, _ = open_remote(address, elsewhere)
    assert again.read_config() == {"train": {}}
    assert again.fetch() == 30
    assert files_of(tmp_path / "elsewhere") == files_of(tmp_path / "run")
    store = CheckpointStore(elsewhere.checkpoints_dir, keep_last=2, keep_best=0)
    assert store.load_latest().weights["w"].tolist() == [30.0] * 3
    assert again.fetch() is None
    assert messages == []


def test_saving_does_not_wait_for_the_copy(tmp_path, monkeypatch):
    run = Run(tmp_path / "run")
    remote, _ = open_remote(ADDRESS, run.folder)
    has_begun, may_go_on = threading.Event(), threading.Event()
    put_file = MemoryFileSystem.put_file

    def slow(self, *args, **options):
        has_begun.set()
        assert may_go_on.wait(WAIT_SECONDS)
        return put_file(self, *args, **options)

    monkeypatch.setattr(MemoryFileSystem, "put_file", slow)
    run.save(10)
    remote.request_copy()
    assert has_begun.wait(WAIT_SECONDS)
    run.save(20)  # while step 10 is being copied
    remote.request_copy()
    run.save(30)  # deletes step 10, whose copy then has no end
    remote.request_copy()
    assert not any(name.endswith("checkpoint.json") for name in remote.remote.names())
    may_go_on.set()
    remote.close(is_complete=True)
    assert copied_files(remote) == files_of(tmp_path / "run")


def test_a_checkpoint_is_there_once_it_is_complete(tmp_path, monkeypatch):
    """A machine that ends while it copies leaves the checkpoint before."""
    run = Run(tmp_path / "run")
    run.save(10)
    remote, _ = open_remote(ADDRESS, run.folder)
    remote.copy()
    run.save(20)
    put_file = MemoryFileSystem.put_file

    def cut_off(self, source, target, **options):
        if target.endswith("step_20/weights.safetensors"):
            raise OSError("the connection was closed")
        return put_file(self, source, target, **options)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "put_file", cut_off)
        with pytest.raises(InputError, match=r"memory://.*step_20.*the connection was closed"):
            remote.copy()
    assert "checkpoints/step_20/optimizer.safetensors" in remote.remote.names()
    elsewhere = RunFolder(tmp_path / "elsewhere")
    assert open_remote(ADDRESS, elsewhere)[0].fetch() == 10
    assert elsewhere.checkpoint_steps() == [10]


def test_a_store_that_fails_for_a_while_stops_nothing(tmp_path, monkeypatch):
    run = Run(tmp_path / "run")
    remote, messages = open_remote(ADDRESS, run.folder)
    is_reported = threading.Event()
    monkeypatch.setattr(remote, "_report", lambda text: (messages.append(text), is_reported.set()))

    def refuse(self, *_, **__):
        raise PermissionError("Forbidden")

    run.save(10)
    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "pipe_file", refuse)
        remote.request_copy()
        assert is_reported.wait(WAIT_SECONDS)
    assert "memory://bucket/runs/mine/config.json" in messages[0]
    assert "copied again after the next checkpoint" in messages[0]
    run.save(20)
    remote.request_copy()
    remote.close(is_complete=True)
    assert copied_files(remote) == files_of(tmp_path / "run")
    assert len(messages) == 1


def test_a_run_that_cannot_be_copied_at_its_end_is_an_error(tmp_path, monkeypatch):
    run = Run(tmp_path / "run")
    run.save(10)

    def refuse(self, *_, **__):
        raise PermissionError("Forbidden")

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", refuse)
    remote, messages = open_remote(ADDRESS, run.folder)
    with pytest.raises(AttendoError, match=r"could not be copied to memory://bucket") as caught:
        remote.close(is_complete=True)
    assert "it copies what is missing" in str(caught.value.hint)
    remote.close(is_complete=False)  # after another error, which is more important
    assert len(messages) == 1
    assert run.folder.checkpoint_steps() == [10]


def test_the_newer_of_the_two_is_used(tmp_path):
    run = Run(tmp_path / "run")
    run.save(10)
    remote, _ = open_remote(ADDRESS, run.folder)
    remote.copy()
    run.save(20)
    assert remote.fetch() is None  # ours is newer
    behind = Run(tmp_path / "behind")
    behind.save(5)
    open_remote(ADDRESS, run.folder)[0].copy()
    assert open_remote(ADDRESS, behind.folder)[0].fetch() == 20
    assert behind.store.load_latest().weights["w"].tolist() == [20.0] * 3


def test_only_a_run_is_deleted(tmp_path):
    run = Run(tmp_path / "run")
    run.save(10)
    remote, _ = open_remote(ADDRESS, run.folder)
    remote.copy()
    remote.remote.write("notes.txt", b"mine")
    remote.delete()
    assert remote.remote.names() == ["notes.txt"]
    with pytest.raises(InputError, match="is not empty and does not contain a run"):
        remote.read_config()


def test_the_run_folder_is_not_its_own_copy(tmp_path):
    with pytest.raises(ConfigError, match="is the run folder itself"):
        open_remote(str(tmp_path / "run"), RunFolder(tmp_path / "run"))
