"""The output of a long translation, kept when it is interrupted, so that it can be resumed.

While a file is translated, `.OUT.partial` has the finished lines and `.OUT.partial.json` says what
is being translated, with which model and options. To go on, these must be the same, and the output
is cut back to whole windows (`attendo.translator.windows`): every window then has the same texts as
without the interruption, and so the same translations.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Self

from attendo.core.errors import InputError
from attendo.core.files import checksum, sync_directory, write_atomically
from attendo.core.message import join_messages, message
from attendo.core.run_folder import ModelFolder
from attendo.core.version import __version__
from attendo.data.fingerprint import content_fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

FIRST_RANK = b"1\t"
"""Begins the first line of each text in an n-best list."""
COPY_BYTES = 1 << 20


class PartialOutput:
    """A file that is written line by line and appears under its name when it is complete.

    Args:
        path: the output; it is compressed if its name ends in .gz.
        job: what is translated and how, from `describe_job`.
        n_best: lines per text, at most.

    """

    def __init__(self, path: Path, job: Mapping[str, Any], *, n_best: int = 1) -> None:
        self.path, self.job, self.n_best = path, dict(job), n_best
        self.partial = path.with_name(f".{path.name}.partial")
        self.index = path.with_name(f".{path.name}.partial.json")
        self.num_done = 0
        """Texts whose translations are in the file."""
        self._start = 0
        self._stream: IO[bytes] = io.BytesIO()

    def exists(self) -> bool:
        """Return whether an interrupted translation was kept."""
        return self.partial.is_file() and self.index.is_file()

    def check_can_start(self) -> None:
        """Raise if an interrupted translation was kept, which would be lost."""
        if self.exists():
            raise InputError(
                message(
                    "the translation to {path} was interrupted after {count} texts",
                    path=self.path,
                    count=f"{self._count_done():,}",
                ),
                hint="use --resume to continue, or --force to start again",
            )

    def check_can_resume(self) -> None:
        """Raise unless an interrupted translation of the same texts in the same way was kept."""
        if not self.exists():
            raise InputError(
                message("there is no interrupted translation of {path}", path=self.path),
                hint="leave out --resume",
            )
        try:
            stored = json.loads(self.index.read_text(encoding="utf-8"))
            differences = _describe_differences(stored, self.job)
        except (ValueError, AttributeError, TypeError):
            raise InputError(
                message("{path} is damaged", path=self.index), hint="use --force to start again"
            ) from None
        if differences:
            raise InputError(
                message(
                    "the translation to {path} was started differently: {differences}",
                    path=self.path,
                    differences=join_messages("; ", differences),
                ),
                hint="give the same input, model and options, or use --force to start again",
            )

    def prepare(self, window_sizes: Iterable[int]) -> int:
        """Keep the whole windows that are translated; return how many texts they have."""
        self.num_done, self._start = self._find_window_end(window_sizes)
        return self.num_done

    def remaining_windows(self, windows: Iterable[list[str]]) -> Iterator[list[str]]:
        """Yield the windows that are not translated yet."""
        num_read = 0
        for window in windows:
            if num_read >= self.num_done:
                yield window
            num_read += len(window)

    @contextmanager
    def open(self) -> Iterator[Self]:
        """Write the file; an error leaves what is translated, and success gives it its name."""
        write_atomically(self.index, json.dumps(self.job, ensure_ascii=False, indent=2))
        try:
            with self.partial.open("r+b" if self._start else "wb") as self._stream:
                self._stream.truncate(self._start)
                self._stream.seek(self._start)
                yield self
                os.fsync(self._stream.fileno())
        except BaseException:
            if not self.num_done:  # nothing to resume
                self.partial.unlink(missing_ok=True)
                self.index.unlink(missing_ok=True)
            raise
        self._rename()

    def write(self, lines: str, num_texts: int) -> None:
        """Append the lines of some texts, and hand them to the system."""
        self._stream.write(lines.encode())
        self._stream.flush()
        self.num_done += num_texts

    def _rename(self) -> None:
        if self.path.suffix == ".gz":
            packed = self.partial.with_suffix(".packed")
            with (
                self.partial.open("rb") as source,
                packed.open("wb") as raw,
                gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as target,
            ):
                shutil.copyfileobj(source, target, COPY_BYTES)
            packed.replace(self.path)
            self.partial.unlink()
        else:
            self.partial.replace(self.path)
        self.index.unlink(missing_ok=True)
        sync_directory(self.path.parent)

    def _count_done(self) -> int:
        with self.partial.open("rb") as stream:
            return sum(1 for line in stream if self._begins_text(line))

    def _begins_text(self, line: bytes) -> bool:
        """Return whether a line is the first of a text, and complete."""
        return line.endswith(b"\n") and (self.n_best == 1 or line.startswith(FIRST_RANK))

    def _find_window_end(self, window_sizes: Iterable[int]) -> tuple[int, int]:
        """Return how many texts of whole windows there are, and the end of the last in the file."""
        count = position = num_kept = end = 0
        sizes = iter(window_sizes)
        next_end = next(sizes, None)
        with self.partial.open("rb") as stream:
            for line in stream:
                is_text = self._begins_text(line)
                # Only the next text shows that all lines of an n-best list are there.
                if is_text and self.n_best > 1 and count == next_end:
                    num_kept, end = count, position
                    next_end += next(sizes, 0)
                count, position = count + is_text, position + len(line)
                if is_text and self.n_best == 1 and count == next_end:
                    num_kept, end = count, position
                    next_end += next(sizes, 0)
        return num_kept, end


def describe_job(
    source: Path, models: Iterable[Path], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what determines a translation: the input, the models and the options, as JSON."""
    folders = [ModelFolder.find(model).path for model in models]  # loading reports a missing one
    return {
        "attendo": __version__,
        "input": checksum(source),
        "models": [
            content_fingerprint(sorted(path for path in folder.iterdir() if path.is_file()), [])
            for folder in folders
            if folder.is_dir()
        ],
        "options": json.loads(json.dumps(dict(options), default=str)),
    }


def _describe_differences(stored: dict[str, Any], job: dict[str, Any]) -> list[str]:
    reasons = []
    if stored.get("attendo") != job["attendo"]:
        reasons.append(message("version {version} of attendo", version=stored.get("attendo")))
    if stored.get("input") != job["input"]:
        reasons.append(message("another input"))
    if stored.get("models") != job["models"]:
        reasons.append(message("another model"))
    before, now = stored.get("options", {}), job["options"]
    return reasons + [
        message(
            "{name}: {before}, now {now}", name=name, before=before.get(name), now=now.get(name)
        )
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
