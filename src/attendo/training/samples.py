"""Watch the model learn: fixed sentences and a sample of dev, translated at each validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch

from attendo.data.pair import Pair
from attendo.evaluation.bleu import bleu
from attendo.training.distributed import unwrap
from attendo.training.metrics import append_line
from attendo.training.steps import validate
from attendo.translator import Translator

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn

    from attendo.baselines.factory import Model
    from attendo.data.batching import BatchPlan
    from attendo.data.prepare import PreparedData
    from attendo.training.config import TrainConfig
    from attendo.training.distributed import Processes

NUM_SAMPLES = 4
FINAL_SENTENCES = 1000


class SampleBook:
    """Writes `samples.jsonl` and measures BLEU on the way."""

    def __init__(self, directory: Path, prepared: PreparedData, config: TrainConfig) -> None:
        self.path = directory / "samples.jsonl"
        self.tokenizer = prepared.tokenizer
        self.dev = prepared.dev_pairs
        self.num_sentences = config.bleu_sentences
        given = [Pair(text, "") for text in config.samples]
        self.samples = given or self.dev[:NUM_SAMPLES]

    def write(self, model: nn.Module, step: int) -> dict[str, float]:
        """Translate the fixed sentences into the file; give BLEU on the sample of dev."""
        translator = Translator(cast("Model", unwrap(model)), self.tokenizer)
        outputs = translator.translate([sample.src for sample in self.samples], beam_size=1)
        lines = [
            {"src": sample.src, "output": output, **({"ref": sample.tgt} if sample.tgt else {})}
            for sample, output in zip(self.samples, outputs, strict=True)
        ]
        append_line(self.path, {"step": step, "samples": lines})
        part = self.dev[: self.num_sentences]
        if not part:
            return {}
        said = translator.translate([pair.src for pair in part], beam_size=1)
        return {"bleu": bleu(said, [pair.tgt for pair in part]).score}

    def score(self, model: Model, dev: BatchPlan, processes: Processes) -> dict[str, Any]:
        """Score dev with the finished model."""
        batches = (dev.read(rows) for rows in dev.epoch(0))
        found = validate(model, batches, precision=torch.float32, processes=processes)
        part = self.dev[:FINAL_SENTENCES]
        translator = Translator(model, self.tokenizer)
        said = translator.translate([pair.src for pair in part], beam_size=1)
        scored = bleu(said, [pair.tgt for pair in part])
        return {
            "loss": found.loss,
            "perplexity": found.perplexity,
            "accuracy": found.accuracy,
            "bleu": scored.score,
            "bleu_signature": scored.signature,
            "bleu_sentences": len(part),
            "decoding": "greedy",
        }
