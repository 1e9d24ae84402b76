"""Reads TSV and CSV: the delimiter, the header and the two columns are found in the first rows."""

from __future__ import annotations

import csv
from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.data.columns import (
    NUM_SAMPLED_ROWS,
    Column,
    Selection,
    choose_columns,
    describe_choice,
    is_number,
    parse_name,
)
from attendo.data.corpus_config import CHOOSE_HINT, Pair
from attendo.text.languages import match_language
from attendo.text.lines import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from attendo.data.corpus_config import CorpusConfig

DELIMITERS = ",;\t|"
"""Delimiters of CSV files, in the order of preference."""
NUM_SNIFFED_LINES = 50


class Row(NamedTuple):
    """The cells of a row, and the number of its last line in the file."""

    line: int
    cells: list[str]


class Table(NamedTuple):
    """The pairs of a table, and which columns they come from (None if it has no rows)."""

    selection: Selection | None
    pairs: Iterator[Pair]


def open_table(path: Path, config: CorpusConfig) -> Table:
    """Choose the columns of a TSV or CSV file from its first rows."""
    rows = _tsv_rows(path) if config.resolved_format == "tsv" else _csv_rows(path)
    sample = list(islice(rows, NUM_SAMPLED_ROWS))
    if not sample:
        return Table(None, iter(()))
    first = sample[0].cells
    has_header = _is_header(first, sample[1:], config)
    body = sample[1:] if has_header else sample
    names = first if has_header else [""] * len(first)
    columns = [
        Column(number, name, [row.cells[number - 1] for row in body if len(row.cells) >= number])
        for number, name in enumerate(names, 1)
    ]
    src, tgt = config.fields
    if isinstance(src, int) and isinstance(tgt, int):
        selection = Selection(path, "column", str(src), str(tgt), is_requested=True)
    elif not body:
        return Table(None, iter(()))
    else:
        chosen = choose_columns(columns, config, path, "column")
        selection = describe_choice(chosen, columns, config, path, "column")
        src, tgt = chosen[0].number, chosen[1].number
    width = None if selection.is_requested else len(columns)
    return Table(selection, _read_pairs(chain(body, rows), src - 1, tgt - 1, width, path))


def _read_pairs(
    rows: Iterable[Row], src: int, tgt: int, width: int | None, path: Path
) -> Iterator[Pair]:
    last = max(src, tgt)
    for line, cells in rows:
        if len(cells) <= last:
            raise InputError(
                message(
                    "{path}, line {line}: {count} columns, column {needed} is needed",
                    path=path,
                    line=line,
                    count=len(cells),
                    needed=last + 1,
                ),
                hint=message("correct the line, or {detail}", detail=CHOOSE_HINT),
            )
        if width is not None and len(cells) > width:
            raise InputError(
                message(
                    "{path}, line {line}: {count} columns, the first row has {width}",
                    path=path,
                    line=line,
                    count=len(cells),
                    width=width,
                ),
                hint="quote a cell that contains the delimiter, or choose the columns with "
                "--src-field and --tgt-field",
            )
        yield Pair(cells[src], cells[tgt])


def _is_header(cells: Sequence[str], rows: Sequence[Row], config: CorpusConfig) -> bool:
    """Return whether a first row names columns: by sides, by languages, or above numbers only."""
    if isinstance(config.src_field, str):
        return True
    parsed = [parse_name(cell) for cell in cells]
    if {"src", "tgt"} <= {name.side for name in parsed}:
        return True
    languages = {name.language for name in parsed if name.language}
    requested = filter(None, config.languages)
    if len(languages) > 1 or any(match_language(name, languages) for name in requested):
        return True
    return any(_is_above_numbers(cell, index, rows) for index, cell in enumerate(cells))


def _is_above_numbers(cell: str, index: int, rows: Sequence[Row]) -> bool:
    below = [row.cells[index] for row in rows if len(row.cells) > index]
    return (
        len(below) > 1 and bool(cell.strip()) and not is_number(cell) and all(map(is_number, below))
    )


def _tsv_rows(path: Path) -> Iterator[Row]:
    """Split at tabs and nothing else: quotes are ordinary characters of a sentence."""
    for number, line in enumerate(read_lines(path), 1):
        if line:
            yield Row(number, line.split("\t"))


def _csv_rows(path: Path) -> Iterator[Row]:
    lines = read_lines(path)
    head = list(islice(lines, NUM_SNIFFED_LINES))
    delimiter = find_delimiter(head)
    ended = (line + "\n" for line in chain(head, lines))
    rows = csv.reader(ended, delimiter=delimiter, strict=True)
    try:
        for cells in rows:
            if cells:
                yield Row(rows.line_num, cells)
    except csv.Error as error:
        raise InputError(
            message(
                "{path}, line {line}: {detail}", path=path, line=rows.line_num, detail=str(error)
            ),
            hint=message(
                "quote a cell that contains the delimiter {delimiter}, double a quote inside it",
                delimiter=repr(delimiter),
            ),
        ) from None


def find_delimiter(lines: Sequence[str]) -> str:
    r"""Return the delimiter that splits most rows into the same number of cells, at least two.

    >>> find_delimiter(["en;fr", "Yes, sir.;Oui.", '"No; never.";Non.'])
    ';'
    """
    return max(DELIMITERS, key=lambda delimiter: _agreement(lines, delimiter))


def _agreement(lines: Sequence[str], delimiter: str) -> float:
    """Return the share of rows with the most frequent number of cells, 0 if that is one."""
    try:
        rows = [
            cells for cells in csv.reader((f"{x}\n" for x in lines), delimiter=delimiter) if cells
        ]
    except csv.Error:  # a cell above csv's size limit: reading the file reports it
        return 0.0
    complete = rows[:-1] if len(rows) > 1 and len(lines) == NUM_SNIFFED_LINES else rows
    if not complete:
        return 0.0
    ((width, count),) = Counter(map(len, complete)).most_common(1)
    return count / len(complete) if width > 1 else 0.0
