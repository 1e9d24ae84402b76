"""Documents: read, translated with their markup, and written back whole."""

from __future__ import annotations

from attendo.documents.formats import ReadOptions, find_format, list_suffixes, read_document
from attendo.documents.translation import DocumentPlan, TranslatedDocument, translate_document

__all__ = [
    "DocumentPlan",
    "ReadOptions",
    "TranslatedDocument",
    "find_format",
    "list_suffixes",
    "read_document",
    "translate_document",
]
