"""The input of a figure: as that of a plot, but with texts for a page, which has its own fonts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from attendo.core.message import message
from attendo.i18n.messages import translate_message
from attendo.inspection.plots.context import CONTINUATION_MARK, START, PlotContext
from attendo.text.tokenizer import SPACE_SYMBOL

if TYPE_CHECKING:
    from attendo.inspection.record import Token

SYMBOLS = {START: "⟨start⟩", "</s>": "⟨end⟩"}


class FigureContext(PlotContext):
    """A record and everything that a figure reads from it; no character is replaced."""

    def translate(self, template: str, **values: Any) -> str:
        """Return a text of the figure in its language."""
        return translate_message(message(template, **values), self.language)

    @cached_property
    def src(self) -> list[str]:
        """The source tokens."""
        return [self._token_label(token) for token in self.record.src["tokens"]]

    @cached_property
    def tgt(self) -> list[str]:
        """The target tokens, in the order of generation."""
        return [self._token_label(token) for token in self.record.tgt["tokens"]]

    @cached_property
    def decoder_input(self) -> list[str]:
        """What the decoder has read at each step: the start symbol, then the earlier words."""
        return [self.piece_label(START), *self.tgt[:-1]]

    def piece_label(self, piece: str) -> str:
        """Return the label of a vocabulary piece: ⟨end⟩ as everywhere on the page."""
        if piece in SYMBOLS:
            return self.translate(SYMBOLS[piece])
        return _plain_label(piece)

    def _token_label(self, token: Token) -> str:
        if not token["text"]:
            return self.piece_label(token["piece"])
        is_first = token["piece"].startswith(SPACE_SYMBOL)
        return token["text"] if is_first else f"{CONTINUATION_MARK}{token['text']}"


def _plain_label(piece: str) -> str:
    """Return the label of a piece that is not a symbol.

    >>> _plain_label("▁prin"), _plain_label("ce"), _plain_label("<unk>")
    ('prin', '⋅ce', '<unk>')
    """
    if piece.startswith("<") and piece.endswith(">"):
        return piece
    if piece.startswith(SPACE_SYMBOL):
        return piece[1:] or SPACE_SYMBOL
    return f"{CONTINUATION_MARK}{piece}"
