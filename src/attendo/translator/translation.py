"""A translation with its scores: of a segment, from a search; of a text, from its segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

from attendo.text.sentences import join_translations, space_segments, split_sentences
from attendo.text.tokenizer import UNK_ID
from attendo.translator.notes import CORRECTED_SPANS, Note, describe_search, describe_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.decoding.hypothesis import Hypothesis, SearchResult
    from attendo.decoding.options import DecodingOptions
    from attendo.text.sentences import SegmentedText
    from attendo.text.tokenizer import Tokenizer
    from attendo.translator.backends.base import TranslationItem
    from attendo.translator.confidence import Confidence
    from attendo.translator.translator import Translator

DIGITS = 4
STORED_ATTRIBUTES = (
    "alternatives", "confidence", "copied", "ids", "is_finished", "log_prob", "notes", "score",
    "segments", "source", "tokens", "trace",
)  # fmt: skip
"""What a pickled or copied translation keeps."""


class CopiedSpan(NamedTuple):
    """A part of a segment that was copied instead of being translated.

    `text[start:end]` is a copy of the normalized source from `source_start` on.
    """

    source_start: int
    source_end: int
    """The end of what was not translated: the span, and a particle that was attached to it."""
    start: int
    end: int


class Segment(NamedTuple):
    """A part of a text that was translated by itself, usually a sentence.

    `source[source_start:source_end]` was translated to `text[start:end]`, with these ids.
    """

    source_start: int
    source_end: int
    start: int
    end: int
    ids: list[int]
    confidence: Confidence | None = None
    copied: tuple[CopiedSpan, ...] = ()


class Translation(str):
    """The translated text, a `str` with scores and other details as attributes."""

    __slots__ = (
        "_document", "_segments", "_tokenizer", "_tokens", "alternatives", "confidence", "copied",
        "ids", "is_finished", "log_prob", "notes", "score", "source", "trace",
    )  # fmt: skip

    _document: SegmentedText | None
    _segments: list[Segment] | None
    _tokenizer: Tokenizer | None
    _tokens: list[str] | None
    source: str
    log_prob: float
    """Of the sequence of tokens; the sum over the segments of a text."""
    score: float
    """The log-probability divided by the length penalty: hypotheses are ranked by it."""
    ids: list[int]
    """The ids of the tokens, without the start and end symbols."""
    is_finished: bool
    """False if the maximum length was reached before the end symbol."""
    confidence: Confidence | None
    alternatives: list[Translation]
    """The next best translations, if `n_best` is more than 1."""
    trace: list[dict[str, Any]] | None
    """The trace of the search of each segment, if it was requested."""
    notes: list[str]
    """Warnings, e.g. that a translation was truncated."""
    copied: tuple[CopiedSpan, ...]
    """What was copied into the translation of a single segment."""

    def __new__(
        cls,
        text: str,
        *,
        source: str = "",
        log_prob: float = 0.0,
        score: float = 0.0,
        ids: Sequence[int] = (),
        tokens: Sequence[str] = (),
        is_finished: bool = True,
        confidence: Confidence | None = None,
        alternatives: Sequence[Translation] = (),
        trace: list[dict[str, Any]] | None = None,
        notes: Sequence[str] = (),
        tokenizer: Tokenizer | None = None,
        copied: tuple[CopiedSpan, ...] = (),
    ) -> Self:
        """Create a translation; with a tokenizer, the tokens are looked up when they are read."""
        self = super().__new__(cls, text)
        self.source, self.log_prob, self.score = source, log_prob, score
        self.ids = list(ids)
        self._tokenizer, self._tokens = tokenizer, None if tokenizer is not None else list(tokens)
        self.is_finished, self.confidence = is_finished, confidence
        self.alternatives, self.trace, self.notes = list(alternatives), trace, list(notes)
        self._document, self._segments = None, None
        self.copied = copied
        return self

    @property
    def tokens(self) -> list[str]:
        """The target tokens, in SentencePiece's notation."""
        if self._tokens is None:
            self._tokens = self._tokenizer.tgt_pieces(self.ids) if self._tokenizer else []
        return self._tokens

    @tokens.setter
    def tokens(self, tokens: list[str]) -> None:
        self._tokens = tokens

    @property
    def segments(self) -> list[Segment]:
        """The parts that were translated one by one, in order; none for an alternative."""
        if self._segments is None:
            document, self._document = self._document, None
            self._segments = [] if document is None else locate_segments(self, document, [self])
        return self._segments

    @segments.setter
    def segments(self, segments: list[Segment]) -> None:
        self._segments = segments

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Return the attributes without the tokenizer and what else is only needed to compute."""
        return None, {name: getattr(self, name) for name in STORED_ATTRIBUTES}

    def with_text(self, text: str) -> Translation:
        """Return this translation with another text, without its parts."""
        data = {name: getattr(self, name) for name in STORED_ATTRIBUTES if name != "segments"}
        return Translation(text, **data)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary; details that were not requested are omitted."""
        data: dict[str, Any] = {
            "source": self.source,
            "text": str(self),
            "score": round(self.score, DIGITS),
            "log_prob": round(self.log_prob, DIGITS),
            "tokens": self.tokens,
        }
        if not self.is_finished:
            data["is_finished"] = False
        if self.confidence is not None:
            data["confidence"] = self.confidence.to_dict()
        if self.alternatives:
            data["alternatives"] = [
                {key: value for key, value in one.to_dict().items() if key != "source"}
                for one in self.alternatives
            ]
        if self.notes:
            data["notes"] = self.notes
            details = [note.to_dict() for note in self.notes if hasattr(note, "to_dict")]
            if details:
                data["note_details"] = details
        if self.trace is not None:
            data["trace"] = self.trace
        return data


