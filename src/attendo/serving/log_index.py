"""Indexes of logs of JSON lines, so that only what was appended is read again.

An index holds the position and the kind of each line, nine bytes per line; lines are parsed when
they are asked for. It follows a log that grows, and starts again if the log was replaced or cut.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

MAX_LOGS = 64
"""Maximum number of logs with an index; the least recently used one is dropped."""
MAX_KINDS = 250
NO_EVENT = 255
"""The kind of a line that is not an event."""
KIND = re.compile(rb'"event": ?"([^"\\]{1,100})"')
READ_BYTES = 4 * 1024 * 1024


class LogIndexes:
    """The indexes of several logs, by path."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[Path, LogIndex] = OrderedDict()
        self._lock = Lock()

    def get(self, path: Path) -> LogIndex:
        """Return the index of a log."""
        with self._lock:
            index = self._indexes.pop(path, None) or LogIndex(path)
            self._indexes[path] = index
            if len(self._indexes) > MAX_LOGS:
                self._indexes.popitem(last=False)
            return index


class LogIndex:
    """The positions and kinds of the lines of one log."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self.num_bytes_read = 0
        """Bytes that were read so far, for tests."""
        self._reset(0)

    def read(self, after: int, limit: int) -> tuple[int, list[dict[str, Any]]]:
        """Return the number of lines, and the events after a line; an invalid line is {}."""
        with self._lock:
            self._update()
            last = min(after + limit, self._num_lines)
            if after >= last:
                return self._num_lines, []
            start, end = self._starts[after], self._starts[last]
            lines = self._read(start, end - start).split(b"\n")[: last - after]
            return self._num_lines, [parse_event(line) for line in lines]

    def thin(self, max_per_kind: int) -> tuple[int, list[dict[str, Any]]]:
        """Return the number of lines, and the events, thinned evenly for each kind."""
        with self._lock:
            self._update()
            by_kind: dict[int, list[int]] = {}
            for number, kind in enumerate(self._kinds):
                if kind != NO_EVENT:
                    by_kind.setdefault(kind, []).append(number)
            kept = sorted(
                number
                for numbers in by_kind.values()
                for number in pick_evenly(numbers, max_per_kind)
            )
            return self._num_lines, [event for event in self._parse(kept) if event]

    @property
    def _num_lines(self) -> int:
        return len(self._kinds)

    def _parse(self, numbers: list[int]) -> list[dict[str, Any]]:
        try:
            with self._path.open("rb") as file:
                events = []
                for number in numbers:
                    file.seek(self._starts[number])
                    line = file.read(self._starts[number + 1] - self._starts[number])
                    self.num_bytes_read += len(line)
                    events.append(parse_event(line))
                return events
        except OSError:
            return []

    def _update(self) -> None:
        """Index the lines that were appended."""
        try:
            stat = self._path.stat()
        except OSError:
            self._reset(0)
            return
        end = self._starts[-1]
        is_same = self._inode == stat.st_ino and stat.st_size >= end
        if not is_same or self._read(self._last_start, end - self._last_start) != self._last_line:
            self._reset(stat.st_ino)
        rest = b""
        while part := self._read(self._starts[-1] + len(rest), READ_BYTES):
            complete, newline, _ = (rest + part).rpartition(b"\n")
            if not newline:
                rest += part
                continue
            self._add_lines(complete)
            rest = b""

    def _add_lines(self, complete: bytes) -> None:
        position = self._starts[-1]
        line = b""
        for line in complete.split(b"\n"):
            position += len(line) + 1
            self._starts.append(position)
            self._kinds.append(self._kind(line))
        self._last_start, self._last_line = position - len(line) - 1, line + b"\n"

    def _kind(self, line: bytes) -> int:
        """Return the kind of a line as a number; it is parsed only if that is necessary."""
        found = KIND.search(line)
        if found is not None:
            name = found[1]
        else:
            event = parse_event(line)
            if not event:
                return NO_EVENT
            name = str(event.get("event")).encode("utf-8", "replace")
        return self._names.setdefault(name, min(len(self._names), MAX_KINDS))

    def _read(self, start: int, size: int) -> bytes:
        if not size:
            return b""
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                content = file.read(size)
        except OSError:
            return b""
        self.num_bytes_read += len(content)
        return content

    def _reset(self, inode: int) -> None:
        self._inode = inode
        self._starts, self._kinds = array("Q", [0]), bytearray()
        self._names: dict[bytes, int] = {}
        self._last_start, self._last_line = 0, b""


def pick_evenly(items: list[int], count: int) -> list[int]:
    """Return `count` of the items, evenly; the first and the last are among them.

    >>> pick_evenly([1, 2, 3, 4, 5], 3)
    [1, 3, 5]
    """
    if len(items) <= count:
        return items
    return [items[round(n * (len(items) - 1) / (count - 1))] for n in range(count)]


def parse_event(line: bytes) -> dict[str, Any]:
    """Parse a line; {} if it is not a JSON object.

    Values that JSON cannot represent (a NaN loss) become null.
    """
    try:
        event = json.loads(line, parse_constant=lambda _: None, parse_float=_parse_float)
        if b"\\ud" in line.lower():  # lone surrogates cannot be encoded in a response
            event = json.loads(json.dumps(event, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _parse_float(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None
