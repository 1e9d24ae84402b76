"""Ten days with the same forecast: a probability compared with a plain yes, by the metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from attendo.lessons.chapters.ch20_numbers_to_labels.tiny_forecaster import LABELS
from attendo.tasks.forecasting.metrics import label_metrics

NUM_DAYS = 10


def score_constant(probability: float, num_events: int) -> dict[str, Any]:
    """Return the metrics of one probability for ten days, of which some had a typhoon."""
    truth = (np.arange(NUM_DAYS) < num_events).astype(np.int64)[:, None]
    probabilities = np.broadcast_to([1 - probability, probability], (NUM_DAYS, 1, 2))
    return label_metrics(truth, probabilities, LABELS)
