"""Names of the pieces of a vocabulary in the tables of lessons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.lessons.blocks import LocalizedText

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attendo.lessons.blocks import Label

SYMBOLS = {"</s>": LocalizedText("⟨end⟩", "⟨끝⟩")}
"""Named as in the figures."""


def label_pieces(pieces: Iterable[str]) -> list[Label]:
    """Return the label of each piece: the end symbol by its name, others as they are.

    >>> label_pieces(["▁the", "</s>"])
    ['▁the', LocalizedText(en='⟨end⟩', ko='⟨끝⟩')]
    """
    return [SYMBOLS.get(piece, piece) for piece in pieces]
