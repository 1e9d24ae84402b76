"""Watch the model learn: fixed sentences and a sample of dev, translated at each validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch

from attendo.data.corpus_config import Pair
from attendo.evaluation.bleu import bleu
from attendo.training.distributed import unwrap
from attendo.training.run_log import append_json_line
from attendo.training.train_step import validate
from attendo.translator import Translator

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn

    from attendo.architectures.registry import Model
    from attendo.data.batching import BatchPlan
    from attendo.data.pipeline import PreparedData
    from attendo.training.config import TrainConfig
    from attendo.training.distributed import ProcessGroup

NUM_SAMPLES = 4
FINAL_BLEU_SENTENCES = 1000


class ValidationSamples:
    """Writes `samples.jsonl` and measures BLEU on the way."""

    def __init__(self, directory: Path, prepared: PreparedData, config: TrainConfig) -> None:
        self.path = directory / "samples.jsonl"
        self.tokenizer = prepared.tokenizer
        self.dev_pairs = prepared.dev_pairs
        self.num_bleu_sentences = config.bleu_sentences
        custom = [Pair(text, "") for text in config.samples]
        self.samples = custom or self.dev_pairs[:NUM_SAMPLES]

    def write(self, model: nn.Module, step: int) -> dict[str, float]:
        """Translate the fixed sentences into the file; give BLEU on the sample of dev."""
        translator = Translator(cast("Model", unwrap(model)), self.tokenizer)
        outputs = translator.translate([sample.src for sample in self.samples], beam_size=1)
        lines = [
            {"src": sample.src, "output": output, **({"ref": sample.tgt} if sample.tgt else {})}
            for sample, output in zip(self.samples, outputs, strict=True)
        ]
        append_json_line(self.path, {"step": step, "samples": lines})
        bleu_pairs = self.dev_pairs[: self.num_bleu_sentences]
        if not bleu_pairs:
            return {}
        translations = translator.translate([pair.src for pair in bleu_pairs], beam_size=1)
        return {"bleu": bleu(translations, [pair.tgt for pair in bleu_pairs]).score}

    def score(self, model: Model, dev: BatchPlan, processes: ProcessGroup) -> dict[str, Any]:
        """Score dev with the finished model."""
        batches = (dev.read(rows) for rows in dev.epoch(0))
        validation = validate(model, batches, precision=torch.float32, processes=processes)
        bleu_pairs = self.dev_pairs[:FINAL_BLEU_SENTENCES]
        translator = Translator(model, self.tokenizer)
        translations = translator.translate([pair.src for pair in bleu_pairs], beam_size=1)
        bleu_score = bleu(translations, [pair.tgt for pair in bleu_pairs])
        return {
            "loss": validation.loss,
            "perplexity": validation.perplexity,
            "accuracy": validation.accuracy,
            "bleu": bleu_score.score,
            "bleu_signature": bleu_score.signature,
            "bleu_sentences": len(bleu_pairs),
            "decoding": "greedy",
        }
