"""Figures of heads whose attention is made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attendo.inspection.head_metrics import (
    agreement,
    compute_head_metrics,
    count_visible_columns,
    entropy,
)

N = 5
SELF = ("encoder_self", "decoder_self")


def one(kind, *heads, **options) -> dict[str, float | None]:
    """The measures of the first of these heads (rows, columns) of one layer."""
    return compute_head_metrics(kind, np.array([heads]), **options)[0][0]


def causal() -> np.ndarray:
    """Evenly over all that the decoder may see."""
    lower = np.tril(np.ones((N, N)))
    return lower / lower.sum(1, keepdims=True)


def shifted(offset: int) -> np.ndarray:
    """Every row on the column `offset` positions on, those without one on the first or last."""
    positions = (np.arange(N) + offset).clip(0, N - 1)
    return np.eye(N)[positions]


def test_a_uniform_head():
    found = one("encoder_self", np.full((N, N), 1 / N))
    assert found == {
        "entropy": round(math.log(N), 4),
        "focus": 0.0,
        "distance": 1.6,  # the mean of |i - j| over 25 pairs: 40 / 25
        "agreement": 1.0,
        "previous": 0.16,  # four rows of five have one
        "same": 0.2,
        "next": 0.16,
        "first": 0.2,
        "end": 0.2,
        "alignment": None,
    }


@pytest.mark.parametrize("kind", SELF)
def test_a_head_that_looks_at_its_own_position(kind):
    found = one(kind, np.eye(N))
    assert (found["entropy"], found["focus"], found["distance"], found["same"]) == (0, 1, 0, 1)
    assert found["previous"] == found["next"] == 0.0
    assert found["first"] == 0.2
    assert found["end"] == (0.2 if kind == "encoder_self" else 0.0)


def test_a_head_that_looks_back():
    found = one("decoder_self", shifted(-1))
    assert (found["previous"], found["same"], found["next"]) == (0.8, 0.2, 0.0)
    assert found["first"] == 0.4
    assert found["distance"] == 0.8
    assert found["focus"] == 1.0


def test_a_head_that_looks_ahead():
    found = one("encoder_self", shifted(1))
    assert (found["previous"], found["same"], found["next"]) == (0.0, 0.2, 0.8)
    assert found["end"] == 0.4


def test_a_head_that_parks_on_the_end_symbol():
    weights = np.zeros((3, 7))
    weights[:, -1] = 1.0
    found = one("cross", weights)
    assert (found["first"], found["end"]) == (0.0, 1.0)
    assert found["previous"] is found["same"] is found["next"] is None
    assert found["distance"] == 3.0  # the diagonal is at 0, 3, 6
    assert found["alignment"] == 0.2  # one link: 2 / (3 + 7)


def test_focus_knows_what_a_row_may_see():
    assert one("decoder_self", causal())["focus"] == 0.0
    logs = [math.log(count) for count in (1, 2, 3, 4, 5)]
    assert one("decoder_self", causal())["entropy"] == round(sum(logs) / 5, 4)
    assert one("encoder_self", causal())["focus"] == round(1 - sum(logs) / 5 / math.log(5), 4)
    narrow = np.array(
        [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 1], [0, 0, 0, 1, 1]]
    )
    narrow = narrow / narrow.sum(1, keepdims=True)
    assert one("encoder_self", narrow, width=3)["focus"] == 0.0
    assert one("encoder_self", narrow)["focus"] > 0.3


@pytest.mark.parametrize(
    ("kind", "width", "counts"),
    [
        ("encoder_self", None, [5, 5, 5, 5, 5]),
        ("decoder_self", None, [1, 2, 3, 4, 5]),
        ("encoder_self", 3, [2, 3, 3, 3, 2]),
        ("decoder_self", 3, [1, 2, 2, 2, 2]),
        ("cross", 3, [5, 5, 5, 5, 5]),
    ],
)
def test_allowed_columns(kind, width, counts):
    assert count_visible_columns(kind, 5, 5, width=width).tolist() == counts


def test_the_diagonal_of_sides_of_different_length():
    weights = np.eye(9)[[0, 4, 8]]
    assert one("cross", weights)["distance"] == 0.0
    assert one("cross", weights)["alignment"] == 0.5  # three links: 6 / (3 + 9)
    assert one("cross", weights[::-1])["distance"] == round(16 / 3, 4)
    assert one("cross", np.eye(4)[::-1])["alignment"] == 1.0  # turned round, but one to one


def test_links_hold_both_ways():
    weights = np.array([[0.6, 0.4, 0.0], [0.7, 0.3, 0.0], [0.1, 0.3, 0.6]])
    # Rows 0 and 1 both want column 0, which wants row 1; column 1 wants row 0, which wants 0.
    assert one("cross", weights)["alignment"] == round(4 / 6, 4)


def test_heads_that_agree_and_heads_that_do_not():
    same, other = np.eye(N), np.eye(N)[::-1]
    assert one("encoder_self", same, same, same)["agreement"] == 1.0
    assert one("encoder_self", same)["agreement"] == 1.0
    apart = one("encoder_self", same, other)["agreement"]
    assert apart == 0.2  # wholly apart but for the row in the middle


def test_agreement_by_hand():
    heads = np.array([[[[0.5, 0.5]], [[1.0, 0.0]], [[0.8, 0.2]]]])  # one row, three heads
    p, q = np.array([0.5, 0.5]), np.array([0.9, 0.1])
    middle = (p + q) / 2
    divergence = 0.5 * (p * np.log2(p / middle)).sum() + 0.5 * (q * np.log2(q / middle)).sum()
    assert agreement(heads)[0, 0] == pytest.approx(1 - math.sqrt(divergence))


def test_one_token():
    for kind in ("encoder_self", "decoder_self", "cross"):
        found = one(kind, np.ones((1, 1)))
        assert found["focus"] == found["agreement"] == found["first"] == 1.0
        assert found["entropy"] == found["distance"] == 0.0
        assert math.copysign(1, found["entropy"]) == 1
    assert one("cross", np.full((1, 4), 0.25))["distance"] == 1.5


def test_every_layer_and_head_has_its_own():
    layers = np.stack(
        [
            np.stack([np.eye(N), shifted(-1), causal()]),
            np.stack([shifted(-1), causal(), np.eye(N)]),
        ]
    )
    found = compute_head_metrics("decoder_self", layers)
    same = [[head["same"] for head in layer] for layer in found]
    uniform = round(sum(1 / count for count in range(1, 6)) / 5, 4)
    assert same == [[1.0, 0.2, uniform], [0.2, uniform, 1.0]]


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 6))
def test_bounds(seed, rows, columns):
    rng = np.random.default_rng(seed)
    scores = np.exp(rng.normal(scale=4, size=(2, 3, rows, columns)))
    weights = (scores / scores.sum(-1, keepdims=True)).astype(np.float32)
    for layer in compute_head_metrics("cross", weights):
        for head in layer:
            assert all(
                0 <= head[name] <= 1 for name in ("focus", "agreement", "first", "alignment")
            )
            assert 0 <= head["distance"] <= columns - 1
            assert 0 <= head["entropy"] <= math.log(columns) + 1e-4


def test_entropy_of_weights_that_are_zero():
    assert entropy(np.array([[[[0.0, 0.0], [0.5, 0.5]]]])).tolist() == [[[0.0, math.log(2)]]]
