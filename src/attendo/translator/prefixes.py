"""The beginning of a translation, shared out among the pieces that its text is translated in.

A reader who wants to go on from "It rains. We" means the second sentence of the text. The
translator knows pieces, one a sentence, and lines, which it never joins: a line of the beginning
belongs to the same line of the text, and within it each sentence to one piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.text.sentences import split_sentences
from attendo.translator.translation import Confidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.text.sentences import SegmentedText
    from attendo.translator.translation import Translation
    from attendo.translator.translator import Split, Translator


class PrefixedDocument(NamedTuple):
    """A text in pieces, and what the translation of each begins with."""

    text: str
    document: SegmentedText
    prefixes: list[str]
    """One for each piece; empty where the beginning has not come yet."""
    active_index: int
    """The piece that the beginning has reached."""

    @classmethod
    def from_text(
        cls, translator: Translator, text: str, prefix: str, *, split: Split = "auto"
    ) -> PrefixedDocument:
        """Cut a text as the translator would, and share the beginning out."""
        document = translator.split_text(text, split)
        return cls(text, document, *distribute_prefix(document, prefix))

    def merge(
        self, translator: Translator, translations: Sequence[Translation], *, confidence: bool
    ) -> Translation:
        """Put the translations of the pieces together."""
        empty_confidence = Confidence(1.0, 1.0, []) if confidence else None
        return translator.merge_segments(
            self.text, self.document, list(translations), empty_confidence=empty_confidence
        )


def translate_with_prefix(
    translator: Translator,
    text: str,
    prefix: str,
    *,
    split: Split = "auto",
    required: Sequence[str] = (),
    **options: Any,
) -> Translation:
    """Translate one text from a beginning that may reach over several of its sentences.

    As `Translator.translate`, which gives the whole of it to the first piece of the text.
    """
    prefixed = PrefixedDocument.from_text(translator, text, prefix, split=split)
    pieces, prefixes = prefixed.document.segments, prefixed.prefixes
    translations = translator.translate(
        pieces[:1], prefix=prefixes[:1], required=required, split="never", **options
    )
    translations += translator.translate(pieces[1:], prefix=prefixes[1:], split="never", **options)
    return prefixed.merge(translator, translations, confidence=bool(options.get("confidence")))


def distribute_prefix(document: SegmentedText, prefix: str) -> tuple[list[str], int]:
    r"""Give each piece its part of the beginning, and tell which piece it has reached.

    >>> from attendo.text.sentences import split_document
    >>> document = split_document("하나. 둘.\n셋.", fits=lambda _: True, by_sentence=True)
    >>> share_out(document, "One. Tw")
    (['One.', 'Tw', ''], 1)
    >>> share_out(document, "One. Two.\n")
    (['One.', 'Two.', ''], 2)
    """
    prefixes = [""] * len(document.segments)
    segments_by_line = _segments_by_line(document)
    lines = prefix.split("\n")
    active_index = 0
    for number, line in enumerate(lines):
        segments = segments_by_line.get(number)
        if (
            segments is None
        ):  # no such line in the text, or an empty one: it belongs to what came last
            if line.strip() and prefixes:
                prefixes[active_index] = f"{prefixes[active_index]} {line.strip()}".strip()
            continue
        offset, parts = _distribute_line(line, len(segments))
        active_index = segments[offset]
        for piece, part in zip(segments, parts, strict=False):
            prefixes[piece] = part
    return prefixes, active_index


def _segments_by_line(document: SegmentedText) -> dict[int, list[int]]:
    """Give the pieces of each line of a text."""
    rows: dict[int, list[int]] = {}
    line = 0
    for piece, gap in enumerate(document.separators[:-1]):
        line += gap.count("\n")
        rows.setdefault(line, []).append(piece)
    return rows


def _distribute_line(line: str, count: int) -> tuple[int, list[str]]:
    """Share one line out among so many pieces; what is too much is the last one's."""
    sentences = split_sentences(line)
    is_complete = len(split_sentences(f"{line} And")) > len(sentences) > 0
    reached = len(sentences) - (0 if is_complete else 1)
    last_index = min(max(reached, 0), count - 1)
    rest = " ".join(sentences[last_index:])
    return last_index, [*sentences[:last_index], *([rest] if rest else [])]
