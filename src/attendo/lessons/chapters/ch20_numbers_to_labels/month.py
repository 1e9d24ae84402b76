"""The month that the learner edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attendo.lessons.chapters.ch20_numbers_to_labels.tiny_forecaster import LABELS

if TYPE_CHECKING:
    from attendo.lessons.chapters.ch20_numbers_to_labels.tiny_forecaster import Values

FIRST_PREDICTED = np.datetime64("1994-08-07", "D")
"""The day after the month, in the years that the tiny model has not learned from."""
TEMPERATURES = [
    [27.3, 26.9, 26.6],
    [26.7, 26.7, 27.0],
    [27.3, 27.6, 27.9],
    [28.3, 28.6, 28.8],
    [28.9, 28.7, 28.7],
    [28.9, 29.1, 29.1],
    [29.0, 29.1, 29.3],
    [29.1, 29.0, 28.8],
    [28.8, 28.8, 28.7],
    [28.9, 29.0, 28.9],
]
PLAIN_LABELS = list(LABELS)


def month_of(temperatures: list[list[float]], warmer: float, missing: int) -> Values:
    """Return the month (S,) of a grid: warmer or colder, the last days missing (NaN)."""
    month = np.array(temperatures, dtype=np.float64).ravel() + warmer
    month[len(month) - missing :] = np.nan
    return month
