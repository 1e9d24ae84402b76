"""Streams the pairs of a corpus in any supported format.

`read_pairs` is the only entry point. Two text files, TSV, CSV and JSONL are read here line by line;
TMX, PO, MO and XLIFF in `attendo.data.exchange_formats`. Nothing is cleaned: see
`attendo.data.cleaning`. What cannot be read raises an `InputError` with the file, the line and a
hint.
"""

from __future__ import annotations

import csv
import json
from contextlib import closing
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import InputError, suggest
from attendo.data.corpus_config import Pair
from attendo.data.exchange_formats import read_catalog, read_tmx
from attendo.text.lines import check_readable, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from attendo.data.corpus_config import CorpusConfig, Fields

NUM_CHECKED_PAIRS = 2000
"""Number of pairs that are checked, in memory, before the first one is returned."""
MAX_COPY_FRACTION = 0.9
FIELD_NAMES = (("src", "source"), ("tgt", "target"))
"""Names of columns and fields that are recognized without `src_field` and `tgt_field`."""


def read_pairs(config: CorpusConfig) -> Iterator[Pair]:
    """Yield every pair of a corpus in order.

    >>> next(read_pairs(CorpusConfig(src="a.ko", tgt="a.en")))  # doctest: +SKIP
    Pair(src='나는 학생이다.', tgt='I am a student.')

    Args:
        config: Location and format of the corpus.

    Returns:
        An iterator over the pairs.

    Raises:
        InputError: If a file is missing or the format unknown (at once), or if a line cannot be
            read (during iteration).

    """
    for path in config.paths:
        check_readable(path)
    return _check_first_pairs(_open_reader(config), config)


def _open_reader(config: CorpusConfig) -> Iterator[Pair]:
    name, fields = config.resolved_format, (config.src_field, config.tgt_field)
    if config.text is not None:
        return (Pair(line, line) for line in read_lines(config.text))
    if name == "text":
        return _read_parallel_text(*config.paths)
    (path,) = config.paths
    if name == "tsv":
        return _read_table(_tsv_rows(path), fields, path)
    if name == "csv":
        return _read_table(_csv_rows(path), fields, path)
    if name == "jsonl":
        return _read_jsonl(path, fields)
    if name == "tmx":
        return read_tmx(path, fields)
    return read_catalog(path, fields, name)


def _check_first_pairs(pairs: Iterator[Pair], config: CorpusConfig) -> Iterator[Pair]:
    """Raise an error if the corpus is empty or its sides are copies, before the first pair."""
    first_pairs = list(islice(pairs, NUM_CHECKED_PAIRS))
    texts = [pair for pair in first_pairs if pair.src.strip() and pair.tgt.strip()]
    if not texts and len(first_pairs) < NUM_CHECKED_PAIRS:
        where, unit = ("", "text") if config.text else (" on both sides", "sentence pair")
        raise InputError(
            f"{config.title}: the corpus is empty, no line has text{where}",
            hint=f"give files with at least one {unit}",
        )
    num_copies = sum(pair.src.strip() == pair.tgt.strip() for pair in texts)
    may_copy = config.allow_copies or config.text is not None
    if num_copies > MAX_COPY_FRACTION * len(texts) and not may_copy:
        raise InputError(
            f"{config.title}: both sides are the same text in {num_copies} of {len(texts)} pairs",
            hint="check that source and target are not the same file; "
            "set allow_copies = true if copying is the task",
        )
    yield from chain(first_pairs, pairs)


def _read_parallel_text(src_path: Path, tgt_path: Path) -> Iterator[Pair]:
    with closing(read_lines(src_path)) as sources, closing(read_lines(tgt_path)) as targets:
        for before, (src, tgt) in enumerate(zip_longest(sources, targets)):
            if src is None or tgt is None:
                rest = before + 1 + sum(1 for _ in chain(sources, targets))
                counts = (before, rest) if src is None else (rest, before)
                raise InputError(
                    f"{src_path} has {counts[0]:,} lines, {tgt_path} has {counts[1]:,}",
                    hint="both sides need the same number of lines, one sentence per line; "
                    "a line may have been split or lost in one of them",
                )
            yield Pair(src, tgt)


