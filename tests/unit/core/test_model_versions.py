from __future__ import annotations

import json

import pytest

from attendo.core.errors import AttendoError, InputError
from attendo.core.model_versions import PublishedModel


@pytest.fixture
def write_model(tmp_path):
    def write(name: str):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "bundle.json").write_text(json.dumps({"name": name}))
        return folder

    return write


def name_of(folder) -> str:
    return json.loads((folder / "bundle.json").read_text())["name"]


def test_versions_go_forward_and_back(tmp_path, write_model):
    published = PublishedModel(tmp_path / "out")
    first, second, third = map(write_model, ("first", "second", "third"))
    published.keep_first(first)
    assert published.publish(second, {"scores": 1}) is None
    assert json.loads((published.model.path / "adaptation.json").read_text()) == {"scores": 1}
    assert published.publish(third, {}).name == "0002"
    assert name_of(published.model.path) == "third"
    assert [name_of(one.path) for one in published.versions] == ["first", "second"]
    assert published.roll_back().name == "0002"
    assert name_of(published.model.path) == "second"
    published.roll_back()
    assert name_of(published.model.path) == "first"
    with pytest.raises(InputError, match="no earlier version"):
        published.roll_back()
    assert name_of(published.model.path) == "first"
    assert name_of(third) == "third"  # what was published is a copy


def test_a_model_that_is_published_already_is_the_first_version(tmp_path, write_model):
    out = tmp_path / "run"
    out.mkdir()
    write_model("run/model").joinpath("bundle.json").write_text('{"name": "old"}')
    published = PublishedModel(out)
    published.keep_first(published.model.path)
    assert published.versions == []
    published.publish(write_model("new"), {})
    assert [name_of(one.path) for one in published.versions] == ["old"]


def test_an_interrupted_publication_leaves_the_published_model(tmp_path, write_model, monkeypatch):
    published = PublishedModel(tmp_path / "out")
    first, second = write_model("first"), write_model("second")
    published.path.mkdir()
    published.publish(first, {})
    monkeypatch.setattr("shutil.copytree", lambda *_, **__: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        published.publish(second, {})
    assert name_of(published.model.path) == "first"
    assert published.versions == []


def test_one_process_at_a_time(tmp_path):
    published = PublishedModel(tmp_path / "out")
    with published.lock(), pytest.raises(AttendoError, match="another process"), published.lock():
        pass


def test_a_folder_without_a_model_cannot_be_rolled_back(tmp_path):
    with pytest.raises(InputError, match="no published model"):
        PublishedModel(tmp_path).roll_back()
