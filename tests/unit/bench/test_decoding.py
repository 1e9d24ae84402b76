from __future__ import annotations

import json
import statistics

import pytest
import torch

from attendo.bench import decoding
from attendo.bench.config import DecodingBenchConfig
from attendo.bench.decoders import DECODERS, AttendoDecoder, Case
from attendo.bench.reference_models import Peer
from attendo.bench.training import perturb_biases_and_norms

CONFIG = DecodingBenchConfig(
    size="tiny", device="cpu", vocab_size=60, batches=("1x6+4", "3x6+4"), repeats=2
)


def test_alone():
    lines: list[str] = []
    report = decoding.benchmark_decoding(CONFIG.replace(peers=()), log=lines.append)
    cases = [(case["num_sentences"], case["beam_size"]) for case in report["cases"]]
    assert cases == [(1, 1), (1, 4), (3, 1), (3, 4)]
    for case in report["cases"]:
        (ours,) = case["systems"]
        assert ours["fraction_of_peak"] == case["min_seconds"] / ours["seconds"] > 0
        assert ours["attendo_is_times_as_fast"] is None
    assert len(lines) == 4
    assert [row[2] for row in decoding.table_rows(report)] == ["Attendo"] * 4
    assert json.loads(json.dumps(report)) == report


@pytest.mark.parametrize("peer", DECODERS, ids=lambda peer: peer.name)
def test_every_translation_is_as_long_as_asked_for_and_ours(peer, need):
    need(peer.package)
    model = perturb_biases_and_norms(CONFIG.build_model()).eval()
    ours, theirs = AttendoDecoder(model), peer.build(model)
    theirs.move(torch.device("cpu"), torch.float32)
    src_ids = decoding.sample_ids(CONFIG, CONFIG.shapes[1], 3)
    for beam_size in CONFIG.beam_sizes:
        case = Case(CONFIG.shapes[1], beam_size)
        written = theirs.decode(src_ids, case, suppress_special=True)
        assert [len(ids) for ids in written] == [4, 4, 4]
        assert written == ours.decode(src_ids, case)


def test_compared_with_others(need):
    for peer in DECODERS:
        need(peer.package)
    report = decoding.benchmark_decoding(CONFIG)
    for case in report["cases"]:
        _, *others = case["systems"]
        assert [one["name"] for one in others] == [peer.name for peer in DECODERS]
        for one in others:
            assert one["agreement"] == "4 of 4 equal in float32"
            assert one["attendo_is_times_as_fast"] == statistics.median(one["ratios"]) > 0
    rows = decoding.table_rows(report)
    assert len(rows) == 16
    assert [row[0] for row in rows[:5]] == ["1x6+4", "", "", "", "1x6+4"]


def test_a_peer_that_is_missing_is_named():
    absent = Peer("Absent", AttendoDecoder, "attendo_absent")
    lines: list[str] = []
    report = decoding.benchmark_decoding(CONFIG, peers=[absent], log=lines.append)
    assert report["missing"] == ["Absent"]
    assert lines[0] == "Absent: not installed"


def test_a_peer_that_writes_something_else_is_not_timed():
    lines: list[str] = []
    liar = Peer("Liar", Liar, "attendo")
    report = decoding.benchmark_decoding(CONFIG, peers=[liar], log=lines.append)
    assert all("seconds" not in case["systems"][1] for case in report["cases"])
    assert len(lines) == 4
    assert all("Liar disagrees: 0 of 4 equal" in line for line in lines)
    assert len(decoding.table_rows(report)) == 4


class Liar(AttendoDecoder):
    """Reverses its output."""

    def decode(self, src_ids, case, *, suppress_special=False):
        return [
            [5, *ids[1:]][::-1]
            for ids in super().decode(src_ids, case, suppress_special=suppress_special)
        ]
