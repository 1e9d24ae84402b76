from __future__ import annotations

import os
from pathlib import Path

import pytest

from attendo.corpora import archives
from attendo.corpora.download import FetchError

BIG = os.urandom(300_000)


@pytest.fixture(params=["a.zip", "a.tgz"])
def packing(request, make_zip, make_tar):
    return (make_zip if request.param == "a.zip" else make_tar), request.param


def test_only_what_is_asked_for_leaves_the_archive(tmp_path, packing):
    make, name = packing
    folder = tmp_path / "inner" / "folder"
    folder.mkdir(parents=True)
    evil = {"../evil": b"x", "/tmp/attendo-evil": b"x", "../../evil": b"x", "other": b"x"}  # noqa: S108
    (folder / name).write_bytes(make(evil | {"in/text": b"hello"}))
    archives.extract_members(folder / name, {"in/text": folder / "out"})
    assert (folder / "out").read_bytes() == b"hello"
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert files == sorted([name, "out"])
    assert not Path("/tmp/attendo-evil").exists()  # noqa: S108


def test_bad_archives_are_rejected(tmp_path, packing, monkeypatch):
    make, name = packing
    path, out = tmp_path / name, tmp_path / "out"
    path.write_bytes(make({"text": b"/etc/hostname"}, link="text"))
    with pytest.raises(FetchError, match=r"is a link|not a regular file"):
        archives.extract_members(path, {"text": out})
    path.write_bytes(make({"text": b"hello", "texts": b""}))
    with pytest.raises(FetchError, match=r"does not contain 'txt'[\s\S]*did you mean 'text'"):
        archives.extract_members(path, {"txt": out})
    path.write_bytes(make({"text": BIG})[:1000])
    with pytest.raises(FetchError, match="it is damaged"):
        archives.extract_members(path, {"text": out})
    monkeypatch.setattr(archives, "ALWAYS_ALLOWED_BYTES", 1000)
    path.write_bytes(make({"text": b"\0" * 5_000_000}))
    with pytest.raises(FetchError, match="is larger than"):
        archives.extract_members(path, {"text": out})
    assert [path.name for path in tmp_path.iterdir()] == [name]
