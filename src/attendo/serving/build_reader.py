"""Reads builds (`attendo build`) from their files, for the page of runs.

Nothing is written, and no path of the server is passed on. Reasons of states are left out for that
cause: they name files.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, NamedTuple

from attendo.core.process_lock import is_locked
from attendo.core.run_folder import RunFolder
from attendo.serving import run_reader
from attendo.serving.log_index import parse_event
from attendo.workflow.runner import LOCK_FILE, STATE_FILE

MAX_BUILDS = 100
MAX_STEPS = 200
MAX_COUNTED_BYTES = 256 * 2**20
"""Bytes of a file that are read at a time; the next request continues there."""
MAX_COUNTS = 64
BLOCK_BYTES = 2**20
MARK_BYTES = 64
STATES = ("done", "stale", "failed", "interrupted", "to do", "running")


def list_builds(folder: Path) -> list[Path]:
    """Return the builds in a folder, the newest first; [] if the folder does not exist (yet)."""
    try:
        with os.scandir(folder) as entries:
            builds = [Path(entry.path) for entry in entries if entry.is_dir()]
    except OSError:
        return []
    builds = [path for path in builds if (path / STATE_FILE).is_file()]
    return sorted(builds, key=lambda path: _mtime(path / STATE_FILE), reverse=True)[:MAX_BUILDS]


class LineCounts:
    """The lines of files that grow: only what was appended is read again."""

    def __init__(self) -> None:
        self._counts: OrderedDict[Path, _LineCount] = OrderedDict()
        self._lock = Lock()

    def count(self, path: Path) -> int:
        """Return the number of complete lines of a file; 0 if it cannot be read."""
        with self._lock:
            known = self._counts.pop(path, _NOT_READ)
            try:
                with path.open("rb") as stream:
                    known = _count_appended(stream, known)
            except OSError:
                return 0
            self._counts[path] = known
            if len(self._counts) > MAX_COUNTS:
                self._counts.popitem(last=False)
            return known.num_lines


class _LineCount(NamedTuple):
    """The lines up to a position of a file, and the bytes before it, by which it is recognized."""

    position: int
    mark: bytes
    num_lines: int


_NOT_READ = _LineCount(0, b"", 0)


def _count_appended(stream: BinaryIO, known: _LineCount) -> _LineCount:
    stream.seek(known.position - len(known.mark))
    if stream.read(len(known.mark)) != known.mark:  # it was written anew
        known = _NOT_READ
        stream.seek(0)
    position, mark, num_lines = known
    while position - known.position < MAX_COUNTED_BYTES and (block := stream.read(BLOCK_BYTES)):
        position += len(block)
        mark = (mark + block)[-MARK_BYTES:]
        num_lines += block.count(b"\n")
    return _LineCount(position, mark, num_lines)


def describe_build(build: Path, line_counts: LineCounts) -> dict[str, Any]:
    """Return the steps of a build with their states, and the progress of the running one."""
    try:
        state = parse_event((build / STATE_FILE).read_bytes())
    except OSError:
        state = {}
    is_running = is_locked(build / LOCK_FILE)
    listed = state.get("steps")
    steps = [
        _describe_step(step, is_running=is_running)
        for step in (listed if isinstance(listed, list) else [])[:MAX_STEPS]
        if isinstance(step, dict)
    ]
    has_running = any(step["state"] == "running" for step in steps)
    return {
        "name": build.name,
        "state": _build_state(steps, is_running=is_running),
        "steps": steps,
        "progress": _read_progress(build, state.get("watch"), line_counts) if has_running else None,
        "updated": str(state.get("updated", "")),
    }


def _describe_step(step: dict[str, Any], *, is_running: bool) -> dict[str, Any]:
    state = step.get("state")
    if state not in STATES:
        state = "to do"
    if state == "running" and not is_running:  # its process has died
        state = "interrupted"
    needs = step.get("needs")
    return {
        "name": str(step.get("name", ""))[:64],
        "state": state,
        "needs": [str(one)[:64] for one in needs] if isinstance(needs, list) else [],
        "seconds": _to_seconds(step.get("seconds")),
        "estimate": _to_seconds(step.get("estimate")),
    }


def _build_state(steps: list[dict[str, Any]], *, is_running: bool) -> run_reader.State:
    if is_running:
        return "running"
    is_finished = bool(steps) and all(step["state"] == "done" for step in steps)
    return "finished" if is_finished else "stopped"


def _to_seconds(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value >= 0 else None


def _read_progress(build: Path, watch: Any, line_counts: LineCounts) -> dict[str, int] | None:
    """Return how much of the running step is done, if that can be seen."""
    if not isinstance(watch, dict):
        return None
    root = build.resolve()
    path = (root / str(watch.get("path", ""))).resolve()
    if not path.is_relative_to(root):
        return None
    if watch.get("kind") == "train":
        if not RunFolder(path).exists():
            return None
        run = run_reader.summarize(path)
        return {"done": run["step"], "total": run["max_steps"] or 0}
    total = watch.get("total")
    return {"done": line_counts.count(path), "total": total if isinstance(total, int) else 0}


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