class _Row(NamedTuple):
    line: int
    cells: list[str]


def _tsv_rows(path: Path) -> Iterator[_Row]:
    """Split at tabs and nothing else: quotes are ordinary characters of a sentence."""
    for number, line in enumerate(read_lines(path), 1):
        if line:
            yield _Row(number, line.split("\t"))


def _csv_rows(path: Path) -> Iterator[_Row]:
    rows = csv.reader((line + "\n" for line in read_lines(path)), strict=True)
    try:
        for cells in rows:
            if cells:
                yield _Row(rows.line_num, cells)
    except csv.Error as error:
        raise InputError(
            f"{path}, line {rows.line_num}: {error}",
            hint="separate cells by commas, quote a cell with a comma, double a quote inside it",
        ) from None


class _Columns(NamedTuple):
    src: int
    tgt: int
    in_header: bool


def _read_table(rows: Iterator[_Row], fields: Fields, path: Path) -> Iterator[Pair]:
    first = next(rows, None)
    if first is None:
        return
    src, tgt, in_header = _find_columns(first.cells, fields, path)
    last = max(src, tgt)
    for row in rows if in_header else chain([first], rows):
        if len(row.cells) <= last:
            raise InputError(
                f"{path}, line {row.line}: {len(row.cells)} columns, column {last + 1} is needed",
                hint="fix the line, or name the columns with src_field and tgt_field",
            )
        yield Pair(row.cells[src], row.cells[tgt])


def _find_columns(cells: list[str], fields: Fields, path: Path) -> _Columns:
    """Return the two columns, and whether the first row is a header."""
    src, tgt = fields
    if isinstance(src, str) and isinstance(tgt, str):
        return _Columns(
            _find_column(src, cells, path), _find_column(tgt, cells, path), in_header=True
        )
    names = [cell.strip().casefold() for cell in cells]
    header = [next((names.index(n) for n in side if n in names), -1) for side in FIELD_NAMES]
    in_header = min(header) >= 0
    if isinstance(src, int) and isinstance(tgt, int):
        return _Columns(src - 1, tgt - 1, in_header)
    return _Columns(header[0], header[1], True) if in_header else _Columns(0, 1, False)


def _find_column(name: str, cells: list[str], path: Path) -> int:
    header = [cell.strip() for cell in cells]
    if name not in header:
        raise InputError(f"{path} has no column '{name}'", hint=suggest(name, header))
    return header.index(name)


def _read_jsonl(path: Path, fields: Fields) -> Iterator[Pair]:
    src_names, tgt_names = (
        names if field is None else (str(field),)
        for field, names in zip(fields, FIELD_NAMES, strict=True)
    )
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            record = _parse_record(line, path, number)
            src = _get_text_field(record, src_names, path, number)
            yield Pair(src, _get_text_field(record, tgt_names, path, number))


def _parse_record(line: str, path: Path, number: int) -> dict[str, Any]:
    """Parse one JSON object; the languages inside "translation" become fields."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        hint = "write one JSON object per line"
        raise InputError(f"{path}, line {number} is not valid JSON: {error}", hint=hint) from None
    if not isinstance(record, dict):
        hint = 'write e.g. {"src": "...", "tgt": "..."}'
        raise InputError(f"{path}, line {number} is not a JSON object", hint=hint)
    inner = record.get("translation")
    return {**record, **inner} if isinstance(inner, dict) else record


def _get_text_field(record: dict[str, Any], names: tuple[str, ...], path: Path, number: int) -> str:
    name = next((name for name in names if name in record), None)
    if name is None:
        hint = (
            f"name the fields with src_field and tgt_field. {suggest(names[0], map(str, record))}"
        )
        raise InputError(f"{path}, line {number} has no field '{names[0]}'", hint=hint)
    text = record[name]
    if not isinstance(text, str):
        hint = "write a string in quotes"
        raise InputError(
            f"{path}, line {number}: '{name}' is {text!r:.40}, not a string", hint=hint
        )
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        hint = "write both surrogates of the escaped character, or the character itself"
        raise InputError(
            f"{path}, line {number}: '{name}' has a lone surrogate (\\ud...)", hint=hint
        )
    return text
