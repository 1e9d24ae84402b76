"""Translates one text greedily and yields each token as soon as it is generated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.decoding.hypothesis import SearchResult
from attendo.decoding.options import DecodingOptions
from attendo.decoding.streaming import GreedyStream
from attendo.text.labels import label_source
from attendo.text.sentences import join_translations, space_segments
from attendo.translator.backends.base import SPECIAL_IDS, TranslationItem
from attendo.translator.confidence import score_hypotheses
from attendo.translator.constraints import ConstraintBuilder, ConstraintRequest
from attendo.translator.prefixes import PrefixedDocument
from attendo.translator.translation import copy_source, to_translation

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from attendo.translator.copying import SpanCopier
    from attendo.translator.translation import Translation
    from attendo.translator.translator import CopyMode, Split, Translator


class PartialTranslation(NamedTuple):
    """The translation so far, after one more token."""

    text: str
    """The text so far."""
    token: str
    """The new token, as SentencePiece writes it."""
    probability: float
    """Calibrated, as in `Translation.confidence`."""


def stream_translation(
    translator: Translator,
    text: str,
    *,
    prefix: str = "",
    confidence: bool = False,
    split: Split = "auto",
    copy_spans: CopyMode = "auto",
    label: str | None = None,
    **options: Any,
) -> Iterator[PartialTranslation | Translation]:
    """Yield partial translations; the last item equals `translate([text], beam_size=1)[0]`.

    The caller may stop at any item, which stops the search. Phrases and sampling are not supported.

    Args:
        translator: the model and its tokenizer.
        text: what to translate.
        prefix: the beginning of the translation; it may span several sentences.
        confidence: compute the confidence of the last item.
        split: as in `Translator.translate`.
        copy_spans: as in `Translator.translate`; copied spans are in the last item only.
        label: as in `Translator.translate`.
        options: fields of `attendo.decoding.options.DecodingOptions`.

    """
    greedy_options = DecodingOptions(**{**options, "beam_size": 1})
    translator.check_label(label)
    copier = translator.make_copier(copy_spans)
    prefixed = PrefixedDocument.from_text(
        translator, text, prefix, split=split, keep_spans=copier is not None and not prefix
    )
    document = prefixed.document
    builder = ConstraintBuilder(
        translator.detokenizer,
        ConstraintRequest(prefixed.prefixes),
        num_texts=len(document.segments),
    )
    translations: list[Translation] = []
    for index, segment in enumerate(document.segments):
        source = segment if label is None else label_source(segment, label)
        ids = translator.tokenizer.encode_src([source])[0]
        item = TranslationItem(source, ids, builder.build(index, 0, segment))
        if copier is not None:
            item = copier.prepare(item)
        if len(item.ids) == 1:  # the end symbol alone
            translations.append(copy_source(translator, item, confidence=confidence))
            continue
        events = _stream_segment(translator, item, greedy_options, confidence, copier)
        try:
            while True:
                event = next(events)
                pending = [""] * (len(document.segments) - len(translations) - 1)
                texts = space_segments(document, [*translations, event.text, *pending])
                yield event._replace(text=join_translations(document, texts).strip())
        except StopIteration as end:
            translations.append(end.value)
    yield prefixed.merge(translations, confidence=confidence)


def _stream_segment(
    translator: Translator,
    item: TranslationItem,
    options: DecodingOptions,
    confidence: bool,
    copier: SpanCopier | None,
) -> Generator[PartialTranslation, None, Translation]:
    """Yield the partial translations of one segment, and return the final one."""
    backend = translator.backend
    with backend.eval_mode():
        stream = GreedyStream(
            translator.model,
            backend.pad([item.ids]),
            SPECIAL_IDS,
            options,
            item.constraints,
            temperature=translator.temperature,
        )
        for event in stream:
            text = translator.detokenizer.decode_partial(tuple(stream.ids)).text.strip()
            (piece,) = translator.tokenizer.tgt_pieces([event.id])
            yield PartialTranslation(text, piece, event.probability)
    result = SearchResult([stream.result])
    if copier is not None:
        items = [item]
        (result,) = copier.search_again(items, [result], options)
        (item,) = items
    confidences = score_hypotheses(translator, [item], [result])[0] if confidence else None
    return to_translation(translator, item, result, options, confidences)
