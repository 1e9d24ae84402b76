"""The base of all tasks on text: prepared corpora, batches, tokenizer, model folder."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from attendo.bundle import build_model, load_bundle, read_about, save_bundle
from attendo.core.errors import ConfigError
from attendo.data.batching import BatchPlan, split_micro_batches
from attendo.data.findings import raise_errors
from attendo.data.packed_batching import PackedBatchPlan
from attendo.data.pipeline import PreparedData, prepare_data
from attendo.data.readers import find_selection
from attendo.evaluation.calibration import Calibration, calibrate
from attendo.tasks.planner import DataFacts
from attendo.tasks.report import describe_run, summarize_findings
from attendo.tasks.task import Task
from attendo.tasks.warm_start import copy_initial_weights, inherited_tokenizer
from attendo.text.sentences import split_sentences
from attendo.translator.familiarity import Familiarity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import torch
    from torch import Tensor

    from attendo.architectures.registry import Model
    from attendo.data.batching import Rows
    from attendo.data.corpus_config import Pair
    from attendo.data.findings import Finding
    from attendo.tasks.config import RunConfig
    from attendo.training.config import TrainConfig
    from attendo.training.distributed import ProcessGroup
    from attendo.training.progress import Reporter

NUM_SAMPLES = 4
"""Texts of dev whose outputs are written at each validation, unless the run names its own."""
CALIBRATION_TOKENS, CALIBRATION_BATCH_TOKENS = 20_000, 4096
"""Tokens of dev that the temperature is fitted on, in all and per forward pass."""
MAX_FAMILIAR_TEXTS = 5000
"""Texts of dev that show how rare the words of a familiar text may be."""


class TextTask(Task):
    """A task on text pairs, or on plain text."""

    planned_task: Literal["translation", "text"] = "text"
    """How the planner treats it."""

    def __init__(self, config: RunConfig, directory: Path, prepared: PreparedData) -> None:
        super().__init__(config, directory)
        self.prepared = prepared
        self.codec = prepared.tokenizer
        self._dev_plan = self._make_dev_plan()

    @classmethod
    def prepare(
        cls,
        config: RunConfig,
        directory: Path,
        *,
        processes: ProcessGroup,
        cache: Path,
        reporter: Reporter,
        resumed_key: str | None = None,
    ) -> Self:
        """Prepare and check the corpora, or find them in the cache."""
        prepare = partial(
            prepare_data,
            config.text_data,
            cache,
            seed=config.train.seed,
            tokenizer=inherited_tokenizer(config),
            resumed_key=resumed_key,
        )
        for corpus in config.text_data.inputs:
            selection = find_selection(corpus)
            if selection is not None and not selection.is_requested:
                reporter.message(selection.describe())

        def report_findings(findings: Sequence[Finding]) -> None:
            if config.text_data.check and resumed_key is None:
                for line in summarize_findings(findings):
                    reporter.message(line)
                raise_errors(findings)

        prepared = processes.run_on_main(
            lambda: prepare(progress=reporter.stage, on_findings=report_findings)
        )
        return cls(config, directory, prepared or prepare())

    def data_facts(self) -> DataFacts:
        """Return the size of train, in one segmentation."""
        corpora = self.prepared.train
        sides = ([corpus.src_lengths for corpus, _ in corpora], [c.tgt_lengths for c, _ in corpora])
        num_samples = self.config.text_data.num_subword_samples
        num_tokens = max(sum(int(lengths.sum()) for lengths in side) for side in sides)
        return DataFacts(
            num_examples=sum(len(corpus) for corpus, _ in corpora) // num_samples,
            num_tokens=num_tokens // num_samples,
            task=self.planned_task,
        )

    def with_config(self, config: RunConfig) -> Self:
        """Return this task for a config with other settings of model and training."""
        return type(self)(config, self.directory, self.prepared)

    def build_model(self) -> Model:
        """Return a new model that fits the tokenizer."""
        model_config = self.config.model
        return build_model(model_config.kind, model_config.options, self.prepared.tokenizer)

    def load_initial_weights(self, model: Model) -> None:
        """Load the weights of the model folder that the run starts from."""
        copy_initial_weights(model, self.config)

    def make_plan(self, model: Model, processes: ProcessGroup) -> BatchPlan:
        """Return packed batches if the model supports them, otherwise padded ones."""
        return make_plan(self.config.train, self.prepared, model, processes)

    def _make_dev_plan(self) -> BatchPlan:
        corpora = [(self.prepared.dev, 1.0)]
        return BatchPlan(corpora, batch_tokens=self.config.train.batch_tokens, seed=0)

    @property
    def dev(self) -> BatchPlan:
        """The batches of dev."""
        return self._dev_plan

    def describe(self, plan: BatchPlan, model: Model) -> dict[str, Any]:
        """Return what was kept and dropped, the vocabulary, the batches and the model."""
        return describe_run(self.config, self.prepared, plan, model)

    def calibrate(self, model: Model, processes: ProcessGroup) -> Calibration | None:
        """Fit the temperature on the first batches of dev."""
        return fit_temperature(model, self.dev, device=processes.device)

    def describe_model(self, model: Model) -> dict[str, Any]:  # noqa: ARG002 - others need it
        """Return the languages, and what the sources of the corpora are like."""
        data = self.config.text_data
        return {
            **({"labels": list(data.all_labels)} if data.all_labels else {}),
            "src_lang": data.src_lang,
            "tgt_lang": data.tgt_lang,
            "max_src_tokens": max(
                int(corpus.src_lengths.max()) for corpus, _ in self.prepared.train
            ),
            "num_sentences": mean_sentences(self.prepared.dev_pairs),
            "familiarity": self._fit_familiarity(),
            "training": self._training_facts(),
        }

    def save(self, model_dir: Path, model: Model, about: dict[str, Any]) -> None:
        """Write model and tokenizer, and what they were trained on."""
        save_bundle(model_dir, model, self.codec, about={**self.describe_model(model), **about})
        load_bundle(model_dir)  # raises if it cannot be read

    def _training_facts(self) -> dict[str, Any]:
        """Return how many examples the model was trained on, and the names of their files."""
        corpora = self.config.text_data.corpora
        files = [" + ".join(path.name for path in corpus.paths) for corpus in corpora]
        num_examples = sum(corpus["num_train"] for corpus in self.prepared.report["corpora"])
        return {"num_examples": num_examples, "corpora": files}

    def _fit_familiarity(self) -> dict[str, Any] | None:
        """Return the source tokens of train, with those of the model that the run started from.

        If it is not known which tokens that model has seen, nothing is.
        """
        tokenizer, init_from = self.prepared.tokenizer, self.config.model.init_from
        counts = np.zeros(tokenizer.src_vocab_size, np.int64)
        if init_from:
            earlier = read_about(init_from).get("familiarity")
            if not earlier:
                return None
            counts += np.rint(Familiarity(**earlier).counts).astype(np.int64)
        for corpus, _ in self.prepared.train:
            counts += corpus.count_src_ids(len(counts))
        texts = [pair.src for pair in self.prepared.dev_pairs[:MAX_FAMILIAR_TEXTS]]
        fitted = Familiarity.fit(counts, texts, tokenizer.encode_src(texts))
        return fitted.model_dump(mode="json")


def make_plan(
    config: TrainConfig, prepared: PreparedData, model: Model, processes: ProcessGroup
) -> BatchPlan:
    """Return packed batches if the model supports them, otherwise padded ones."""
    settings: dict[str, int] = {"batch_tokens": config.batch_tokens, "seed": config.seed}
    supports_packing = bool(getattr(model, "supports_packing", False)) and not config.fsdp
    if config.sequence_packing and not supports_packing:
        raise ConfigError(
            "train.sequence_packing needs a Transformer without attention_width and "
            "attention_dropout, and cannot be combined with train.fsdp",
            hint="leave train.sequence_packing out: batches are then padded",
        )
    if supports_packing and config.sequence_packing is not False:
        has_fixed_shape = processes.device.type == "cuda" and processes.world_size == 1
        return PackedBatchPlan(prepared.train, **settings, has_fixed_shape=has_fixed_shape)
    return BatchPlan(prepared.train, **settings)


def mean_sentences(pairs: Sequence[Pair]) -> float:
    """Return the mean number of sentences per source: how many the model has learned to read."""
    counts = [len(split_sentences(pair.src)) for pair in pairs]
    return round(sum(counts) / max(len(counts), 1), 3)


def fit_temperature(model: Model, dev: BatchPlan, *, device: torch.device) -> Calibration:
    """Calibrate the finished model on the first batches of dev, in float32."""
    row_chunks: list[Rows] = []
    num_tokens = 0
    for rows in dev.epoch(0):
        num_tokens += dev.count_labels(rows)
        if row_chunks and num_tokens > CALIBRATION_TOKENS:
            break
        padded = len(rows) * int(max(dev.src_lengths[rows].max(), dev.tgt_lengths[rows].max()))
        row_chunks += split_micro_batches(rows, -(-padded // CALIBRATION_BATCH_TOKENS))

    def make_batches() -> Iterator[tuple[Tensor, Tensor]]:
        for rows in row_chunks:
            batch = dev.read(rows).to(device)
            yield model(batch.src_ids, batch.tgt_ids), batch.labels

    was_training = model.training
    model.eval()
    calibration = calibrate(make_batches)
    model.train(was_training)
    return calibration
