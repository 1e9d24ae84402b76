"""A copy of a run folder in an object store, or at any other address of fsspec.

Checkpoints are copied by a thread while training continues. `checkpoint.json` has the SHA-256 of
the weights and of the optimizer state. It is written last and deleted first: a checkpoint without
it does not exist. The newest checkpoints are fetched where the run folder does not have them, so
that a run continues when its machine is replaced.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.core.files import new_directory, write_atomically
from attendo.core.message import message
from attendo.core.run_files import is_run_file
from attendo.core.run_folder import (
    CHECKPOINT_INDEX_FILE,
    CHECKPOINT_PREFIX,
    CHECKPOINTS_DIR,
    CONFIG_FILE,
    DATA_FILE,
    LOG_FILE,
    MODEL_DIR,
    REPORT_FILE,
    REPORT_PAGE_FILE,
    SAMPLES_FILE,
    RunFolder,
    checkpoint_dir,
    migrate_settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PROGRESS_FILES = (CONFIG_FILE, DATA_FILE, LOG_FILE, SAMPLES_FILE)
"""Files that change while a run trains, in the order in which they are copied."""
KEPT_HINT = "the run folder has everything; run the same command again: it copies what is missing"


class RemoteRun:
    """Copies a run folder to an address and fetches it from there. Only one process uses it.

    Args:
        address: of the copy.
        folder: the run folder.
        report: receives messages for the user.

    """

    def __init__(self, address: str, folder: RunFolder, report: Callable[[str], None]) -> None:
        from attendo.cluster.storage import Folder, same_file_system

        self.folder, self._report = folder, report
        self.remote = Folder(same_file_system(address))
        self.address = self.remote.address
        if self.remote.is_local and Path(self.remote.root).resolve() == folder.path.resolve():
            raise ConfigError(
                message("--storage is the run folder itself: {path}", path=folder.path),
                hint="give another folder, or an address such as s3://bucket/runs/mine",
            )
        self._small: dict[str, bytes] = {}
        """What was last copied of the files that change."""
        self._copied: dict[int, bytes] = {}
        """The index of each checkpoint there."""
        self._wake = threading.Condition()
        self._is_due = self._is_closed = self._has_failed = False
        self._thread: threading.Thread | None = None

    # -- fetch

    def read_config(self) -> dict[str, Any] | None:
        """Return the config of the run that is there; None if the address has none.

        Raises:
            InputError: other files are there.

        """
        from attendo.cluster.storage import read_json

        stored = read_json(self.remote, CONFIG_FILE)
        if stored is None and self.remote.names():
            raise InputError(
                message("{folder} is not empty and does not contain a run", folder=self.address),
                hint="choose another --storage: nothing in it was changed",
            )
        return migrate_settings(stored) if stored else None

    def fetch(self) -> int | None:
        """Copy what is there into the run folder, if it is ahead.

        Returns:
            The step of its newest checkpoint; None if nothing was copied.

        """
        names = self.remote.names()
        steps = self._steps(names, complete=True)
        is_finished = REPORT_FILE in names
        local = max(self.folder.checkpoint_steps(), default=0)
        newest = max(steps, default=0)
        has_all = self.folder.exists() and (self.folder.is_finished() or not is_finished)
        is_empty = not steps and not is_finished
        if is_empty or newest < local or (newest == local and has_all):
            return None
        self.folder.path.mkdir(parents=True, exist_ok=True)
        for step in sorted(steps):
            if step not in self.folder.checkpoint_steps():
                self._fetch_directory(
                    f"{CHECKPOINTS_DIR}/{CHECKPOINT_PREFIX}{step}",
                    checkpoint_dir(self.folder.checkpoints_dir, step),
                    names,
                )
        if is_finished and not self.folder.model.exists():
            self._fetch_directory(MODEL_DIR, self.folder.model.path, names)
        # The config comes last: until then the folder has no run.
        for name in (REPORT_PAGE_FILE, REPORT_FILE, *PROGRESS_FILES[::-1]):
            content = self.remote.read(name) if name in names else None
            if content is not None:
                write_atomically(self.folder.path / name, content)
        return newest

    def _fetch_directory(self, name: str, target: Path, names: Iterable[str]) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with new_directory(target) as partial:
            for file in names:
                folder, _, last = file.rpartition("/")
                if folder == name:
                    self.remote.download(file, partial / last)

    # -- copy

    def request_copy(self) -> None:
        """Copy the run folder soon, in a thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._copy_when_due, daemon=True)
            self._thread.start()
        with self._wake:
            self._is_due = True
            self._wake.notify()

    def _copy_when_due(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._is_due or self._is_closed)
                if not self._is_due:
                    return
                self._is_due = False
            try:
                self.copy()
            except (AttendoError, OSError) as error:
                self._warn(error)

    def _warn(self, error: AttendoError | OSError) -> None:
        """Report the first failure; the next copy has everything that this one lacks."""
        if not self._has_failed:
            self._has_failed = True
            detail = error.reason if isinstance(error, AttendoError) else str(error)
            self._report(
                message(
                    "warning: the run could not be copied: {detail}; it is copied again after the "
                    "next checkpoint",
                    detail=detail,
                )
            )

    def copy(self) -> None:
        """Copy what the address lacks, and delete the checkpoints there that the folder lacks."""
        for name in PROGRESS_FILES:
            path = self.folder.path / name
            content = path.read_bytes() if path.exists() else None
            if content is not None and content != self._small.get(name):
                self.remote.write(name, content)
                self._small[name] = content
        names = self.remote.names()
        local = self.folder.checkpoint_steps()
        for step in self._steps(names, complete=False) - set(local):
            self._delete_checkpoint(step, names)
        for step in local:
            self._copy_checkpoint(step, names)
        if self.folder.is_finished() and self.folder.model.exists():
            self._copy_model()

    def _copy_model(self) -> None:
        """Copy the finished model, and then the report, unless they are there."""
        if self.remote.read(REPORT_FILE) == self.folder.report_path.read_bytes():
            return
        for path in sorted(self.folder.model.path.iterdir()):
            if path.is_file():
                self.remote.upload(path, f"{MODEL_DIR}/{path.name}")
        for name in (REPORT_PAGE_FILE, REPORT_FILE):
            if (self.folder.path / name).exists():
                self.remote.upload(self.folder.path / name, name)

    def _copy_checkpoint(self, step: int, names: list[str]) -> None:
        """Copy a checkpoint, unless it is there or is deleted by the training meanwhile."""
        directory = checkpoint_dir(self.folder.checkpoints_dir, step)
        name = f"{CHECKPOINTS_DIR}/{directory.name}"
        index_name = f"{name}/{CHECKPOINT_INDEX_FILE}"
        try:
            index = (directory / CHECKPOINT_INDEX_FILE).read_bytes()
            if step not in self._copied and index_name in names:
                self._copied[step] = self.remote.read(index_name) or b""
            if self._copied.get(step) == index:
                return
            self._delete_checkpoint(step, names)
            files = sorted(one for one in directory.iterdir() if one.is_file())
            for path in files:
                if path.name != CHECKPOINT_INDEX_FILE:
                    self.remote.upload(path, f"{name}/{path.name}")
        except (OSError, InputError):
            if directory.exists():
                raise
            return
        self.remote.write(index_name, index)
        self._copied[step] = index

    def _delete_checkpoint(self, step: int, names: list[str]) -> None:
        start = f"{CHECKPOINTS_DIR}/{CHECKPOINT_PREFIX}{step}/"
        found = [name for name in names if name.startswith(start)]
        found.sort(key=lambda name: not name.endswith(f"/{CHECKPOINT_INDEX_FILE}"))
        self.remote.remove(found)
        self._copied.pop(step, None)

    def delete(self) -> None:
        """Delete the run that is there, and nothing else; its config last."""
        names = [name for name in self.remote.names() if is_run_file(name)]
        names.sort(key=lambda name: (name == CONFIG_FILE, not name.endswith(REPORT_FILE)))
        self.remote.remove(names)
        self._small, self._copied = {}, {}

    @staticmethod
    def _steps(names: Iterable[str], *, complete: bool) -> set[int]:
        """Return the steps whose checkpoints are there, at least in part."""
        found = set()
        for name in names:
            parts = name.split("/")
            if len(parts) == 3 and parts[0] == CHECKPOINTS_DIR:
                number = parts[1].removeprefix(CHECKPOINT_PREFIX)
                if number.isdigit() and (not complete or parts[2] == CHECKPOINT_INDEX_FILE):
                    found.add(int(number))
        return found

    # -- end

    def close(self, *, is_complete: bool) -> None:
        """Wait for the thread, and copy what is left.

        Args:
            is_complete: whether the run has ended as it should; then a failure is raised.
                Otherwise it is reported, since another error comes first.

        """
        if self._thread is not None:
            with self._wake:
                self._is_closed = True
                self._wake.notify()
            self._thread.join()
        try:
            if self.folder.exists():
                self.copy()
        except (AttendoError, OSError) as error:
            if not is_complete:
                self._has_failed = False
                self._warn(error)
                return
            detail = error.reason if isinstance(error, AttendoError) else str(error)
            raise AttendoError(
                message(
                    "{folder} could not be copied to {address}: {detail}",
                    folder=self.folder.path, address=self.address, detail=detail,
                ),
                hint=KEPT_HINT,
            ) from error  # fmt: skip
