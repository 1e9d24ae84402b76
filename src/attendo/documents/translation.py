"""Translates documents: plain sentences for the model, their tags put back, placeholders checked.

The steps are apart, because a server translates in its own queue:

    plan = DocumentPlan(document)
    translations = translator.translate(plan.texts)
    links = {n: link_words(translator, translations[n]) for n in plan.aligned}
    result = plan.complete(translations, links)
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.message import message
from attendo.documents.projection import project
from attendo.translator.notes import has_corrected_spans, has_failed
from attendo.translator.span_repair import Repair, repair_spans

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from attendo.documents.document import Document
    from attendo.documents.markup import MarkedText
    from attendo.documents.word_links import WordLinks
    from attendo.translator import Translation, Translator

MAX_SHOWN = 40


class TranslatedDocument(NamedTuple):
    """A translated document, and what could not be kept."""

    content: bytes
    notes: list[str]
    num_untranslated: int = 0
    """Texts that were left as they are: they failed, or are not sure enough."""


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
        self,
        translations: Sequence[str],
        links: Mapping[int, WordLinks] | None = None,
        untranslated: Collection[int] = (),
    ) -> TranslatedDocument:
        """Return the document with translations of `texts`, and the links of some of them.

        The texts with the numbers in `untranslated` stay as they are.
        """
        links = links or {}
        repairs = [
            repair_spans(text, str(translation))
            for text, translation in zip(self._numbers, translations, strict=True)
        ]
        made: list[MarkedText] = []
        for segment in self.document.segments:
            number = self._numbers[segment.text]
            if number in untranslated:
                made.append(segment)
                continue
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
    is_sure: Callable[[Translation], bool] | None = None,
    **options: object,
) -> TranslatedDocument:
    """Translate a document.

    Args:
        translator: the model.
        document: from `read_document`.
        progress: called with the number of translated texts and of all.
        is_sure: returns whether a translation is sure enough; the others are left out.
        options: of `Translator.translate`.

    Returns:
        The document, and what could not be kept.

    """
    from attendo.documents.alignment import link_words

    plan = DocumentPlan(document)
    has_native, aligned = translator.backend.has_native, set(plan.aligned)
    native = translator.native if has_native else translator
    translations: list[str] = []
    links, notes = {}, []
    untranslated: set[int] = set()
    num_unsure = 0
    lines = translator.translate_lines(plan.texts, skip_failed=True, **options)  # type: ignore[arg-type]
    for number, translation in enumerate(lines):
        if has_failed(translation.notes):
            notes.append(message("not translated: {text}", text=_shorten(translation.source)))
            translations.append(translation.source)
            untranslated.add(number)
        elif is_sure is not None and not is_sure(translation):
            translations.append(translation.source)
            untranslated.add(number)
            num_unsure += 1
        else:
            translations.append(translation)
            if number in aligned:
                links[number] = link_words(native, translation)
        if progress is not None:
            progress(number + 1, len(plan.texts))
    if aligned and not has_native:
        notes.append(message("tags are placed by position: the engine has no attention weights"))
    if num_unsure:
        notes.append(message("texts left untranslated, as not sure: {count}", count=num_unsure))
    made = plan.complete(translations, links, untranslated)
    return TranslatedDocument(made.content, [*made.notes, *notes], len(untranslated))


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
    changed = -len(empty) + sum(
        one.is_changed or has_corrected_spans(getattr(translation, "notes", ()))
        for one, translation in zip(repairs, translations, strict=True)
    )
    if empty:
        notes.append(message("not translated: {text}", text=_shorten("; ".join(empty[:3]))))
    if changed:
        notes.append(
            message("placeholders or addresses of {count} texts were put back", count=changed)
        )
    return notes


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
