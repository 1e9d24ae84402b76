"""Aligns the words of a translation with those of its source, by the attention of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.core.checkpoints import checkpoint
from attendo.documents.word_links import Span, WordLinks, diagonal_rows, words_of
from attendo.text.normalize import normalize
from attendo.text.sentences import UNSPACED_SCRIPTS
from attendo.translator.translation import Segment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attendo.inspection.word_alignment import WordAlignment
    from attendo.translator import Translation, Translator

MIN_WEIGHT = 0.01


def link_words(translator: Translator, translation: Translation) -> WordLinks:
    """Return the links between the words of a translation and of its source.

    Each sentence takes a forward pass with the native model. Where the attention cannot be used,
    words are aligned by their positions.
    """
    source, text = translation.source, str(translation)
    segments = translation.segments or [
        Segment(0, len(source), 0, len(text), translation.ids, None, translation.copied)
    ]
    src: list[Span] = []
    tgt: list[Span] = []
    rows: list[dict[int, float]] = []
    for segment in segments:
        links = _link_tokens(translator, source, text, segment) or _link_segment(
            translator, source, text, segment
        )
        first = len(src)
        rows += [{first + word: weight for word, weight in row.items()} for row in links.rows]
        src += links.src
        tgt += links.tgt
    return WordLinks(src, tgt, rows)


def _link_segment(translator: Translator, source: str, text: str, segment: Segment) -> WordLinks:
    """Return the links of a segment, between words that are separated by white space."""
    src = words_of(source, segment.source_start, segment.source_end)
    tgt = words_of(text, segment.start, segment.end)
    aligned = _align(translator, source, text, segment)
    is_known = aligned is not None and (
        (len(aligned.source_words), len(aligned.target_words)) == (len(src), len(tgt))
    )
    if aligned is None or not is_known:
        return WordLinks(src, tgt, diagonal_rows(len(src), len(tgt)))
    rows = [
        {word: weight for word, weight in enumerate(row) if weight >= MIN_WEIGHT}
        for row in aligned.weights
    ]
    return WordLinks(src, tgt, rows)


def _link_tokens(
    translator: Translator, source: str, text: str, segment: Segment
) -> WordLinks | None:
    """Return the links of a segment between tokens, in scripts without spaces between words.

    None for other scripts, or where the tokens are not parts of the texts as they are.
    """
    part = source[segment.source_start : segment.source_end]
    made = text[segment.start : segment.end]
    is_unspaced = UNSPACED_SCRIPTS.search(part) or UNSPACED_SCRIPTS.search(made)
    if not is_unspaced or segment.copied or not segment.ids or not translator.backend.has_native:
        return None
    from attendo.inspection.token_surfaces import merge_split_characters, target_surfaces
    from attendo.translator.cross_attention import cross_attention

    tokenizer = translator.tokenizer
    src_ids = tokenizer.encode_src([part])[0]
    weights = cross_attention(translator.backend, src_ids, segment.ids)
    if weights is None or normalize(part) != part:
        return None
    surfaces = merge_split_characters(tokenizer.src_surfaces(part))
    src = locate_tokens(surfaces, part, segment.source_start)
    tgt = locate_tokens(target_surfaces(tokenizer, segment.ids), made, segment.start)
    if src is None or tgt is None or weights.shape != (len(tgt), len(src)):
        return None
    rows = [
        {index: weight for index, weight in enumerate(row) if weight >= MIN_WEIGHT and src[index]}
        for row in weights.tolist()
    ]
    kept = [index for index, span in enumerate(src) if span is not None]
    numbers = {index: number for number, index in enumerate(kept)}
    return WordLinks(
        [span for span in src if span is not None],
        [span for span in tgt if span is not None],
        [
            {numbers[index]: weight for index, weight in row.items()}
            for row, span in zip(rows, tgt, strict=True)
            if span is not None
        ],
    )


def locate_tokens(surfaces: Sequence[str], text: str, start: int) -> list[Span | None] | None:
    """Return where tokens are in a text that begins at `start`; None for tokens without letters.

    Return None if the tokens are not parts of the text, in order.

    >>> locate_tokens(["猫", "が", "", " いる"], "猫が いる", 10)
    [Span(start=10, end=11), Span(start=11, end=12), None, Span(start=13, end=15)]
    """
    spans: list[Span | None] = []
    position = 0
    for surface in surfaces:
        token = surface.strip()
        if not token:
            spans.append(None)
            continue
        found = text.find(token, position)
        if found < 0 or text[position:found].strip():
            return None
        position = found + len(token)
        spans.append(Span(start + found, start + position))
    return spans


def link_all(translator: Translator, translations: Iterable[Translation]) -> list[WordLinks]:
    """Return the links of several translations, by the native model."""
    links = []
    for translation in translations:
        checkpoint()
        links.append(link_words(translator, translation))
    return links


def _align(
    translator: Translator, source: str, text: str, segment: Segment
) -> WordAlignment | None:
    if not translator.backend.has_native:
        return None
    from attendo.inspection.copy_alignment import align_with_copies
    from attendo.inspection.word_alignment import align_words

    part = normalize(source[segment.source_start : segment.source_end])
    if segment.copied:
        target = text[segment.start : segment.end]
        return align_with_copies(translator, part, target, segment.ids, segment.copied)
    return align_words(translator, part, segment.ids)
