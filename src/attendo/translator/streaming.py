"""One text, translated greedily and told token by token; the last thing told is the translation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.decoding.hypothesis import SearchResult
from attendo.decoding.options import DecodingOptions
from attendo.decoding.streaming import GreedyStream
from attendo.text.sentences import join_translations
from attendo.translator.backends.pytorch import SPECIAL_IDS, TranslationItem
from attendo.translator.constraints import ConstraintBuilder, ConstraintRequest
from attendo.translator.prefixes import PrefixedDocument
from attendo.translator.translation import Confidence, Translation
from attendo.translator.translator import space_segments

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from attendo.translator.translator import Split, Translator


class PartialTranslation(NamedTuple):
    """What has been said after one more token."""

    text: str
    """Everything so far."""
    token: str
    """The piece that has come, as SentencePiece writes it."""
    probability: float
    """By the calibrated model, as in `Translation.confidence`."""


def stream_translation(
    translator: Translator,
    text: str,
    *,
    prefix: str = "",
    confidence: bool = False,
    split: Split = "auto",
    **options: Any,
) -> Iterator[PartialTranslation | Translation]:
    """Tell a translation as it comes; the last item equals `translate([text], beam_size=1)[0]`.

    `prefix` may reach over several sentences: each piece of the text gets its part. Whoever stops
    asking stops the work. Phrases and sampling cannot be told so.
    """
    chosen = DecodingOptions(**{**options, "beam_size": 1})
    prefixed = PrefixedDocument.from_text(translator, text, prefix, split=split)
    document = prefixed.document
    builder = ConstraintBuilder(
        translator.detokenizer,
        ConstraintRequest(prefixed.prefixes),
        num_texts=len(document.segments),
    )
    translations: list[Translation] = []
    for number, piece in enumerate(document.segments):
        ids = translator.tokenizer.encode_src([piece])[0]
        item = TranslationItem(piece, ids, builder.build(number, 0, piece))
        if len(item.ids) == 1:  # the end symbol alone
            empty_confidence = Confidence(1.0, 1.0, []) if confidence else None
            translations.append(Translation("", source=piece, confidence=empty_confidence))
            continue
        events = _stream_segment(translator, item, chosen, confidence)
        try:
            while True:
                event = next(events)
                pending = [""] * (len(document.segments) - len(translations) - 1)
                texts = space_segments(document, [*translations, event.text, *pending])
                yield event._replace(text=join_translations(document, texts).strip())
        except StopIteration as end:
            translations.append(end.value)
    yield prefixed.merge(translator, translations, confidence=confidence)


def _stream_segment(
    translator: Translator, item: TranslationItem, options: DecodingOptions, confidence: bool
) -> Generator[PartialTranslation, None, Translation]:
    """Tell one piece, and give its translation."""
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
    confidences = translator.score_confidence([item], [result])[0] if confidence else None
    return translator.to_translation(item, result, options, confidences)
