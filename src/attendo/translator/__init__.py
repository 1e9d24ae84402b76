"""Text in, text out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attendo.translator.translation import Translation
from attendo.translator.translator import Translator

if TYPE_CHECKING:
    from attendo.translator.confidence import Confidence, WordConfidence
    from attendo.translator.familiarity import Unfamiliarity

__all__ = ["Confidence", "Translation", "Translator", "Unfamiliarity", "WordConfidence"]

_MODULES = {
    "Confidence": "attendo.translator.confidence",
    "Unfamiliarity": "attendo.translator.familiarity",
    "WordConfidence": "attendo.translator.confidence",
}
"""Where the names are that only `confidence=True` needs: they are imported on first use."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'attendo.translator' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)
