"""How figures grow with n or d, and from which n on one lies above another: plain arithmetic."""

from __future__ import annotations

from itertools import pairwise
from math import exp, log
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

UPPER = 8
"""Exponents are fitted from the longest sequence down to so many times shorter ones."""


def choose_upper(lengths: Sequence[int]) -> list[int]:
    """Give the lengths past the overheads: from an eighth of the longest on.

    >>> choose_upper([16, 32, 64, 128, 256])
    [32, 64, 128, 256]
    """
    return [length for length in lengths if length * UPPER >= lengths[-1]]


def fit_exponent(places: Sequence[float], values: Sequence[float | None]) -> float | None:
    """Give p of values ~ places^p: the slope of their logarithms, by least squares.

    What was not measured (None) is left out; fewer than two points give None.

    >>> fit_exponent([16, 32, 64, 128], [3, 12, 48, None])
    2.0
    """
    pairs = [
        (log(place), log(value))
        for place, value in zip(places, values, strict=True)
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
    """Give from which n on `own` stays above `other`; None where it ends below.

    Between two lengths both are taken as powers of n. The shortest length stands for itself and
    all below it.

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
