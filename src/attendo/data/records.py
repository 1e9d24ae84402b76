"""Reads records with named fields: JSON Lines, a JSON array, Parquet (extra `formats`).

The languages inside "translation" (as in Hugging Face datasets) are fields of their record.
"""

from __future__ import annotations

import json
import re
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import InputError, suggest
from attendo.core.message import message
from attendo.data.arrow import DAMAGED_FILE_HINT, import_pyarrow, read_or_raise
from attendo.data.columns import (
    NUM_SAMPLED_ROWS,
    Column,
    Selection,
    choose_columns,
    describe_choice,
)
from attendo.data.corpus_config import CHOOSE_HINT, Pair
from attendo.text.lines import decode_utf8, open_bytes, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from attendo.data.corpus_config import CorpusConfig

MAX_JSON_BYTES = 256 * 2**20
"""An array is parsed as a whole, in memory; JSON Lines have no limit."""
PARQUET_BATCH_ROWS = 4096
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
LINE, ELEMENT, ROW = "line {number}", "element {number}", "row {number}"
RECORD_HINT = 'write e.g. {"src": "...", "tgt": "..."}'


class Record(NamedTuple):
    """The fields of one record, and where it is in the file."""

    unit: str
    """The template of its position, with the field `number`."""
    number: int
    fields: dict[str, Any]

    @property
    def position(self) -> str:
        """Where it is in the file, for messages."""
        return message(self.unit, number=self.number)


class RecordFile(NamedTuple):
    """The pairs of a file of records, and which fields they come from (None if it is empty)."""

    selection: Selection | None
    pairs: Iterator[Pair]


def open_records(path: Path, config: CorpusConfig) -> RecordFile:
    """Choose the fields of a JSON or Parquet file from its first records."""
    readers = {"jsonl": read_json_lines, "json": read_json, "parquet": read_parquet}
    records = readers[config.resolved_format](path)
    sample = list(islice(records, NUM_SAMPLED_ROWS))
    if not sample:
        return RecordFile(None, iter(()))
    fields = [None if field is None else str(field) for field in config.fields]
    columns = _sample_columns(sample)
    if fields[0] is not None and fields[1] is not None:
        src, tgt = fields[0], fields[1]
        selection = Selection(path, "field", src, tgt, is_requested=True)
    else:
        chosen = choose_columns(columns, config, path, "field")
        selection = describe_choice(chosen, columns, config, path, "field")
        src, tgt = (column.name for column in chosen)
    return RecordFile(selection, _read_pairs(chain(sample, records), src, tgt, path))


def _sample_columns(records: Sequence[Record]) -> list[Column]:
    """Return the fields in the order of their first occurrence, except nested ones."""
    values: dict[str, list[str]] = {}
    for record in records:
        for name, value in record.fields.items():
            if not isinstance(value, dict | list):
                values.setdefault(name, []).extend([value] if isinstance(value, str) else [])
    return [Column(number, name, texts) for number, (name, texts) in enumerate(values.items(), 1)]


def _read_pairs(records: Iterable[Record], src: str, tgt: str, path: Path) -> Iterator[Pair]:
    for record in records:
        yield Pair(_get_text(record, src, path), _get_text(record, tgt, path))


def _get_text(record: Record, name: str, path: Path) -> str:
    text = record.fields.get(name)
    if isinstance(text, str) and (text.isascii() or not LONE_SURROGATE.search(text)):
        return text
    where = {"path": path, "position": record.position, "name": name}
    if name not in record.fields:
        raise InputError(
            message("{path}, {position} has no field '{name}'", **where),
            hint=message(
                "{detail}. {options}",
                detail=suggest(name, record.fields),
                options=message(CHOOSE_HINT),
            ),
        )
    if isinstance(text, str):
        raise InputError(
            message("{path}, {position}: '{name}' has a lone surrogate (\\ud...)", **where),
            hint="write both surrogates of the escaped character, or the character itself",
        )
    template = "{path}, {position}: '{name}' is {value}, not a string"
    raise InputError(
        message(template, value=f"{text!r:.40}", **where), hint="write a string in quotes"
    )


def read_json_lines(path: Path) -> Iterator[Record]:
    """Yield the objects of a file with one per line."""
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            yield _to_record(_parse_line(line, path, number), path, LINE, number)


def read_json(path: Path) -> Iterator[Record]:
    """Yield the objects of an array, alone or as "data" of an object; or those of JSON Lines."""
    lines = read_lines(path)
    first = next((line for line in lines if line.strip()), "")
    lines.close()
    if _is_json_object(first):  # many tools write JSON Lines to *.json
        yield from read_json_lines(path)
        return
    if not first:
        return
    for number, item in enumerate(_load_array(path), 1):
        yield _to_record(item, path, ELEMENT, number)


def _load_array(path: Path) -> list[Any]:
    try:
        value = json.loads(_read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(
            message("{path} is not valid JSON: {detail}", path=path, detail=str(error)),
            hint="write an array of objects, or one object per line",
        ) from None
    items = value.get("data") if isinstance(value, dict) else value
    if not isinstance(items, list):
        raise InputError(
            message("{path} is not an array of JSON objects", path=path),
            hint='write [{"src": "...", "tgt": "..."}, ...], or one object per line',
        )
    return items


def _is_json_object(line: str) -> bool:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and not isinstance(value.get("data"), list)


def _read_text(path: Path) -> str:
    with open_bytes(path) as stream:
        content = stream.read(MAX_JSON_BYTES + 1)
    if len(content) > MAX_JSON_BYTES:
        raise InputError(
            message("{path} is larger than {limit} bytes", path=path, limit=f"{MAX_JSON_BYTES:,}"),
            hint=message(
                "convert it to one object per line: jq -c '.[]' {name} > new.jsonl", name=path.name
            ),
        )
    return decode_utf8(content, path).removeprefix("\ufeff")


def _parse_line(line: str, path: Path, number: int) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(
            message(
                "{path}, {position} is not valid JSON: {detail}",
                path=path,
                position=message(LINE, number=number),
                detail=str(error),
            ),
            hint="write one JSON object per line",
        ) from None


def _to_record(value: Any, path: Path, unit: str, number: int) -> Record:
    if not isinstance(value, dict):
        position = message(unit, number=number)
        reason = message("{path}, {position} is not a JSON object", path=path, position=position)
        raise InputError(reason, hint=RECORD_HINT)
    inner = value.get("translation")
    return Record(unit, number, {**value, **inner} if isinstance(inner, dict) else value)


def read_parquet(path: Path) -> Iterator[Record]:
    """Yield the rows of a Parquet file; a missing text is empty."""
    parquet = import_pyarrow("pyarrow.parquet", extra="formats")
    with open_bytes(path) as stream:

        def call(read: Any) -> Any:
            return read_or_raise(read, path, "Parquet", DAMAGED_FILE_HINT)

        batches = call(lambda: parquet.ParquetFile(stream).iter_batches(PARQUET_BATCH_ROWS))
        number = 0
        while batch := call(lambda: next(batches, None)):
            for row in batch.to_pylist():
                number += 1
                record = _to_record(row, path, ROW, number)
                texts = {name: "" if text is None else text for name, text in record.fields.items()}
                yield record._replace(fields=texts)
