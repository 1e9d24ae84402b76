"""A table of quality as training leaves it in a model folder."""

from __future__ import annotations

import math

TABLE = {
    "score": "probability",
    "auroc": 0.9,
    "min_chrf": None,
    "min_quality": {"high": 0.9, "check": 0.5, "low": 0.0},
    "num_sentences": 200,
    "exact_share": 0.7,
    "median_chrf": 100.0,
    "steps": [
        {"min_log_score": math.log(low), "quality": quality}
        for low, quality in ((0.1, 0.2), (0.5, 0.6), (0.9, 0.95))
    ],
    "bands": {
        "high": {"count": 100, "num_right": 97, "num_exact": 97},
        "check": {"count": 60, "num_right": 36, "num_exact": 36},
        "low": {"count": 40, "num_right": 7, "num_exact": 7},
    },
}
