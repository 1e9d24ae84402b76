"""Carries results of a build from one machine to another, in parts of limited size.

A pack is a compressed tar archive with the records of the chosen steps and those of their outputs
that are wanted. Without an output, a step is still done where the pack is unpacked: later steps are
keyed by the digest in its record. Only what a later step reads has to be there.
"""

from __future__ import annotations

import lzma
import re
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.files import new_directory
from attendo.core.message import message
from attendo.workflow.states import STEPS_DIR, BuildFolder
from attendo.workflow.step import RECORD_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attendo.workflow.states import StepStatus

PART_BYTES = 15 * 2**20
ARCHIVE_NAME = "build.tar.xz"
PART_NAME = "build.tar.xz.{number:03}"
PART = re.compile(r"build\.tar\.xz\.\d{3}")


def pack_steps(
    folder: BuildFolder,
    statuses: Iterable[StepStatus],
    out: Path,
    *,
    before: Iterable[StepStatus] = (),
    with_models: bool = False,
    part_bytes: int = PART_BYTES,
) -> list[Path]:
    """Write the finished ones of some steps into a new folder, in parts; return the parts.

    Args:
        folder: the build.
        statuses: the steps; one that is not done is left out.
        out: the new folder.
        before: the steps that these need, whose records alone are written: without them, nobody
            could know what the results were made of.
        with_models: also pack models that training has written; they are large.
        part_bytes: the largest size of a part.

    """
    if out.exists():
        raise InputError(message("{path} exists", path=out), hint="choose a new folder")
    done = [status for status in statuses if status.is_done and status.key is not None]
    if not done:
        raise InputError("no finished step to pack", hint="see attendo build --dry-run")
    out.parent.mkdir(parents=True, exist_ok=True)
    with new_directory(out) as partial:
        whole = partial / ARCHIVE_NAME
        with (
            lzma.open(whole, "wb", preset=3) as packed,
            tarfile.open(fileobj=packed, mode="w|") as archive,
        ):
            for status in done:
                _add_step(archive, folder, status, with_models=with_models)
            for status in before:
                if status.is_done and status not in done:
                    _add_record(archive, folder, status)
        _cut(whole, part_bytes)
    return sorted(out.iterdir())


def _add_step(
    archive: tarfile.TarFile, folder: BuildFolder, status: StepStatus, *, with_models: bool
) -> None:
    step, key = status.step, str(status.key)
    step_dir = folder.step_dir(step.name, key)
    root = PurePosixPath(step.name, key)
    is_training = step.outputs == ("run/model",)
    for name in [RECORD_FILE, *step.outputs]:
        path = step_dir / name
        if not path.exists() or (is_training and name != RECORD_FILE and not with_models):
            continue
        files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
        for file in files:
            entry = tarfile.TarInfo(str(root / file.relative_to(step_dir).as_posix()))
            entry.size = file.stat().st_size
            with file.open("rb") as stream:
                archive.addfile(entry, stream)


def _add_record(archive: tarfile.TarFile, folder: BuildFolder, status: StepStatus) -> None:
    name, key = status.step.name, str(status.key)
    path = folder.step_dir(name, key) / RECORD_FILE
    archive.add(path, str(PurePosixPath(name, key, RECORD_FILE)))


def _cut(whole: Path, part_bytes: int) -> None:
    """Replace a file by its parts."""
    with whole.open("rb") as stream:
        number = 0
        while block := stream.read(part_bytes):
            whole.with_name(PART_NAME.format(number=number)).write_bytes(block)
            number += 1
    whole.unlink()


def unpack_steps(packed: Path, folder: BuildFolder) -> list[str]:
    """Put the results of a pack into a build; return the names of the steps.

    Results that are there already stay, and get the outputs that they lack.
    """
    parts = sorted(path for path in packed.iterdir() if PART.fullmatch(path.name))
    if not parts or [PART_NAME.format(number=n) for n in range(len(parts))] != [
        path.name for path in parts
    ]:
        raise InputError(
            message("{path} is not a pack, or a part of it is missing", path=packed),
            hint="copy all files that attendo build --pack has written",
        )
    root = folder.path / STEPS_DIR
    root.mkdir(parents=True, exist_ok=True)
    with new_directory(root / ".unpacked") as partial:
        _extract(parts, packed, partial)
        records = sorted(partial.glob(f"*/*/{RECORD_FILE}"))
        for record in records:
            source = record.parent
            target = root / source.relative_to(partial)
            for file in sorted(path for path in source.rglob("*") if path.is_file()):
                if file.name != RECORD_FILE or file.parent != source:
                    _move(file, target / file.relative_to(source))
            _move(record, target / RECORD_FILE)  # last: with it the step is done
    shutil.rmtree(root / ".unpacked", ignore_errors=True)
    return [record.parent.parent.name for record in records]


def _extract(parts: Sequence[Path], packed: Path, folder: Path) -> None:
    try:
        with TemporaryFile(dir=folder) as whole:
            for part in parts:
                with part.open("rb") as stream:
                    shutil.copyfileobj(stream, whole)
            whole.seek(0)
            with tarfile.open(fileobj=whole, mode="r:xz") as archive:
                archive.extractall(folder, filter="data")
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
        raise InputError(
            message("{path} is damaged: {detail}", path=packed, detail=str(error)),
            hint="copy all files that attendo build --pack has written",
        ) from None


def _move(source: Path, target: Path) -> None:
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)
