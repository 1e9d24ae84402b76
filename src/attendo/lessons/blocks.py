"""The content of a lesson: localized text, matrices, tables, charts, steps and model plots.

Blocks keep numbers as they were computed; renderers round them. Text may use `code`, **bold** and
plain Unicode for formulas, which every renderer can show.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Lang = Literal["en", "ko"]
LANGUAGES: tuple[Lang, ...] = ("en", "ko")


@dataclass(frozen=True, slots=True)
class LocalizedText:
    """The same text in both languages.

    >>> LocalizedText("a mask", "마스크").localize("ko")
    '마스크'
    """

    en: str
    ko: str

    def localize(self, lang: Lang) -> str:
        """Return the text in one language."""
        return self.ko if lang == "ko" else self.en


_MARKUP = re.compile(r"\*\*(?P<bold>.+?)\*\*|`(?P<code>.+?)`")


def parse_markup(text: str) -> list[tuple[str, str]]:
    """Return the parts of a text as pairs of "", "bold" or "code" and their text.

    A Markdown parser does not end bold between a bracket and a Korean particle.

    >>> parse_markup("**값(value)**이며 `x`")
    [('bold', '값(value)'), ('', '이며 '), ('code', 'x')]
    """
    parts: list[tuple[str, str]] = []
    end = 0
    for match in _MARKUP.finditer(text):
        if match.start() > end:
            parts.append(("", text[end : match.start()]))
        style = "bold" if match["bold"] is not None else "code"
        parts.append((style, match[style]))
        end = match.end()
    return [*parts, ("", text[end:])] if end < len(text) else parts


Label = LocalizedText | str
"""A localized text, or a string that is the same in every language: a token or a symbol."""


def localize(label: Label, lang: Lang) -> str:
    """Return a label in one language."""
    return label if isinstance(label, str) else label.localize(lang)


@dataclass(frozen=True)
class Block:
    """One element of a lesson."""

    kind: ClassVar[str]

    def to_dict(self, lang: Lang) -> dict[str, Any]:
        """Return the block as JSON in one language: every field by its name, and the kind."""
        fields = {
            name: _to_json_value(getattr(self, name), lang) for name in self.__dataclass_fields__
        }
        return {"kind": self.kind, **fields}


@dataclass(frozen=True)
class Paragraph(Block):
    """A paragraph of text."""

    kind: ClassVar[str] = "paragraph"
    words: LocalizedText


@dataclass(frozen=True)
class Formula(Block):
    """A formula in plain Unicode, on its own line."""

    kind: ClassVar[str] = "formula"
    text: str


@dataclass(frozen=True)
class Note(Block):
    """A remark that is easily missed."""

    kind: ClassVar[str] = "note"
    words: LocalizedText


@dataclass(frozen=True)
class Product:
    """Two matrices, and a row added to each row of their product."""

    left: list[list[float]]
    right: list[list[float]]
    plus: list[float] | None = None


@dataclass(frozen=True)
class Matrix(Block):
    """Numbers in rows and columns, shaded by size if `shade` is set.

    Pages explain every cell of a matrix that has a `product`.
    """

    kind: ClassVar[str] = "matrix"
    title: Label
    values: list[list[float]]
    rows: Sequence[Label] | None = None
    columns: Sequence[Label] | None = None
    digits: int = 3
    shade: bool = False
    product: Product | None = None

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.values}
        fits = self.rows is None or len(self.rows) == len(self.values)
        if len(widths) > 1 or not fits or (self.columns and {len(self.columns)} != widths):
            raise ValueError(f"the labels or rows of the matrix '{self.title}' do not fit")

    def localize(self, lang: Lang) -> LocalizedMatrix:
        """Return the matrix with the names of its rows and columns in one language."""
        rows, columns = (
            None if labels is None else [localize(label, lang) for label in labels]
            for labels in (self.rows, self.columns)
        )
        return LocalizedMatrix(self.values, rows, columns, self.digits, self.shade)


class LocalizedMatrix(NamedTuple):
    """A matrix in one language, without its title."""

    values: list[list[float]]
    rows: list[str] | None
    columns: list[str] | None
    digits: int
    shade: bool


@dataclass(frozen=True)
class Table(Block):
    """Text and numbers in rows."""

    kind: ClassVar[str] = "table"
    headers: list[Label]
    rows: list[list[Label | float | int | None]]
    digits: int = 3
    title: Label = ""


@dataclass(frozen=True)
class Series:
    """One line, or the bars of one color."""

    label: Label
    values: list[float | None]


@dataclass(frozen=True)
class Chart(Block):
    """Lines over numbers, or bars over names."""

    kind: ClassVar[str] = "chart"
    form: Literal["lines", "bars"]
    title: Label
    x: list[float] | list[str]
    series: list[Series]
    x_label: Label = ""
    y_label: Label = ""
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Frame:
    """One step of `Steps`."""

    title: Label
    blocks: list[Block]


@dataclass(frozen=True)
class Steps(Block):
    """Blocks to step through, one frame after the other."""

    kind: ClassVar[str] = "steps"
    title: Label
    frames: list[Frame]


@dataclass(frozen=True)
class ModelPlot(Block):
    """A figure of `attendo.inspection.plots`, drawn from a model and a sentence.

    `focus` holds options of `attendo.inspection.plots.registry.make_figure`, such as kind or layer.
    """

    kind: ClassVar[str] = "model_plot"
    name: str
    caption: LocalizedText
    focus: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Listing:
    """Lines of a function or class, and where they are."""

    module: str
    name: str
    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Code(Block):
    """Lines of the source, and how the symbols of the lesson map to its variables."""

    kind: ClassVar[str] = "code"
    words: LocalizedText
    listings: list[Listing]

    def to_dict(self, lang: Lang) -> dict[str, Any]:
        """Return the block as JSON, with highlighted lines instead of the text."""
        from attendo.lessons.excerpts.source import highlight

        listings = [
            {"name": one.name, "file": one.file, "line": one.line, "lines": highlight(one.text)}
            for one in self.listings
        ]
        return {"kind": self.kind, "words": self.words.localize(lang), "listings": listings}


def _to_json_value(value: Any, lang: Lang) -> Any:
    """Return the value of a field as JSON."""
    if isinstance(value, LocalizedText):
        return value.localize(lang)
    if isinstance(value, Block):
        return value.to_dict(lang)
    if isinstance(value, Series | Frame | Product):
        return {
            name: _to_json_value(getattr(value, name), lang) for name in value.__dataclass_fields__
        }
    if isinstance(value, list | tuple):
        return [_to_json_value(one, lang) for one in value]
    if isinstance(value, dict):
        return {key: _to_json_value(one, lang) for key, one in value.items()}
    return value
