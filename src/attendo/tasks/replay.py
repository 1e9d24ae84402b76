"""Replay: mix old training data into fine-tuning, so that a model does not forget what it knew.

The old corpora are weighted such that they are a given share of every epoch (Ratcliff 1990; for
translation: mixed fine-tuning, Chu et al. 2017).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.data.corpus_config import CorpusConfig
from attendo.data.readers import read_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DEFAULT_SHARE = 0.3
MIN_WEIGHT = 1e-4


def add_replay(
    corpora: Sequence[dict[str, Any]],
    sides: Sequence[tuple[str | Path, str | Path]],
    share: float | None,
) -> list[dict[str, Any]]:
    """Return the corpora of fine-tuning with old ones, weighted to be a share of every epoch.

    Old pairs are not repeated: with fewer of them than the share needs, all are used once.
    """
    chosen = DEFAULT_SHARE if share is None else share
    if not 0.0 < chosen < 1.0:
        raise ConfigError(
            message("--replay-share {share}: not between 0 and 1", share=chosen),
            hint="0.3 means that 30 % of every epoch are old pairs",
        )
    old = [{"src": str(src), "tgt": str(tgt)} for src, tgt in sides]
    num_new = sum(_count_pairs(corpus) for corpus in corpora)
    num_old = max(sum(_count_pairs(corpus) for corpus in old), 1)
    weight = min(chosen / (1 - chosen) * num_new / num_old, 1.0)
    return [*corpora, *(one | {"weight": max(round(weight, 4), MIN_WEIGHT)} for one in old)]


def _count_pairs(corpus: dict[str, Any]) -> float:
    """Return how many pairs of a corpus an epoch has, before cleaning."""
    config = CorpusConfig(**corpus)
    return config.weight * sum(1 for _ in read_pairs(config))
