"""Exponents of growth with n or d, and the n from which one cost exceeds another."""

from __future__ import annotations

from itertools import pairwise
from math import exp, log
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

UPPER = 8
"""Exponents are fitted for lengths from 1 / UPPER of the longest on."""


def choose_upper(lengths: Sequence[int]) -> list[int]:
    """Return the lengths from an eighth of the longest on, where overheads are small.

    >>> choose_upper([16, 32, 64, 128, 256])
    [32, 64, 128, 256]
    """
    return [length for length in lengths if length * UPPER >= lengths[-1]]


def fit_exponent(xs: Sequence[float], values: Sequence[float | None]) -> float | None:
    """Return p of values ~ xs^p, by a least-squares fit of the logarithms.

    Missing values (None) are skipped; fewer than two points give None.

    >>> fit_exponent([16, 32, 64, 128], [3, 12, 48, None])
    2.0
    """
    pairs = [
        (log(x_value), log(value))
        for x_value, value in zip(xs, values, strict=True)
        if value is not None
    ]
    if len(pairs) < 2:
        return None
    x, y = np.array(pairs).T
    x = x - x.mean()
    return round(float(x @ y / (x @ x)), 3)


def find_crossing(
    lengths: Sequence[int], own: Sequence[float | None], other: Sequence[float | None]
) -> float | None:
    """Return the n from which `own` stays above `other`; None if it ends below.

    Between two lengths both are interpolated as powers of n. The shortest length represents all
    shorter ones.

    >>> find_crossing([16, 32, 64], [1, 4, 16], [4, 4, 4]), find_crossing([16, 32], [1, 2], [2, 3])
    (32.0, None)
    """
    gaps = [
        (log(length), log(mine) - log(theirs))
        for length, mine, theirs in zip(lengths, own, other, strict=True)
        if mine is not None and theirs is not None
    ]
    if not gaps or gaps[-1][1] <= 0:
        return None
    crossing = gaps[0][0]
    for (left, below), (right, above) in pairwise(gaps):
        if below <= 0 < above:
            crossing = left + (right - left) * below / (below - above)
    return round(exp(crossing), 1)
