"""List the runs in a folder, compare them, and delete the checkpoints of finished ones.

Only JSON files and the sizes of files are read, so that a run that is training is not disturbed.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING, Any, Literal

from attendo.core.errors import AttendoError, InputError
from attendo.core.message import message
from attendo.core.process_lock import PROC_LOCKS, is_locked
from attendo.core.run_folder import RunFolder
from attendo.diagnosis.run_log import TrainingLog

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from attendo.diagnosis.run_log import Point

State = Literal["training", "stopped", "finished", "failed"]
MAX_DEPTH = 3
"""How deep below a folder runs are looked for: `runs/`, `runs/quickstart/`, ..."""
ACTIVE_SECONDS = 60.0
"""Where the system does not list locks, a run whose log has grown within this time is training."""
UNCOMPARED_SETTINGS = ("plan.auto",)


@dataclass(frozen=True)
class RunStatus:
    """A run as it is listed."""

    folder: RunFolder
    name: str
    state: State
    step: int
    max_steps: int | None
    metric: str
    """What the best validation is chosen by: "loss", "bleu" or "chrf"."""
    best: Point | None
    """The best validation."""
    dev: dict[str, Any]
    """The scores of the finished model on dev."""
    num_pairs: int | None
    num_parameters: int | None
    minutes: float
    """Of training, resumed sessions included."""
    num_bytes: int
    checkpoint_bytes: int
    updated: datetime

    @property
    def can_clean(self) -> bool:
        """Whether the checkpoints are no longer needed: the run is finished and has a model."""
        has_model = self.folder.model.exists()
        return self.state == "finished" and has_model and self.checkpoint_bytes > 0

    def to_json(self) -> dict[str, Any]:
        """Return the status as JSON."""
        return {
            "name": self.name,
            "path": str(self.folder.path),
            "state": self.state,
            "step": self.step,
            "max_steps": self.max_steps,
            "metric": self.metric,
            "best_score": self.best.value if self.best else None,
            "best_step": self.best.step if self.best else None,
            "dev": self.dev or None,
            "pairs": self.num_pairs,
            "parameters": self.num_parameters,
            "minutes": round(self.minutes, 2),
            "bytes": self.num_bytes,
            "checkpoint_bytes": self.checkpoint_bytes,
            "updated": self.updated.isoformat(timespec="seconds"),
        }


def find_runs(directory: Path) -> list[RunFolder]:
    """Return the runs in a folder and its subfolders, or the folder itself if it is a run."""
    if not directory.is_dir():
        raise InputError(
            message("no folder {path}", path=directory),
            hint="give the folder of your runs, such as runs, or one run",
        )
    return list(_search(directory, MAX_DEPTH))


def _search(directory: Path, depth: int) -> Iterator[RunFolder]:
    run = RunFolder(directory)
    if is_run(run):
        yield run
        return
    if depth == 0:
        return
    try:
        children = sorted(path for path in directory.iterdir() if path.is_dir())
    except OSError:
        return
    for path in children:
        if not path.name.startswith(".") and not path.is_symlink():
            yield from _search(path, depth - 1)


def is_run(folder: RunFolder) -> bool:
    """Return whether a folder has the settings of a run; other tools write config.json too."""
    if not folder.exists():
        return False
    try:
        config = folder.read_config()
    except AttendoError:
        return False
    has_data = any(isinstance(config.get(name), dict) for name in ("data", "series"))
    return has_data and isinstance(config.get("train"), dict)


def read_status(folder: RunFolder, root: Path | None = None) -> RunStatus:
    """Return the status of a run, named by its path below `root`."""
    log, report = TrainingLog.read(folder), _read_or_empty(folder.read_report)
    data = report.get("data") or _read_or_empty(folder.read_data)
    path = folder.path
    name = str(path.relative_to(root)) if root is not None and path != root else path.name
    return RunStatus(
        folder=folder,
        name=name or str(path),
        state=_find_state(folder, log),
        step=max([log.last_step, *folder.checkpoint_steps()[-1:]]),
        max_steps=folder.max_steps(),
        metric=log.metric,
        best=log.best,
        dev=report.get("dev") or {},
        num_pairs=data.get("pairs", data.get("windows")),
        num_parameters=data.get("parameters"),
        minutes=log.seconds / 60,
        num_bytes=count_bytes(path),
        checkpoint_bytes=count_bytes(folder.checkpoints_dir),
        updated=datetime.fromtimestamp(_last_change(folder), UTC),
    )


def _find_state(folder: RunFolder, log: TrainingLog) -> State:
    is_active = time() - _last_change(folder) < ACTIVE_SECONDS
    has_ended = log.last_event in ("interrupted", "stopped", "diverged") or folder.is_finished()
    if is_locked(folder.lock_path) or (not PROC_LOCKS.exists() and is_active and not has_ended):
        return "training"
    if log.last_event == "diverged":
        return "failed"
    return "finished" if folder.is_finished() else "stopped"


def _last_change(folder: RunFolder) -> float:
    paths = (folder.log_path, folder.config_path, folder.report_path)
    return max((path.stat().st_mtime for path in paths if path.exists()), default=0.0)


def _read_or_empty(read: Any) -> dict[str, Any]:
    try:
        content: dict[str, Any] = read()
    except AttendoError:
        return {}
    return content


def count_bytes(directory: Path) -> int:
    """Return the size of the files in a folder; those that are just being deleted count nothing."""
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


# -- compare


def compare_settings(runs: Sequence[RunFolder]) -> dict[str, list[Any]]:
    """Return the settings that differ between runs: each with its value in every run."""
    flat = [_flatten(run.read_config()) for run in runs]
    keys = sorted({key for settings in flat for key in settings} - {*UNCOMPARED_SETTINGS})
    rows = {key: [settings.get(key) for settings in flat] for key in keys}
    return {
        key: values for key, values in rows.items() if any(one != values[0] for one in values[1:])
    }


def _flatten(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


# -- clean


def delete_checkpoints(run: RunFolder) -> int:
    """Delete the checkpoints of a run that nobody trains in; return the bytes that became free."""
    with run.lock():
        num_bytes = count_bytes(run.checkpoints_dir)
        shutil.rmtree(run.checkpoints_dir)
    return num_bytes
