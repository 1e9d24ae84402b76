from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch

from attendo.bundle import build_model, save_bundle
from attendo.cli import evaluate as evaluate_module
from attendo.cli import main
from attendo.core.errors import ConfigError

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


@pytest.fixture(autouse=True)
def _plain_output(monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture
def attendo(monkeypatch, capsys):
    """Run `attendo evaluate` as the command line does; give the exit code and what was printed."""

    def run(*arguments) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main.run(["evaluate", *map(str, arguments)])
        printed = capsys.readouterr()
        return int(caught.value.code or 0), printed.out, printed.err

    return run


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path):
    references = [f"Das ist der Satz Nummer {position}, mein [Freund]." for position in range(40)]
    write(tmp_path / "test.en", [f"This is sentence {position}." for position in range(40)])
    write(tmp_path / "test.de", references)
    write(
        tmp_path / "tok.de",
        [f"das ist der satz nummer {n} , mein &#91; freund &#93; ." for n in range(40)],
    )
    write(
        tmp_path / "good",
        [text.replace("der", "ein") if len(text) % 2 else text for text in references],
    )
    write(tmp_path / "bad", ["", *[text.replace("Satz", "X") for text in references[1:]]])
    return tmp_path


def test_every_figure_is_printed_with_its_name_and_signature(attendo, folder):
    code, out, _ = attendo(
        *("--outputs", folder / "good", "--src", folder / "test.en", "--ref", folder / "test.de"),
        *("--tok-ref", folder / "tok.de", "--tok-steps", "lower,norm,moses", "--lang", "de"),
        *("--out", folder / "out"),
    )
    assert code == 0
    report = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    lines = out.split("\n")
    assert len(report["system"]["scores"]) == 7
    for score in report["system"]["scores"]:
        position = next(n for n, line in enumerate(lines) if line.startswith(score["name"] + " "))
        assert (
            f"{score['value']:.2f}   {score['low']:.2f} to {score['high']:.2f}" in lines[position]
        )
        assert lines[position + 1].strip() == score["signature"]
    assert "length ratio" in out
    assert "[Freund]" in out  # no markup
    assert f"report: {folder / 'out' / 'report.md'}" in out
    assert {path.name for path in (folder / "out").iterdir()} >= {"report.md", "outputs.txt"}


def test_two_systems_are_shown_side_by_side(attendo, folder):
    code, out, err = attendo(
        *("--outputs", folder / "bad", "--against", folder / "good", "--ref", folder / "test.de"),
        *("--measure", "bleu", "--measure", "ter"),
    )
    assert code == 0
    assert "against" in out
    row = next(line for line in out.split("\n") if line.startswith("TER ↓") and "+" in line)
    assert row.rstrip().endswith("worse")
    assert "(empty)" in out
    assert "--out" in out
    assert "scoring" in err
    assert "scoring" not in out


def test_outputs_of_several_systems_are_in_one_table(attendo, folder):
    systems = [f"--system=good={folder / 'good'}", f"--system=poor={folder / 'bad'}"]
    given = ("--ref", folder / "test.de", "--measure", "bleu", "--measure", "chrf")
    code, out, _ = attendo(*systems, *given, "--out", folder / "out")
    assert code == 0
    rows = [line.split() for line in out.split("\n") if line.startswith(("good ", "poor "))]
    assert [row[0] for row in rows] == ["good", "poor"]
    assert "**" not in rows[0][1]
    assert "**" in rows[1][1]
    report = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    good, poor = report["systems"]
    assert [score["value"] for score in good["scores"]] == [
        score["value"] for score in report["system"]["scores"]
    ]
    assert good["scores"][0]["p_value"] is None
    assert poor["scores"][0]["p_value"] < 0.01
    assert poor["scores"][0]["difference"] < 0
    assert "| poor |" in (folder / "out" / "report.md").read_text(encoding="utf-8")
    alone = attendo("--outputs", folder / "bad", *systems, *given, "--json")[1]
    compared = {one["name"]: one["scores"][0] for one in json.loads(alone)["systems"]}
    assert list(compared) == [str(folder / "bad"), "good", "poor"]
    assert compared["good"]["difference"] == -poor["scores"][0]["difference"]
    assert compared["poor"]["p_value"] == 1.0


