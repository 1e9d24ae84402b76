"""Text in, text out."""

from attendo.translator.translation import Confidence, Translation, WordConfidence
from attendo.translator.translator import Translator

__all__ = ["Confidence", "Translation", "Translator", "WordConfidence"]
