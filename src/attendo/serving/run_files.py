"""Training runs as their files tell of them, while they are written and afterwards.

Nothing is kept between two looks, and nothing is written: a run is never disturbed. A name from a
request is looked up in the listing of the folder, never joined to a path.
"""

from __future__ import annotations

import json
import math
import os
from datetime import UTC, datetime
from pathlib import Path, PurePath
from time import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

State = Literal["running", "finished", "stopped"]
CONFIG, REPORT, LOG, SAMPLES, LOCK = (
    "config.json", "report.json", "log.jsonl", "samples.jsonl", ".lock"
)  # fmt: skip
MOST_RUNS = 500
"""The newest are listed."""
MOST_LINES = 2000
"""Events of each kind that a run tells; of more, some evenly spread."""
MOST_NEWS = 5000
"""Events that are told at once to who asks for new ones."""
TAIL_BYTES = 256 * 1024
"""The end of a log in which its last figures are looked for."""
FRESH_SECONDS = 60.0
"""A log that has grown within these belongs to a run, wherever its process may be."""
HELD = Path("/proc/locks")
"""Where Linux tells which locks are held; taking one to find out could keep a run from it."""


class News(NamedTuple):
    """Events that came after a line of a log."""

    events: list[dict[str, Any]]
    next: int
    """The line to ask from the next time."""


def list_runs(folder: Path) -> list[Path]:
    """Give the runs right below a folder, the newest first; none if it is not there (yet)."""
    try:
        with os.scandir(folder) as entries:
            found = [Path(entry.path) for entry in entries if _is_run(entry)]
    except OSError:
        return []
    return sorted(found, key=_changed, reverse=True)[:MOST_RUNS]


def _is_run(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir() and Path(entry.path, CONFIG).is_file()
    except OSError:
        return False


def find_run(folder: Path, name: str) -> Path | None:
    """Look a name up among the runs."""
    return next((path for path in list_runs(folder) if path.name == name), None)


def summarise(run: Path) -> dict[str, Any]:
    """Tell how far a run is, from the end of its log."""
    config, report = _read_json(run / CONFIG), _read_json(run / REPORT)
    events = _read_tail(run / LOG)
    scores = [event for event in events if event.get("event") == "validation"]
    train = config.get("train")
    return {
        "name": run.name,
        "state": find_state(run),
        "step": max((_number(event.get("step")) for event in events), default=0),
        "max_steps": (_number(train.get("max_steps")) or None) if isinstance(train, dict) else None,
        "dev": _tell_dev(report.get("dev"), scores),
        "updated": datetime.fromtimestamp(_changed(run), UTC).isoformat(timespec="seconds"),
    }


def describe(run: Path) -> dict[str, Any]:
    """Tell all of a run: its settings, its events, its samples, and its report at the end."""
    events = list(read_events(run / LOG))
    report = _hide_paths(_read_json(run / REPORT))
    return {
        **summarise(run),
        "config": _hide_paths(_read_json(run / CONFIG)),
        "events": thin(events),
        "next": len(events),
        "samples": thin(read_events(run / SAMPLES)),
        "report": report or None,
    }


def read_news(run: Path, after: int) -> News:
    """Give the events after a line; all of them if the log has become shorter since.

    A run that goes on after a stop drops what came after its checkpoint and tells it again.
    """
    events = list(read_events(run / LOG, after=after))
    if not events and after and sum(1 for _ in _read_lines(run / LOG)) < after:
        after, events = 0, list(read_events(run / LOG))
    events = events[:MOST_NEWS]
    return News([event for event in events if event], after + len(events))


def find_state(run: Path) -> State:
    """Tell the state of a run by its files."""
    if (run / REPORT).is_file():
        return "finished"
    if _is_held(run / LOCK) or time() - _modified(run / LOG) < FRESH_SECONDS:
        return "running"
    return "stopped"


def read_events(path: Path, *, after: int = 0) -> Iterator[dict[str, Any]]:
    """Read the whole lines of a file after the first few; one that is no event is an empty one.

    What JSON cannot hold (a loss that is NaN) becomes null.
    """
    for number, line in enumerate(_read_lines(path)):
        if number >= after:
            yield _parse(line)


def _read_lines(path: Path) -> Iterator[bytes]:
    """Give the lines that are whole; the last may be half written."""
    try:
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line
    except OSError:
        return


def _read_tail(path: Path) -> list[dict[str, Any]]:
    """Read the last events of a log."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            lines = file.read(TAIL_BYTES).split(b"\n")
    except OSError:
        return []
    whole = lines[:-1] if size <= TAIL_BYTES else lines[1:-1]
    return [_parse(line) for line in whole]


def _parse(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line, parse_constant=lambda _: None, parse_float=_parse_float)
        if b"\\ud" in line.lower():  # halves of characters, which no answer can hold
            event = json.loads(json.dumps(event, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _parse_float(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def thin(events: Iterable[dict[str, Any]], *, most: int = MOST_LINES) -> list[dict[str, Any]]:
    """Leave out events of each kind evenly where they are too many; first and last stay.

    >>> [event["step"] for event in thin([{"event": "train", "step": n} for n in range(9)], most=3)]
    [0, 4, 8]
    """
    whole = [event for event in events if event]
    places: dict[str, list[int]] = {}
    for place, event in enumerate(whole):
        places.setdefault(str(event.get("event")), []).append(place)
    kept = []
    for own in places.values():
        if len(own) <= most:
            kept += own
        else:
            kept += [own[round(n * (len(own) - 1) / (most - 1))] for n in range(most)]
    return [whole[place] for place in sorted(kept)]


def _tell_dev(reported: Any, validations: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Give the scores of the finished model, else those of the last validation."""
    if isinstance(reported, dict):
        return reported
    if not validations:
        return None
    return {k: v for k, v in validations[-1].items() if k not in ("time", "event", "step")}


def _read_json(path: Path) -> dict[str, Any]:
    """Read a table; of what is missing or damaged nothing."""
    try:
        return _parse(path.read_bytes())
    except OSError:
        return {}


def _hide_paths(facts: Any) -> Any:
    """Leave of each path its last part: where files of the server lie is nobody's business."""
    if isinstance(facts, dict):
        return {key: _hide_paths(value) for key, value in facts.items()}
    if isinstance(facts, list):
        return [_hide_paths(value) for value in facts]
    if isinstance(facts, str) and PurePath(facts).is_absolute():
        return PurePath(facts).name
    return facts


def _is_held(lock: Path) -> bool:
    """Tell whether a process holds the lock, where the system tells it."""
    try:
        number = lock.stat().st_ino
        held = HELD.read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    rows = (line.split() for line in held.splitlines())  # ... FLOCK ... 08:01:INODE 0 EOF
    return any("FLOCK" in row and row[-3].endswith(f":{number}") for row in rows)


def _changed(run: Path) -> float:
    """Give the time of the last news of a run."""
    return max(_modified(run / name) for name in (LOG, CONFIG, REPORT))


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
