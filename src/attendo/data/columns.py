"""Chooses the source and the target among the columns of a table or the fields of records.

The choice follows, in this order: `src_field` and `tgt_field`, the requested languages, columns
named source and target, columns named after two languages, the only two columns of text. A first
column of ids is skipped. Everything else raises an error that lists the columns.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from attendo.core.errors import InputError, suggest
from attendo.core.message import join_messages, message
from attendo.data.corpus_config import CHOOSE_HINT
from attendo.text.languages import find_language, match_language

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from attendo.data.corpus_config import CorpusConfig

NUM_SAMPLED_ROWS = 100
"""Rows or records at the beginning of a file from which the columns are chosen."""
SIDE_NAMES = {
    **dict.fromkeys(("src", "source", "원문"), "src"),
    **dict.fromkeys(("tgt", "target", "번역문", "번역"), "tgt"),
}
FILLER_WORDS = frozenset(("text", "sentence", "sentences", "문장", "텍스트"))
"""Words that a column name may have besides its side or language: text_en, source_text."""
ID_NAMES = frozenset(("id", "idx", "index", "no", "uid", "uuid", "key", "row", "번호", "순번", "#"))
NAME_SEPARATORS = re.compile(r"[\s_()\[\]/:-]+")
ID_TOKEN = re.compile(r"(?=.*\d)[\w.:/#-]+")
MAX_EXAMPLE_CHARACTERS = 30

Kind = Literal["column", "field"]

CHOICES: dict[str, str] = {
    "column": "{path}: source is column {src}, target is column {tgt}",
    "field": "{path}: source is field {src}, target is field {tgt}",
    "language": "{path}: source language is {src}, target language is {tgt}",
}
MISSING: dict[Kind, str] = {
    "column": "{path} has no column '{name}'",
    "field": "{path} has no field '{name}'",
}
MISSING_LANGUAGES: dict[Kind, str] = {
    "column": "{path} has no column of the language '{name}'",
    "field": "{path} has no field of the language '{name}'",
}
AMBIGUOUS: dict[Kind, str] = {
    "column": "{path} has {count} columns of text, and it is unclear which two to use:{columns}",
    "field": "{path} has {count} fields of text, and it is unclear which two to use:{columns}",
}
TOO_FEW: dict[Kind, str] = {
    "column": "{path} does not have a column for each side:{columns}",
    "field": "{path} does not have a field for each side:{columns}",
}


class Column(NamedTuple):
    """A column of a table or a field of records: its name if it has one, and its first values."""

    number: int
    """Its position, from 1."""
    name: str
    values: list[str]
    """Its texts in the sampled rows; a value that is not a text is left out."""

    @property
    def title(self) -> str:
        """Its name, or its number if it has no name."""
        return self.name.strip() or str(self.number)

    @property
    def language(self) -> str | None:
        """The code of the language that it is named after."""
        return parse_name(self.name).language

    @property
    def is_id(self) -> bool:
        """Whether its values are ids: different numbers or tokens with digits."""
        is_first = self.number == 1 or self.name.strip().casefold() in ID_NAMES
        return (
            is_first
            and bool(self.values)
            and len(set(self.values)) == len(self.values)
            and all(ID_TOKEN.fullmatch(value.strip()) for value in self.values)
        )

    @property
    def is_text(self) -> bool:
        """Whether it holds more than numbers and empty cells."""
        return any(value.strip() and not is_number(value) for value in self.values)


class Selection(NamedTuple):
    """The chosen source and target of a file, for messages and reports."""

    path: Path
    kind: Literal["column", "field", "language"]
    src: str
    """The name of a column, a field or a language; the number of a column without a name."""
    tgt: str
    is_requested: bool
    """Whether the settings name the two, so that nobody needs to be reminded of the choice."""
    unused: tuple[str, ...] = ()
    """The other columns or fields."""
    is_in_file_order: bool = False
    """Whether only the order in the file decides the direction."""

    def describe(self) -> str:
        """Return a line about the choice."""
        line = message(CHOICES[self.kind], path=self.path, src=repr(self.src), tgt=repr(self.tgt))
        if self.is_in_file_order:
            line = message(
                "{line} (in the order of the file; --src-lang and --tgt-lang, or --src-field and "
                "--tgt-field, change it)",
                line=line,
            )
        if not self.unused:
            return line
        return message("{line}; not used: {names}", line=line, names=", ".join(self.unused))


class ParsedName(NamedTuple):
    """What the name of a column says: its side, its language, or neither."""

    side: str | None = None
    language: str | None = None


def parse_name(name: str) -> ParsedName:
    """Return the side and the language that a column is named after.

    >>> parse_name("Source").side, parse_name("text_en").language
    ('src', 'en')
    >>> parse_name("question")
    ParsedName(side=None, language=None)
    """
    language = find_language(name)
    if language is not None:
        return ParsedName(language=language)
    words = [word for word in NAME_SEPARATORS.split(name.strip().casefold()) if word]
    rest = [word for word in words if word not in FILLER_WORDS]
    sides = [SIDE_NAMES[word] for word in rest if word in SIDE_NAMES]
    languages = [find_language(word) for word in rest if word not in SIDE_NAMES]
    if len(sides) > 1 or len(languages) > 1 or None in languages:
        return ParsedName()
    return ParsedName(sides[0] if sides else None, languages[0] if languages else None)


def is_number(text: str) -> bool:
    """Return whether a text is a number, as ids, scores and labels are."""
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def choose_columns(
    columns: Sequence[Column], config: CorpusConfig, path: Path, kind: Kind
) -> tuple[Column, Column]:
    """Return the columns of the source and of the target."""
    src_field, tgt_field = config.fields
    if isinstance(src_field, str) and isinstance(tgt_field, str):
        src = _find_by_name(src_field, columns, path, kind)
        return src, _find_by_name(tgt_field, columns, path, kind)
    candidates = [one for one in columns if len(columns) == 2 or not one.is_id]
    steps: tuple[Callable[[], tuple[Column, Column] | None], ...] = (
        lambda: _by_language(candidates, config, path, kind),
        lambda: _by_side(candidates),
        lambda: _only_two([one for one in candidates if one.language and one.is_text]),
        lambda: _only_two([one for one in candidates if one.values]),
        lambda: _only_two([one for one in candidates if one.is_text]),
    )
    chosen = next((found for step in steps if (found := step()) is not None), None)
    if chosen is None:
        raise _ambiguous(columns, path, kind)
    return chosen


def describe_choice(
    chosen: tuple[Column, Column],
    columns: Sequence[Column],
    config: CorpusConfig,
    path: Path,
    kind: Kind,
) -> Selection:
    """Return a description of what `choose_columns` has chosen."""
    src, tgt = chosen
    return Selection(
        path,
        kind,
        src.title,
        tgt.title,
        is_requested=config.src_field is not None,
        unused=tuple(one.title for one in columns if one not in chosen),
        is_in_file_order=config.languages == (None, None) and _by_side(chosen) is None,
    )


def _find_by_name(name: str, columns: Sequence[Column], path: Path, kind: Kind) -> Column:
    found = next((one for one in columns if one.name.strip() == name), None)
    if found is None:
        known = [one.name.strip() for one in columns if one.name.strip()]
        raise InputError(message(MISSING[kind], path=path, name=name), hint=suggest(name, known))
    return found


def _by_language(
    columns: Sequence[Column], config: CorpusConfig, path: Path, kind: Kind
) -> tuple[Column, Column] | None:
    named = {one.language: one for one in reversed(columns) if one.language}
    if not named or config.languages == (None, None):
        return None
    src, tgt = (
        None if language is None else _find_by_language(language, named, path, kind)
        for language in config.languages
    )
    rest = [one for one in columns if one is not (src or tgt)]
    others = [one for one in rest if one.language] or rest
    other = others[0] if len(others) == 1 else None
    return _both(src or other, tgt or other)


def _find_by_language(language: str, named: dict[str, Column], path: Path, kind: Kind) -> Column:
    code = match_language(language, named)
    if code is None:
        known = ", ".join(one.name.strip() for one in reversed(named.values()))
        raise InputError(
            message(MISSING_LANGUAGES[kind], path=path, name=language),
            hint=message("its languages: {names}", names=known),
        )
    return named[code]


def _both(src: Column | None, tgt: Column | None) -> tuple[Column, Column] | None:
    return None if src is None or tgt is None else (src, tgt)


def _by_side(columns: Sequence[Column]) -> tuple[Column, Column] | None:
    sides = {parse_name(one.name).side: one for one in reversed(columns)}
    return (sides["src"], sides["tgt"]) if "src" in sides and "tgt" in sides else None


def _only_two(columns: Sequence[Column]) -> tuple[Column, Column] | None:
    return (columns[0], columns[1]) if len(columns) == 2 else None


def _ambiguous(columns: Sequence[Column], path: Path, kind: Kind) -> InputError:
    listing = join_messages("\n  ", ["", *(_describe_column(one) for one in columns)])
    count = sum(one.is_text for one in columns)
    reason = message(
        AMBIGUOUS[kind] if count > 2 else TOO_FEW[kind], path=path, count=count, columns=listing
    )
    return InputError(reason, hint=CHOOSE_HINT)


def _describe_column(column: Column) -> str:
    example = next((value.strip() for value in column.values if value.strip()), "")
    if len(example) > MAX_EXAMPLE_CHARACTERS:
        example = example[:MAX_EXAMPLE_CHARACTERS] + "..."
    title = f"{column.number} ({column.title})" if column.name.strip() else column.title
    return f"{title}: {example}"
