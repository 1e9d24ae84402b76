"""`attendo runs` and `attendo finish`, and what `doctor` prints of a log."""

from __future__ import annotations

import json
import shutil

import pytest

from attendo.cli import main
from attendo.cli.runs import _format_value, format_size
from attendo.core.run_folder import RunFolder
from attendo.diagnosis.text_plot import plot_curves
from attendo.tasks.request import TrainRequest


@pytest.fixture
def make_run(tmp_path):
    """Write the files of a run, with checkpoints and a model of a few bytes."""

    def make(name: str, *settings: str, chrf=(10.0, 20.0), is_finished=True) -> RunFolder:
        folder = RunFolder(tmp_path / "runs" / name)
        folder.path.mkdir(parents=True)
        request = TrainRequest(src=["a.ko"], tgt=["a.en"], settings=settings)
        request.build_config().save(folder.config_path)
        folder.data_path.write_text(json.dumps({"pairs": 1234, "parameters": 56789}))
        events = [{"event": "started", "step": 0, "time": "2026-01-01T00:00:00+00:00"}]
        for number, score in enumerate(chrf, 1):
            time = f"2026-01-01T00:0{number}:00+00:00"
            event = {"event": "validation", "step": number, "loss": 9.0 - number, "chrf": score}
            events.append(event | {"time": time})
        folder.log_path.write_text("".join(json.dumps(event) + "\n" for event in events))
        (folder.checkpoints_dir / "step_1").mkdir(parents=True)
        (folder.checkpoints_dir / "step_1" / "weights.safetensors").write_bytes(bytes(5000))
        if is_finished:
            folder.model.path.mkdir()
            folder.model.index_path.write_text("{}")
            folder.report_path.write_text(json.dumps({"steps": 2, "dev": {"chrf": 21.5}}))
        return folder

    return make


