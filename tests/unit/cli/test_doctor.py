"""`attendo doctor RUN`: what a person sees, the JSON, and the errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from attendo.cli.doctor import find_problems
from attendo.core.hardware import inspect_system
from attendo.tasks.request import TrainRequest


@pytest.fixture
def run_folder(repository, tmp_path):
    """The JSON files of a run, in a folder with a name that markup or narrow text would break."""

    def make(config: str, *settings: str, pairs: int):
        folder = tmp_path / "실험 [bold]하나"
        folder.mkdir()
        path = repository / "configs" / f"{config}.toml"
        TrainRequest(
            config=path, settings=settings, src=["a.ko"], tgt=["a.en"]
        ).build_config().save(folder / "config.json")
        data = {"pairs": pairs, "src_vocab_size": 37_000, "tgt_vocab_size": 37_000}
        (folder / "data.json").write_text(json.dumps(data))
        return folder

    return make


def doctor(*arguments: object, columns: int = 120) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": str(columns), "TERM": "dumb"}
    return subprocess.run(
        [sys.executable, "-m", "attendo", "doctor", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment,
        timeout=600,
        check=False,
    )


def test_what_keeps_a_run_below_the_paper(run_folder):
    folder = run_folder("wmt14_base", "train.label_smoothing=0.0", pairs=4_500_000)
    done = doctor(folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{folder}, not finished: step 0 of 100000" in done.stdout
    assert "27.3 BLEU" in done.stdout
    shown = " ".join(done.stdout.split())
    assert "-0.5 BLEU on newstest2013" in shown
    assert "--set train.label_smoothing=0.1" in shown
    assert shown.index("lowers the score") < shown.index("measured differently")
    assert "intended for" not in shown
    assert "as in the paper: num_layers, d_model" in shown


def test_a_small_corpus_departs_on_purpose(run_folder):
    folder = run_folder("sample", pairs=20_000)
    done = doctor(folder)
    assert done.returncode == 0
    assert "intended for a corpus of 20,000 pairs" in done.stdout
    assert "lowers the score" not in done.stdout


def test_a_narrow_window_cuts_nothing_off(run_folder):
    folder = run_folder("sample", pairs=4_500_000)
    wide, narrow = (doctor(folder, columns=columns).stdout for columns in (300, 60))
    # the same letters, however they are wrapped into columns
    assert sorted(narrow.replace("\n", "").replace(" ", "")) == sorted(
        wide.replace("\n", "").replace(" ", "")
    )
    assert "실험 [bold]하나" in wide


def test_json(run_folder):
    folder = run_folder("wmt14_base", "model.d_ff=1024", pairs=4_500_000)
    done = doctor(folder, "--json")
    assert done.returncode == 0
    reported = json.loads(done.stdout)
    assert (reported["run"], reported["recipe"], reported["paper_bleu"]) == (
        str(folder),
        "base",
        27.3,
    )
    assert [(one["what"], one["verdict"]) for one in reported["findings"]] == [
        ("d_ff", "below"),
        ("score", "measure"),
    ]
    first = reported["findings"][0]
    assert (first["ours"], first["paper"]) == ("1024", "2048")
    assert first["hint"] == "--set model.d_ff=2048"
    assert set(first) == {"what", "verdict", "ours", "paper", "effect", "hint"}
    assert "num_layers" in reported["as_in_the_paper"]


def test_a_folder_that_is_not_a_run_is_reported(tmp_path):
    done = doctor(tmp_path)
    assert done.returncode == 2
    assert "neither config.json nor bundle.json" in done.stderr
    assert "hint: give the folder of a run" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_machine_or_a_run(tmp_path):
    done = doctor(tmp_path, "--tensors")
    assert done.returncode == 2
    assert "use --tensors without RUN" in done.stderr


def test_no_tensor_library_is_loaded_for_a_run(run_folder):
    folder = run_folder("wmt14_base", pairs=4_500_000)
    code = (
        "import sys\nfrom attendo.cli.main import run\n"
        "try: run(['doctor', sys.argv[1]])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert not {'torch', 'numpy'} & set(sys.modules), 'heavy import'"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_two_distributions_with_the_same_files_are_a_problem(monkeypatch):
    """attendo and attendo-light contain the same package: the last one that was installed wins."""
    hardware = inspect_system()
    assert not any("both installed" in one.what for one in find_problems(hardware))
    monkeypatch.setattr("attendo.cli.doctor.installed_version", lambda _name: "0.1.0")
    (problem,) = (one for one in find_problems(hardware) if "both installed" in one.what)
    assert "attendo and attendo-light" in problem.what
