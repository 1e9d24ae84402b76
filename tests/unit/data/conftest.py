from __future__ import annotations

import pytest

from attendo.data.corpus_config import Pair
from attendo.synthetic.everyday import synthesize_splits


@pytest.fixture(scope="session")
def everyday_pairs() -> list[Pair]:
    """Return Korean sentences and their English translations."""
    return [Pair(pair.ko, pair.en) for pair in synthesize_splits(train=6000).train]
