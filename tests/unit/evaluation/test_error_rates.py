from __future__ import annotations

import random
from functools import cache

import pytest

from attendo.evaluation.error_rates import count_edits, error_rates


def test_any_reference_of_a_source_will_do():
    sources = ["read", "read", "cat", "dog"]
    outputs = ["R EH D", "R EH D", "K AE D", "D AO G Z"]
    references = ["R IY D", "R EH D", "K AE T", "D AO G"]
    found = error_rates(sources, outputs, references)
    assert found.num_cases == 3
    assert found.sequence == pytest.approx(2 / 3)
    assert found.token == pytest.approx(2 / 9)


def test_nothing_and_everything_wrong():
    assert error_rates([], [], []) == (0.0, 0.0, 0)
    assert error_rates(["a"], [""], ["A B"]) == (1.0, 1.0, 1)
    assert error_rates(["a"], ["A B C"], ["A"]).token == 2.0


def test_edits_equal_the_definition():
    draw = random.Random(1)  # noqa: S311 - not for secrets
    for _ in range(100):
        one, other = (tuple(draw.choices("abc", k=draw.randint(0, 6))) for _ in range(2))

        @cache
        def distance(i: int, j: int, one=one, other=other) -> int:
            if not i or not j:
                return i + j
            same = distance(i - 1, j - 1) + (one[i - 1] != other[j - 1])
            return min(same, distance(i - 1, j) + 1, distance(i, j - 1) + 1)

        assert count_edits(one, other) == distance(len(one), len(other))
        distance.cache_clear()
