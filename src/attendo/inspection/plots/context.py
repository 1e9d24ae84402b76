"""The input of a plot: a record, the model behind it if available, and what to show.

Tokens are shown as their text; one that continues a word begins with a dot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from attendo.core.errors import ConfigError, InputError, suggest
from attendo.core.message import message
from attendo.i18n.messages import translate_message
from attendo.inspection.model_info import check_model
from attendo.inspection.teacher_forcing import match_model, teacher_force
from attendo.model.transformer import Transformer
from attendo.plotting.fonts import replace_missing_glyphs
from attendo.text.tokenizer import SPACE_SYMBOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from attendo.core.protocols import AttentionKind, Seq2SeqModel
    from attendo.inspection.record import Record, Token
    from attendo.inspection.teacher_forcing import TeacherForcedPass
    from attendo.text.tokenizer import Tokenizer
    from attendo.translator import Translator

Language = Literal["en", "ko"]
START = "<s>"
CONTINUATION_MARK = "⋅"
"""Narrower than the middle dot; Korean fonts do not have it, so matplotlib's default is used."""
SYMBOL = re.compile(r"<[^<> ]+>|⟨[^⟨⟩ ]+⟩")
"""The label of a special token: that of a plot, or that of a page."""


@dataclass(frozen=True)
class Selection:
    """What to show; the plot chooses what is left out."""

    kind: AttentionKind | None = None
    layer: int | None = None
    """Counted from 0; negative ones from the top. Texts count layers and heads from 1."""
    head: int | None = None
    other_head: int | None = None
    """The second head, in a plot of two."""
    row: int | None = None
    """The attending token, or the step of the decoder."""


class Cell(NamedTuple):
    """One head of one layer, and one of its rows."""

    kind: AttentionKind
    layer: int
    head: int
    row: int


