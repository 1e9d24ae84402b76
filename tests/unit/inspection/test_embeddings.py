"""Embeddings and positions, against tables made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attendo.bundle import build_model
from attendo.inspection.embeddings import (
    cosine_similarity,
    describe_embeddings,
    describe_positions,
    max_positions,
    nearest_neighbors,
)
from attendo.inspection.record import Record

SIZES = {"d_model": 6, "d_ff": 8, "num_heads": 2, "num_layers": 1}


def turned(*degrees: float) -> torch.Tensor:
    """Vectors of different lengths at these angles; the first four rows are the symbols."""
    angles = [math.radians(one) for one in (0, 0, 0, 0, *degrees)]
    return torch.tensor(
        [[(n + 1) * math.cos(a), (n + 1) * math.sin(a)] for n, a in enumerate(angles)]
    )


def read_table(packed) -> np.ndarray:
    side = {"text": "", "tokens": [], "words": []}
    record = Record(model={}, search={}, src=side, tgt=side, weights={}, steps=[], positions=packed)
    return record.position_table()


def test_the_nearest_by_angle_without_symbols():
    table = turned(0, 10, 25, 90, 180)  # ids 4 ... 8; the symbols lie at 0 degrees too
    found = nearest_neighbors(table, [4, 6, 3, 4], count=3)
    assert [number for number, _ in found[0]] == [5, 6, 7]
    cosines = [math.cos(math.radians(one)) for one in (10, 25, 90)]
    assert [cosine for _, cosine in found[0]] == pytest.approx(cosines, abs=1e-6)
    assert [number for number, _ in found[1]] == [5, 4, 7]
    assert found[2] == []  # the end symbol
    assert found[3] == found[0]


def test_fewer_than_asked_for():
    found = nearest_neighbors(turned(0, 10), [4, 5, 1])
    assert [[number for number, _ in near] for near in found] == [[5], [4], []]
    assert nearest_neighbors(turned(0, 10), [3]) == [[]]


def test_a_vector_of_zeros_is_near_to_nothing():
    table = turned(0, 10, 20)
    table[5] = 0.0
    assert nearest_neighbors(table, [4])[0][0][0] == 6
    assert all(cosine == 0 for _, cosine in nearest_neighbors(table, [5])[0])


def test_each_side_has_its_own_table_and_names(toy):
    tokenizer = toy.separate.tokenizer
    model = build_model("transformer", SIZES, tokenizer)
    src, tgt = tokenizer.encode_src(["ka to"])[0], tokenizer.encode_tgt(["KA TO"])[0]
    near = tokenizer.encode_src(["lu"])[0][0]
    model.src_embedding.weight.data[near] = 2 * model.src_embedding.weight.data[src[0]]
    reported = describe_embeddings(model, tokenizer, src, tgt)
    assert reported["src"][0][0] == {"id": near, "piece": "▁lu", "similarity": 1.0}
    assert [len(one) for one in reported["src"]] == [5, 5, 0]
    assert all(one["piece"].isupper() for one in reported["tgt"][0])
    pieces = tokenizer.tgt_pieces(one["id"] for one in reported["tgt"][1])
    assert [one["piece"] for one in reported["tgt"][1]] == pieces
    assert all(one["id"] not in (src[0], 0, 1, 2, 3) for one in reported["src"][0])


def test_a_model_without_tables(toy):
    assert describe_embeddings(object(), toy.prepared.tokenizer, [4], [4]) is None
    assert describe_positions(object(), 8) is None
    assert max_positions(object()) is None


def test_sinusoids_by_the_formula(make_model):
    packed = describe_positions(make_model(), 20)
    assert (packed["kind"], packed["layout"], packed["num_positions"]) == (
        "sinusoidal",
        "interleaved",
        20,
    )
    table = read_table(packed)
    assert table.shape == (20, 16)
    for folder, dimension in ((0, 1), (7, 0), (7, 1), (19, 6), (19, 7)):
        angle = folder / 10_000 ** (2 * (dimension // 2) / 16)
        expected = math.cos(angle) if dimension % 2 else math.sin(angle)
        assert table[folder, dimension] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("options", "kind", "layout", "num_positions"),
    [
        ({"positions": "learned", "max_length": 12}, "learned", None, 12),
        ({"positions": "concatenated"}, "concatenated", "interleaved", 20),
        ({"position_layout": "halves"}, "sinusoidal", "halves", 20),
    ],
)
def test_other_positions(make_model, options, kind, layout, num_positions):
    model = make_model(**options)
    packed = describe_positions(model, 20)
    assert (packed["kind"], packed["layout"], packed["num_positions"]) == (
        kind,
        layout,
        num_positions,
    )
    table = read_table(packed)
    if kind == "learned":
        assert np.allclose(table, model.src_positions.weight.detach().numpy(), atol=1e-3)
        assert max_positions(model) == 12
    else:
        assert max_positions(model) is None
        assert np.allclose((table**2).sum(1), 8, atol=0.02)  # sine and cosine of eight angles


def test_no_positions(make_model):
    assert describe_positions(make_model(positions="none"), 8) is None


def test_similarity_of_positions_falls_with_distance(make_model):
    cosines = cosine_similarity(torch.tensor(read_table(describe_positions(make_model(), 4))))
    assert torch.allclose(cosines.diagonal(), torch.ones(4), atol=1e-5)
    assert torch.allclose(cosines, cosines.T)
    assert cosines[0, 1] > cosines[0, 2] > cosines[0, 3]
    expected = sum(math.cos(1 / 10_000 ** (2 * i / 16)) for i in range(8)) / 8
    assert float(cosines[1, 2]) == pytest.approx(expected, abs=1e-3)