@pytest.fixture
def attendo(monkeypatch, capsys, tmp_path):
    """Run a verb in the folder above `runs`; give what it prints, its errors and its exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)  # pytest-xdist sets it

    def call(*words: object) -> tuple[str, str, int]:
        with pytest.raises(SystemExit) as ended:
            main.run([*map(str, words)])
        shown = capsys.readouterr()
        return shown.out, shown.err, int(ended.value.code or 0)

    return call


CHRF = "train.early_stopping_metric=chrf"


def listed(attendo, *words) -> dict[str, dict]:
    return {one["name"]: one for one in json.loads(attendo("runs", *words, "--json")[0])}


def test_runs_are_listed_with_their_states(attendo, make_run):
    make_run("done", CHRF, "train.max_steps=2")
    make_run("nested/open", CHRF, "train.max_steps=50", is_finished=False)
    failed = make_run("failed", is_finished=False)
    with failed.log_path.open("a") as file:
        file.write('{"event": "diverged", "step": 3}\n')
    (failed.path.parent / "other").mkdir()
    (failed.path.parent / "other" / "config.json").write_text('{"model_type": "bart"}')
    found = listed(attendo)
    assert {name: one["state"] for name, one in found.items()} == {
        "done": "finished", "nested/open": "stopped", "failed": "failed"
    }  # fmt: skip
    done = found["done"]
    assert (done["step"], done["max_steps"], done["minutes"]) == (2, 2, 2.0)
    assert (done["metric"], done["best_score"], done["best_step"]) == ("chrf", 20.0, 2)
    assert (done["pairs"], done["parameters"]) == (1234, 56789)
    assert done["checkpoint_bytes"] == 5000 < done["bytes"]
    assert (found["failed"]["metric"], found["failed"]["best_score"]) == ("loss", 7.0)
    table = attendo("runs")[0]
    (row,) = [line.split() for line in table.splitlines() if line.startswith("nested/open")]
    assert row[1:3] == ["stopped", "2/50"]
    assert listed(attendo, "runs/done").keys() == {"done"}


def test_a_run_that_a_process_holds_is_training(attendo, make_run):
    run = make_run("busy")
    with run.lock():
        assert listed(attendo)["busy"]["state"] == "training"
        assert attendo("runs", "--clean", "--yes")[2] == 0
    assert run.checkpoint_steps() == [1]
    assert listed(attendo)["busy"]["state"] == "finished"


def test_an_empty_folder_and_a_missing_one(attendo, tmp_path):
    (tmp_path / "runs").mkdir()
    assert "no runs" in attendo("runs")[0]
    assert attendo("runs", "nothing")[2] == 2


def test_comparing_shows_what_differs(attendo, make_run):
    make_run("a", CHRF, "train.seed=1")
    make_run("b", CHRF, "train.seed=2", chrf=(5.0, 30.0))
    out, _, code = attendo("runs", "--compare", "runs/b", "runs/a")
    assert code == 0
    rows = {words[0]: words[1:] for line in out.splitlines() if (words := line.split())}
    assert rows["train.seed"] == ["2", "1"]
    assert "train.max_steps" not in rows
    assert "o b   + a" in out
    reported = json.loads(attendo("runs", "--compare", "runs/b", "runs/a", "--json")[0])
    assert reported["settings"] == {"train.seed": [2, 1]}
    assert [one["best_score"] for one in reported["runs"]] == [30.0, 20.0]
    assert attendo("runs", "--compare", "runs/a")[2] == 2


def test_a_table_of_settings_is_compared_without_what_is_not_set():
    corpora = [{"src": None, "path": "a.tsv", "weight": 1.0, "cleaning": {"max_words": None}}]
    shown = _format_value(corpora)
    assert json.loads(shown) == [{"path": "a.tsv", "weight": 1.0, "cleaning": {}}]
    assert [_format_value(one) for one in (None, "text", 3)] == ["-", "text", "3"]


def test_cleaning_keeps_models_and_runs_that_are_not_finished(attendo, make_run):
    done, unfinished = make_run("done"), make_run("open", is_finished=False)
    _, errors, code = attendo("runs", "--clean")  # nobody can be asked
    assert code == 2
    assert "--yes" in errors
    assert done.checkpoint_steps() == [1]
    out, _, code = attendo("runs", "--clean", "--yes")
    assert code == 0
    assert "5,000 bytes" in out
    assert not done.checkpoints_dir.exists()
    assert done.model.exists()
    assert unfinished.checkpoint_steps() == [1]
    assert attendo("runs", "--clean", "--yes")[2] == 0


def test_cleaning_asks(attendo, make_run, monkeypatch):
    run = make_run("done")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: (_ for _ in ()).throw(SystemExit(1)))
    assert attendo("runs", "--clean")[2] == 1
    assert run.checkpoint_steps() == [1]
    monkeypatch.setattr("typer.confirm", lambda *_, **__: True)
    assert attendo("runs", "--clean")[2] == 0
    assert run.checkpoint_steps() == []


def test_finishing_what_has_nothing_yet(attendo, make_run):
    run = make_run("open", is_finished=False)
    shutil.rmtree(run.checkpoints_dir)
    _, errors, code = attendo("finish", "runs/open")
    assert code == 2
    assert "no checkpoint yet" in errors


def test_doctor_shows_findings_commands_and_curves(attendo, make_run):
    make_run("open", CHRF, "train.max_steps=50", is_finished=False)
    out, _, code = attendo("doctor", "runs/open")
    assert code == 0
    assert "  attendo finish runs/open" in out.splitlines()
    assert "+ dev loss" in out
    assert "as in the paper" in out
    reported = json.loads(attendo("doctor", "runs/open", "--json")[0])
    assert reported["training"][0]["code"] in ("unfinished", "few_pairs", "small_dev")
    assert (reported["best_score"], reported["best_step"], reported["metric"]) == (20.0, 2, "chrf")
    assert reported["recipe"] == "base"


def test_doctor_reads_runs_that_the_paper_has_no_recipe_for(attendo, make_run):
    make_run("rnn", "model.kind=rnn-attention")
    out, _, code = attendo("doctor", "runs/rnn")
    assert code == 0
    assert "dev loss" in out
    assert "paper's recipe is for a Transformer" in " ".join(out.split())
    assert "recipe" not in json.loads(attendo("doctor", "runs/rnn", "--json")[0])


def test_sizes():
    assert [format_size(size) for size in (400, 999_999, 1_000_000)] == [
        "0 kB",
        "1000 kB",
        "1.0 MB",
    ]


def test_curves_that_meet_and_curves_without_points():
    assert plot_curves({"a": []}) == []
    one = plot_curves({"a": [(5, 1.0)]}, width=10, height=3)
    assert one[0].endswith("|o")
    both = plot_curves({"a": [(0, 0.0), (9, 1.0)], "b": [(0, 1.0), (9, 1.0)]}, width=10, height=3)
    assert both[0].endswith("|+        #")
