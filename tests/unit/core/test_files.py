from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
import torch

from attendo.core import files
from attendo.core.files import checksum, new_directory, write_atomically, write_tensors


def test_tensors_are_as_readable_as_other_files(tmp_path):
    write_tensors(tmp_path / "w.safetensors", {"a": torch.ones(2)})
    (tmp_path / "plain").write_text("x", encoding="utf-8")
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_writes_text_and_bytes(tmp_path):
    path = tmp_path / "a.txt"
    write_atomically(path, "왕자\n")
    assert path.read_bytes() == "왕자\n".encode()
    write_atomically(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_content(tmp_path, monkeypatch, broken):
    path = tmp_path / "a.txt"
    write_atomically(path, "old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    if broken == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(type(path), "replace", fail)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_folder_appears_whole(tmp_path):
    path = tmp_path / "deep" / "folder"
    with new_directory(path) as partial:
        assert not path.exists()
        assert partial.name.startswith(".")
        (partial / "sub").mkdir()
        (partial / "sub" / "file").write_text("x")
    assert (path / "sub" / "file").read_text() == "x"
    assert [entry.name for entry in path.parent.iterdir()] == ["folder"]


def test_everything_is_on_the_disk_before_the_name(tmp_path, monkeypatch):
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("needs /proc")
    synced, real = [], os.fsync

    def note(descriptor: int) -> None:
        synced.append((descriptors / str(descriptor)).readlink())
        real(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    with new_directory(tmp_path / "a") as partial:
        (partial / "sub").mkdir()
        (partial / "sub" / "file").write_text("x")
    names = [str(path.relative_to(tmp_path)) for path in synced]
    assert set(names[:-1]) == {".a.partial", ".a.partial/sub", ".a.partial/sub/file"}
    assert names[-1] == "."


def test_a_failure_leaves_no_folder(tmp_path):
    def fill() -> None:
        with new_directory(tmp_path / "a") as partial:
            (partial / "file").write_text("x")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fill()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_replaced(tmp_path):
    left = tmp_path / ".a.partial"
    left.mkdir()
    (left / "stale").write_text("x")
    with new_directory(tmp_path / "a") as partial:
        (partial / "fresh").write_text("x")
    assert [entry.name for entry in (tmp_path / "a").iterdir()] == ["fresh"]


def test_checksum(tmp_path):
    (tmp_path / "a").write_bytes(b"abc" * 100_000)
    assert checksum(tmp_path / "a") == hashlib.sha256(b"abc" * 100_000).hexdigest()


def test_a_user_without_a_home_needs_none(monkeypatch):
    """Found in a container with another user: the server did not start, even with ATTENDO_CACHE."""

    def fail(_):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(files.Path, "home", classmethod(fail))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("ATTENDO_CACHE", "/somewhere")
    assert files.cache_dir() == files.Path("/somewhere")
    monkeypatch.delenv("ATTENDO_CACHE")
    assert files.cache_dir() == files.NO_HOME / ".cache/attendo"
