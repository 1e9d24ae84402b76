"""What works for the Transformer works for every baseline, by the same commands."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout

import pytest

from attendo import Translator
from attendo.cli.main import run as run_command
from attendo.synthetic.everyday import synthesize_pairs

KINDS = ("rnn-seq2seq", "rnn-attention", "conv-s2s", "transformer")
SIZES = {
    "transformer": ["--set", "model.d_ff=64", "--set", "model.num_heads=2"],
    "rnn-seq2seq": ["--set", "model.cell=gru"],
}


def attendo(*arguments):
    """Run the command in this process; give its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        run_command([str(argument) for argument in arguments])
    return left.value.code or 0, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    pairs = synthesize_pairs(400, seed=3)
    for side in ("ko", "en"):
        text = "".join(f"{getattr(pair, side)}\n" for pair in pairs)
        (folder / f"train.{side}").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module", params=KINDS)
def run(request, corpus, tmp_path_factory):
    """Train a few steps by the command."""
    kind, out = request.param, tmp_path_factory.mktemp("run") / "run"
    settings = ["max_steps=40", "save_every=20", "batch_tokens=600", "warmup_steps=10"]
    arguments = ["train", "--src", f"{corpus}/train.ko", "--tgt", f"{corpus}/train.en"]
    arguments += ["--out", str(out), "--model", kind, "--preset", "tiny"]
    arguments += ["--set", "model.d_model=32", "--set", "model.num_layers=2", *SIZES.get(kind, [])]
    arguments += [part for one in settings for part in ("--set", f"train.{one}")]
    code, _, errors = attendo(*arguments, "--set", "train.bleu_sentences=20")
    assert code == 0, errors
    return kind, out


def test_training_learns_and_reports_its_kind(run):
    kind, out = run
    events = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    losses = [event["loss"] for event in events if event["event"] == "train"]
    assert losses[-1] < losses[0] - 0.5
    assert json.loads((out / "model" / "bundle.json").read_text())["kind"] == kind
    assert kind in (out / "report.md").read_text(encoding="utf-8")


def test_translating_with_every_search_and_scoring(run):
    translator = Translator.load(run[1])
    for options in ({"beam_size": 1}, {"beam_size": 4, "n_best": 2}, {"do_sample": True}):
        (made,) = translator.translate(["나는 학생이다."], confidence=True, trace=True, **options)
        assert made.trace
        assert 0 <= made.confidence.mean_token_probability <= 1
    (forced,) = translator.translate(["나는 학생이다."], prefix="I am")
    assert forced.startswith("I am")


def test_evaluating(run, corpus, tmp_path):
    for side in ("ko", "en"):
        lines = (corpus / f"train.{side}").read_text(encoding="utf-8").splitlines()[:12]
        (tmp_path / f"test.{side}").write_text("".join(f"{line}\n" for line in lines))
    arguments = ["evaluate", str(run[1]), "--src", f"{tmp_path}/test.ko", "--json"]
    arguments += ["--ref", f"{tmp_path}/test.en", "--samples", "0", "--beam-size", "1"]
    code, printed, errors = attendo(*arguments)
    assert code == 0, errors
    assert json.loads(printed)["system"]["likelihood"]["perplexity"] > 1


def test_going_on_is_exact(run, corpus):
    """The command again has nothing to do, and says so by the same report."""
    kind, out = run
    before = (out / "report.json").read_bytes()
    config = json.loads((out / "config.json").read_text())
    assert config["model"]["kind"] == kind
    code, _, errors = attendo("train", out / "config.json", "--out", out)
    assert code == 0, errors
    assert json.loads(before)["dev"] == json.loads((out / "report.json").read_bytes())["dev"]


def test_the_doctor_reads_every_log_and_compares_transformers_with_the_paper(run):
    kind, out = run
    code, printed, errors = attendo("doctor", out, "--json")
    assert code == 0, errors
    found = json.loads(printed)
    assert (found["is_finished"], found["steps"]) == (True, 40)
    assert ("recipe" in found) == (kind == "transformer")


def test_a_wrong_kind_names_the_nearest(corpus, tmp_path):
    arguments = ["train", "--src", f"{corpus}/train.ko", "--tgt", f"{corpus}/train.en"]
    arguments += ["--out", tmp_path / "x", "--model"]
    assert "rnn-attention" in attendo(*arguments, "rnn-atention")[2]
    errors = attendo(*arguments, "conv-s2s", "--set", "model.num_heads=2")[2]
    assert "unknown key 'model.num_heads'" in errors
