"""Distributes a forced prefix over the segments of a text.

The prefix "It rains. We" reaches into the second sentence of a text. The translator splits a text
into lines, and lines into segments of one sentence each: a line of the prefix belongs to the same
line of the text, and within it each sentence to one segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.text.sentences import split_sentences
from attendo.translator.translation import merge_segments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.text.sentences import SegmentedText
    from attendo.translator.translation import Translation
    from attendo.translator.translator import Split, Translator


class PrefixedDocument(NamedTuple):
    """A text in segments, with the forced prefix of each translation."""

    text: str
    document: SegmentedText
    prefixes: list[str]
    """One per segment; empty for those that the prefix does not reach."""
    active_index: int
    """The segment in which the prefix ends."""

    @classmethod
    def from_text(
        cls,
        translator: Translator,
        text: str,
        prefix: str,
        *,
        split: Split = "auto",
        keep_spans: bool = False,
    ) -> PrefixedDocument:
        """Split a text as the translator does, and distribute the prefix."""
        document = translator.split_text(text, split, keep_spans=keep_spans)
        return cls(text, document, *distribute_prefix(document, prefix))

    def merge(self, translations: Sequence[Translation], *, confidence: bool) -> Translation:
        """Return the translation of the text from those of its segments."""
        return merge_segments(self.text, self.document, list(translations), confidence=confidence)


def translate_with_prefix(
    translator: Translator,
    text: str,
    prefix: str,
    *,
    split: Split = "auto",
    required: Sequence[str] = (),
    **arguments: Any,
) -> Translation:
    """Translate one text with a prefix that may span several sentences.

    `Translator.translate` takes the same arguments, but applies the whole prefix to the first
    segment of the text.
    """
    keep_spans = not prefix and arguments.get("copy_spans") != "never"
    prefixed = PrefixedDocument.from_text(
        translator, text, prefix, split=split, keep_spans=keep_spans
    )
    segments, prefixes = prefixed.document.segments, prefixed.prefixes
    arguments["split"] = "never"
    translations = translator.translate(
        segments[:1], prefix=prefixes[:1], required=required, **arguments
    )
    translations += translator.translate(segments[1:], prefix=prefixes[1:], **arguments)
    return prefixed.merge(translations, confidence=bool(arguments.get("confidence")))


def distribute_prefix(document: SegmentedText, prefix: str) -> tuple[list[str], int]:
    r"""Return the part of the prefix of each segment, and the segment in which the prefix ends.

    >>> from attendo.text.sentences import split_into_segments
    >>> document = split_into_segments("하나. 둘.\n셋.", fits=lambda _: True, by_sentence=True)
    >>> distribute_prefix(document, "One. Tw")
    (['One.', 'Tw', ''], 1)
    >>> distribute_prefix(document, "One. Two.\n")
    (['One.', 'Two.', ''], 2)
    """
    prefixes = [""] * len(document.segments)
    segments_by_line = _segments_by_line(document)
    lines = prefix.split("\n")
    active_index = 0
    for number, line in enumerate(lines):
        segments = segments_by_line.get(number)
        if segments is None:  # The text has no such line: it belongs to the last segment reached.
            if line.strip() and prefixes:
                prefixes[active_index] = f"{prefixes[active_index]} {line.strip()}".strip()
            continue
        offset, parts = _distribute_line(line, len(segments))
        active_index = segments[offset]
        for segment, part in zip(segments, parts, strict=False):
            prefixes[segment] = part
    return prefixes, active_index


def _segments_by_line(document: SegmentedText) -> dict[int, list[int]]:
    """Return the indices of the segments of each line of a text."""
    segments: dict[int, list[int]] = {}
    line = 0
    for segment, separator in enumerate(document.separators[:-1]):
        line += separator.count("\n")
        segments.setdefault(line, []).append(segment)
    return segments


def _distribute_line(line: str, count: int) -> tuple[int, list[str]]:
    """Distribute one line over `count` segments; return the last one reached and the parts."""
    sentences = split_sentences(line)
    is_complete = len(split_sentences(f"{line} And")) > len(sentences) > 0
    reached = len(sentences) - (0 if is_complete else 1)
    last_index = min(max(reached, 0), count - 1)
    rest = " ".join(sentences[last_index:])
    return last_index, [*sentences[:last_index], *([rest] if rest else [])]
