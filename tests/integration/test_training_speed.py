"""The benchmark command with every toolkit that can be installed."""

from __future__ import annotations

import json

import pytest

from benchmarks.training_speed.__main__ import ALL, read_options, run

NAMES = ["fairseq", "OpenNMT-py", "eole", "JoeyNMT", "Sockeye"]


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr("attendo.bench.flops.CPU_MATRIX_SIZES", (64,))
    monkeypatch.setattr("attendo.bench.flops.MIN_SECONDS", 0.0)


@pytest.mark.parametrize("markdown", [False, True])
def test_sizes_and_peers(tmp_path, capsys, markdown):
    out = tmp_path / "found.json"
    options = read_options(
        [
            *("--size", "tiny", "--device", "cpu", "--batch", "4x6+5", "--vocab", "60"),
            *("--steps", "2", "--rounds", "1", "--out", str(out)),
            *("--peers", "nn.Transformer", *NAMES),
            *(["--markdown"] if markdown else []),
        ]
    )
    reports = run(options)
    assert json.loads(out.read_text(encoding="utf-8")) == reports
    systems = {one["name"]: one for one in reports[0]["systems"]}
    assert systems["nn.Transformer"]["status"] == "measured"
    printed = capsys.readouterr().out
    for peer in ALL:
        if peer.name in NAMES and not peer.is_installed:
            assert systems[peer.name]["status"] == "not installed"
            assert f"{peer.name}: not installed" in printed
    assert ("| nn.Transformer |" in printed) == markdown
