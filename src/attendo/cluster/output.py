"""The output folder of a job: a folder of shards for each input, and what was done.

    out/_job.json                what is translated, with which model and options
    out/news.en.gz/part-00000.gz
    out/news.en.gz/part-00001.gz
    out/news.en.gz/_SUCCESS      all shards are there: their number and that of the lines

A shard appears when it is complete (renamed, or an object that appears at once), so that whatever
has the name of a shard need not be translated again.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from attendo.cluster.storage import PARTIAL_SUFFIX, Folder, Source, read_json
from attendo.core.errors import InputError
from attendo.core.message import join_messages, message
from attendo.core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JOB_FILE, SUCCESS_FILE = "_job.json", "_SUCCESS"
SHARD_NAME = re.compile(r"part-(\d+)\.[a-z.]+")


class JobOutput:
    """The output folder.

    Args:
        folder: where it is.
        names: the folder of each source in it.
        suffixes: the ending of the shards of each source.

    """

    def __init__(self, folder: Folder, names: Sequence[str], suffixes: Sequence[str]) -> None:
        self.folder, self.names, self.suffixes = folder, list(names), list(suffixes)
        self._found = set(folder.names())

    def begin(self, job: dict[str, Any], *, resume: bool, force: bool) -> dict[str, Any]:
        """Begin a job or go on with it; return its description, with the sizes it began with.

        Raises:
            InputError: the folder has another job, or files that are not of a job.

        """
        stored = read_json(self.folder, JOB_FILE) if not force else None
        if force:
            self._remove_job()
        elif stored is not None:
            if not resume:
                raise InputError(
                    message(
                        "{path} was begun: {count} shards are translated",
                        path=self.folder.address,
                        count=f"{sum(map(self._is_shard, self._found)):,}",
                    ),
                    hint="--resume goes on there, --force begins again",
                )
            differences = describe_differences(stored, job)
            if differences:
                raise InputError(
                    message(
                        "{path} was begun with something else: {differences}",
                        path=self.folder.address,
                        differences=join_messages("; ", differences),
                    ),
                    hint="give the same input, model and options, or use --force to begin again",
                )
            job = {**job, "window_rows": stored["window_rows"], "shard_rows": stored["shard_rows"]}
        elif resume:
            raise InputError(
                message("there is no interrupted translation of {path}", path=self.folder.address),
                hint="leave out --resume",
            )
        elif self._found:
            raise InputError(
                message("{path} is not empty", path=self.folder.address),
                hint="choose a new folder",
            )
        self.remove_partial_files()
        content = json.dumps(job, ensure_ascii=False, indent=2) + "\n"
        self.folder.write(JOB_FILE, content.encode())
        return job

    def _remove_job(self) -> None:
        """Delete everything that a job writes, and nothing else."""
        ours = {
            name
            for name in self._found
            if self._is_shard(name) or name.rpartition("/")[2] in {JOB_FILE, SUCCESS_FILE}
        }
        self.folder.remove(sorted(ours))
        self._found -= ours

    def remove_partial_files(self) -> None:
        """Delete what workers that were killed have left."""
        left = [name for name in self.folder.names() if self._is_partial(name)]
        self.folder.remove(left)

    def done_shards(self, index: int) -> set[int]:
        """Return the numbers of the shards of a source that are translated."""
        start = f"{self.names[index]}/"
        return {
            int(match[1])
            for name in self._found
            if name.startswith(start)
            and (match := SHARD_NAME.fullmatch(name[len(start) :]))
            and name.endswith(self.suffixes[index])
        }

    def count_complete(self, index: int) -> int | None:
        """Return the number of lines of a source that is translated; None if it is not."""
        name = f"{self.names[index]}/{SUCCESS_FILE}"
        if name not in self._found:
            return None
        stored = read_json(self.folder, name) or {}
        is_whole = len(self.done_shards(index)) == stored.get("shards")
        return int(stored["lines"]) if is_whole else None

    def complete(self, index: int, *, num_shards: int, num_rows: int) -> None:
        """Record that all shards of a source are there."""
        content = json.dumps({"lines": num_rows, "shards": num_shards}) + "\n"
        self.folder.write(f"{self.names[index]}/{SUCCESS_FILE}", content.encode())

    @staticmethod
    def _is_shard(name: str) -> bool:
        return SHARD_NAME.fullmatch(name.rpartition("/")[2]) is not None

    @staticmethod
    def _is_partial(name: str) -> bool:
        last = name.rpartition("/")[2]
        return last.startswith((".part-", "._")) and last.endswith(PARTIAL_SUFFIX)


def describe_job(
    sources: Sequence[Source],
    names: Sequence[str],
    models: Sequence[str],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what determines the translations, as JSON."""
    return {
        "attendo": __version__,
        "inputs": {name: one.digest for name, one in zip(names, sources, strict=True)},
        "models": list(models),
        "options": json.loads(json.dumps(dict(options), default=str)),
    }


def describe_differences(stored: dict[str, Any], job: dict[str, Any]) -> list[str]:
    """Return why a job cannot go on with what an earlier one has written; new inputs are fine."""
    reasons = []
    if stored.get("attendo") != job["attendo"]:
        reasons.append(message("version {version} of attendo", version=stored.get("attendo")))
    if stored.get("models") != job["models"]:
        reasons.append(message("another model"))
    inputs = stored.get("inputs", {})
    reasons += [
        message("{path} has changed", path=name)
        for name, digest in job["inputs"].items()
        if name in inputs and inputs[name] != digest
    ]
    before, now = stored.get("options", {}), job["options"]
    return reasons + [
        message(
            "{name}: {before}, now {now}", name=name, before=before.get(name), now=now.get(name)
        )
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
