"""Translates documents: plain sentences for the model, their tags put back, placeholders checked.

The steps are apart, because a server translates in its own queue:

    plan = DocumentPlan(document)
    translations = translator.translate(plan.texts)
    links = {n: link_words(translator, translations[n]) for n in plan.aligned}
    result = plan.complete(translations, links)
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.message import message
from attendo.documents.projection import WordLinks, project, words_of
from attendo.text.copy_spans import CopySpan, find_copy_spans, missing_spans
from attendo.translator.notes import has_failed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attendo.documents.document import Document
    from attendo.documents.markup import MarkedText
    from attendo.translator import Translator

CHECKED_KINDS = ("placeholder", "url", "email", "emoji")
"""What a translation must have exactly as often as its source."""
MAX_SHOWN = 40


class TranslatedDocument(NamedTuple):
    """A translated document, and what could not be kept."""

    content: bytes
    notes: list[str]


class Repair(NamedTuple):
    """A translation with the placeholders of its source."""

    text: str
    is_changed: bool


class DocumentPlan:
    """What is translated of a document, and how the translations are put back.

    Args:
        document: from `read_document`.

    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self._numbers: dict[str, int] = {}
        for segment in document.segments:
            self._numbers.setdefault(segment.text, len(self._numbers))

    @property
    def texts(self) -> list[str]:
        """The different texts of the segments, which are translated once each."""
        return list(self._numbers)

    @cached_property
    def aligned(self) -> list[int]:
        """The texts with tags in them, whose words must be aligned."""
        numbers = (self._numbers[one.text] for one in self.document.segments if one.tags)
        return list(dict.fromkeys(numbers))

    def complete(
        self, translations: Sequence[str], links: Mapping[int, WordLinks] | None = None
    ) -> TranslatedDocument:
        """Return the document with translations of `texts`, and the links of some of them."""
        links = links or {}
        repairs = [
            repair_spans(text, str(translation))
            for text, translation in zip(self._numbers, translations, strict=True)
        ]
        made: list[MarkedText] = []
        for segment in self.document.segments:
            number = self._numbers[segment.text]
            text, is_changed = repairs[number]
            known = None if is_changed else links.get(number)
            made.append(project(segment, text, known))
        notes = [*self.document.notes, *_describe(self._numbers, repairs, translations)]
        return TranslatedDocument(self.document.write(made), notes)


def translate_document(
    translator: Translator,
    document: Document,
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: object,
) -> TranslatedDocument:
    """Translate a document.

    Args:
        translator: the model.
        document: from `read_document`.
        progress: called with the number of translated texts and of all.
        options: of `Translator.translate`.

    Returns:
        The document, and what could not be kept.

    """
    from attendo.documents.alignment import link_words

    plan = DocumentPlan(document)
    has_native, aligned = translator.backend.has_native, set(plan.aligned)
    native = translator.native if has_native else translator
    translations, links, notes = [], {}, []
    lines = translator.translate_lines(plan.texts, skip_failed=True, **options)  # type: ignore[arg-type]
    for number, translation in enumerate(lines):
        text = str(translation)
        if has_failed(translation.notes):
            notes.append(message("not translated: {text}", text=_shorten(translation.source)))
            text = translation.source
        elif number in aligned:
            links[number] = link_words(native, translation)
        translations.append(text)
        if progress is not None:
            progress(number + 1, len(plan.texts))
    if aligned and not has_native:
        notes.append(message("tags are placed by position: the engine has no attention weights"))
    made = plan.complete(translations, links)
    return TranslatedDocument(made.content, [*made.notes, *notes])


def repair_spans(source: str, text: str) -> Repair:
    """Return a translation that has every placeholder and address as often as its source.

    The translator has copied what the model left out. What it has added is removed here; what is
    still missing is inserted at its relative position. An empty translation is the source.

    >>> repair_spans("Delete {name}?", "{name} {name} löschen?")
    Repair(text='{name} löschen?', is_changed=True)
    """
    if not text.strip():
        return Repair(source, is_changed=bool(source.strip()))
    expected, found = _checked(source), _checked(text)
    if Counter(one.text for one in expected) == Counter(one.text for one in found):
        return Repair(text, is_changed=False)
    made = _replace_surplus(text, expected, found)
    for span in missing_spans(expected, made):
        made = _insert(made, span.text, span.start / max(len(source), 1))
    return Repair(made, is_changed=True)


def _checked(text: str) -> list[CopySpan]:
    return [one for one in find_copy_spans(text) if one.kind in CHECKED_KINDS]


def _replace_surplus(text: str, expected: Sequence[CopySpan], found: Sequence[CopySpan]) -> str:
    """Replace what the source does not have by what is missing, or remove it."""
    missing = missing_spans(expected, text)
    counts = Counter(one.text for one in expected)
    kept, end = "", 0
    for span in found:
        if counts[span.text] > 0:
            counts[span.text] -= 1
            continue
        similar = _most_similar(span, missing)
        if similar is None:
            kept += text[end : span.start].rstrip(" ")
        else:
            missing.remove(similar)
            kept += text[end : span.start] + similar.text
        end = span.end
    return (kept + text[end:]).strip(" ")


def _most_similar(span: CopySpan, missing: Sequence[CopySpan]) -> CopySpan | None:
    """Return which missing placeholder a changed one was; a name may be in other letters."""
    alike = [one for one in missing if one.text.casefold() == span.text.casefold()]
    same_kind = [one for one in missing if one.kind == span.kind]
    return next(iter(alike or same_kind), None)


def _insert(text: str, span: str, share: float) -> str:
    """Insert a placeholder before the word that is nearest to a relative position."""
    starts = [*(word.start for word in words_of(text)), len(text)]
    position = min(starts, key=lambda one: abs(one - share * len(text)))
    if position == len(text):
        return f"{text} {span}" if text else span
    return f"{text[:position]}{span} {text[position:]}"


def _describe(
    texts: Mapping[str, int], repairs: Sequence[Repair], translations: Sequence[str]
) -> list[str]:
    """Return notes on the texts that were left, and whose placeholders were repaired."""
    notes = []
    empty = [
        text
        for text, translation in zip(texts, translations, strict=True)
        if not str(translation).strip() and text.strip()
    ]
    changed = sum(one.is_changed for one in repairs) - len(empty)
    if empty:
        notes.append(message("not translated: {text}", text=_shorten("; ".join(empty[:3]))))
    if changed:
        notes.append(
            message("placeholders or addresses of {count} texts were put back", count=changed)
        )
    return notes


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
