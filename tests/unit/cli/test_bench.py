from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from attendo.cli.bench import bench
from attendo.core.errors import ConfigError

TINY = ("--size", "tiny", "--device", "cpu", "--vocab", "60")


@pytest.fixture
def attendo(monkeypatch):
    """Run the verb; give what was printed, by stream. Errors of ours come through."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("attendo.bench.flops.CPU_MATRIX_SIZES", (64,))
    monkeypatch.setattr("attendo.bench.flops.MIN_SECONDS", 0.0)
    app = typer.Typer()
    app.command()(bench)

    def run(*arguments):
        return CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)

    return run


def test_training(attendo, tmp_path):
    out = tmp_path / "found.json"
    done = attendo(
        *("train", *TINY, "--batch", "4x6+5", "--steps", 2, "--rounds", 1),
        *("--peer", "nn.Transformer", "--out", out),
    )
    assert done.exit_code == 0
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["kind"] == "attendo bench train"
    assert "nn.Transformer: " in done.stderr
    assert "% of peak" in done.stdout
    assert "the fastest peer" in done.stdout
    assert "nn.Transformer, compiled: skipped" in done.stdout


def test_json_is_alone_on_the_output(attendo):
    done = attendo("train", *TINY, "--batch", "4x6+5", "--steps", 1, "--alone", "--json")
    assert [one["name"] for one in json.loads(done.stdout)["systems"]] == ["Attendo"]


def test_decoding(attendo):
    done = attendo("decode", *TINY, "--batch", "1x6+3", "--batch", "2x6+3", "--alone")
    assert done.exit_code == 0
    assert "2 x 6 + 3 tokens, beam 4: " in done.stderr
    assert done.stdout.count("Attendo") >= 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "did you mean 'train'"),
        (["train", "--batch", "8x"], "800x32"),
        (["train", "--batch", "8x9+9", "--batch", "9x9+9"], "one --batch, got 2"),
        (["train", "--size", "huge"], "--size huge: unknown value"),
        (["train", "--peer", "fairsec", *TINY], "unknown peer 'fairsec'"),
        (["decode", "--steps", "3"], "--steps is for train only"),
        (["decode", "--batch-tokens", "3"], "--batch-tokens is for train only"),
        (["train", "--url", "http://x"], "--url is for serve only"),
        (["serve", "--steps", "3"], "--steps is for train only"),
        (["serve"], "--url"),
    ],
)
def test_wrong_words(attendo, arguments, message):
    with pytest.raises(ConfigError, match=message):
        attendo(*arguments)


def test_a_file_with_random_weights(attendo, tmp_path):
    out = tmp_path / "found.json"
    words = ("file", "--size", "tiny", "--device", "cpu", "--lines", 5, "--rounds", 1)
    done = attendo(*words, "--engine", "ctranslate2", "--out", out)
    assert done.exit_code == 0
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["num_lines"] == 5
    for case in report["cases"]:
        assert case["seconds"] > 0
        assert case["peers"][0]["name"] == "translate_iterable"
    assert "times as fast" in done.stdout


def test_a_model_is_for_files_and_servers_only(attendo, tmp_path):
    with pytest.raises(ConfigError, match="model is for file, serve only"):
        attendo("decode", tmp_path)
