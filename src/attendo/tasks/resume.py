"""What a command finds in its run folder: nothing, this run, finished or not, or something else.

A run is resumed if its settings and the content of its files are the same; names and folders of the
files may differ. What cannot be resumed is refused before anything is written.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.core.files import checksum
from attendo.core.message import join_messages, message
from attendo.core.os_errors import HINTS, NO_PERMISSION, NOT_A_FOLDER
from attendo.core.run_files import check_replaceable
from attendo.core.run_folder import ModelFolder
from attendo.data.fingerprint import hash_files
from attendo.tasks.config import RunConfig
from attendo.text.lines import check_readable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attendo.core.run_folder import RunFolder
    from attendo.training.progress import Reporter

MAX_DIFFERENCES = 8
UNCHANGED_HINT = "choose another --out: nothing in it was changed"
SAVED_EVENTS = frozenset({"interrupted", "resumed", "stopped"})
"""Events of the log that follow a checkpoint."""


def check_run_folder(
    config: RunConfig,
    folder: RunFolder,
    reporter: Reporter,
    *,
    force: bool,
    compares_files: bool = True,
) -> None:
    """Raise unless the folder is new or contains this run; write nothing.

    Without `compares_files` only the settings are compared, which takes no time.
    """
    path = folder.path
    if folder.exists() and force:
        check_replaceable(folder)
    elif folder.exists():
        stored = read_run_config(folder)
        if compares_files or config.differences(stored):
            _check_same_run(config, stored, folder, reporter)
        if not folder.has_checkpoints():
            _check_restart(config.resume_plan(stored), folder)
    elif path.is_dir():
        if any(_is_user_file(entry, folder) for entry in path.iterdir()):
            raise InputError(
                message("{folder} is not empty and does not contain a run", folder=path),
                hint=UNCHANGED_HINT,
            )
    else:
        _check_creatable(path)


def _is_user_file(path: Path, folder: RunFolder) -> bool:
    """Return whether a file is not one that a run leaves if it is killed while it starts."""
    return path != folder.lock_path and not (
        path.name.startswith(".") and path.suffix == ".partial"
    )


def _check_creatable(path: Path) -> None:
    """Raise if the folder cannot be created, as far as that is known without trying."""
    existing = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    if not existing.is_dir():
        raise InputError(message("{path} is not a folder", path=existing), hint=NOT_A_FOLDER)
    if not os.access(existing, os.W_OK):
        is_read_only = hasattr(os, "statvfs") and os.statvfs(existing).f_flag & os.ST_RDONLY
        raise InputError(
            message("{folder} cannot be written to", folder=existing),
            hint=HINTS[errno.EROFS] if is_read_only else NO_PERMISSION,
        )


def read_run_config(folder: RunFolder) -> RunConfig:
    """Return the config of the run in a folder; the error names the file."""
    try:
        return RunConfig(**folder.read_config())
    except ConfigError as error:
        detail = error.reasons[0]
    except InputError as error:
        raise InputError(error.reason, hint=UNCHANGED_HINT) from None
    raise InputError(
        message(
            "{path} is not the config of a run: {detail}", path=folder.config_path, detail=detail
        ),
        hint=UNCHANGED_HINT,
    )


def _check_same_run(
    config: RunConfig, stored: RunConfig, folder: RunFolder, reporter: Reporter
) -> None:
    data = folder.read_data()
    differences = [
        *_find_changed_files(config, stored, data, reporter),
        *config.differences(stored),
        *_find_changed_weights(config, stored, data),
    ]
    if differences:
        raise another_run_error(
            folder.path, differences, "choose another --out, or use --force to delete that run"
        )


def another_run_error(folder: Path | str, differences: Sequence[str], hint: str) -> ConfigError:
    """Return the error about a folder that has a run with other settings."""
    return ConfigError(
        message(
            "{folder} contains another run:{differences}",
            folder=folder,
            differences=join_messages("\n  - ", ["", *differences[:MAX_DIFFERENCES]]),
        ),
        hint=hint,
    )


def _find_changed_files(
    config: RunConfig, stored: RunConfig, data: dict[str, Any], reporter: Reporter
) -> list[str]:
    """Return one line per file whose content is not that of when the run started."""
    digests, paths = data.get("files"), config.input_paths
    if not digests or len(paths) != len(digests):  # the settings list a file more or less
        return []
    for path in paths:
        check_readable(path)
    found = hash_files(paths, lambda done, total: reporter.stage("hash", done, total))
    compared = zip(paths, stored.input_paths, found, digests, strict=True)
    return [
        message("{path} has changed since the run started", path=path)
        if path.absolute() == earlier.absolute()
        else message("the content of {path} differs from that of {earlier}", **names)
        for path, earlier, digest, recorded in compared
        if digest != recorded
        for names in [{"path": path, "earlier": earlier}]
    ]


def _find_changed_weights(config: RunConfig, stored: RunConfig, data: dict[str, Any]) -> list[str]:
    """Return a line if the run started from another model than is named now."""
    ours, theirs = config.model.init_from, stored.model.init_from
    if not ours or ours == theirs or hash_initial_weights(config) == data.get("initial_weights"):
        return []
    key = "model.init_from"
    return [
        message("{key}: {theirs} there, {ours} here", key=key, theirs=repr(theirs), ours=repr(ours))
    ]


def hash_initial_weights(config: RunConfig) -> str | None:
    """Return the SHA-256 of the weights that a run starts from, if it starts from a model."""
    init_from = config.model.init_from
    return checksum(ModelFolder.find(init_from).weights_path) if init_from else None


def is_done(config: RunConfig, folder: RunFolder) -> bool:
    """Return whether the run has ended and no further steps are asked for."""
    report = folder.read_report()
    if not report or not folder.model.exists():
        return False
    if config.train.max_steps <= report.get("steps", 0):
        return True
    reasons = [event.get("reason") for event in folder.read_events() if event["event"] == "stopped"]
    trained = report.get("config", {}).get("train", {})
    return reasons[-1:] in (["patience"], ["max_minutes"]) and all(
        getattr(config.train, name) == trained.get(name) for name in ("max_steps", "patience")
    )


def _check_restart(config: RunConfig, folder: RunFolder) -> None:
    """Raise if a run without checkpoints would start again over what it has done."""
    events = [event for event in folder.read_events() if event.get("step")]
    step = max((event["step"] for event in events), default=0)
    if is_done(config, folder):
        return
    if folder.is_finished():
        raise AttendoError(
            message(
                "{folder} has no checkpoints: training cannot continue after step {step}",
                folder=folder.path,
                step=f"{step:,}",
            ),
            hint=message(
                "start a new run from its model (--init-from {folder} --out ...), or use --force "
                "to train it again from the beginning",
                folder=folder.path,
            ),
        )
    # A checkpoint is saved before the next step starts.
    was_saved = any(event.get("event") in SAVED_EVENTS for event in events)
    if was_saved or step > config.train.save_every:
        raise AttendoError(
            message(
                "the log of {folder} says step {step}, but no checkpoint is there",
                folder=folder.path,
                step=f"{step:,}",
            ),
            hint="restore its folder checkpoints, or use --force to train it again from the "
            "beginning",
        )
