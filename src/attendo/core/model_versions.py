"""A published model and its earlier versions: what is served is replaced as a whole, and back.

::

    OUT/model/           the published model
    OUT/versions/0001/   the models that were published before, oldest first

A server that watches `OUT` loads the new model and finishes the requests in progress with the old
one. Between the two renames there is no folder; a server keeps its model then.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attendo.core.errors import InputError
from attendo.core.files import new_directory, sync_directory, write_atomically
from attendo.core.message import message
from attendo.core.process_lock import process_lock
from attendo.core.run_folder import MODEL_DIR, ModelFolder

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

VERSIONS_DIR, LOCK_FILE, NOTES_FILE = "versions", ".adapt.lock", "adaptation.json"
STAGING_DIR = ".model.fresh"


@dataclass(frozen=True)
class PublishedModel:
    """The folder of a published model and its versions."""

    path: Path

    @property
    def model(self) -> ModelFolder:
        """The published model."""
        return ModelFolder(self.path / MODEL_DIR)

    @property
    def versions(self) -> list[ModelFolder]:
        """The earlier models, oldest first."""
        folders = (ModelFolder(one) for one in sorted((self.path / VERSIONS_DIR).glob("[0-9]*")))
        return [one for one in folders if one.exists()]

    def lock(self) -> AbstractContextManager[None]:
        """Hold the folder; raise if another process publishes into it."""
        self.path.mkdir(parents=True, exist_ok=True)
        return process_lock(self.path / LOCK_FILE, wait=False)

    def publish(self, model: Path, notes: dict[str, Any]) -> Path | None:
        """Replace the published model by a copy of another one; return where the old one is now."""
        staging = self.path / STAGING_DIR
        shutil.rmtree(staging, ignore_errors=True)
        with new_directory(staging) as partial:
            shutil.copytree(model, partial, dirs_exist_ok=True)
            write_atomically(
                partial / NOTES_FILE, json.dumps(notes, indent=2, ensure_ascii=False) + "\n"
            )
        return self._replace(staging)

    def keep_first(self, model: Path) -> None:
        """Keep a copy of the model that everything began with, if there is no version yet."""
        if self.versions or self.model.exists():
            return
        folder = self._next_version()
        folder.parent.mkdir(parents=True, exist_ok=True)
        with new_directory(folder) as partial:
            shutil.copytree(model, partial, dirs_exist_ok=True)

    def roll_back(self) -> Path:
        """Publish the version before the present one, which is deleted; return where it was."""
        versions = self.versions
        if not self.model.exists():
            raise InputError(
                message("{path} has no published model", path=self.path),
                hint="give the folder that attendo adapt wrote (its --out)",
            )
        if not versions:
            raise InputError(
                message("{path} has no earlier version of its model", path=self.path),
                hint="only what attendo adapt has replaced can be restored",
            )
        discarded = self.path / f".{MODEL_DIR}.discarded"
        shutil.rmtree(discarded, ignore_errors=True)
        self.model.path.rename(discarded)
        versions[-1].path.rename(self.model.path)
        sync_directory(self.path)
        shutil.rmtree(discarded, ignore_errors=True)
        return versions[-1].path

    def _replace(self, staging: Path) -> Path | None:
        backup = None
        if self.model.path.exists():
            backup = self._next_version()
            backup.parent.mkdir(parents=True, exist_ok=True)
            self.model.path.rename(backup)
        staging.rename(self.model.path)
        sync_directory(self.path)
        return backup

    def _next_version(self) -> Path:
        names = [one.name for one in (self.path / VERSIONS_DIR).glob("[0-9]*")]
        number = max((int(name) for name in names if name.isdigit()), default=0) + 1
        return self.path / VERSIONS_DIR / f"{number:04d}"
