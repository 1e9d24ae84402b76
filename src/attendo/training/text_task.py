"""Text pairs: what a translator learns from, and whatever else is said in pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from attendo.bundle import build_model, load_bundle, save_bundle
from attendo.core.errors import ConfigError
from attendo.data.batching import BatchPlan, split_rows
from attendo.data.packed_batching import PackedPlan
from attendo.data.prepare import PreparedData, prepare
from attendo.data.sentences import find_sentences
from attendo.evaluation.calibration import Calibration, calibrate
from attendo.training.init_from import fill_model, given_tokenizer
from attendo.training.report import describe
from attendo.training.samples import SampleBook
from attendo.training.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import torch
    from torch import Tensor, nn

    from attendo.baselines.factory import Model
    from attendo.data.batching import Rows
    from attendo.data.pair import Pair
    from attendo.training.config import RunConfig, TrainConfig
    from attendo.training.distributed import Processes
    from attendo.training.progress import Reporter

CALIBRATION_TOKENS, CALIBRATION_PIECE = 20_000, 4096
"""Dev tokens that the temperature is fitted on, and how many pass the model at once."""


class PairsTask(Task):
    """Source texts into target texts."""

    headline: tuple[str, ...] = ("bleu", "perplexity", "accuracy")

    def __init__(self, config: RunConfig, directory: Path, prepared: PreparedData) -> None:
        super().__init__(config, directory)
        self.prepared = prepared
        self.book = SampleBook(directory, prepared, config.train)
        self._dev = self._make_dev()

    @classmethod
    def prepare(
        cls,
        config: RunConfig,
        directory: Path,
        *,
        processes: Processes,
        cache: Path,
        reporter: Reporter,
    ) -> Self:
        """Prepare the corpora, or find them prepared."""
        seed, tokenizer = config.train.seed, given_tokenizer(config)

        def make(progress: Callable[[str, int, int | None], None] | None = None) -> PreparedData:
            return prepare(config.texts, cache, seed=seed, tokenizer=tokenizer, progress=progress)

        prepared = processes.lead(lambda: make(reporter.stage)) or make()
        return cls(config, directory, prepared)

    def build_model(self) -> Model:
        """Make a new model that fits the tokenizer."""
        chosen = self.config.model
        return build_model(chosen.kind, chosen.options, self.prepared.tokenizer)

    def begin(self, model: Model) -> None:
        """Take the weights of the model folder that the run names."""
        fill_model(model, self.config)

    def make_plan(self, model: Model, processes: Processes) -> BatchPlan:
        """Plan packed batches where the model can read them, else padded ones."""
        return make_plan(self.config.train, self.prepared, model, processes)

    def _make_dev(self) -> BatchPlan:
        corpora = [(self.prepared.dev, 1.0)]
        return BatchPlan(corpora, batch_tokens=self.config.train.batch_tokens, seed=0)

    @property
    def dev(self) -> BatchPlan:
        """The batches of dev."""
        return self._dev

    def describe(self, plan: BatchPlan, model: Model) -> dict[str, Any]:
        """Tell what was kept and dropped, the vocabulary, the batches."""
        return describe(self.config, self.prepared, plan, model)

    def measure(self, model: nn.Module, step: int) -> dict[str, float]:
        """Translate the fixed sentences, and a part of dev for BLEU."""
        return self.book.write(model, step)

    def score(self, model: Model, processes: Processes) -> dict[str, Any]:
        """Score dev by teacher forcing, and by BLEU of what is said greedily."""
        return self.book.score(model, self.dev, processes)

    def calibrate(self, model: Model, processes: Processes) -> Calibration | None:
        """Fit the temperature on the first batches of dev."""
        return fit_temperature(model, self.dev, device=processes.device)

    def save(self, model_dir: Path, model: Model, about: dict[str, Any]) -> None:
        """Write model and tokenizer, and what they were trained on."""
        data = self.config.texts
        facts = {
            "src_lang": data.src_lang,
            "tgt_lang": data.tgt_lang,
            "max_src_tokens": max(
                int(corpus.src_lengths.max()) for corpus, _ in self.prepared.train
            ),
            "num_sentences": count_sentences(self.prepared.dev_pairs),
            **about,
        }
        save_bundle(model_dir, model, self.prepared.tokenizer, about=facts)
        load_bundle(model_dir)  # what was written can be read

    def explain_score(self, dev: dict[str, Any]) -> str:
        """Say how BLEU was measured."""
        return (
            f"BLEU: {dev['decoding']} decoding of {dev['bleu_sentences']} sentences, "
            f"`{dev['bleu_signature']}`"
        )

    def next_command(self) -> str:
        """Name the command that translates."""
        return f"attendo translate {self.directory} '...'"


def make_plan(
    config: TrainConfig, prepared: PreparedData, model: Model, processes: Processes
) -> BatchPlan:
    """Plan packed batches where the model can read them, else padded ones."""
    settings: dict[str, int] = {"batch_tokens": config.batch_tokens, "seed": config.seed}
    can_pack = bool(getattr(model, "can_pack", False)) and not config.shard
    if config.pack and not can_pack:
        raise ConfigError(
            "train.pack needs a Transformer without attention_width and attention_dropout, "
            "not spread over processes (train.shard)",
            remedy="leave train.pack out: batches are then padded",
        )
    if can_pack and config.pack is not False:
        is_fixed = processes.device.type == "cuda" and processes.count == 1
        return PackedPlan(prepared.train, **settings, is_fixed=is_fixed)
    return BatchPlan(prepared.train, **settings)


def count_sentences(pairs: Sequence[Pair]) -> float:
    """Give the mean number of sentences in a source: what the model has learnt to read at once."""
    counts = [len(find_sentences(pair.src)) for pair in pairs]
    return round(sum(counts) / max(len(counts), 1), 3)


def fit_temperature(model: Model, dev: BatchPlan, *, device: torch.device) -> Calibration:
    """Calibrate the finished model on the first batches of dev, in float32."""
    pieces: list[Rows] = []
    num_tokens = 0
    for rows in dev.epoch(0):
        num_tokens += dev.count_labels(rows)
        if pieces and num_tokens > CALIBRATION_TOKENS:
            break
        padded = len(rows) * int(max(dev.src_lengths[rows].max(), dev.tgt_lengths[rows].max()))
        pieces += split_rows(rows, -(-padded // CALIBRATION_PIECE))

    def make_batches() -> Iterator[tuple[Tensor, Tensor]]:
        for rows in pieces:
            batch = dev.read(rows).to(device)
            yield model(batch.src_ids, batch.tgt_ids), batch.labels

    was_training = model.training
    model.eval()
    found = calibrate(make_batches)
    model.train(was_training)
    return found
