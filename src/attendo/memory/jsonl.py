"""Units as JSON Lines: one object per line, which `attendo train --path` reads as well."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from attendo.core.errors import InputError, suggest
from attendo.core.message import message
from attendo.memory.unit import ORIGINS, Unit, format_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

MAX_LINE_BYTES = 2**20
REQUIRED = ("src", "tgt", "src_lang", "tgt_lang")
OPTIONAL = ("model", "output", "author", "time", "origin")
LINE_HINT = 'write e.g. {"src": "...", "tgt": "...", "src_lang": "en", "tgt_lang": "ko"}'


def format_jsonl(units: Iterable[Unit]) -> Iterator[str]:
    """Yield a line per unit; what is unknown is left out."""
    for unit in units:
        fields = {
            "src": unit.source,
            "tgt": unit.target,
            "src_lang": unit.src_lang,
            "tgt_lang": unit.tgt_lang,
            "model": unit.model,
            "output": unit.output,
            "author": unit.author,
            "time": format_time(unit.time),
            "origin": unit.origin,
        }
        known = {name: value for name, value in fields.items() if value is not None}
        yield json.dumps(known, ensure_ascii=False) + "\n"


def read_jsonl(stream: BinaryIO) -> Iterator[Unit]:
    """Yield the unit of each line; raise an `InputError` that names the line."""
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            detail = message("longer than {limit:,} bytes", limit=MAX_LINE_BYTES)
            raise _line_error(number, detail)
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if text.strip():
            yield _read_unit(text, number)


def _read_unit(line: bytes, number: int) -> Unit:
    try:
        fields = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        raise _line_error(number, "not valid JSON") from None
    if not isinstance(fields, dict):
        raise _line_error(number, "not an object")
    unknown = [name for name in fields if name not in (*REQUIRED, *OPTIONAL)]
    if unknown:
        detail = message(
            "unknown field '{name}': {detail}",
            name=unknown[0][:60],
            detail=suggest(unknown[0][:60], (*REQUIRED, *OPTIONAL)),
        )
        raise _line_error(number, detail)
    missing = [name for name in REQUIRED if name not in fields]
    if missing:
        raise _line_error(number, message("no field '{name}'", name=missing[0]))
    for name, value in fields.items():
        if not isinstance(value, str) and (name in REQUIRED or value is not None):
            raise _line_error(number, message("'{name}' is not a text", name=name))
    return _make_unit(fields)


def _make_unit(fields: dict[str, Any]) -> Unit:
    origin = fields.get("origin")
    return Unit(
        fields["src"],
        fields["tgt"],
        fields["src_lang"],
        fields["tgt_lang"],
        model=fields.get("model"),
        output=fields.get("output"),
        author=fields.get("author"),
        time=parse_time(fields.get("time")),
        origin=next((one for one in ORIGINS if one == origin), "import"),
    )


def _line_error(number: int, detail: str) -> InputError:
    return InputError(
        message("line {line}: {error}", line=number, error=message(detail)), hint=LINE_HINT
    )
