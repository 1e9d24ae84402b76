"""The beginning of a translation, shared out among the pieces that its text is translated in.

A reader who wants to go on from "It rains. We" means the second sentence of the text. The
translator knows pieces, one a sentence, and lines, which it never joins: a line of the beginning
belongs to the same line of the text, and within it each sentence to one piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.data.sentences import find_sentences
from attendo.translator.translation import Confidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.data.sentences import Document
    from attendo.translator.translate import Split, Translator
    from attendo.translator.translation import Translation


class Begun(NamedTuple):
    """A text in pieces, and what the translation of each begins with."""

    text: str
    document: Document
    prefixes: list[str]
    """One for each piece; empty where the beginning has not come yet."""
    place: int
    """The piece that the beginning has reached."""

    @classmethod
    def cut(cls, translator: Translator, text: str, prefix: str, *, split: Split = "auto") -> Begun:
        """Cut a text as the translator would, and share the beginning out."""
        document = translator._split(text, split)
        return cls(text, document, *share_out(document, prefix))

    def join(
        self, translator: Translator, made: Sequence[Translation], *, confidence: bool
    ) -> Translation:
        """Put the translations of the pieces together."""
        silent = Confidence(1.0, 1.0, []) if confidence else None
        return translator._put_together(self.text, self.document, list(made), silent=silent)


def translate_from(
    translator: Translator,
    text: str,
    prefix: str,
    *,
    split: Split = "auto",
    must: Sequence[str] = (),
    **options: Any,
) -> Translation:
    """Translate one text from a beginning that may reach over several of its sentences.

    As `Translator.translate`, which gives the whole of it to the first piece of the text.
    """
    begun = Begun.cut(translator, text, prefix, split=split)
    pieces, prefixes = begun.document.pieces, begun.prefixes
    made = translator.translate(
        pieces[:1], prefix=prefixes[:1], must=must, split="never", **options
    )
    made += translator.translate(pieces[1:], prefix=prefixes[1:], split="never", **options)
    return begun.join(translator, made, confidence=bool(options.get("confidence")))


def share_out(document: Document, prefix: str) -> tuple[list[str], int]:
    r"""Give each piece its part of the beginning, and tell which piece it has reached.

    >>> from attendo.data.sentences import split_document
    >>> document = split_document("하나. 둘.\n셋.", fits=lambda _: True, by_sentence=True)
    >>> share_out(document, "One. Tw")
    (['One.', 'Tw', ''], 1)
    >>> share_out(document, "One. Two.\n")
    (['One.', 'Two.', ''], 2)
    """
    prefixes = [""] * len(document.pieces)
    rows = _list_rows(document)
    lines = prefix.split("\n")
    place = 0
    for number, line in enumerate(lines):
        own = rows.get(number)
        if own is None:  # no such line in the text, or an empty one: it belongs to what came last
            if line.strip() and prefixes:
                prefixes[place] = f"{prefixes[place]} {line.strip()}".strip()
            continue
        reached, parts = _share_line(line, len(own))
        place = own[reached]
        for piece, part in zip(own, parts, strict=False):
            prefixes[piece] = part
    return prefixes, place


def _list_rows(document: Document) -> dict[int, list[int]]:
    """Give the pieces of each line of a text."""
    rows: dict[int, list[int]] = {}
    line = 0
    for piece, gap in enumerate(document.gaps[:-1]):
        line += gap.count("\n")
        rows.setdefault(line, []).append(piece)
    return rows


def _share_line(line: str, count: int) -> tuple[int, list[str]]:
    """Share one line out among so many pieces; what is too much is the last one's."""
    sentences = find_sentences(line)
    is_over = len(find_sentences(f"{line} And")) > len(sentences) > 0
    reached = len(sentences) - (0 if is_over else 1)
    place = min(max(reached, 0), count - 1)
    rest = " ".join(sentences[place:])
    return place, [*sentences[:place], *([rest] if rest else [])]
