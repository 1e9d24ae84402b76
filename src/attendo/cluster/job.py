"""Translates files on the machines of a Ray cluster: reads, hands out shards, and keeps account.

The driver reads the files, one after the other, faster than a hundred GPUs translate. Workers write
their shards themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from attendo.cluster.connection import WorkerShape, choose_shape, connect, count_workers
from attendo.cluster.formats import OUTPUT_COLUMN, TEXT_COLUMN, TextLines, choose_format
from attendo.cluster.output import JobOutput, describe_job
from attendo.cluster.scheduler import ShardScheduler
from attendo.cluster.shards import (
    WINDOWS_PER_SHARD,
    cut_shards,
    name_folders,
    shard_name,
)
from attendo.cluster.storage import (
    Folder,
    ReadPosition,
    find_sources,
    open_source,
    same_file_system,
)
from attendo.cluster.worker import ModelFiles, ShardReport, WorkerConfig
from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.core.message import message
from attendo.core.run_folder import ModelFolder
from attendo.data.fingerprint import content_fingerprint
from attendo.text.lines import read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from attendo.cluster.formats import Format
    from attendo.cluster.shards import Shard
    from attendo.cluster.storage import Source
    from attendo.cluster.worker import Formatter


@dataclass(frozen=True)
class ClusterJob:
    """What is translated, and how.

    Args:
        models: model folders; several make an ensemble.
        source: an address, a pattern with * or a folder.
        output: the address of the output folder, which all machines can see.
        decoder: engine, precision and device of `Translator.load`.
        options: the arguments of `Translator.make_steps`.
        formatter: makes the outputs of translations.
        settings: what determines the output, as JSON: a job that goes on must have the same.
        references: one line per row of the source; needs a single file.
        column: of the texts, in JSON lines and Parquet.
        output_column: of the translations.
        max_batch_tokens: of a batch.
        threads: cores per worker.
        num_workers: by default as many as the cluster has capacity for.
        shard_rows: rows per shard, about.

    """

    models: Sequence[Path]
    source: str
    output: str
    decoder: Mapping[str, Any]
    options: Mapping[str, Any]
    formatter: Formatter
    settings: Mapping[str, Any]
    references: str | None = None
    column: str = TEXT_COLUMN
    output_column: str = OUTPUT_COLUMN
    max_batch_tokens: int | None = None
    threads: int | None = None
    num_workers: int | None = None
    shard_rows: int | None = None


@dataclass
class JobProgress:
    """How far a job is."""

    num_files: int = 0
    num_files_done: int = 0
    num_rows: int = 0
    """Rows whose translations are written, also earlier."""
    num_kept: int = 0
    """Rows whose translations were there before."""
    num_failed: int = 0
    num_notes: int = 0
    num_bytes: int = 0
    """Bytes of the files whose shards are written."""
    total_bytes: int = 0
    num_workers: int = 0
    num_lost: int = 0
    num_repeated: int = 0
    unreadable: list[AttendoError] = field(default_factory=list)


@dataclass
class FileState:
    """How far a file is."""

    num_shards: int = 0
    num_rows: int = 0
    num_open: int = 0
    """Shards that are read and not written."""
    num_bytes: int = 0
    """Bytes of the file whose shards are written."""
    is_read: bool = False
    has_failed: bool = False


class ClusterTranslation:
    """Runs a job.

    Args:
        job: what to do.
        address: of the cluster.
        on_progress: called after each shard.
        on_note: receives notes about lines: the file, the row and the text.
        report: receives messages for the user.

    """

    def __init__(
        self,
        job: ClusterJob,
        address: str,
        *,
        on_progress: Callable[[JobProgress], None] | None = None,
        on_note: Callable[[str, int, str], None] | None = None,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self.job, self.address = job, address
        self._on_progress = on_progress or (lambda _: None)
        self._on_note = on_note or (lambda *_: None)
        self._report = report or (lambda _: None)
        self.progress = JobProgress()
        self._sources: list[Source] = []
        self._formats: list[Format] = []
        self._files: list[FileState] = []
        self._first_rows: dict[tuple[int, int], int] = {}
        self._shard_bytes: dict[tuple[int, int], int] = {}
        self._sizes: dict[str, int] = {}

    def run(self, *, resume: bool = False, force: bool = False) -> JobProgress:
        """Translate what is not translated yet.

        Files that cannot be read do not stop the others; they are in `progress.unreadable`.
        """
        job = self.job
        self._sources = find_sources(job.source)
        addresses = [one.address for one in self._sources]
        self._check_sources(addresses)
        names = name_folders(addresses)
        self._formats = [self._choose_format(one) for one in addresses]
        self._files = [FileState() for _ in addresses]
        folder = Folder(same_file_system(job.output))
        output = JobOutput(folder, names, [one.suffix for one in self._formats])
        models = [read_model(path) for path in job.models]
        digests = [model.digest for model in models]
        description = describe_job(self._sources, names, digests, job.settings)
        self.progress.num_files = len(self._sources)
        self.progress.total_bytes = sum(one.size for one in self._sources)
        with connect(self.address) as ray:
            device = job.decoder.get("device")
            shape = choose_shape(ray, device=device, threads=job.threads)
            description |= self._choose_sizes(shape)
            self._sizes = output.begin(description, resume=resume, force=force)
            self._run_on(ray, shape, output, models)
        output.remove_partial_files()
        return self.progress

    def _choose_format(self, address: str) -> Format:
        job = self.job
        return choose_format(address, column=job.column, output_column=job.output_column)

    def _check_sources(self, addresses: Sequence[str]) -> None:
        if self.job.references is None:
            return
        if len(addresses) != 1 or not isinstance(self._choose_format(addresses[0]), TextLines):
            raise ConfigError(
                "--agree-with needs one text file as --input",
                hint="translate the files one by one",
            )

    def _choose_sizes(self, shape: WorkerShape) -> dict[str, int]:
        from attendo.translator.windows import max_window_lines

        window_rows = max_window_lines("cuda" if shape.num_gpus else "cpu")
        shard_rows = self.job.shard_rows or WINDOWS_PER_SHARD * window_rows
        return {"window_rows": window_rows, "shard_rows": shard_rows}

    def _run_on(
        self, ray: Any, shape: WorkerShape, output: JobOutput, models: Sequence[ModelFiles]
    ) -> None:
        job = self.job
        decoder = {**job.decoder, "device": None if shape.num_gpus else "cpu"}
        config = WorkerConfig(
            output.folder.address, decoder, job.options, job.formatter, job.max_batch_tokens,
            shape.num_cpus if not shape.num_gpus else None,
        )  # fmt: skip
        formats = [ray.put(one) for one in self._formats]

        def submit(actor: Any, shard: Shard) -> Any:
            name = shard_name(
                output.names[shard.source], shard.number, output.suffixes[shard.source]
            )
            return actor.translate.remote(shard, formats[shard.source], name)

        def target() -> int:
            return job.num_workers or count_workers(ray, shape)

        load = (ray.put(config), *(ray.put(model) for model in models))
        scheduler = ShardScheduler(ray, shape, load, submit, target, self._report)
        for report in scheduler.run(self._read_shards(output)):
            self._account(report, output)
            self.progress.num_workers = sum(one.is_ready for one in scheduler.workers)
            self.progress.num_lost = scheduler.num_lost
            self.progress.num_repeated = scheduler.num_repeated
            self._on_progress(self.progress)

    def _read_shards(self, output: JobOutput) -> Iterator[Shard]:
        """Yield the shards of all files that are not translated yet."""
        for index, source in enumerate(self._sources):
            state = self._files[index]
            num_rows = output.count_complete(index)
            if num_rows is not None:
                self.progress.num_rows += num_rows
                self.progress.num_kept += num_rows
                self._finish_file(index)
                continue
            done = output.done_shards(index)
            position, before = ReadPosition(), 0
            try:
                for shard in self._cut(index, source, done, position):
                    size = max(0, int(position) - before)
                    before += size
                    self._first_rows[index, shard.number] = state.num_rows
                    self._shard_bytes[index, shard.number] = size
                    state.num_shards += 1
                    state.num_rows += shard.num_rows
                    if shard.number in done:
                        self.progress.num_rows += shard.num_rows
                        self.progress.num_kept += shard.num_rows
                        self._count_bytes(index, size)
                        continue
                    state.num_open += 1
                    yield shard
            except InputError as error:
                state.has_failed = True
                self.progress.unreadable.append(error)
            state.is_read = True
            self._close_if_done(index, output)

    def _count_bytes(self, index: int, count: int) -> None:
        self._files[index].num_bytes += count
        self.progress.num_bytes += count

    def _cut(
        self, index: int, source: Source, done: set[int], position: ReadPosition
    ) -> Iterator[Shard]:
        row_format = self._formats[index]
        references = self._read_references(source)
        sizes = {name: int(self._sizes[name]) for name in ("window_rows", "shard_rows")}
        rows = row_format.read(source.address, position)
        return cut_shards(index, rows, row_format, done=done, references=references, **sizes)

    def _read_references(self, source: Source) -> Iterator[str] | None:
        address = self.job.references
        if address is None:
            return None

        def lines() -> Iterator[str]:
            with open_source(address) as (path, file):
                yield from read_lines(path, file)

        def missing() -> Iterator[str]:
            raise InputError(
                message(
                    "{path} has fewer lines than {source}", path=address, source=source.address
                ),
                hint="both need the same number of lines, one sentence per line",
            )
            yield ""  # type: ignore[unreachable]

        return chain(lines(), missing())

    def _account(self, report: ShardReport, output: JobOutput) -> None:
        progress, state = self.progress, self._files[report.source]
        state.num_open -= 1
        progress.num_rows += report.num_rows
        progress.num_failed += report.num_failed
        progress.num_notes += report.num_notes
        self._count_bytes(report.source, self._shard_bytes.pop((report.source, report.number)))
        first = self._first_rows.pop((report.source, report.number))
        for row, note in report.notes:
            self._on_note(output.names[report.source], first + row, note)
        self._close_if_done(report.source, output)

    def _close_if_done(self, index: int, output: JobOutput) -> None:
        state = self._files[index]
        if state.is_read and not state.num_open and not state.has_failed:
            output.complete(index, num_shards=state.num_shards, num_rows=state.num_rows)
            self._finish_file(index)

    def _finish_file(self, index: int) -> None:
        self.progress.num_files_done += 1
        self._count_bytes(index, self._sources[index].size - self._files[index].num_bytes)


def read_model(path: Path) -> ModelFiles:
    """Return the files of a model folder."""
    folder = ModelFolder.find(path).path
    files = sorted(one for one in folder.iterdir() if one.is_file())
    digest = content_fingerprint(files, [])
    return ModelFiles(digest, {one.name: one.read_bytes() for one in files})
