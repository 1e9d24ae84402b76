"""Translates a window of texts in three steps: prepare, search and finish.

`prepare` splits and tokenizes the texts, `search` runs the model, and `finish` makes the
translations. Only `search` uses the device, so that the steps of several windows can run at the
same time (`attendo.translator.pipeline`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from attendo.core.errors import AttendoError
from attendo.text.copy_spans import may_have_copy_spans
from attendo.text.sentences import split_into_segments
from attendo.text.tokenizer import UNK_ID
from attendo.translator.backends.base import TranslationItem
from attendo.translator.notes import FAILED, Note
from attendo.translator.translation import (
    Translation,
    copy_source,
    merge_segments,
    to_translation,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.decoding.hypothesis import SearchResult
    from attendo.decoding.options import DecodingOptions
    from attendo.text.sentences import SegmentedText
    from attendo.translator.backends.base import Backend, Progress
    from attendo.translator.constraints import ConstraintBuilder
    from attendo.translator.copying import SpanCopier
    from attendo.translator.failed_output import Retry
    from attendo.translator.glossary_search import GlossarySearch
    from attendo.translator.translator import CopyMode, Split, Translator

MAX_WINDOW_LINES = {"cpu": 2048, "cuda": 16_384}
"""The most texts in a window: some batches, so that those of similar length come together."""
EMPTY_LENGTH = 1
"""The length of a source that is only an end symbol."""


def max_window_lines(device_type: str) -> int:
    """Return the most texts in a window on a device."""
    return MAX_WINDOW_LINES.get(device_type, MAX_WINDOW_LINES["cpu"])


@dataclass(slots=True)
class Window:
    """Consecutive texts that are translated together."""

    texts: Sequence[str]
    first: int = 0
    """The number of texts before this window."""
    documents: list[SegmentedText] = field(default_factory=list)
    items: list[TranslationItem] = field(default_factory=list)
    """All segments of all texts."""
    searched: list[int] = field(default_factory=list)
    """The items that are not empty."""
    results: list[SearchResult] = field(default_factory=list)
    """One per searched item."""
    retries: dict[int, Retry] = field(default_factory=dict)
    """The second searches of items whose outputs were not translations."""
    translations: dict[int, Translation] = field(default_factory=dict)
    """Of the items whose translations need the model: with confidence or copied words."""
    finished: list[Translation] | None = None
    """Of all texts, if they were translated one by one."""
    error: Exception | None = None
    """Why the window could not be prepared."""

    @property
    def searched_items(self) -> list[TranslationItem]:
        """Return the items that are not empty."""
        return [self.items[index] for index in self.searched]


class WindowTranslator:
    """Translates windows of texts with the options of one call of `Translator.translate`.

    Args:
        translator: the model and its tokenizer.
        options: of the search.
        split: see `Translator.translate`.
        builder: makes the constraints of each segment, if there are any.
        copy_mode: which numbers, addresses and emoji are copied (see `Translator.translate`).
        keep_spans: whether a URL may be longer than the model allows: it will be copied.
        confidence: compute the confidence.
        trace: record the search.
        label: what the translations are asked for, a label of the model.
        retry: search a text whose output is empty, a loop or a copy of the source once more.
        skip_failed: a text that cannot be translated has an empty translation with a note.

    """

    def __init__(
        self,
        translator: Translator,
        options: DecodingOptions,
        *,
        split: Split = "auto",
        builder: ConstraintBuilder | None = None,
        copy_mode: CopyMode = "never",
        keep_spans: bool = False,
        confidence: bool = False,
        trace: bool = False,
        retry: bool = False,
        label: str | None = None,
        skip_failed: bool = False,
    ) -> None:
        self.translator, self.options = translator, options
        self.split, self.builder = split, builder
        self.copy_mode, self.keep_spans = copy_mode, keep_spans
        self.confidence, self.trace, self.skip_failed = confidence, trace, skip_failed
        self.retry, self.label = retry and not trace, label
        self.searcher: Backend | GlossarySearch = translator.backend
        if builder is not None and builder.request.glossary is not None:
            from attendo.translator.glossary_search import GlossarySearch

            self.searcher = GlossarySearch(translator, builder)
        self._num_prepared = 0

    @cached_property
    def copier(self) -> SpanCopier:
        """What copies spans: most texts have none, and do not need it."""
        from attendo.translator.copying import SpanCopier

        return SpanCopier(self.translator, self.copy_mode)

    def translate(
        self, texts: Sequence[str], progress: Progress | None = None
    ) -> list[Translation]:
        """Translate texts step by step."""
        window = self.prepare(texts)
        self.search(window, progress)
        return self.finish(window)

    def prepare(self, texts: Sequence[str]) -> Window:
        """Split texts into segments and tokenize these. Call it in the order of the texts."""
        first, self._num_prepared = self._num_prepared, self._num_prepared + len(texts)
        if not self.skip_failed:
            return self._prepare(texts, first)
        try:
            return self._prepare(texts, first)
        except (MemoryError, RuntimeError) as error:
            return Window(texts, first, error=error)

    def _prepare(self, texts: Sequence[str], first: int) -> Window:
        translator, builder = self.translator, self.builder
        documents, all_ids = split_and_tokenize(
            translator, texts, self.split, keep_spans=self.keep_spans
        )
        sources = [source for document in documents for source in document.segments]
        if self.label is not None:
            from attendo.text.labels import label_source

            sources = [label_source(source, self.label) for source in sources]
            all_ids = translator.tokenizer.encode_src(sources)
        items = list(map(TranslationItem, sources, all_ids))
        if builder is not None:
            positions = (
                (first + text_index, segment_index)
                for text_index, document in enumerate(documents)
                for segment_index in range(len(document.segments))
            )
            items = [
                item._replace(constraints=builder.build(*position, item.source))
                for item, position in zip(items, positions, strict=True)
            ]
        if self.copy_mode != "never":
            items = [
                self.copier.prepare(item) if may_have_copy_spans(item.source) else item
                for item in items
            ]
        searched = [index for index, item in enumerate(items) if len(item.ids) > EMPTY_LENGTH]
        return Window(texts, first, documents, items, searched)

    def search(self, window: Window, progress: Progress | None = None) -> None:
        """Run the model on the items of a window."""
        try:
            if window.error is not None:
                raise window.error
            results = self.searcher.search(
                window.searched_items, self.options, trace=self.trace, progress=progress
            )
            self.complete(window, results)
        except (MemoryError, RuntimeError):
            if not self.skip_failed:
                raise
            numbered = enumerate(window.texts, window.first)
            window.finished = [self._translate_alone(text, number) for number, text in numbered]

    def complete(self, window: Window, results: list[SearchResult]) -> None:
        """Take the results of a search, and do what else needs the model."""
        if self.copy_mode != "never":
            results = self._search_again(window, results)
        if self.retry:
            results = self._retry_failed(window, results)
        window.results = results
        confidences = None
        if self.confidence:
            from attendo.translator.confidence import score_hypotheses

            confidences = score_hypotheses(self.translator, window.searched_items, results)
            for number, index in enumerate(window.searched):
                if index in window.retries:
                    confidences[number] = window.retries[index].judge(confidences[number])
        for number, (index, result) in enumerate(zip(window.searched, results, strict=True)):
            item = window.items[index]
            is_copied = self.options.unk == "copy" and any(
                UNK_ID in one.ids for one in result.hypotheses
            )
            if confidences is not None or item.removed or is_copied:
                window.translations[index] = to_translation(
                    self.translator,
                    item,
                    result,
                    self.options,
                    confidences[number] if confidences else None,
                )

    def _search_again(self, window: Window, results: list[SearchResult]) -> list[SearchResult]:
        """Search the items whose translations lack an address or an emoji again without it."""
        numbers = [
            number
            for number, index in enumerate(window.searched)
            if may_have_copy_spans(window.items[index].source)
        ]
        if not numbers:
            return results
        items = [window.items[window.searched[number]] for number in numbers]
        found = [results[number] for number in numbers]
        replaced = self.copier.search_again(items, found, self.options)
        results = list(results)
        for number, item, result in zip(numbers, items, replaced, strict=True):
            window.items[window.searched[number]] = item
            results[number] = result
        return results

    def _retry_failed(self, window: Window, results: list[SearchResult]) -> list[SearchResult]:
        """Search the items whose outputs are not translations once more."""
        from attendo.translator.failed_output import retry_failed

        retries = retry_failed(
            self.translator, window.searched_items, results, self.options, self.searcher.search
        )
        window.retries = {window.searched[number]: one for number, one in retries.items()}
        return [
            retries[number].result if number in retries else result
            for number, result in enumerate(results)
        ]

    def finish(self, window: Window) -> list[Translation]:
        """Return the translations of the texts of a window."""
        if window.finished is not None:
            return window.finished
        translator = self.translator
        plain = [
            (index, result)
            for index, result in zip(window.searched, window.results, strict=True)
            if index not in window.translations
        ]
        rows = [one.ids for _, result in plain for one in result.hypotheses]
        outputs = iter(translator.tokenizer.decode_tgt(rows))
        translations = window.translations
        for index, result in plain:
            texts = [next(outputs) for _ in result.hypotheses]
            translations[index] = to_translation(
                translator, window.items[index], result, self.options, None, texts
            )
        for index, retry in window.retries.items():
            translations[index].notes += retry.notes
        remaining = iter(
            [
                translations[index]
                if index in translations
                else copy_source(translator, item, confidence=self.confidence)
                for index, item in enumerate(window.items)
            ]
        )
        return [
            merge_segments(
                text,
                document,
                [next(remaining) for _ in document.segments],
                confidence=self.confidence,
            )
            for text, document in zip(window.texts, window.documents, strict=True)
        ]

    def _translate_alone(self, text: str, number: int) -> Translation:
        """Translate one text; if that fails, return an empty translation with the reason."""
        try:
            window = self._prepare([text], number)
            results = self.searcher.search(window.searched_items, self.options, trace=self.trace)
            self.complete(window, results)
            return self.finish(window)[0]
        except (AttendoError, MemoryError, RuntimeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            return Translation("", source=text, is_finished=False, notes=[Note(FAILED, [reason])])


def split_and_tokenize(
    translator: Translator, texts: Sequence[str], split: Split, *, keep_spans: bool = False
) -> tuple[list[SegmentedText], list[list[int]]]:
    """Return the segments of each text, and the ids of all segments.

    The segments are those of `split_text`, but each is tokenized only once, together with the
    others.
    """
    documents = [
        split_into_segments(
            text, fits=lambda _: True, by_sentence=translator.is_split_by_sentence(text, split)
        )
        for text in texts
    ]
    longest = translator.max_src_characters
    sources = [source for document in documents for source in document.segments]
    # What is far too long is not tokenized only to find that out.
    all_ids = translator.tokenizer.encode_src([s if len(s) <= longest else "" for s in sources])
    if all(
        len(ids) <= translator.max_src_tokens and len(source) <= longest
        for source, ids in zip(sources, all_ids, strict=True)
    ):
        return documents, all_ids
    pairs = iter(zip(sources, all_ids, strict=True))
    kept_ids = []
    for index, text in enumerate(texts):
        ids = []
        is_too_long = False
        for source, source_ids in islice(pairs, len(documents[index].segments)):
            ids.append(source_ids)
            is_too_long |= len(source_ids) > translator.max_src_tokens or len(source) > longest
        if is_too_long:
            documents[index] = translator.split_text(text, split, keep_spans=keep_spans)
            ids = translator.tokenizer.encode_src(documents[index].segments)
        kept_ids += ids
    return documents, kept_ids
