"""The sum of all request bodies is limited, and the client that takes most gives way."""

from __future__ import annotations

import pytest

from attendo.serving.transport.body_budget import PART_OVERHEAD, BodyBudget


@pytest.fixture
def budget() -> BodyBudget:
    return BodyBudget(10_000)


def test_the_oldest_body_of_the_largest_client_yields(budget):
    small, first, second = (budget.receive(name) for name in ("a", "b", "b"))
    dropped: list[str] = []
    small.on_drop = lambda: dropped.append("small")
    first.on_drop = lambda: dropped.append("first")
    second.on_drop = lambda: dropped.append("second")
    small.add(b"x" * 3000)
    first.add(b"x" * 3000)
    second.add(b"x" * 3500)
    assert dropped == []
    small.add(b"x" * 500)
    assert dropped == ["first"]
    assert budget.num_bytes == 7000 + 3 * PART_OVERHEAD
    assert (first.is_dropped, small.is_dropped, first._parts) == (True, False, [])


def test_a_body_that_was_received_stays_and_the_next_one_is_rejected(budget):
    complete, late = budget.receive("a"), budget.receive("b")
    complete.add(b"x" * 9000)
    assert complete.finish() == b"x" * 9000
    late.add(b"x" * 2000)
    assert late.is_dropped
    assert not complete.is_dropped
    assert budget.num_bytes == 9000 + PART_OVERHEAD
    complete.release()
    complete.release()
    late.release()
    assert budget.num_bytes == 0


def test_a_client_without_bodies_is_forgotten(budget):
    body = budget.receive("a")
    body.add(b"x")
    body.release()
    assert not budget._by_client
    assert not budget._receiving


def test_a_body_in_tiny_parts_counts_what_it_takes(budget):
    body = budget.receive("a")
    for _ in range(1 + 10_000 // PART_OVERHEAD):
        body.add(b"x")
    assert body.is_dropped
