"""A worker: loads the model once and translates one shard after the other.

It runs in an actor of Ray. Errors that a user can fix are returned, not raised: Ray would wrap them
in a trace of its own.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, Protocol

from attendo.core.device import use_threads
from attendo.core.errors import AttendoError
from attendo.core.files import cache_dir, new_directory
from attendo.core.message import message
from attendo.core.process_lock import process_lock
from attendo.core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from attendo.cluster.formats import Format
    from attendo.cluster.shards import Shard
    from attendo.translator import Translation, Translator

MAX_NOTES = 20
"""Notes of a shard that are returned."""
MODELS_DIR = "cluster"


class Formatter(Protocol):
    """Makes the output of translations: one text per row."""

    def __call__(
        self,
        translations: Sequence[Translation],
        references: Sequence[str],
        translator: Translator,
    ) -> list[str]:
        """Return the outputs."""
        ...


@dataclass(frozen=True)
class ModelFiles:
    """A model folder that travels to the workers."""

    digest: str
    files: Mapping[str, bytes]

    def unpack(self) -> Path:
        """Write the files into the cache of this machine, once, and return the folder."""
        root = cache_dir() / MODELS_DIR
        root.mkdir(parents=True, exist_ok=True)
        folder = root / self.digest
        with process_lock(root / f".{self.digest}.lock"):
            if not folder.is_dir():
                with new_directory(folder) as partial:
                    for name, content in self.files.items():
                        (partial / name).write_bytes(content)
        return folder


@dataclass(frozen=True)
class WorkerConfig:
    """What every worker does.

    Args:
        output: the address of the output folder.
        decoder: engine, precision and device of `Translator.load`.
        options: the arguments of `Translator.make_steps`.
        formatter: makes the outputs.
        max_batch_tokens: of a batch.
        num_threads: on a CPU.
        version: of the driver's Attendo.

    """

    output: str
    decoder: Mapping[str, Any]
    options: Mapping[str, Any]
    formatter: Formatter
    max_batch_tokens: int | None = None
    num_threads: int | None = None
    version: str = __version__


@dataclass(frozen=True)
class Failure:
    """An error of a worker."""

    reason: str
    hint: str | None
    node: str

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Return what a user needs to know of an error."""
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        return cls(reason, getattr(error, "hint", None), socket.gethostname())

    def to_error(self) -> AttendoError:
        """Return the error, which names the machine."""
        return AttendoError(
            message("{name}: {detail}", name=self.node, detail=self.reason), hint=self.hint
        )


@dataclass(frozen=True)
class ShardReport:
    """What a worker did."""

    source: int
    number: int
    num_rows: int
    num_failed: int = 0
    notes: tuple[tuple[int, str], ...] = ()
    """The first ones, with the row in the shard, from 1 on."""
    num_notes: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Of all threads of the worker."""
    pid: int = field(default_factory=os.getpid)


class TranslationWorker:
    """Translates shards; all methods return a `Failure` instead of raising an error."""

    def __init__(self) -> None:
        self._translator: Translator | None = None
        self._config: WorkerConfig | None = None

    def load(self, config: WorkerConfig, *models: ModelFiles) -> Failure | str:
        """Load the models; return the device."""
        try:
            return self._load(config, models)
        except (AttendoError, OSError, RuntimeError, MemoryError) as error:
            return Failure.of(error)

    def _load(self, config: WorkerConfig, models: Sequence[ModelFiles]) -> str:
        from attendo.cluster.output import JOB_FILE
        from attendo.cluster.storage import Folder
        from attendo.translator import Translator

        if config.version != __version__:
            raise AttendoError(
                message(
                    "attendo {version} is installed, but the command is {other}",
                    version=__version__,
                    other=config.version,
                ),
                hint="install the same version on all machines",
            )
        if Folder(config.output).read(JOB_FILE) is None:
            raise AttendoError(
                message("{path} cannot be seen from this machine", path=config.output),
                hint="choose an output folder that all machines share: a network drive, or an "
                "address such as s3://bucket/out",
            )
        use_threads(config.num_threads)
        folders = [model.unpack() for model in models]
        self._translator = Translator.load(*folders, **config.decoder)
        self._translator.backend.max_batch_tokens = config.max_batch_tokens
        self._config = config
        return self._translator.backend.device_type

    def translate(self, shard: Shard, row_format: Format, name: str) -> Failure | ShardReport:
        """Translate a shard and write it to the file `name` of the output folder."""
        try:
            return self._translate(shard, row_format, name)
        except (AttendoError, OSError, RuntimeError, MemoryError) as error:
            return Failure.of(error)

    def _translate(self, shard: Shard, row_format: Format, name: str) -> ShardReport:
        from attendo.cluster.storage import Folder

        config, translator = self._config, self._translator
        if config is None or translator is None:
            raise AttendoError("the worker has no model")
        begin, cpu_begin = perf_counter(), process_time()
        outputs: list[str] = []
        notes: list[tuple[int, str]] = []
        num_notes = num_failed = 0
        texts = row_format.texts(shard.content)
        windows = take_windows(texts, shard.window_sizes)
        references = iter(shard.references)
        for translations in translate_windows(translator, windows, config.options):
            for row, translation in enumerate(translations, len(outputs) + 1):
                num_notes += len(translation.notes)
                num_failed += sum(note.startswith("failed") for note in translation.notes)
                notes += [(row, note) for note in translation.notes[: MAX_NOTES - len(notes)]]
            matching = list(islice(references, len(translations)))
            outputs += config.formatter(translations, matching, translator)
        folder = Folder(config.output)
        if not folder.exists(name):  # by a worker that was taken for lost
            folder.write(name, row_format.render(shard.content, outputs))
        return ShardReport(
            shard.source,
            shard.number,
            shard.num_rows,
            num_failed,
            tuple(notes),
            num_notes,
            perf_counter() - begin,
            process_time() - cpu_begin,
        )


def take_windows(texts: Iterable[str], sizes: Iterable[int]) -> Iterator[list[str]]:
    """Yield the texts in windows of these sizes.

    >>> list(take_windows("abcde", (2, 3)))
    [['a', 'b'], ['c', 'd', 'e']]
    """
    remaining = iter(texts)
    for size in sizes:
        yield list(islice(remaining, size))


def translate_windows(
    translator: Translator, windows: Iterable[Sequence[str]], options: Mapping[str, Any]
) -> Iterator[list[Translation]]:
    """Yield the translations of each window, from the pipeline of `attendo translate`."""
    from attendo.translator.pipeline import Pipeline

    steps = translator.make_steps(**options, skip_failed=True)
    yield from Pipeline(steps, windows).run()