@pytest.mark.parametrize("given", [["good"], ["=good"], ["a=good", "a=bad"]])
def test_a_system_needs_a_name_of_its_own(given):
    with pytest.raises(ConfigError):
        evaluate_module.read_systems(given)


@pytest.mark.parametrize(
    ("difference", "p_value", "lower_is_better", "expected"),
    [
        (1.0, 0.01, False, "better"),
        (-1.0, 0.01, False, "worse"),
        (-1.0, 0.01, True, "better"),
        (1.0, 0.01, True, "worse"),
        (1.0, 0.2, False, "not significant"),
        (0.0, 0.001, False, "not significant"),
        (1.0, None, False, ""),
    ],
)
def test_differences_are_judged(difference, p_value, lower_is_better, expected):
    row = {"difference": difference, "p_value": p_value, "lower_is_better": lower_is_better}
    assert expected in evaluate_module.format_significance(row)


def test_json_is_alone_on_the_output(attendo, folder):
    code, out, _ = attendo(
        *("--outputs", folder / "good", "--ref", folder / "test.de", "--samples", "0", "--json"),
    )
    assert code == 0
    report = json.loads(out)
    assert report["kind"] == "attendo evaluation"
    assert all(score["low"] is None for score in report["system"]["scores"])


def test_a_real_model_from_the_shell(toy, tmp_path):
    torch.manual_seed(1)
    model = build_model("transformer", SIZES, toy.prepared.tokenizer)
    save_bundle(tmp_path / "model", model, toy.prepared.tokenizer)
    code = "import sys\nfrom attendo.cli import main\nmain.run(['evaluate', *sys.argv[1:]])"
    arguments = [tmp_path / "model", "--src", toy.src, "--ref", toy.tgt, "--samples", "20"]
    more = ["--beam-size", "2", "--set", "max_length=12", "--out", tmp_path / "out"]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, [*arguments, *more])],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for word in ("perplexity", "token accuracy", "chrF", "worst sentences"):
        assert word in done.stdout
    assert "translating 200/200" in done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["system"]["decoding"] == {"beam_size": 2, "alpha": 0.6, "max_length": 12}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--ref"),
        (["--ref", "test.de"], "nothing to score"),
        (["--ref", "test.de", "--outputs", "good", "--tok-ref", "tok.de"], "--tok-steps"),
        (["--ref", "test.de", "--outputs", "good", "--measure", "blue"], "did you mean 'bleu'"),
        (["--ref", "test.de", "--outputs", "god"], "did you mean"),
        (["nowhere", "--ref", "test.de", "--src", "test.en"], "does not exist"),
    ],
)
def test_errors_are_printed_without_a_traceback(attendo, folder, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    code, out, err = attendo(*arguments)
    assert code == 2
    assert err.startswith("error: ")
    assert message in err
    assert not out


def test_several_references(attendo, folder):
    """As sacreBLEU scores them itself."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.ter import TER

    refs = [folder / "test.de", folder / "bad"]
    options = ["--outputs", folder / "good", "--samples", 0, "--json", "--error-rates"]
    code, out, _ = attendo("--ref", refs[0], "--ref", refs[1], *options)
    assert code == 0
    report = json.loads(out)
    scores = {one["key"]: one for one in report["system"]["scores"]}
    outputs, *texts = (
        path.read_text(encoding="utf-8").splitlines() for path in (folder / "good", *refs)
    )
    expected = BLEU(force=True).corpus_score(outputs, texts).score
    assert scores["bleu"]["value"] == pytest.approx(expected, abs=1e-4)
    assert scores["bleu"]["signature"].startswith("nrefs:2")
    assert scores["ter"]["value"] == pytest.approx(
        TER().corpus_score(outputs, texts).score, abs=1e-4
    )
    assert report["data"]["more_refs"] == [str(folder / "bad")]
    single = json.loads(attendo("--ref", refs[0], *options)[1])
    assert scores["bleu"]["value"] >= single["system"]["scores"][0]["value"]
    assert report["system"]["num_exact"] >= single["system"]["num_exact"]


def test_several_references_need_equal_lengths(attendo, folder):
    short = write(folder / "short", ["one line"])
    options = ["--outputs", folder / "good", "--ref", folder / "test.de", "--ref", short]
    assert attendo(*options)[0] == 2
