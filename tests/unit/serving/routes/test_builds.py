from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from attendo.core.process_lock import process_lock
from attendo.serving import build_reader
from attendo.serving.build_reader import LineCounts, describe_build
from attendo.serving.routes import builds
from attendo.training.run_log import RunLog


@pytest.fixture
def build(tmp_path):
    folder = tmp_path / "ko-en"
    folder.mkdir()
    steps = [
        {"name": "clean", "state": "done", "needs": [], "seconds": 3.5, "reason": "/home/secret"},
        {"name": "teacher", "state": "running", "needs": ["clean"], "estimate": 60},
    ]
    watch = {"kind": "lines", "path": "steps/teacher/out.partial", "total": 9}
    write(folder, {"steps": steps, "watch": watch, "updated": "2026-11-18T21:00:00+00:00"})
    return folder


def make_client(folder):
    app = FastAPI()
    app.include_router(builds.router)
    app.state.service = SimpleNamespace(config=SimpleNamespace(runs=folder))
    return TestClient(app)


def write(folder, state):
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")


def test_builds_are_listed_without_paths(build):
    (build.parent / "no build").mkdir()
    answer = make_client(build.parent).get("/v1/builds")
    (reported,) = answer.json()["builds"]
    assert [step["state"] for step in reported["steps"]] == ["done", "interrupted"]  # nobody works
    assert (reported["state"], reported["progress"]) == ("stopped", None)
    assert "secret" not in answer.text
    assert make_client(None).get("/v1/builds").json() == {"builds": []}


def test_the_progress_of_a_translation_is_its_lines(build):
    (build / "steps/teacher").mkdir(parents=True)
    (build / "steps/teacher/out.partial").write_text("a\nb\nhalf", encoding="utf-8")
    with process_lock(build / ".lock"):
        reported = describe_build(build, LineCounts())
    assert reported["state"] == "running"
    assert reported["progress"] == {"done": 2, "total": 9}


def test_only_appended_lines_are_counted_again(build):
    """Found in review: each look at a running build read its whole output."""
    path = build / "out.partial"
    counts = LineCounts()
    assert counts.count(path) == 0  # not there yet
    path.write_text("a\nb\nhalf", encoding="utf-8")
    assert counts.count(path) == 2
    with path.open("a", encoding="utf-8") as stream:
        stream.write(" line\nc\n")
    assert counts.count(path) == 4
    path.write_text("x\n", encoding="utf-8")  # cut
    assert counts.count(path) == 1
    path.write_text("other\n" * 9, encoding="utf-8")  # and written anew, longer than before
    assert counts.count(path) == 9


def test_of_a_large_file_a_part_is_read_at_a_time(build, monkeypatch):
    """Beyond 256 MiB the progress stood still."""
    path = build / "out.partial"
    path.write_bytes(b"a\n" * 50)
    monkeypatch.setattr(build_reader, "MAX_COUNTED_BYTES", 40)
    monkeypatch.setattr(build_reader, "BLOCK_BYTES", 10)
    counts = LineCounts()
    found = [counts.count(path) for _ in range(4)]
    assert found == [20, 40, 50, 50]
    with path.open("r+b") as stream:  # what was read is not read again
        stream.write(b"\n" * 20)
    assert counts.count(path) == 50


def test_the_progress_of_a_training_is_its_step(build):
    state = json.loads((build / "state.json").read_text(encoding="utf-8"))
    write(build, {**state, "watch": {"kind": "train", "path": "run", "total": 0}})
    (build / "run").mkdir()
    (build / "run/config.json").write_text(json.dumps({"train": {"max_steps": 50}}), "utf-8")
    log = RunLog(build / "run")
    log.write("train", 7, loss=1.0)
    log.close()
    with process_lock(build / ".lock"):
        assert describe_build(build, LineCounts())["progress"] == {"done": 7, "total": 50}


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"steps": 3},
        {"steps": [1, {"state": "strange", "needs": 4, "seconds": "x"}]},
        {"steps": [{"state": "running"}], "watch": {"path": "../../etc/passwd", "kind": "lines"}},
    ],
)
def test_a_strange_state_does_no_harm(build, state):
    write(build, state)
    with process_lock(build / ".lock"):
        reported = describe_build(build, LineCounts())
    assert reported["progress"] is None
    (build / "state.json").write_text("{", encoding="utf-8")
    assert describe_build(build, LineCounts())["steps"] == []
