"""Text in, text out."""

from attendo.translator.translate import Translator
from attendo.translator.translation import Confidence, Translation, WordConfidence

__all__ = ["Confidence", "Translation", "Translator", "WordConfidence"]
