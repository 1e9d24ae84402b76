"""Attendo: the Transformer of "Attention Is All You Need" as real software.

>>> import attendo
>>> model = attendo.Transformer.from_preset("tiny", vocab_size=1000)

Names are imported when they are first used, so that `import attendo` and `attendo --help` load no
tensor library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attendo.core.config import TransformerConfig
    from attendo.core.errors import AttendoError
    from attendo.model.transformer import Transformer

__version__ = "0.1.0"
__all__ = ["AttendoError", "Transformer", "TransformerConfig", "__version__"]

_HOMES = {
    "AttendoError": "attendo.core.errors",
    "Transformer": "attendo.model.transformer",
    "TransformerConfig": "attendo.core.config",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'attendo' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
