"""The data check at the beginning of a run."""

from __future__ import annotations

import json

import pytest

from attendo.core.errors import InputError
from attendo.data.findings import Finding
from attendo.tasks.report import MAX_WARNINGS, summarize_findings
from attendo.tasks.request import TrainRequest
from attendo.tasks.run import train_run
from attendo.training.progress import NullReporter

SETTINGS = (
    "data.tokenizer.kind=word",
    "model.d_model=16",
    "model.d_ff=32",
    "model.num_heads=2",
    "model.num_layers=1",
    "train.max_steps=1",
    "train.bleu_sentences=1",
)


class Recorder(NullReporter):
    def __init__(self):
        self.messages = []

    def message(self, text):
        self.messages.append(text)


@pytest.fixture
def run(toy, tmp_path, monkeypatch):
    """Run in the folder `out`, by default on targets that are shifted by a line."""
    monkeypatch.setenv("ATTENDO_CACHE", str(tmp_path / "cache"))
    lines = toy.tgt.read_text("utf-8").splitlines()
    shifted = tmp_path / "shifted"
    shifted.write_text("\n".join(["EXTRA LINE", *lines[:-1]]) + "\n", encoding="utf-8")

    def start(*settings, tgt=shifted, reporter=None, force=False, **options):
        request = TrainRequest(src=toy.src, tgt=tgt, settings=[*SETTINGS, *settings], **options)
        return train_run(request.build_config(), tmp_path / "out", force=force, reporter=reporter)

    return start


def test_an_error_stops_before_the_run_folder_is_made(run, tmp_path):
    with pytest.raises(InputError) as caught:
        run()
    assert "data.check=false" in caught.value.hint
    assert not (tmp_path / "out").exists()


def test_without_the_check_it_trains_and_the_findings_are_stored(run, tmp_path):
    recorder = Recorder()
    finished = run("data.check=false", reporter=recorder)
    facts = json.loads((tmp_path / "out" / "data.json").read_text("utf-8"))
    stored = [Finding.from_json(finding) for finding in facts["check"]]
    assert [finding.code for finding in stored][:1] == ["sides_shifted"]
    assert finished.report["data"]["check"] == facts["check"]
    assert stored[0].message in (tmp_path / "out" / "report.md").read_text("utf-8")
    assert not {finding.message for finding in stored} & {
        getattr(text, "values", {}).get("detail") for text in recorder.messages
    }


def test_the_check_may_be_switched_and_is_not_repeated_on_resuming(run):
    run("data.check=false")
    recorder = Recorder()
    run("train.max_steps=2", reporter=recorder)
    assert summarize_findings([]) == []
    assert [text for text in recorder.messages if "data check" in text] == []


def test_a_forced_run_is_checked_again(run):
    run("data.check=false")
    with pytest.raises(InputError):
        run(force=True)


def test_a_run_of_before_the_check_resumes(run, tmp_path):
    run("data.check=false")
    path = tmp_path / "out" / "config.json"
    stored = json.loads(path.read_text("utf-8"))
    del stored["data"]["check"]
    path.write_text(json.dumps(stored), encoding="utf-8")
    assert run("train.max_steps=2").report["steps"] == 2


def test_warnings_are_reported_and_limited(run, toy):
    recorder = Recorder()
    run(tgt=toy.tgt, reporter=recorder)
    details = [getattr(text, "values", {}).get("detail", "") for text in recorder.messages]
    assert Finding("too_few_pairs", "warning", {"count": "194"}).message in details
    many = [Finding("small_dev", "warning", {"count": n, "margin": n}) for n in range(9)]
    assert len(summarize_findings(many)) == MAX_WARNINGS + 1
