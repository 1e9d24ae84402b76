"""Which files in a run folder a run has written, and which belong to the user.

A run that is replaced (`--force`) loses only its own files. A file of the user is kept where it is;
inside the model folder or a checkpoint, which are replaced as a whole, it stops the command.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.config import read_settings
from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.core.run_folder import (
    CHECKPOINT_INDEX_FILE,
    CHECKPOINT_OPTIMIZER_FILE,
    CHECKPOINT_PREFIX,
    CHECKPOINT_WEIGHTS_FILE,
    CHECKPOINTS_DIR,
    CONFIG_FILE,
    DATA_FILE,
    LOCK_FILE,
    LOG_FILE,
    MODEL_DIR,
    MODEL_INDEX_FILE,
    MODEL_WEIGHTS_FILE,
    REPORT_FILE,
    REPORT_PAGE_FILE,
    SAMPLES_FILE,
    TENSORBOARD_DIR,
    RunFolder,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path, PurePath

NUM_LISTED = 3
"""Files that a message names."""


def _any_of(*names: str) -> str:
    return f"({'|'.join(map(re.escape, names))})"


_TOP_FILE = _any_of(
    CONFIG_FILE, DATA_FILE, LOG_FILE, SAMPLES_FILE, REPORT_FILE, REPORT_PAGE_FILE, LOCK_FILE
)
_MODEL_FILE = rf"({_any_of(MODEL_INDEX_FILE, MODEL_WEIGHTS_FILE, 'series.json')}|tokenizer\.[\w.]+)"
_CHECKPOINT_FILE = _any_of(
    CHECKPOINT_INDEX_FILE, CHECKPOINT_WEIGHTS_FILE, CHECKPOINT_OPTIMIZER_FILE
)
_STEP_DIR = rf"((broken_)?{CHECKPOINT_PREFIX}\d+|\.{CHECKPOINT_PREFIX}\d+\.partial)"
_MODEL_DIRS = _any_of(
    MODEL_DIR, f".{MODEL_DIR}.older", f".{MODEL_DIR}.fresh", f"..{MODEL_DIR}.fresh.partial"
)
_PARTIAL = re.compile(rf"\.{_TOP_FILE}\.\d+\.partial")
_OWN = re.compile(
    rf"{_TOP_FILE}|{_PARTIAL.pattern}"
    rf"|({_MODEL_DIRS}|{CHECKPOINTS_DIR}/{_STEP_DIR})/({_MODEL_FILE}|\.{_MODEL_FILE}\.\d+\.partial)"
    rf"|{CHECKPOINTS_DIR}/{_STEP_DIR}/{_CHECKPOINT_FILE}"
    rf"|{TENSORBOARD_DIR}/events\.out\.tfevents\..+"
)
_REPLACED_DIR = re.compile(rf"({_MODEL_DIRS}|{CHECKPOINTS_DIR}/{_STEP_DIR})/.+")
"""The content of these folders is deleted when the run resumes."""
_OWN_DIR = re.compile(
    rf"{_MODEL_DIRS}|{CHECKPOINTS_DIR}(/{_STEP_DIR})?|{re.escape(TENSORBOARD_DIR)}"
)


class RunFiles(NamedTuple):
    """The files in a run folder, as paths relative to it."""

    own: list[PurePath]
    """Those that a run writes."""
    foreign: list[PurePath]
    """All others."""


def is_run_file(name: str) -> bool:
    """Return whether a run writes a file of this name, relative to its folder.

    >>> is_run_file("checkpoints/step_10/weights.safetensors"), is_run_file("notes.txt")
    (True, False)
    """
    return _OWN.fullmatch(name) is not None


def list_run_files(folder: RunFolder) -> RunFiles:
    """Return the files in a run folder, those of its sub-folders included."""
    files = RunFiles([], [])
    for path in sorted(_list_files(folder.path)):
        relative = path.relative_to(folder.path)
        (files.own if _OWN.fullmatch(relative.as_posix()) else files.foreign).append(relative)
    return files


def _list_files(directory: Path) -> Iterator[Path]:
    """Yield the files below a folder; a link to a folder is followed where a run would write."""
    for path in directory.iterdir():
        if path.is_dir() and not (path.is_symlink() and path.name not in _LINKED_DIRS):
            yield from _list_files(path)
        else:
            yield path


_LINKED_DIRS = (CHECKPOINTS_DIR, TENSORBOARD_DIR)
"""Folders that a user may have moved to another disk."""


def check_replaceable(folder: RunFolder) -> None:
    """Raise unless the folder contains a run that can be deleted without loss to the user."""
    try:
        settings = read_settings(folder.config_path)
    except InputError as error:
        raise InputError(error.reason, hint=_UNTOUCHED) from None
    if not all(isinstance(settings.get(name), dict) for name in ("model", "train")):
        raise InputError(
            message("{path} is not the config of a run", path=folder.config_path), hint=_UNTOUCHED
        )
    lost = [path for path in list_run_files(folder).foreign if _is_replaced(path)]
    if lost:
        raise InputError(
            message(
                "{folder} contains files that no run has written and that would be lost: {files}",
                folder=folder.path,
                files=list_names(lost),
            ),
            hint="move them to another folder, or choose another --out: nothing was changed",
        )


_UNTOUCHED = "choose another --out: nothing in it was changed"


def _is_replaced(path: PurePath) -> bool:
    return _REPLACED_DIR.fullmatch(path.as_posix()) is not None


def delete_run(folder: RunFolder) -> list[PurePath]:
    """Delete what a run has written, except its config and its lock; return what was kept.

    The config is replaced last: until then, the folder is known to contain a run.
    """
    files = list_run_files(folder)
    for relative in files.own:
        path = folder.path / relative
        if path not in (folder.config_path, folder.lock_path):
            path.unlink()
    for path in sorted(folder.path.glob("**/"), reverse=True):  # the deepest first
        is_own = _OWN_DIR.fullmatch(path.relative_to(folder.path).as_posix()) is not None
        if is_own and not path.is_symlink() and not any(path.iterdir()):
            path.rmdir()
    return files.foreign


def copy_user_files(model_dir: Path, target: Path) -> None:
    """Copy what the user has added to a model folder, such as a README, into its replacement."""
    for path in model_dir.iterdir() if model_dir.is_dir() else ():
        if re.fullmatch(_MODEL_FILE, path.name):
            continue
        if path.is_dir():
            shutil.copytree(path, target / path.name)
        else:
            shutil.copy2(path, target / path.name)


def remove_partial_files(folder: RunFolder) -> None:
    """Delete the files that a killed process has not finished; call it with the folder locked."""
    for path in folder.path.glob(".*.partial"):
        if _PARTIAL.fullmatch(path.name):
            path.unlink(missing_ok=True)


def list_names(paths: Sequence[PurePath]) -> str:
    """Return the first of some paths as a text.

    >>> from pathlib import PurePath
    >>> list_names([PurePath("notes.txt"), PurePath("a/b")])
    'notes.txt, a/b'
    """
    listing = ", ".join(path.as_posix() for path in paths[:NUM_LISTED])
    if len(paths) <= NUM_LISTED:
        return listing
    return message("{files} and {count} more", files=listing, count=len(paths) - NUM_LISTED)
