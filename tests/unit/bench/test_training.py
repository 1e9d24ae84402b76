"""The whole measurement, with peers that behave and peers that do not."""

from __future__ import annotations

import json
import statistics

import numpy as np
import pytest
import torch

from attendo.bench import report as reported
from attendo.bench.flops import count_operations
from attendo.bench.reference_models import Peer, TorchPeer
from attendo.bench.training import benchmark_training, choose_peers
from attendo.core.errors import AttendoError, ConfigError

PAUSE = 0.2
TICK = 1e-3


class Clock:
    """Goes on by a tick whenever it is read, however busy the machine is."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        self.now += TICK
        return self.now


CLOCK = Clock()


class Slow(TorchPeer):
    def forward(self, *ids):
        CLOCK.now += PAUSE
        return super().forward(*ids)


class Wrong(TorchPeer):
    def __init__(self, model):
        super().__init__(model)
        with torch.no_grad():
            self.core.encoder.layers[0].norm1.bias[0] += 1.0


def broken(_model):
    raise RuntimeError("its configuration has changed\nand a second line")


PEERS = (
    Peer("slow", Slow, "torch", can_compile=False),
    Peer("wrong", Wrong, "torch", can_compile=False),
    Peer("broken", broken, "torch", can_compile=False),
    Peer("missing", TorchPeer, "no_such_toolkit"),
    Peer("plain", TorchPeer, "torch"),
)


@pytest.fixture(autouse=True, scope="module")
def _own_clock_and_short_peak_measurement():
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("attendo.bench.flops.CPU_MATRIX_SIZES", (64,))
        monkeypatch.setattr("attendo.bench.flops.MIN_SECONDS", 0.0)
        monkeypatch.setattr("attendo.bench.timing.time", CLOCK)
        yield


@pytest.fixture(scope="module")
def found(config):
    lines: list[str] = []
    return benchmark_training(config, peers=PEERS, log=lines.append), lines


def test_each_system_has_figures_or_a_reason(found):
    report, lines = found
    systems = {one["name"]: one for one in report["systems"]}
    assert list(systems) == [
        *("Attendo", "slow", "wrong", "broken", "missing", "plain", "plain, compiled")
    ]
    assert systems["wrong"]["status"].startswith("disagrees: loss")
    assert systems["broken"]["status"] == "failed: its configuration has changed"
    assert systems["missing"]["status"] == "not installed"
    assert systems["plain, compiled"]["status"] == "skipped: use --compile"
    for name in ("wrong", "broken", "missing"):
        assert "tokens_per_second" not in systems[name]
    assert len(lines) == 1 + len(systems)
    assert json.loads(json.dumps(report)) == report


def test_figures_belong_together(found, config):
    report, _ = found
    systems = {one["name"]: one for one in report["systems"]}
    slow, ours = systems["slow"], systems["Attendo"]
    assert len(slow["rounds"]) == config.num_rounds
    assert len(ours["rounds"]) == 3 * config.num_rounds  # alone, and next to both that were timed
    assert slow["attendo_is_times_as_fast"] > 1
    assert slow["step_ms"] > 1000 * PAUSE
    assert slow["tokens_per_second"] < 6 * 5 / PAUSE
    lengths = np.full(6, 7), np.full(6, 5)
    operations = count_operations(config.build_model().config, *lengths)
    for one in (slow, ours, systems["plain"]):
        seconds = one["step_ms"] / 1000
        assert one["tokens_per_second"] * seconds == pytest.approx(6 * 5)
        assert one["fraction_of_peak"] * report["peak_flops"] * seconds == pytest.approx(operations)
    assert report["fastest_peer"] == "plain"
    assert report["ratio"] == systems["plain"]["attendo_is_times_as_fast"]
    assert slow["attendo_is_times_as_fast"] == statistics.median(slow["ratios"])
    assert len(slow["ratios"]) == config.num_rounds
    assert report["padding"] == {"ours": 0.0, "theirs": 0.0}


def test_the_table_is_in_the_order_of_the_ratios(found):
    report, _ = found
    rows = reported.table_rows(report)
    assert {row[0] for row in rows} == {"Attendo", "slow", "plain"}
    assert rows[-1][0] == "slow"
    assert all(len(row) == len(reported.HEADERS) for row in rows)
    assert reported.missing_notes(report)[2] == "missing: not installed"
    assert "plain, the fastest peer" in reported.format_verdict(report)
    assert "6 x 7 + 5 tokens" in reported.describe_setup(report)


def test_alone(config):
    report = benchmark_training(config.replace(peers=()))
    assert [one["name"] for one in report["systems"]] == ["Attendo"]
    assert report["fastest_peer"] is None
    assert "alone" in reported.format_verdict(report)


def test_a_trainer_that_learns_something_else_is_not_timed(config, monkeypatch):
    monkeypatch.setattr("attendo.bench.training.first_loss", lambda *_: 3.0)
    with pytest.raises(AttendoError, match=r"the trainer's loss is 3\.00000"):
        benchmark_training(config)


def test_lengths_of_a_real_text(config, texts, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENDO_CACHE", str(tmp_path / "cache"))
    settings = {"batch": None, "corpus": texts, "batch_tokens": 700, "vocab_size": 5000}
    report = benchmark_training(config.replace(**settings), peers=PEERS[-1:])
    assert 0 < report["padding"]["theirs"] < 0.5
    assert report["systems"][1]["agreement"].startswith("same loss")


def test_names_of_peers():
    assert [peer.name for peer in choose_peers(["PLAIN", "slow"], PEERS)] == ["plain", "slow"]
    assert choose_peers(None, PEERS) == list(PEERS)
    with pytest.raises(ConfigError, match="unknown peer 'slwo'") as caught:
        choose_peers(["slwo"], PEERS)
    assert "did you mean 'slow'" in str(caught.value)


def test_not_under_torchrun(config, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(ConfigError, match="torchrun"):
        benchmark_training(config)
