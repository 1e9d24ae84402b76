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

from attendo.core.run_folder import RunFolder, migrate_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

State = Literal["running", "finished", "stopped"]
MAX_RUNS = 500
"""The newest are listed."""
MAX_EVENTS_PER_KIND = 2000
"""Events of each kind that a run tells; of more, some evenly spread."""
MAX_NEW_EVENTS = 5000
"""Events that are told at once to who asks for new ones."""
TAIL_BYTES = 256 * 1024
"""The end of a log in which its last figures are looked for."""
ACTIVE_SECONDS = 60.0
"""A log that has grown within these belongs to a run, wherever its process may be."""
PROC_LOCKS = Path("/proc/locks")
"""Where Linux tells which locks are held; taking one to find out could keep a run from it."""


class EventPage(NamedTuple):
    """Events that came after a line of a log."""

    events: list[dict[str, Any]]
    next: int
    """The line to ask from the next time."""


def list_runs(folder: Path) -> list[Path]:
    """Give the runs right below a folder, the newest first; none if it is not there (yet)."""
    try:
        with os.scandir(folder) as entries:
            runs = [Path(entry.path) for entry in entries if _is_run_entry(entry)]
    except OSError:
        return []
    return sorted(runs, key=_last_change, reverse=True)[:MAX_RUNS]


def _is_run_entry(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir() and RunFolder(Path(entry.path)).exists()
    except OSError:
        return False


def find_run(folder: Path, name: str) -> Path | None:
    """Look a name up among the runs."""
    return next((path for path in list_runs(folder) if path.name == name), None)


def summarize(run: Path) -> dict[str, Any]:
    """Tell how far a run is, from the end of its log."""
    folder = RunFolder(run)
    config, report = _read_json(folder.config_path), _read_json(folder.report_path)
    events = _read_tail(folder.log_path)
    scores = [event for event in events if event.get("event") == "validation"]
    train = config.get("train")
    return {
        "name": run.name,
        "state": run_state(run),
        "step": max((_to_int(event.get("step")) for event in events), default=0),
        "max_steps": (_to_int(train.get("max_steps")) or None) if isinstance(train, dict) else None,
        "dev": _dev_scores(report.get("dev"), scores),
        "updated": datetime.fromtimestamp(_last_change(run), UTC).isoformat(timespec="seconds"),
    }


def describe_run(run: Path) -> dict[str, Any]:
    """Tell all of a run: its settings, its events, its samples, and its report at the end."""
    folder = RunFolder(run)
    events = list(read_events(folder.log_path))
    report = _hide_paths(_read_json(folder.report_path))
    return {
        **summarize(run),
        "config": _hide_paths(migrate_settings(_read_json(folder.config_path))),
        "events": thin_events(events),
        "next": len(events),
        "samples": thin_events(read_events(folder.samples_path)),
        "report": report or None,
    }


def read_new_events(run: Path, after: int) -> EventPage:
    """Give the events after a line; all of them if the log has become shorter since.

    A run that goes on after a stop drops what came after its checkpoint and tells it again.
    """
    path = RunFolder(run).log_path
    events = list(read_events(path, after=after))
    if not events and after and sum(1 for _ in _read_lines(path)) < after:
        after, events = 0, list(read_events(path))
    events = events[:MAX_NEW_EVENTS]
    return EventPage([event for event in events if event], after + len(events))


def run_state(run: Path) -> State:
    """Tell the state of a run by its files."""
    folder = RunFolder(run)
    if folder.is_finished():
        return "finished"
    if _is_locked(folder.lock_path) or time() - _mtime(folder.log_path) < ACTIVE_SECONDS:
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
    complete_lines = lines[:-1] if size <= TAIL_BYTES else lines[1:-1]
    return [_parse(line) for line in complete_lines]


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


def thin_events(
    events: Iterable[dict[str, Any]], *, max_per_kind: int = MAX_EVENTS_PER_KIND
) -> list[dict[str, Any]]:
    """Leave out events of each kind evenly where they are too many; first and last stay.

    >>> [event["step"] for event in thin([{"event": "train", "step": n} for n in range(9)], most=3)]
    [0, 4, 8]
    """
    valid = [event for event in events if event]
    indices_by_kind: dict[str, list[int]] = {}
    for index, event in enumerate(valid):
        indices_by_kind.setdefault(str(event.get("event")), []).append(index)
    kept = []
    for indices in indices_by_kind.values():
        if len(indices) <= max_per_kind:
            kept += indices
        else:
            kept += [
                indices[round(n * (len(indices) - 1) / (max_per_kind - 1))]
                for n in range(max_per_kind)
            ]
    return [valid[place] for place in sorted(kept)]


def _dev_scores(reported: Any, validations: list[dict[str, Any]]) -> dict[str, Any] | None:
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


def _hide_paths(data: Any) -> Any:
    """Leave of each path its last part: where files of the server lie is nobody's business."""
    if isinstance(data, dict):
        return {key: _hide_paths(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_hide_paths(value) for value in data]
    if isinstance(data, str) and PurePath(data).is_absolute():
        return PurePath(data).name
    return data


def _is_locked(lock: Path) -> bool:
    """Tell whether a process holds the lock, where the system tells it."""
    try:
        inode = lock.stat().st_ino
        locks = PROC_LOCKS.read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    rows = (line.split() for line in locks.splitlines())  # ... FLOCK ... 08:01:INODE 0 EOF
    return any("FLOCK" in row and row[-3].endswith(f":{inode}") for row in rows)


def _last_change(run: Path) -> float:
    """Give the time of the last news of a run."""
    folder = RunFolder(run)
    return max(map(_mtime, (folder.log_path, folder.config_path, folder.report_path)))


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _to_int(value: Any) -> int:
    return value if isinstance(value, int) else 0
