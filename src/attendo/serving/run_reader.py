"""Reads training runs from their files, during and after the training.

Nothing is written, so that a run is never disturbed. A name from a request is looked up in the
listing of the folder, never joined to a path. Logs are read through `LogIndexes`.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath, PureWindowsPath
from time import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from attendo.core.process_lock import is_locked
from attendo.core.run_folder import RunFolder, migrate_settings
from attendo.inspection.checkpoint_view import usable_steps
from attendo.serving.log_index import parse_event
from attendo.workflow.runner import STATE_FILE

if TYPE_CHECKING:
    from attendo.serving.log_index import LogIndexes

State = Literal["running", "finished", "stopped"]
MAX_RUNS = 500
"""Only the newest runs are listed."""
MAX_EVENTS_PER_KIND = 2000
"""Maximum events of each kind; longer logs are thinned evenly."""
MAX_NEW_EVENTS = 5000
"""Maximum events per response."""
TAIL_BYTES = 256 * 1024
"""Size of the end of a log that is searched for the latest metrics."""
ACTIVE_SECONDS = 60.0
"""A run whose log has grown within this time is running, maybe on another machine."""
RELATIVE_PATH = re.compile(r"[^\s/\\]+(?:[/\\][^\s/\\]+)*[/\\][^\s/\\]+")
"""A text that may be a relative path."""


class EventPage(NamedTuple):
    """Events after a line of a log."""

    events: list[dict[str, Any]]
    next: int
    """The line to continue from."""


def list_runs(folder: Path) -> list[Path]:
    """Return the runs in a folder, the newest first; [] if the folder does not exist (yet).

    A run may also be one level deeper, as `quickstart/ko-en` is. The runs of a build are left out:
    they are steps of the build.
    """
    runs = []
    for path in _subfolders(folder):
        if _is_run(path):
            runs.append(path)
        elif not (path / STATE_FILE).is_file():
            runs += filter(_is_run, _subfolders(path))
    return sorted(runs, key=_last_change, reverse=True)[:MAX_RUNS]


def _subfolders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir()]
    except OSError:
        return []


def _is_run(path: Path) -> bool:
    try:
        return RunFolder(path).exists()
    except OSError:
        return False


def run_name(folder: Path, run: Path) -> str:
    """Return the name of a run in a folder of runs, without a slash.

    >>> run_name(Path("runs"), Path("runs/ko-en"))
    'ko-en'
    >>> run_name(Path("runs"), Path("runs/quickstart/ko-en"))
    'quickstart:ko-en'
    """
    return ":".join(run.relative_to(folder).parts)


def find_run(folder: Path, name: str) -> Path | None:
    """Return the run with this name, or None."""
    return next((path for path in list_runs(folder) if run_name(folder, path) == name), None)


def summarize(run: Path, name: str | None = None) -> dict[str, Any]:
    """Return the progress of a run, from the end of its log."""
    folder = RunFolder(run)
    config, report = _read_json(folder.config_path), _read_json(folder.report_path)
    events = _read_tail(folder.log_path)
    scores = [event for event in events if event.get("event") == "validation"]
    train = config.get("train")
    return {
        "name": name or run.name,
        "state": run_state(run),
        "step": max((_to_int(event.get("step")) for event in events), default=0),
        "max_steps": (_to_int(train.get("max_steps")) or None) if isinstance(train, dict) else None,
        "dev": _dev_scores(report.get("dev"), scores),
        "diverged": _has_diverged(events),
        "updated": datetime.fromtimestamp(_last_change(run), UTC).isoformat(timespec="seconds"),
    }


def _has_diverged(events: list[dict[str, Any]]) -> bool:
    """Return whether the last training loss is not a number, which is read as null."""
    losses = [event.get("loss") for event in events if event.get("event") == "train"]
    return bool(losses) and losses[-1] is None


def describe_run(run: Path, name: str, logs: LogIndexes) -> dict[str, Any]:
    """Return everything about a run: configuration, events, samples and report."""
    folder = RunFolder(run)
    count, events = logs.get(folder.log_path).thin(MAX_EVENTS_PER_KIND)
    _, samples = logs.get(folder.samples_path).thin(MAX_EVENTS_PER_KIND)
    report = _hide_paths(_read_json(folder.report_path))
    return {
        **summarize(run, name),
        "config": _hide_paths(migrate_settings(_read_json(folder.config_path)), relative=True),
        "events": events,
        "next": count,
        "samples": samples,
        "checkpoints": usable_steps(folder),
        "report": report or None,
    }


def read_new_events(run: Path, after: int, logs: LogIndexes) -> EventPage:
    """Return the events after a line, or all of them if the log has become shorter.

    A resumed run removes the events after its checkpoint and writes them again.
    """
    index = logs.get(RunFolder(run).log_path)
    count, events = index.read(after, MAX_NEW_EVENTS)
    if count < after:
        after, (_, events) = 0, index.read(0, MAX_NEW_EVENTS)
    return EventPage([event for event in events if event], after + len(events))


def run_state(run: Path) -> State:
    """Return the state of a run, from its files."""
    folder = RunFolder(run)
    if folder.is_finished():
        return "finished"
    if is_locked(folder.lock_path) or time() - _mtime(folder.log_path) < ACTIVE_SECONDS:
        return "running"
    return "stopped"


def _read_tail(path: Path) -> list[dict[str, Any]]:
    """Return the last events of a log."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            lines = file.read(TAIL_BYTES).split(b"\n")
    except OSError:
        return []
    complete_lines = lines[:-1] if size <= TAIL_BYTES else lines[1:-1]
    return [parse_event(line) for line in complete_lines]


def _dev_scores(reported: Any, validations: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the scores of the finished model, else those of the last validation."""
    if isinstance(reported, dict):
        return reported
    if not validations:
        return None
    return {k: v for k, v in validations[-1].items() if k not in ("time", "event", "step")}


def _read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; {} if the file is missing or damaged."""
    try:
        return parse_event(path.read_bytes())
    except OSError:
        return {}


def _hide_paths(data: Any, *, relative: bool = False) -> Any:
    """Replace absolute paths by their last part, to hide the directories of the server.

    With `relative`, texts that look like relative paths too; without, only those with a suffix.
    """
    if isinstance(data, dict):
        return {key: _hide_paths(value, relative=relative) for key, value in data.items()}
    if isinstance(data, list):
        return [_hide_paths(value, relative=relative) for value in data]
    if not isinstance(data, str):
        return data
    path = PureWindowsPath(data) if "\\" in data else PurePosixPath(data)
    is_relative = RELATIVE_PATH.fullmatch(data) and (relative or path.suffix)
    return path.name if path.is_absolute() or is_relative else data


def _last_change(run: Path) -> float:
    """Return the time of the last change of a run."""
    folder = RunFolder(run)
    return max(map(_mtime, (folder.log_path, folder.config_path, folder.report_path)))


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _to_int(value: Any) -> int:
    return value if isinstance(value, int) else 0
