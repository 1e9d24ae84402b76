from __future__ import annotations

import json
import re

import torch

from attendo.bench import decoding
from attendo.bench.config import DecodingBench

CONFIG = DecodingBench(
    size="tiny", device="cpu", vocab_size=60, batches=("1x6+4", "3x6+4"), repeats=2
)


def test_alone():
    lines: list[str] = []
    report = decoding.measure_decoding(CONFIG.replace(peers=()), tell=lines.append)
    cases = [(case["num_sentences"], case["beam_size"]) for case in report["cases"]]
    assert cases == [(1, 1), (1, 4), (3, 1), (3, 4)]
    assert all(case["seconds"] > 0 and case["peer"] is None for case in report["cases"])
    assert len(lines) == 4
    assert [row[2] for row in decoding.make_rows(report)] == ["Attendo"] * 4
    assert json.loads(json.dumps(report)) == report


def test_every_translation_is_as_long_as_asked_for():
    torch.manual_seed(1)
    model = CONFIG.build().eval()
    for beam_size in CONFIG.beam_sizes:
        case = decoding.Case(CONFIG.shapes[1], beam_size)
        written = decoding.decode(model, torch.randint(4, 60, (3, 6)), case)
        assert [len(ids) for ids in written] == [4, 4, 4]


def test_beside_hugging_face(need):
    need("transformers")
    report = decoding.measure_decoding(CONFIG)
    for case in report["cases"]:
        assert case["agreement"] == "4 of 4 written alike in float32"
        assert case["attendo_is_times_as_fast"] > 0
    assert len(decoding.make_rows(report)) == 8


def test_a_peer_that_writes_something_else_is_not_timed(monkeypatch, need):
    need("transformers")
    monkeypatch.setattr("attendo.bench.decoding.build_marian", spoil)
    lines: list[str] = []
    report = decoding.measure_decoding(CONFIG, tell=lines.append)
    assert all(case["peer_seconds"] is None for case in report["cases"])
    assert len(lines) == 4
    assert all(re.search(r"Marian disagrees: [012] of 4", line) for line in lines)


def spoil(model):
    from attendo.bench.peers import build_marian

    peer = build_marian(model)
    with torch.no_grad():
        for parameter in peer.model.decoder.layers[0].fc1.parameters():
            parameter.normal_(std=3.0)
    return peer