@dataclass(frozen=True)
class PlotContext:
    """A record and everything that a plot reads from it."""

    record: Record
    translator: Translator | None = None
    selection: Selection = Selection()
    language: Language = "en"

    def __post_init__(self) -> None:
        if self.language not in get_args(Language):
            hint = suggest(self.language, get_args(Language))
            raise ConfigError(f"plots do not support the language '{self.language}'", hint=hint)

    def translate(self, template: str, **values: Any) -> str:
        """Return a text of the plot in its language."""
        text = translate_message(message(template, **values), self.language)
        return "\n".join(map(replace_missing_glyphs, text.split("\n")))

    @cached_property
    def model(self) -> Transformer:
        """The Transformer behind the record."""
        return match_model(self._required_translator, self.record, feature="this picture")

    def check_transformer(self) -> None:
        """Raise an error for another kind of model before its attention is used."""
        match_model(self._required_translator, self.record, feature="this picture")

    @cached_property
    def any_model(self) -> Seq2SeqModel[Any]:
        """The model behind the record, of any kind."""
        check_model(self._required_translator, self.record)
        return self._required_translator.model

    @cached_property
    def attention_width(self) -> int | None:
        """Width of the self-attention; None: unlimited, or unknown without a Transformer."""
        given = self.translator is not None and isinstance(self.translator.model, Transformer)
        return self.model.config.attention_width if given else None

    @cached_property
    def forced_pass(self) -> TeacherForcedPass:
        """The teacher-forced pass over the sentence."""
        return teacher_force(self._required_translator, self.record)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the model."""
        return self._required_translator.tokenizer

    @property
    def _required_translator(self) -> Translator:
        if self.translator is None:
            reason = "this plot needs the model, and only a record is given"
            raise InputError(reason, hint="also give the translator that made the record")
        return self.translator

    @cached_property
    def src(self) -> list[str]:
        """The source tokens."""
        return [_token_label(token) for token in self.record.src["tokens"]]

    @cached_property
    def tgt(self) -> list[str]:
        """The target tokens, in the order of generation."""
        return [_token_label(token) for token in self.record.tgt["tokens"]]

    @cached_property
    def decoder_input(self) -> list[str]:
        """What the decoder has read at each step: the start symbol, then the earlier words."""
        return [START, *self.tgt[:-1]]

    def row_labels(self, kind: AttentionKind) -> list[str]:
        """Return the labels of the rows of an attention."""
        return self.src if kind == "encoder_self" else self.tgt

    def column_labels(self, kind: AttentionKind) -> list[str]:
        """Return the labels of the columns of an attention."""
        return self.decoder_input if kind == "decoder_self" else self.src

    def layer_weights(self, kind: AttentionKind, layer: int) -> NDArray[np.float32]:
        """Return the weights of one layer, (H, T, S)."""
        weights: NDArray[np.float32] = self.record.attention(kind)[layer]
        return weights

    def select_kind(self, default: AttentionKind) -> AttentionKind:
        """Return the selected kind of attention."""
        kind = self.selection.kind or default
        self.record.attention(kind)  # its error names the kinds that exist
        return kind

    def select_layer(self, kind: AttentionKind) -> int:
        """Return the selected layer; the last by default."""
        count = len(self.record.attention(kind))
        return resolve_index(self.selection.layer, count, "layer", default=count - 1)

    def select_row(self, kind: AttentionKind) -> int:
        """Return the selected row; by default the longest word, rarely a function word."""
        return self.select_row_from(self.row_labels(kind))

    def select_row_from(self, names: Sequence[str]) -> int:
        """Return the selected row among these names."""
        longest = max(word_rows(names), key=lambda index: len(names[index]))
        return resolve_index(self.selection.row, len(names), "row", default=longest)

    def select_cell(self, default: AttentionKind) -> Cell:
        """Return the selected head and row; by default the head with the highest weight."""
        kind = self.select_kind(default)
        layer, row = self.select_layer(kind), self.select_row(kind)
        weights = self.layer_weights(kind, layer)
        surest = int(weights[:, row].max(-1).argmax())
        return Cell(
            kind,
            layer,
            resolve_index(self.selection.head, len(weights), "head", default=surest),
            row,
        )

    def kind_label(self, kind: AttentionKind) -> str:
        """Return the name of a kind of attention."""
        names = {
            "encoder_self": "encoder self-attention",
            "decoder_self": "decoder self-attention",
            "cross": "cross-attention",
        }
        return self.translate(names[kind])

    def section(self, name: str) -> dict[str, Any]:
        """Return a section of the record, which may be missing."""
        value = getattr(self.record, name)
        if value is None:
            reason = f"the record has no {name}"
            raise InputError(reason, hint=_HINTS[name])
        section: dict[str, Any] = value
        return section


_HINTS = {
    "positions": "capture the sentence with positions=True, with a model that has positions",
    "beam": "a given target has none: capture the sentence without tgt",
    "attribution": "record.replace(attribution=attribute(translator, record))",
    "ablation": "record.replace(ablation=sweep(translator, record))",
    "logit_lens": "record.replace(logit_lens=look_through(translator, record))",
}


def resolve_index(number: int | None, count: int, name: str, *, default: int) -> int:
    """Return an index from 0 to count - 1; a negative one counts from the end."""
    if number is None:
        return default
    if not -count <= number < count:
        reason = f"no {name} {number}"
        raise InputError(reason, hint=f"they are numbered from 0 to {count - 1}")
    return number % count


def word_rows(names: Sequence[str]) -> list[int]:
    """Return the indices of the tokens that are not symbols, of all if there are only symbols.

    >>> word_rows(["저는", "</s>", "⟨end⟩"]), word_rows(["</s>"])
    ([0], [0])
    """
    return [index for index, name in enumerate(names) if not SYMBOL.fullmatch(name)] or list(
        range(len(names))
    )


def piece_label(piece: str) -> str:
    """Return the label of a vocabulary piece, formatted like a token.

    >>> piece_label("▁prin"), piece_label("ce"), piece_label("</s>")
    ('prin', '⋅ce', '</s>')
    """
    if piece.startswith("<") and piece.endswith(">"):
        return piece
    if piece.startswith(SPACE_SYMBOL):
        return replace_missing_glyphs(piece[1:]) or SPACE_SYMBOL
    return replace_missing_glyphs(f"{CONTINUATION_MARK}{piece}")


def join_labels(names: Sequence[str], *, max_chars: int | None = None) -> str:
    """Join token labels into words; if they are too long, the first words are dropped.

    >>> join_labels(["<s>", "the", "prin", "⋅ce"]), join_labels(["the", "prin", "⋅ce"], max_chars=8)
    ('<s> the prince', '… prince')
    """
    text = " ".join(names).replace(f" {CONTINUATION_MARK}", "")
    words = text.split(" ")
    while max_chars is not None and len(words) > 1 and len(text) > max_chars:
        words = words[1:]
        text = " ".join(["…", *words])
    return text


def _token_label(token: Token) -> str:
    if not token["text"]:
        return piece_label(token["piece"])
    is_first = token["piece"].startswith(SPACE_SYMBOL)
    return replace_missing_glyphs(
        token["text"] if is_first else f"{CONTINUATION_MARK}{token['text']}"
    )