def empty_translation(source: str, *, confidence: bool) -> Translation:
    """Return the translation of a text without words."""
    if not confidence:
        return Translation("", source=source)
    from attendo.translator.confidence import Confidence

    return Translation("", source=source, confidence=Confidence.of_empty_text())


def merge_segments(
    text: str,
    document: SegmentedText,
    segments: list[Translation],
    *,
    confidence: bool,
) -> Translation:
    """Return the translation of a text from those of its segments."""
    if not segments:
        return empty_translation(text, confidence=confidence)
    only = segments[0]
    is_whole = len(segments) == 1 and only.source == text and only.confidence is None
    if is_whole and all(one == one.strip() for one in (only, *only.alternatives)):
        only._document = document  # as for most texts, this is the translation of the text
        return only
    num_ranks = 1 + max(len(segment.alternatives) for segment in segments)
    best, *rest = (
        _join_rank(text, document, [_at_rank(segment, rank) for segment in segments])
        for rank in range(num_ranks)
    )
    best.alternatives = rest
    best.segments = locate_segments(best, document, segments)
    best.trace = [trace for segment in segments for trace in segment.trace or ()] or None
    is_line = len(segments) > 1 and "\n" not in text.strip()
    if is_line and len(segments) > len(split_sentences(text)):
        from attendo.translator.notes import PIECES, Note

        best.notes.insert(0, Note(PIECES, count=len(segments)))
    return best


def locate_segments(
    text: str, document: SegmentedText, translations: Sequence[Translation]
) -> list[Segment]:
    """Return where each segment of a document is in its source and in the joined translation."""
    segments = []
    source_end = end = 0
    for separator, source, translation in zip(
        document.separators, document.segments, translations, strict=False
    ):
        source_start = source_end + len(separator)
        source_end = source_start + len(source)
        part = translation.strip()
        start = max(text.find(part, end), end) if part else end
        end = start + len(part)
        spans = (source_start, source_end, start, end)
        ids, copied = translation.ids, translation.copied
        segments.append(Segment(*spans, ids, translation.confidence, copied))
    return segments


def _join_rank(text: str, document: SegmentedText, segments: list[Translation]) -> Translation:
    """Return one translation of a text from one of each segment."""
    joined = join_translations(document, space_segments(document, segments))
    tokenizer = next((one._tokenizer for one in segments if one._tokenizer is not None), None)
    return Translation(
        joined if "\n" in text else joined.strip(),
        source=text,
        log_prob=sum(segment.log_prob for segment in segments),
        score=sum(segment.score for segment in segments) / max(len(segments), 1),
        ids=[token_id for segment in segments for token_id in segment.ids],
        tokens=[] if tokenizer else [token for segment in segments for token in segment.tokens],
        tokenizer=tokenizer,
        is_finished=all(segment.is_finished for segment in segments),
        confidence=_join_confidences(segments),
        notes=_join_notes(segments),
        copied=segments[0].copied if len(segments) == 1 else (),
    )


def _join_notes(segments: list[Translation]) -> list[str]:
    notes = [note for segment in segments for note in segment.notes]
    if len(segments) == 1 or not notes:
        return notes
    from attendo.translator.notes import join_notes

    return join_notes(notes)


def _join_confidences(segments: list[Translation]) -> Confidence | None:
    confidences = [segment.confidence for segment in segments if segment.confidence is not None]
    if not confidences:
        return None
    from attendo.translator.confidence import Confidence

    sizes = [len(segment.ids) + 1 for segment in segments]
    return Confidence.join(confidences, sizes)


