"""Series by their commands: generate, train, kill and go on, evaluate, forecast."""

from __future__ import annotations

import hashlib
import io
import json
import shlex
import signal
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING

import pytest
from support.fork_server import SignalAt

from attendo import Forecaster
from attendo.cli.main import run as run_command

if TYPE_CHECKING:
    from pathlib import Path

SMALL = [
    *("model.d_model=16", "model.d_ff=32", "model.num_heads=2", "model.num_layers=1"),
    *("train.max_steps=30", "train.save_every=5", "train.validate_every=15"),
    *("train.warmup_steps=10", "train.bleu_sentences=10", "train.log_every=1"),
]
PATIENCE_SECONDS = 600.0


def attendo(*words: object) -> tuple[int, str, str]:
    """Run a command in this process; give its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        run_command([str(word) for word in words])
    return int(left.value.code or 0), out.getvalue(), err.getvalue()


def make_small(words: list[str]) -> list[str]:
    """Return the same command for few years, few steps and a small model."""
    if words[0] == "synthesize":
        return [*words, "--count", "2"]
    if words[0] == "train":
        return [*words, *(word for setting in SMALL for word in ("--set", setting))]
    return words


@pytest.fixture(scope="module")
def directory(repository, tmp_path_factory):
    """The folder in which every command of the recipe has run, made small."""
    folder = tmp_path_factory.mktemp("sea")
    (folder / "configs").symlink_to(repository / "configs")
    lines = (repository / "configs/sea_temperature.toml").read_text(encoding="utf-8").splitlines()
    commands = [shlex.split(line)[2:] for line in lines if line.startswith("# attendo ")]
    assert [words[0] for words in commands] == [
        *("synthesize", "synthesize", "train", "evaluate", "forecast"),
        *("train", "evaluate"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "100")
        for words in commands:
            code, printed, errors = attendo(*make_small(words))
            assert code == 0, (words, errors)
            (folder / f"{words[0]}-{len(list(folder.glob('*.txt')))}.txt").write_text(printed)
    return folder


def test_a_run_on_labels_has_its_folder(directory):
    report = json.loads((directory / "runs/sea/report.json").read_text())
    assert report["dev"]["windows"] == report["data"]["dev_pairs"]
    losses = [
        event["loss"]
        for event in map(json.loads, (directory / "runs/sea/log.jsonl").read_text().splitlines())
        if event["event"] == "train"
    ]
    assert losses[-1] < 0.7 * losses[0]
    assert (directory / "runs/sea/model/series.json").is_file()
    samples = (directory / "runs/sea/samples.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in samples] == [15, 30]


def test_the_evaluation_is_compared_with_the_baselines(directory):
    folder = directory / "runs/sea-test"
    report = json.loads((folder / "report.json").read_text())
    assert set(report["baselines"]) == {"climatology", "persistence", "logistic regression"}
    assert report["notes"] == []
    for found in (report["system"], *report["baselines"].values()):
        assert found["num_scored"] == 7 * report["data"]["num_windows"]
        assert 0 < found["brier"] < 1
        assert len(found["log_loss_by_step"]) == 7
    page = (folder / "report.md").read_text(encoding="utf-8")
    assert "log loss by step" in page
    assert {path.name for path in folder.iterdir()} == {
        *("report.json", "report.md", "by_step.png", "reliability.png"),
    }
    code, printed, errors = attendo(
        "evaluate", directory / "runs/sea", "--series", directory / "sea.test.csv", "--json"
    )
    assert code == 0, errors
    assert json.loads(printed)["system"] == report["system"]


def test_numbers_are_evaluated_too(directory):
    code, printed, errors = attendo(
        "evaluate", directory / "runs/degrees", "--series", directory / "sea.test.csv", "--json"
    )
    assert code == 0, errors
    report = json.loads(printed)
    assert report["system"]["rmse"] >= report["system"]["mae"] > 0
    assert {"climatology", "persistence", "ridge regression"} == set(report["baselines"])


def test_the_figures_are_those_of_the_forecasts(directory):
    """Evaluation and Forecaster agree, window by window."""
    forecaster = Forecaster.load(directory / "runs/sea")
    every = forecaster.predict_file(directory / "sea.test.csv", last_only=False)
    rows = (directory / "sea.test.csv").read_text().splitlines()[1:]
    truth = [row.split(",")[-1] for row in rows]
    squares = [
        (probs["yes"] - (truth[30 + directory + step] == "yes")) ** 2
        for directory, one in enumerate(every[:-7])
        for step, probs in enumerate(one.probabilities)
    ]
    report = json.loads((directory / "runs/sea-test/report.json").read_text())
    assert sum(squares) / len(squares) == pytest.approx(report["system"]["brier"], rel=1e-5)


def test_baselines_are_left_out_where_the_training_files_are_gone(directory, tmp_path):
    kept = (directory / "sea.csv").rename(tmp_path / "sea.csv")
    arguments = [
        "evaluate",
        directory / "runs/sea",
        "--series",
        directory / "sea.test.csv",
        "--json",
    ]
    try:
        code, printed, errors = attendo(*arguments)
        (directory / "sea.csv").write_text(kept.read_text() + "2031-01-01,25,1010,5,no\n")
        _, changed, _ = attendo(*arguments)
    finally:
        kept.rename(directory / "sea.csv")
    assert code == 0, errors
    assert json.loads(printed)["baselines"] == json.loads(changed)["baselines"] == {}
    assert "are missing" in json.loads(printed)["notes"][0]
    assert "no baselines" in json.loads(changed)["notes"][0]


def test_a_forecast_is_a_table_or_json_in_both_tongues(directory):
    words = ["forecast", directory / "runs/sea", directory / "sea.test.csv"]
    code, printed, errors = attendo(*words)
    assert code == 0, errors
    lines = [line.split() for line in printed.splitlines()]
    assert lines[0] == ["time", "typhoon", "probability", "(no)", "probability", "(yes)"]
    assert len(lines) == 8
    assert lines[1][0] == "1983-01-01"
    assert lines[1][1] in ("yes", "no")
    assert "시점" in attendo(*words, "--lang", "ko")[1]
    found = json.loads(attendo(*words, "--json")[1])
    (forecast,) = found["forecasts"]
    assert (found["kind"], found["labels"]) == ("labels", ["no", "yes"])
    assert forecast["times"][0] == "1983-01-01"
    assert all(sum(step.values()) == pytest.approx(1.0) for step in forecast["probabilities"])
    every = json.loads(attendo(*words, "--json", "--all")[1])["forecasts"]
    assert len(every) == 730 - 30 + 1
    numbers = attendo("forecast", directory / "runs/degrees", directory / "sea.test.csv")[
        1
    ].splitlines()
    assert numbers[0].split() == ["time", "sea_temperature"]
    assert all(10 < float(line.split()[1]) < 45 for line in numbers[1:])


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_bad_files_are_reported(directory, tmp_path, lang):
    lines = (directory / "sea.test.csv").read_text().splitlines()
    bad = {
        "short": lines[:20],
        "gap": lines[:50] + lines[60:],
        "infinite": [*lines[:50], lines[50].replace(lines[50].split(",")[2], "inf"), *lines[51:]],
        "columns": [line.rsplit(",", 3)[0] for line in lines],
    }
    reported = {
        "short": "19 rows",
        "gap": "10 rows are missing",
        "infinite": "infinite",
        "columns": "no column",
    }
    for name, rows in bad.items():
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(rows) + "\n")
        code, printed, errors = attendo("forecast", directory / "runs/sea", path, "--lang", lang)
        assert (code, printed) == (2, "")
        assert lang == "ko" or reported[name] in errors, errors
        assert ("오류:" if lang == "ko" else "hint:") in errors
    masked = attendo("forecast", directory / "runs/sea", tmp_path / "gap.csv", "--gaps", "mask")
    assert masked[0] == 0


def test_labels_that_training_has_not_seen_are_reported(directory, tmp_path):
    strange = tmp_path / "strange.csv"
    strange.write_text((directory / "sea.test.csv").read_text().replace(",no\n", ",perhaps\n", 1))
    code, _, errors = attendo("evaluate", directory / "runs/sea", "--series", strange)
    assert code == 2
    assert "'perhaps'" in errors
    assert attendo("forecast", directory / "runs/sea", strange)[0] == 0  # what was does not matter


def test_commands_for_text_and_for_series_explain_what_they_need(directory):
    sea = directory / "runs/sea"
    code, _, errors = attendo("translate", sea, "hello")
    assert code == 2
    assert "attendo forecast" in errors
    code, _, errors = attendo("evaluate", sea)
    assert code == 2
    assert "--series" in errors
    code, _, errors = attendo(
        "evaluate", sea, "--series", directory / "sea.csv", "--ref", directory / "sea.csv"
    )
    assert code == 2
    assert "omit one of them" in errors
    code, _, errors = attendo("evaluate", "--series", directory / "sea.csv")
    assert code == 2
    assert "no model" in errors
    code, _, errors = attendo("forecast", sea, directory / "sea.csv", "--gaps", "fill")
    assert code == 2
    assert "refuse, mask" in errors


def test_a_folder_of_another_program_is_left_alone(directory, tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    arguments = ["evaluate", directory / "runs/sea", "--series", directory / "sea.test.csv"]
    code, _, errors = attendo(*arguments, "--out", tmp_path)
    assert code == 2
    assert "mine.txt" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


# -- killed, and going on


def digest(out: Path) -> dict[str, str]:
    files = [*(out / "model").iterdir(), *(out / "checkpoints/step_30").iterdir()]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_killed_run_continues_to_the_same_bits(directory, fork_server, tmp_path):
    def train(name: str, code: int = 0, signal_at: SignalAt | None = None) -> None:
        words = ["train", "configs/sea_temperature.toml", "--out", str(tmp_path / name)]
        done = fork_server.run(make_small(words), cwd=directory, signal_at=signal_at)
        assert done.returncode == code, done.stderr

    train("whole")
    train("broken", -signal.SIGKILL, SignalAt("os.rename", "*/broken/checkpoints/.step_20.partial"))
    assert (tmp_path / "broken/checkpoints/step_10").is_dir()
    assert not (tmp_path / "broken/model").exists()
    train("broken")
    assert len(digest(tmp_path / "whole")) >= 6
    assert digest(tmp_path / "broken") == digest(tmp_path / "whole")
    texts = [(tmp_path / name / "samples.jsonl").read_text() for name in ("whole", "broken")]
    assert texts[0] == texts[1]
