"""Attendo: the Transformer of "Attention Is All You Need" as real software.

>>> import attendo
>>> model = attendo.Transformer.from_preset("tiny", vocab_size=1000)

Names are imported when they are first used, so that `import attendo` and `attendo --help` load no
tensor library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attendo.core.version import __version__

if TYPE_CHECKING:
    from attendo.core.errors import AttendoError
    from attendo.model.config import TransformerConfig
    from attendo.model.transformer import Transformer
    from attendo.tasks.forecasting.forecaster import Forecaster
    from attendo.tasks.request import train
    from attendo.training.trainer import Trainer
    from attendo.translator import Translator

__all__ = [
    "AttendoError",
    "Forecaster",
    "Trainer",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "__version__",
    "train",
]

_HOMES = {
    "AttendoError": "attendo.core.errors",
    "Forecaster": "attendo.tasks.forecasting.forecaster",
    "Trainer": "attendo.training.trainer",
    "Transformer": "attendo.model.transformer",
    "TransformerConfig": "attendo.model.config",
    "Translator": "attendo.translator",
    "train": "attendo.tasks.request",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'attendo' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