def _at_rank(segment: Translation, rank: int) -> Translation:
    """Return the alternative of this rank, or the last one."""
    ranked = [segment, *segment.alternatives]
    return ranked[min(rank, len(ranked) - 1)]


def copy_source(translator: Translator, item: TranslationItem, *, confidence: bool) -> Translation:
    """Return the translation of a segment without words: its copied spans, or nothing."""
    empty = empty_translation(item.source, confidence=confidence)
    if not item.removed:
        return empty
    from attendo.translator.copying import confirm_words

    text, notes = item.source.strip(), describe_words(translator.tokenizer, item)
    sure = None if empty.confidence is None else confirm_words(empty.confidence, text)
    whole = (CopiedSpan(0, len(text), 0, len(text)),)
    return Translation(text, source=item.source, confidence=sure, notes=notes, copied=whole)


def to_translation(
    translator: Translator,
    item: TranslationItem,
    result: SearchResult,
    options: DecodingOptions,
    confidences: list[Confidence] | None,
    texts: Sequence[str] | None = None,
) -> Translation:
    """Return the translation of one segment, with its alternatives.

    `texts` are those of the hypotheses, if they are known.
    """
    translations = []
    required = item.constraints.required if item.constraints is not None else ()
    for rank, one in enumerate(result.hypotheses):
        notes: list[str] = []
        if required or not one.is_finished:
            missing = [
                getattr(phrase, "phrase", "")
                for phrase in required
                if not phrase.is_satisfied(one.ids)
            ]
            notes = describe_search(one, missing)
        text = translator.tokenizer.decode_tgt([one.ids])[0] if texts is None else texts[rank]
        if options.unk == "copy" and UNK_ID in one.ids:
            text = _copy_unknown(translator, text, item, one)
        confidence = confidences[rank] if confidences else None
        copied: tuple[CopiedSpan, ...] = ()
        ids = one.ids
        if item.keeps_spans:
            ids, text, confidence, corrected = _repair(translator, text, item, one, confidence)
            notes += [Note(CORRECTED_SPANS, corrected)] if corrected else []
        if item.removed:
            text, confidence, copied = _insert_copied(translator, text, item, ids, confidence)
        if rank == 0 and (item.removed or UNK_ID in item.ids):
            notes += describe_words(translator.tokenizer, item)
        translations.append(
            Translation(
                text,
                source=item.source,
                log_prob=one.log_prob,
                score=one.score,
                ids=ids,
                tokenizer=translator.tokenizer,
                is_finished=one.is_finished,
                confidence=confidence,
                notes=notes,
                copied=copied,
            )
        )
    best = translations[0]
    best.alternatives = translations[1:]
    if result.trace is not None:
        best.trace = [_add_token_text(translator.tokenizer, result.trace.to_dict())]
    return best


def _repair(
    translator: Translator,
    text: str,
    item: TranslationItem,
    one: Hypothesis,
    confidence: Confidence | None,
) -> tuple[list[int], str, Confidence | None, list[str]]:
    from attendo.translator.copying import repair_confidence, repair_hypothesis

    ids, repaired, corrected = repair_hypothesis(translator, item, one.ids, text)
    if confidence is not None and repaired != text:
        confidence = repair_confidence(confidence, repaired)
    return ids, repaired, confidence, corrected


def _insert_copied(
    translator: Translator,
    text: str,
    item: TranslationItem,
    ids: Sequence[int],
    confidence: Confidence | None,
) -> tuple[str, Confidence | None, tuple[CopiedSpan, ...]]:
    from attendo.translator.copying import complete_confidence, complete_text

    complete, copied = complete_text(translator, item, ids, text)
    if confidence is not None:
        confidence = complete_confidence(confidence, text, complete, item.removed)
    return complete, confidence, copied


def _copy_unknown(translator: Translator, text: str, item: TranslationItem, one: Hypothesis) -> str:
    from attendo.translator.unknown_words import align_unknowns, replace_unknowns

    with translator.backend.eval_mode():
        indices = align_unknowns(translator.model, translator.backend.pad([item.ids]), one.ids)
    surfaces = translator.tokenizer.src_surfaces(item.source)
    return replace_unknowns(text, [surfaces[index] for index in indices])


def _add_token_text(tokenizer: Tokenizer, trace: dict[str, Any]) -> dict[str, Any]:
    """Add the text of each token to a trace."""
    for step in trace["steps"]:
        names = tokenizer.tgt_pieces(one["id"] for one in step["candidates"])
        step["candidates"] = [
            {"token": name, **one} for name, one in zip(names, step["candidates"], strict=True)
        ]
    return trace
