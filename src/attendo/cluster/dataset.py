"""Translation as a map over a dataset of Ray Data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.cluster.connection import WorkerShape, count_workers, import_ray
from attendo.cluster.formats import OUTPUT_COLUMN, TEXT_COLUMN, import_arrow
from attendo.cluster.job import read_model
from attendo.core.device import use_threads
from attendo.core.errors import InputError, suggest
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import ray.data


class TranslateBatch:
    """Adds a column of translations to batches; one object in each worker.

    Args:
        models: references of `ModelFiles` in the object store.
        column: of the texts.
        output_column: of the translations.
        decoder: the options of `Translator.load`.
        threads: CPU threads.
        arguments: the arguments of `Translator.translate_lines`.

    """

    def __init__(
        self,
        models: Sequence[Any],
        column: str,
        output_column: str,
        decoder: dict[str, Any],
        threads: int | None,
        arguments: dict[str, Any],
    ) -> None:
        from attendo.translator import Translator

        use_threads(threads)
        folders = [model.unpack() for model in import_ray().get(list(models))]
        self.translator = Translator.load(*folders, **decoder)
        self.column, self.output_column, self.arguments = column, output_column, arguments

    def __call__(self, batch: Any) -> Any:
        """Return an Arrow table with the translations of its texts."""
        pa = import_arrow()

        if self.column not in batch.column_names:
            raise InputError(
                message("no column '{column}'", column=self.column),
                hint=suggest(self.column, batch.column_names),
            )
        texts = [text or "" for text in batch.column(self.column).to_pylist()]
        translations = self.translator.translate_lines(texts, skip_failed=True, **self.arguments)
        values = pa.array(map(str, translations), pa.string())
        if self.output_column in batch.column_names:
            batch = batch.drop_columns([self.output_column])
        return batch.append_column(self.output_column, values)


def translate(
    dataset: ray.data.Dataset,
    model: str | Path,
    *more: str | Path,
    column: str = TEXT_COLUMN,
    output_column: str = OUTPUT_COLUMN,
    batch_size: int | None = None,
    num_workers: int | None = None,
    num_cpus: int = 1,
    num_gpus: int = 0,
    engine: str = "attendo",
    precision: str = "auto",
    **arguments: Any,
) -> ray.data.Dataset:
    """Return a dataset with a column of translations; nothing is computed before it is read.

    Args:
        dataset: of Ray Data, with a column of texts.
        model: a model folder or run folder on this machine; it travels to the workers.
        more: other models of an ensemble.
        column: the column of the texts; null is an empty text.
        output_column: the column of the translations.
        batch_size: rows that are translated together; by default as many as `attendo translate`
            takes: 2,048 on a CPU and 16,384 on a GPU.
        num_workers: by default as many as the cluster has capacity for besides the other steps of
            the pipeline. A pool of all cores would leave none to read the data.
        num_cpus: cores of a worker, and its threads.
        num_gpus: GPUs of a worker: 0 or 1.
        engine: see `Translator.load`.
        precision: see `Translator.load`.
        arguments: the other arguments of `Translator.translate_lines`: beam_size, glossary ...

    Returns:
        The dataset with one more column. The order of the rows is that of Ray Data
        (`ray.data.ExecutionOptions.preserve_order`).

    """
    from pathlib import Path

    from attendo.translator.windows import max_window_lines

    ray = import_ray()
    shape = WorkerShape(num_cpus, num_gpus)
    models = [ray.put(read_model(Path(path))) for path in (model, *more)]
    decoder: dict[str, Any] = {"engine": engine, "precision": precision}
    decoder["device"] = "cuda" if num_gpus else "cpu"
    pool = (
        ray.data.ActorPoolStrategy(size=num_workers)
        if num_workers
        else ray.data.ActorPoolStrategy(min_size=1, max_size=max(1, count_workers(ray, shape)))
    )
    threads = None if num_gpus else num_cpus
    return dataset.map_batches(
        TranslateBatch,
        fn_constructor_args=(models, column, output_column, decoder, threads, arguments),
        batch_size=batch_size or max_window_lines("cuda" if num_gpus else "cpu"),
        batch_format="pyarrow",
        compute=pool,
        num_cpus=num_cpus,
        num_gpus=num_gpus,
    )
